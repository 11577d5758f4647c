// The queues of one port of a switch that has tables of flows (netbuf/shared_buffer.h).
#pragma once
#include "qdisc/flow_table.h"
#include "qdisc/shared_port.h"

namespace netbuf {

class FlowPort final : public SwitchPort {
 public:
  FlowPort(SharedBuffer& buffer, uint32_t port, DropSink* sink)
      : SwitchPort(buffer, port, sink), hash_(uint64_t{port} + 1) {}

  void enqueue(Time now, const Queued& item) override {
    SharedBuffer& b = buffer_;
    const uint32_t q = std::min<uint32_t>(item.priority, b.queues_count_ - 1);
    SharedBuffer::Queue& queue = b.at(port_, q);
    FlowTable& flows = table(q);
    const uint32_t slot = hash_.choose(item, flows.slots());
    const int64_t size = b.size_of(item);
    ++queue.state.counters.arrivals;
    queue.state.counters.syns += b.is_syn(item);
    b.end_cut(now);
    bool stored = admits(q, size), marks = false;
    if (!stored) {
      const bool room = fits(queue, size), spared = room && b.spares_small_ && flows.stays_small(slot, item.bytes);
      marks = room && !spared && b.marks_congestion_ && item.ecn;
      stored = marks || (b.protects(item) && b.used_ + size <= b.capacity_);
      // Whoever is spared makes the largest slot give way; where the oldest is anybody's, nobody does.
      if (!stored && b.from_head_ && (!spared || b.turns_of_slots_)) stored = make_room(now, q, size, slot);
      stored |= spared;
    }
    if (!stored) {
      ++queue.state.counters.drops;
      return sink_->dropped(item);
    }
    const bool long_queue = marks || b.length(queue) > b.mark_;
    if (Queued& added = flows.add(slot, item); long_queue && mark(added, *sink_)) ++queue.state.counters.marks;
    count_in(queue, item, size, now);
  }

  bool dequeue(Time now, Queued& item) override {
    if (packets_ == 0) return false;
    SharedBuffer& b = buffer_;
    // Which packet a slot's turn gives is known when it is taken only: a queue may send a packet more than it has, and
    // is the poorer in its next turn.
    const uint32_t q = next_queue([](const SharedBuffer::Queue& next) { return next.deficit > 0; });
    SharedBuffer::Queue& queue = b.at(port_, q);
    FlowTable& flows = table(q);
    flows.take(item);
    flows.remove(hash_.choose(item, flows.slots()), item.bytes);
    count_out(queue, item);
    if (b.scheduler_ == SharedBuffer::Scheduler::drr) {
      queue.deficit = queue.state.packets == 1 ? 0 : queue.deficit - item.bytes;  // it is counted still
    }
    count_departure(queue, item, now);
    return true;
  }

  void forget(uint32_t owner) override { hash_.forget(owner); }
  size_t memory_bytes() const override { return sizeof *this + hash_.memory_bytes(); }  // the tables are the buffer's

 private:
  FlowTable& table(uint32_t q) { return *buffer_.tables_[port_ * buffer_.queues_count_ + q]; }

  // For a packet that is not admitted, by dropping the oldest of its slot or of the largest one, until it is admitted or
  // has got the room that it takes.
  bool make_room(Time now, uint32_t q, int64_t size, uint32_t slot) {
    SharedBuffer& b = buffer_;
    SharedBuffer::Queue& queue = b.at(port_, q);
    FlowTable& flows = table(q);
    int64_t given_up = 0;
    while (given_up < size && !admits(q, size)) {
      const Queued* const victim = flows.find_victim(slot, b.spares_small_);
      if (!victim || b.protects(*victim)) return false;
      Queued oldest;
      flows.take_victim(slot, b.spares_small_, oldest);
      flows.remove(hash_.choose(oldest, flows.slots()), oldest.bytes);
      count_out(queue, oldest);
      ++queue.state.counters.drops;
      b.note_departure(queue, now);
      sink_->dropped(oldest);
      given_up += b.size_of(oldest);
    }
    return fits(queue, size);
  }

  FlowHash hash_;
};

}  // namespace netbuf
