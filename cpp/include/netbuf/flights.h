// All packets of a world that are on their way, in order of arrival.
//
// What leaves one stage of a path arrives at the next in the order in which it left, so that packets come in a few sorted runs:
// a lane is such a run, first in, first out. A packet goes into the lane that its flow's stage used last, or any that it can
// end; what fits nowhere waits in a heap. At one instant the lower flow comes first, and of a flow the lower stage.
#pragma once
#include <algorithm>
#include <vector>

#include "netbuf/packet.h"
#include "netbuf/ring.h"

namespace netbuf {

class Flights {
 public:
  Time next() const { return head_[first()]; }  // kNever: nothing is on its way

  // The lane whose head arrives first.
  uint32_t first() const {
    uint32_t best = 0;
    Time time = head_[0];
    for (uint32_t i = 1; i < used_; ++i) {
      if (head_[i] < time) {
        best = i, time = head_[i];
      } else if (head_[i] == time && time < kNever && precedes(front(i), front(best))) [[unlikely]] {
        best = i;
      }
    }
    return best;
  }
  Time time(uint32_t lane) const { return head_[lane]; }
  const Flight& front(uint32_t lane) const { return lane == kHeap ? heap_.front().flight : lanes_[lane].front(); }

  Flight pop(uint32_t lane) {
    if (lane == kHeap) [[unlikely]] return pop_heap();
    Ring<Flight>& ring = lanes_[lane];
    const Flight flight = ring.front();
    ring.pop();
    head_[lane] = ring.empty() ? kNever : ring.front().packet.time;
    return flight;
  }

  // hint: the lane that this stage of the flow used last.
  void push(const Flight& flight, uint8_t& hint) {
    if (!ends(hint, flight)) [[unlikely]] {
      hint = choose(flight);
      if (hint == kHeap) return push_heap(flight);
    }
    Ring<Flight>& ring = lanes_[hint];
    if (ring.empty()) head_[hint] = flight.packet.time;
    ring.push(flight);
  }

  size_t memory_bytes() const {
    size_t bytes = heap_.capacity() * sizeof(Waiting);
    for (const Ring<Flight>& lane : lanes_) bytes += lane.memory_bytes();
    return bytes;
  }

 private:
  static constexpr uint32_t kLanes = 8, kHeap = kLanes;
  struct Waiting {
    Flight flight;
    uint64_t number;                     // of those that waited: first in, first out of equals
  };

  struct Later {
    bool operator()(const Waiting& a, const Waiting& b) const;
  };

  static bool precedes(const Flight& a, const Flight& b) {
    if (a.packet.time != b.packet.time) return a.packet.time < b.packet.time;
    return a.packet.flow != b.packet.flow ? a.packet.flow < b.packet.flow : a.packet.stage < b.packet.stage;
  }
  bool ends(uint32_t lane, const Flight& flight) const {  // whether the lane stays sorted
    if (lane >= used_ || lane == kHeap) return false;
    const Ring<Flight>& ring = lanes_[lane];
    return ring.empty() || ring.back().packet.time < flight.packet.time || !precedes(flight, ring.back());
  }
  uint8_t choose(const Flight& flight);
  void push_heap(const Flight& flight);
  Flight pop_heap();

  Time head_[kLanes + 1] = {kNever, kNever, kNever, kNever, kNever, kNever, kNever, kNever, kNever};
  uint32_t used_ = 2;                    // lanes looked at; kLanes + 1: the heap too
  Ring<Flight> lanes_[kLanes];
  std::vector<Waiting> heap_;
  uint64_t waited_ = 0;
};

}  // namespace netbuf
