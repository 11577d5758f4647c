#include "netbuf/flights.h"

#include <utility>

namespace netbuf {

// So many lanes from now on, more than two; the heads of all that have something in them.
void Flights::use(uint32_t lanes) {
  used_ = lanes;
  head_[0] = Key::beyond();
  for (uint32_t i = 0; i < kLanes; ++i) {
    if (!lanes_[i].ring.empty()) insert(key(lanes_[i].ring.front()).in(i));
  }
  if (!heap_.empty()) insert(heap_.front().key.in(kHeap));
}

// The head that follows is mostly later than those of the other lanes.
void Flights::pop_of_many(Flight& flight) {
  const uint32_t lane = head_[0].lane();
  Key head = Key::beyond();
  if (lane == kHeap) [[unlikely]] {
    pop_heap(flight);
    if (!heap_.empty()) head = heap_.front().key.in(kHeap);
  } else {
    Ring<Flight>& ring = lanes_[lane].ring;
    flight = ring.front();
    ring.pop();
    if (!ring.empty()) head = key(ring.front()).in(lane);
  }
  replace_first(head);
}

void Flights::replace_first(Key head) {
  Key* at = head_;
  for (; at[1] < head; ++at) at[0] = at[1];
  *at = head;
}

void Flights::insert(Key head) {
  Key* at = head_;
  while (*at < head) ++at;
  while (head != Key::beyond()) std::swap(*at++, head);
  *at = head;
}

Flight& Flights::place_elsewhere(Key flight, uint8_t& hint) {
  hint = choose(flight, hint);
  return hint == kHeap ? place_in_heap(flight, hint) : append(lanes_[hint], hint, flight.time(), flight.destination());
}

// The heap takes its packets one by one.
void Flights::place_train_elsewhere(const Flight& train, Time spacing, uint32_t step, uint8_t& hint) {
  const Destination to = train.packet.destination();
  const auto more = static_cast<uint32_t>(train.packet.to >> kTrainBit);
  const uint8_t lane = choose({train.packet.time, to}, hint);
  if (lane < kHeap) {
    hint = lane;
    append(lanes_[lane], lane, train.packet.time, to) = train;
    lanes_[lane].back = train.packet.time + more * spacing;
    return;
  }
  for (uint32_t i = 0; i <= more; ++i) {
    Flight one = train;
    one.packet.time += i * spacing;
    one.packet.segment += i * step;
    one.packet.to = to.word();
    if (to.stage() == kAtReceiver && i < more) one.packet.kind = kData;
    push(one, hint);
  }
}

uint8_t Flights::choose(const Key& flight, uint8_t hint) {
  if (hint == kLanes - 1 && !heap_.empty() && alike(flight) > 0) return kHeap;  // behind its equals
  if (ends(hint, flight)) return hint;
  for (uint32_t i = 0; i < std::min(used_, kLanes); ++i) {
    if (!ends(i, flight)) continue;
    if (i > hint || !holds(hint, flight)) return static_cast<uint8_t>(i);
    i = hint;  // of equal heads the lowest lane's leaves first
  }
  if (used_ >= kLanes) return kHeap;
  use(used_ + 1);
  return static_cast<uint8_t>(used_ - 1);
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
  if (free_.empty()) {
    free_.push_back(static_cast<uint32_t>(pool_.size()));
    pool_.emplace_back();
  }
  const uint32_t place = free_.back();
  free_.pop_back();
  if (alike_.empty()) alike_.resize(256);
  ++alike(flight);
  const bool leads = heap_.empty() || flight < heap_.front().key;
  heap_.push_back({flight, waited_++, place});
  std::push_heap(heap_.begin(), heap_.end());
  pool_[place].packet.time = flight.time();
  pool_[place].packet.to = flight.destination().word();
  if (leads) use(kLanes + 1);
  return pool_[place];
}

void Flights::pop_heap(Flight& flight) {
  std::pop_heap(heap_.begin(), heap_.end());
  const uint32_t place = heap_.back().place;
  --alike(heap_.back().key);
  heap_.pop_back();
  free_.push_back(place);
  flight = pool_[place];
}

}  // namespace netbuf
