// All packets of a world that are on their way, in order of arrival.
//
// What leaves one stage of a path arrives at the next in the order in which it left, so that packets come in a few
// sorted runs: a lane is such a run, first in, first out. A packet goes into the lane that its flow's stage used
// last, or any that it can end; what fits nowhere waits in a heap. At one instant the lower flow comes first, and
// of a flow the lower stage.
#pragma once
#include <algorithm>
#include <vector>

#include "netbuf/packet.h"
#include "netbuf/ring.h"

namespace netbuf {

class Flights {
 public:
  static constexpr uint32_t kLanes = 8;

  Time next() const { return head_[first()]; }  // kNever: nothing is on its way

  // The lane whose head arrives first.
  uint32_t first() const {
    if (used_ == 2) return comes_before(1, 0);
    uint32_t best = 0;
    Time time = head_[0], second = kNever;
    for (uint32_t i = 1; i < used_; ++i) {
      const Time head = head_[i];
      second = std::min(second, std::max(time, head));
      best = head < time ? i : best;
      time = std::min(time, head);
    }
    if (second == time && time < kNever) [[unlikely]] {
      for (uint32_t i = best + 1; i < used_; ++i) best = comes_before(i, best) ? i : best;
    }
    return best;
  }
  Time time(uint32_t lane) const { return head_[lane]; }
  const Flight& front(uint32_t lane) const {
    return lane == kHeap ? pool_[heap_.front().place] : lanes_[lane].ring.front();
  }

  Destination destination(uint32_t lane) const { return destination_[lane]; }  // of the head

  void pop(uint32_t lane, Flight& flight) {
    if (lane == kHeap) [[unlikely]] return pop_heap(flight);
    Ring<Flight>& ring = lanes_[lane].ring;
    flight = ring.front();
    ring.pop();
    ring.empty() ? clear_head(lane) : set_head(lane, ring.front());
  }

  // Room for what reaches a stage of a flow then, its other members to be filled in.
  // hint: the lane that this stage used last.
  Flight& place(Time time, Destination to, uint8_t& hint) {
    const uint32_t lane = hint;
    if (time <= lanes_[lane].back) [[unlikely]] return place_elsewhere({time, to}, hint);
    return append(lane, {time, to});
  }
  void push(const Flight& flight, uint8_t& hint) { place(flight.packet.time, flight.packet.destination(), hint) = flight; }
  // Makes room for a run more; the hint for it.
  uint8_t add_lane() { return static_cast<uint8_t>(used_ < kLanes ? used_++ : kLanes - 1); }

  template <class Hot>
  void add_to(Hot& hot) const {
    for (uint32_t i = 0; i < 2; ++i) {
      if (!lanes_[i].ring.empty()) hot.add(&lanes_[i].ring.front(), 256);
    }
  }
  size_t memory_bytes() const {
    size_t bytes = heap_.capacity() * sizeof(Waiting) + pool_.capacity() * sizeof(Flight);
    for (const Lane& lane : lanes_) bytes += lane.ring.memory_bytes();
    return bytes;
  }

 private:
  static constexpr uint32_t kHeap = kLanes;
  struct Lane {
    Ring<Flight> ring;
    Time back = -1;                      // arrival of the last that went in
  };
  struct Key {
    Time time;
    Destination to;
    auto operator<=>(const Key&) const = default;
  };
  struct Waiting {
    Key key;
    uint64_t number;                     // of those that waited: first in, first out of equals
    uint32_t place;                      // in the pool
    bool operator<(const Waiting& other) const { return key != other.key ? key > other.key : number > other.number; }
  };

  bool comes_before(uint32_t a, uint32_t b) const {  // without a branch: which of two it is cannot be foreseen
    return (head_[a] < head_[b]) | ((head_[a] == head_[b]) & (destination_[a] < destination_[b]));
  }
  void set_head(uint32_t lane, const Flight& flight) {
    head_[lane] = flight.packet.time;
    destination_[lane] = flight.packet.destination();
  }
  void clear_head(uint32_t lane) { head_[lane] = kNever; }

  static Key key(const Flight& flight) { return {flight.packet.time, flight.packet.destination()}; }
  bool ends(uint32_t lane, const Key& flight) const {  // whether the lane stays sorted
    const Lane& one = lanes_[lane];
    return one.back < flight.time || one.ring.empty() || key(one.ring.back()) <= flight;
  }
  Flight& append(uint32_t number, Key key) {
    Lane& lane = lanes_[number];
    lane.back = key.time;
    if (lane.ring.empty()) head_[number] = key.time, destination_[number] = key.to;
    Flight& flight = lane.ring.place();
    flight.packet.time = key.time;
    flight.packet.to = key.to.word();
    return flight;
  }
  [[gnu::noinline]] Flight& place_elsewhere(Key flight, uint8_t& hint);
  uint8_t choose(const Key& flight, uint8_t hint);
  Flight& place_in_heap(const Key& flight, uint8_t& hint);
  void pop_heap(Flight& flight);

  Time head_[kLanes + 1] = {kNever, kNever, kNever, kNever, kNever, kNever, kNever, kNever, kNever};
  Destination destination_[kLanes + 1];
  uint32_t used_ = 2;                    // lanes looked at; kLanes + 1: the heap too
  Lane lanes_[kLanes];
  std::vector<Waiting> heap_;            // the first comes first
  std::vector<Flight> pool_;
  std::vector<uint32_t> free_;           // places in the pool
  uint64_t waited_ = 0;
};

}  // namespace netbuf
