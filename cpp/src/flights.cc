#include "netbuf/flights.h"

namespace netbuf {

uint8_t Flights::choose(const Flight& flight) {
  for (uint32_t i = 0; i < std::min(used_, kLanes); ++i) {
    if (ends(i, flight)) return static_cast<uint8_t>(i);
  }
  if (used_ < kLanes) return static_cast<uint8_t>(used_++);
  used_ = kLanes + 1;
  return kHeap;
}

bool Flights::Later::operator()(const Waiting& a, const Waiting& b) const {
  if (precedes(b.flight, a.flight)) return true;
  return !precedes(a.flight, b.flight) && b.number < a.number;
}

void Flights::push_heap(const Flight& flight) {
  heap_.push_back({flight, waited_++});
  std::push_heap(heap_.begin(), heap_.end(), Later{});
  head_[kHeap] = heap_.front().flight.packet.time;
}

Flight Flights::pop_heap() {
  std::pop_heap(heap_.begin(), heap_.end(), Later{});
  const Flight flight = heap_.back().flight;
  heap_.pop_back();
  head_[kHeap] = heap_.empty() ? kNever : heap_.front().flight.packet.time;
  return flight;
}

}  // namespace netbuf
