// All packets of a world that are on their way, in order of arrival.
//
// What leaves one stage of a path arrives at the next in the order in which it left, so that packets come in a few
// sorted runs: a lane is such a run, first in, first out. A packet goes into the lane that its flow's stage used
// last, or any that it can end; what fits nowhere waits in a heap. At one instant the lower flow comes first, of
// a flow the lower stage, and of a stage what was sent first, unless it has overtaken others of its stage.
#pragma once
#include <algorithm>
#include <compare>
#include <limits>
#include <vector>

#include "netbuf/packet.h"
#include "netbuf/ring.h"

namespace netbuf {

class Flights {
 public:
  static constexpr uint32_t kLanes = 8;

  Time next() const { return std::min(time(first()), kNever); }  // kNever: nothing is on its way

  // Which head arrives first: of two lanes its lane, of more the first in order.
  uint32_t first() const { return used_ == 2 ? head_[1] < head_[0] : 0; }
  // Of that head.
  Time time(uint32_t first) const { return head_[first].time(); }  // kNever or more: nothing is on its way
  Destination destination(uint32_t first) const { return head_[first].destination(); }
  const Flight& front(uint32_t first) const {
    const uint32_t lane = used_ == 2 ? first : head_[0].lane();
    return lane == kHeap ? pool_[heap_.front().place] : lanes_[lane].ring.front();
  }
  // What comes after that head in its lane; null: nothing.
  const Flight* second(uint32_t first) const {
    const uint32_t lane = used_ == 2 ? first : head_[0].lane();
    if (lane == kHeap || lanes_[lane].ring.size() < 2) return nullptr;
    return &lanes_[lane].ring[lanes_[lane].ring.head() + 1];
  }
  void pop(uint32_t first, Flight& flight) {
    if (used_ > 2) [[unlikely]] return pop_of_many(flight);
    Ring<Flight>& ring = lanes_[first].ring;
    flight = ring.front();
    ring.pop();
    if (ring.empty()) [[unlikely]] {
      head_[first] = {};
    } else {
      head_[first] = key(ring.front());
    }
  }

  // Before that time nothing but what the head's lane holds arrives.
  Time next_beside(uint32_t first) const { return used_ == 2 ? head_[1 - first].time() : head_[1].time(); }
  void drop(uint32_t first) {            // that head
    if (Flight only; used_ > 2) [[unlikely]] return pop_of_many(only);
    Ring<Flight>& ring = lanes_[first].ring;
    ring.pop();
    head_[first] = ring.empty() ? Key() : key(ring.front());
  }
  // Takes the first so many of the train that it is, see place_train(); step: segments.
  void take(uint32_t first, uint32_t count, uint32_t step, Time spacing) {
    const uint32_t lane = used_ == 2 ? first : head_[0].lane();
    if (lane == kHeap) [[unlikely]] return drop(first);
    Flight& train = lanes_[lane].ring.front();
    if (count > followers(train.packet)) return drop(first);
    train.packet.time += count * spacing;
    train.packet.segment += count * step;  // of an ACK, what it acknowledges
    train.packet.to -= uint64_t{count} << kTrainBit;
    if (used_ > 2) [[unlikely]] return replace_first(key(train).in(lane));
    head_[first] = key(train);
  }

  // Room for what reaches a stage of a flow then, its other members to be filled in.
  // hint: the lane that this stage used last.
  Flight& place(Time time, Destination to, uint8_t& hint) {
    Lane& lane = lanes_[hint];
    if (time <= lane.back) [[unlikely]] return place_elsewhere({time, to}, hint);
    return append(lane, hint, time, to);
  }
  // As place() for several that reach it one spacing after the other. fill(flight): in order.
  template <class Fill>
  void place_run(Time first, Time spacing, uint32_t count, Destination to, uint8_t& hint, Fill&& fill) {
    if (count == 0) return;
    if (first <= lanes_[hint].back) [[unlikely]] {
      if (const uint8_t lane = choose({first, to}, hint); lane < kHeap) {
        hint = lane;
      } else {
        for (Time time = first; count > 0; --count, time += spacing) fill(place(time, to, hint));
        return;
      }
    }
    Lane& lane = lanes_[hint];
    if (lane.ring.empty()) begin(hint, {first, to});
    lane.back = first + (count - 1) * spacing;
    lane.ring.reserve(count);
    lane.ring.extend_reserved(count, [&](Flight& flight) {
      flight.packet.time = first;
      flight.packet.to = to.word();
      fill(flight);
      first += spacing;
    });
  }
  // As place_run() in one place, which stands for all of them (kTrainBit). fill(flight): of the first, but for the kind of
  // data, which is the last's. step: segments.
  template <class Fill>
  [[gnu::always_inline]] void place_train(Time first, Time spacing, uint32_t count, uint32_t step, Destination to,
                                          uint8_t& hint, Fill&& fill) {
    Lane& lane = lanes_[hint];
    const uint64_t word = to.word() | uint64_t{count - 1} << kTrainBit;
    if (first <= lane.back) [[unlikely]] {
      Flight train;
      train.packet.time = first;
      train.packet.to = word;
      fill(train);
      return place_train_elsewhere(train, spacing, step, hint);
    }
    if (lane.ring.empty()) begin(hint, {first, to});
    lane.back = first + (count - 1) * spacing;
    Flight& flight = lane.ring.place();
    flight.packet.time = first;
    flight.packet.to = word;
    fill(flight);
  }
  void push(const Flight& flight, uint8_t& hint) { place(flight.packet.time, flight.packet.destination(), hint) = flight; }
  // Makes room for a run more; the hint for it.
  uint8_t add_lane() {
    if (used_ >= kLanes) return kLanes - 1;
    use(used_ + 1);
    return static_cast<uint8_t>(used_ - 1);
  }

