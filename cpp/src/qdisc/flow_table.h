// The packets of one queue of a switch's port by flow: a table of slots that flows are hashed to.
#pragma once
#include <algorithm>
#include <vector>

#include "qdisc/flow_queues.h"

namespace netbuf {

class FlowTable {
 public:
  // turns_of_slots: slots take turns, new ones first (RFC 8290), each with so many bytes; else first in, first out.
  FlowTable(uint32_t slots, bool turns_of_slots, int64_t quantum)
      : backlogs_(slots),
        queues_(turns_of_slots ? slots : 1),
        turns_(queues_, static_cast<int32_t>(quantum)),
        turns_of_slots_(turns_of_slots) {}

  uint32_t slots() const { return static_cast<uint32_t>(backlogs_.size()); }
  uint32_t used() const { return used_; }  // that have packets
  int64_t largest() const { return *std::max_element(backlogs_.begin(), backlogs_.end()); }

  // With a packet of so many bytes the slot would still have less than an equal share of the queue.
  bool stays_small(uint32_t slot, uint32_t bytes) const {
    const int64_t backlog = backlogs_[slot] + bytes;
    return backlog * (used_ + (backlogs_[slot] == 0)) < queues_.bytes() + bytes;
  }
  Queued& add(uint32_t slot, const Queued& item) {
    used_ += backlogs_[slot] == 0;
    backlogs_[slot] += item.bytes;
    Flow& flow = queues_[queue_of(slot)];
    queues_.append(flow, item);
    turns_.activate(queue_of(slot));
    return queues_.back(flow);
  }
  // The next to be sent; something waits. Then, as after take_victim(), the packet's slot is to be told: remove().
  void take(Queued& item) {
    turns_.dequeue(item, [&](Flow& flow, Queued& next) { return queues_.take(flow, next); });
  }
  // Whom a drop from the head hits: the oldest of a slot or of the largest one; first in, first out: of the queue.
  // Null: nobody.
  const Queued* find_victim(uint32_t slot, bool of_largest) {
    const Flow& flow = victims_flow(slot, of_largest);
    return flow.empty() ? nullptr : &queues_.front(flow);
  }
  void take_victim(uint32_t slot, bool of_largest, Queued& item) { queues_.take(victims_flow(slot, of_largest), item); }
  void remove(uint32_t slot, uint32_t bytes) {
    backlogs_[slot] -= bytes;
    used_ -= backlogs_[slot] == 0;
  }
  size_t memory_bytes() const { return sizeof *this + backlogs_.capacity() * sizeof(int64_t) + queues_.memory_bytes(); }

 private:
  struct State {
    Place place = Place::nowhere;
  };
  using Flow = FlowQueues<State>::Flow;
  uint32_t queue_of(uint32_t slot) const { return turns_of_slots_ ? slot : 0; }
  Flow& victims_flow(uint32_t slot, bool of_largest) {
    return of_largest ? queues_.fattest() : queues_[queue_of(slot)];
  }

  std::vector<int64_t> backlogs_;  // bytes
  FlowQueues<State> queues_;
  RoundRobin<State> turns_;
  uint32_t used_ = 0;
  bool turns_of_slots_;
};

}  // namespace netbuf
