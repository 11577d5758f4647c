// The queues of one port of a switch.
#pragma once
#include <algorithm>
#include <utility>

#include "netbuf/shared_buffer.h"

namespace netbuf {

// What ports have in common, whatever they keep their packets in.
class SwitchPort : public QueueDiscipline {
 public:
  uint32_t packets() const final { return packets_; }
  int64_t bytes() const final { return bytes_; }

 protected:
  SwitchPort(SharedBuffer& buffer, uint32_t port, DropSink* sink) : buffer_(buffer), port_(port), sink_(sink) {}

  bool fits(const SharedBuffer::Queue& queue, int64_t size) const {  // whatever the threshold
    return buffer_.used_ + size <= buffer_.capacity_ && buffer_.length(queue) + size <= buffer_.queue_cap_;
  }

  bool admits(uint32_t q, int64_t size) const {
    const SharedBuffer::Queue& queue = buffer_.queue(port_, q);
    return fits(queue, size) && static_cast<double>(buffer_.length(queue)) < buffer_.threshold(port_, q);
  }

  void count_in(SharedBuffer::Queue& queue, const Queued& item, int64_t size, Time now) {
    queue.state.bytes += item.bytes;
    buffer_.used_ += size;
    ++packets_;
    bytes_ += item.bytes;
    buffer_.note_arrival(queue, now);
  }

  void count_out(SharedBuffer::Queue& queue, const Queued& item) {
    queue.state.bytes -= item.bytes;
    buffer_.used_ -= buffer_.size_of(item);
    --packets_;
    bytes_ -= item.bytes;
  }

  void count_departure(SharedBuffer::Queue& queue, const Queued& item, Time now) {
    SharedBuffer& b = buffer_;
    ++queue.state.counters.departures;
    queue.state.counters.opened += b.is_syn(item);
    queue.state.counters.closed += b.is_data_of_flow(item) && item.packet.fin;
    queue.state.counters.bytes_out += item.bytes;
    queue.state.counters.sojourn += now - item.arrived;
    b.note_departure(queue, now);
  }

  // Some queue is backlogged. suffices(queue): whether its deficit lets it send.
  template <class Suffices>
  uint32_t next_queue(Suffices&& suffices) {
    SharedBuffer& b = buffer_;
    uint32_t q = b.scheduler_ == SharedBuffer::Scheduler::strict_priority ? 0 : turn_;
    if (b.scheduler_ == SharedBuffer::Scheduler::drr) {
      // Shreedhar and Varghese (1995): a queue whose turn begins is given its quantum,
      // and sends while its deficit lasts.
      for (;; q = after(q)) {
        SharedBuffer::Queue& queue = b.at(port_, q);
        if (queue.state.packets > 0) {
          if (!queue.granted) queue.deficit += b.priorities_[q].quantum;
          queue.granted = true;
          if (suffices(queue)) break;
        }
        queue.granted = false;
      }
      turn_ = q;
      return q;
    }
    while (b.at(port_, q).state.packets == 0) q = after(q);
    turn_ = after(q);
    return q;
  }

  SharedBuffer& buffer_;
  uint32_t port_, packets_ = 0;
  int64_t bytes_ = 0;
  DropSink* sink_;

 private:
  uint32_t after(uint32_t q) const { return q + 1 < buffer_.queues_count_ ? q + 1 : 0; }

  uint32_t turn_ = 0;
};

// First in, first out.
class SharedPort final : public SwitchPort {
 public:
  SharedPort(SharedBuffer& buffer, uint32_t port, DropSink* sink) : SwitchPort(buffer, port, sink) {}

  bool alone() const { return buffer_.ports_ == 1; }  // nobody else stores packets in its buffer

  void enqueue(Time now, const Queued& item) override {
    SharedBuffer& b = buffer_;
    const uint32_t q = std::min<uint32_t>(item.priority, b.queues_count_ - 1);
    SharedBuffer::Queue& queue = b.at(port_, q);
    const int64_t size = b.size_of(item);
    ++queue.state.counters.arrivals;
    queue.state.counters.syns += b.is_syn(item);
    b.end_cut(now);
    const bool admitted = admits(q, size), marks = !admitted && b.marks_congestion_ && item.ecn && fits(queue, size);
    if (!admitted && !marks && !(b.protects(item) && b.used_ + size <= b.capacity_) &&
        !(b.from_head_ && make_room(now, q, size))) {
      ++queue.state.counters.drops;
      return sink_->dropped(item);
    }
    const bool long_queue = marks || b.length(queue) > b.mark_;
    queue.items.push(item);
    if (long_queue && mark(queue.items.back(), *sink_)) ++queue.state.counters.marks;
    count_in(queue, item, size, now);
  }

  bool dequeue(Time now, Queued& item) override {
    if (packets_ == 0) return false;
    SharedBuffer& b = buffer_;
    SharedBuffer::Queue& queue = b.at(port_, next_queue([](const SharedBuffer::Queue& next) {
      return next.deficit >= next.items.front().bytes;
    }));
    item = queue.items.front();
    take_out(queue);
    if (b.scheduler_ == SharedBuffer::Scheduler::drr) {
      queue.deficit = queue.items.empty() ? 0 : queue.deficit - item.bytes;
    }
    count_departure(queue, item, now);
    return true;
  }

  size_t memory_bytes() const override { return sizeof *this; }  // the queues are the buffer's

 private:
  void take_out(SharedBuffer::Queue& queue) {
    count_out(queue, queue.items.front());
    queue.items.pop();
  }

  // For a packet that is not admitted, by dropping from the head of its queue.
  // Whether there is room is known before the first goes.
  bool make_room(Time now, uint32_t q, int64_t size) {
    SharedBuffer& b = buffer_;
    SharedBuffer::Queue& queue = b.at(port_, q);
    int64_t given_up = 0;
    uint32_t end = queue.items.head();
    for (; end != queue.items.tail() && given_up < size; ++end) {
      if (b.protects(queue.items[end])) return false;
      given_up += b.size_of(queue.items[end]);
    }
    if (given_up < size &&
        (size > b.queue_cap_ || b.used_ - given_up + size > b.capacity_ || !(b.threshold(port_, q) > 0))) {
      return false;
    }
    do {
      const Queued oldest = queue.items.front();
      take_out(queue);
      ++queue.state.counters.drops;
      b.note_departure(queue, now);
      sink_->dropped(oldest);
    } while (queue.items.head() != end && !admits(q, size));
    return true;
  }
};

}  // namespace netbuf