  template <class Hot>
  void add_to(Hot& hot) const {
    for (uint32_t i = 0; i < 2; ++i) {
      if (!lanes_[i].ring.empty()) hot.add(&lanes_[i].ring.front(), 256);
    }
    for (uint32_t i = 2; i < std::min(used_, kLanes); ++i) {
      if (!lanes_[i].ring.empty()) hot.add(&lanes_[i].ring.front(), 64);
    }
  }
  // visit(flow): whom what arrives first on each lane is for, each once.
  template <class Visit>
  void visit_next(Visit&& visit) const {
    uint32_t seen[kLanes], count = 0;
    for (uint32_t i = 0; i < std::min(used_, kLanes); ++i) {
      if (lanes_[i].ring.empty()) continue;
      const uint32_t flow = lanes_[i].ring.front().packet.flow();
      if (std::find(seen, seen + count, flow) != seen + count) continue;
      visit(seen[count++] = flow);
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
  // When and where something arrives, and in which lane it is. At the same instant the lower destination comes first, and of
  // equals the lower lane: compared as one number, since which it is cannot be foreseen.
  class Key {
   public:
    Key() = default;                     // of nothing: never
    Key(Time time, uint64_t to) : place_(to << kBeside), time_(time) {}
    Key(Time time, Destination to) : Key(time, to.word()) {}
    static Key beyond() {                // everything, never too
      Key last;
      last.time_ = std::numeric_limits<Time>::max();
      return last;
    }
    Key in(uint32_t lane) const {        // of one that is in none
      Key there = *this;
      there.place_ |= lane;
      return there;
    }
    Time time() const { return time_; }
    Destination destination() const { return Destination::of(place_ >> kBeside); }
    uint32_t lane() const { return static_cast<uint8_t>(place_); }
    bool operator==(const Key&) const = default;
    std::strong_ordering operator<=>(const Key& other) const { return number() <=> other.number(); }

   private:
    __extension__ typedef __int128 Number;
    Number number() const { return static_cast<Number>(time_) << 64 | place_; }
    static constexpr int kBeside = 24;   // a Destination
    uint64_t place_ = 0;
    Time time_ = kNever;
  };
  struct Waiting {
    Key key;
    uint64_t number;                     // of those that waited: first in, first out of equals
    uint32_t place;                      // in the pool
    bool operator<(const Waiting& other) const { return key != other.key ? key > other.key : number > other.number; }
  };

  static Key key(const Flight& flight) { return {flight.packet.time, flight.packet.to}; }
  void use(uint32_t lanes);
  void begin(uint32_t lane, const Key& head) {  // of a lane that was empty
    if (used_ > 2) [[unlikely]] return insert(head.in(lane));
    head_[lane] = head;
  }
  [[gnu::noinline]] void pop_of_many(Flight& flight);
  [[gnu::noinline]] void insert(Key head);
  void replace_first(Key head);          // by one that is no earlier
  bool ends(uint32_t lane, const Key& flight) const {  // whether the lane stays sorted
    const Lane& one = lanes_[lane];
    return one.back < flight.time() || one.ring.empty() || Key(one.back, key(one.ring.back()).destination()) <= flight;
  }
  Flight& append(Lane& lane, uint32_t number, Time time, Destination to) {
    lane.back = time;
    if (lane.ring.empty()) begin(number, {time, to});
    Flight& flight = lane.ring.place();
    flight.packet.time = time;
    flight.packet.to = to.word();
    return flight;
  }
  [[gnu::noinline]] Flight& place_elsewhere(Key flight, uint8_t& hint);
  [[gnu::noinline]] void place_train_elsewhere(const Flight& train, Time spacing, uint32_t step, uint8_t& hint);
  uint8_t choose(const Key& flight, uint8_t hint);
  bool holds(uint32_t lane, const Key& flight) const;  // one that equals it
  uint32_t& alike(const Key& flight) {
    const uint64_t mixed = static_cast<uint64_t>(flight.time()) + flight.destination().word() * 0x9e3779b97f4a7c15;
    return alike_[(mixed * 0xbf58476d1ce4e5b9) >> 56];
  }
  Flight& place_in_heap(const Key& flight, uint8_t& hint);
  [[gnu::noinline]] void pop_heap(Flight& flight);

  // Of two lanes by lane; of more, and the heap, those that there are in order, and what is beyond.
  Key head_[kLanes + 2];
  uint32_t used_ = 2;                    // lanes; kLanes + 1: the heap too
  Lane lanes_[kLanes];
  std::vector<Waiting> heap_;            // the first comes first
  std::vector<Flight> pool_;
  std::vector<uint32_t> free_;           // places in the pool
  uint64_t waited_ = 0;
  std::vector<uint32_t> alike_;          // how many of the heap may equal one, by a hash of it
};

}  // namespace netbuf
