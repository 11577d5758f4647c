#include "netbuf/flights.h"

namespace netbuf {

uint32_t Flights::first_of_many() const {
  uint32_t best = 0;
  Key least = head_[0];
  for (uint32_t i = 1; i < used_; ++i) {
    const bool before = head_[i] < least;
    best = before ? i : best;
    least = before ? head_[i] : least;
  }
  return best;
}

Flight& Flights::place_elsewhere(Key flight, uint8_t& hint) {
  hint = choose(flight, hint);
  return hint == kHeap ? place_in_heap(flight, hint) : append(lanes_[hint], hint, flight);
}

uint8_t Flights::choose(const Key& flight, uint8_t hint) {
  if (hint == kLanes - 1 && !heap_.empty() && alike(flight) > 0) return kHeap;  // behind its equals
  if (ends(hint, flight)) return hint;
  for (uint32_t i = 0; i < std::min(used_, kLanes); ++i) {
    if (!ends(i, flight)) continue;
    if (i > hint || !holds(hint, flight)) return static_cast<uint8_t>(i);
    i = hint;  // of equal heads the lowest lane's leaves first
  }
  return static_cast<uint8_t>(used_ < kLanes ? used_++ : kHeap);
}

bool Flights::holds(uint32_t lane, const Key& flight) const {
  const Ring<Flight>& ring = lanes_[lane].ring;
  uint32_t first = ring.head(), last = ring.tail();  // the first that is not before it lies between
  while (first != last) {
    const uint32_t middle = first + (last - first) / 2;
    if (key(ring[middle]) < flight) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  return first != ring.tail() && key(ring[first]) == flight;
}

Flight& Flights::place_in_heap(const Key& flight, uint8_t& hint) {
  hint = kLanes - 1;
  used_ = kLanes + 1;
  if (free_.empty()) {
    free_.push_back(static_cast<uint32_t>(pool_.size()));
    pool_.emplace_back();
  }
  const uint32_t place = free_.back();
  free_.pop_back();
  if (alike_.empty()) alike_.resize(256);
  ++alike(flight);
  heap_.push_back({flight, waited_++, place});
  std::push_heap(heap_.begin(), heap_.end());
  pool_[place].packet.time = flight.time();
  pool_[place].packet.to = flight.destination().word();
  head_[kHeap] = heap_.front().key;
  return pool_[place];
}

void Flights::pop_heap(Flight& flight) {
  std::pop_heap(heap_.begin(), heap_.end());
  const uint32_t place = heap_.back().place;
  --alike(heap_.back().key);
  heap_.pop_back();
  free_.push_back(place);
  flight = pool_[place];
  head_[kHeap] = heap_.empty() ? Key() : heap_.front().key;
}

}  // namespace netbuf
