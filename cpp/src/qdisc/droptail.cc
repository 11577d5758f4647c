// Drop-tail: first in, first out; what finds the queue full is dropped, and, where a threshold is given, what comes of
// flows that speak ECN is marked while more packets wait (as DCTCP wants it: RFC 8257, 3.1).
#include "netbuf/queue_discipline.h"

namespace netbuf {
namespace {

class DropTail final : public QueueDiscipline {
 public:
  explicit DropTail(const DisciplineSetting& setting)
      : limit_packets_(setting.limit_packets),
        limit_bytes_(setting.limit_bytes),
        mark_(setting.parameters.automatic("mark_packets") ? UINT32_MAX
                                                           : setting.parameters.as<uint32_t>("mark_packets")),
        sink_(setting.sink) {}

  void enqueue(Time, const Queued& item) override {
    if (queue_.size() >= limit_packets_ || bytes_ + item.bytes > limit_bytes_) return sink_->dropped(item);
    const bool long_queue = queue_.size() > mark_;
    queue_.push(item);
    if (long_queue) mark(queue_.back(), *sink_);
    bytes_ += item.bytes;
  }
  bool dequeue(Time, Queued& item) override {
    if (queue_.empty()) return false;
    item = queue_.front();
    queue_.pop();
    bytes_ -= item.bytes;
    return true;
  }
  uint32_t packets() const override { return queue_.size(); }
  int64_t bytes() const override { return bytes_; }
  void resize(int64_t packets) override { limit_packets_ = packets; }
  size_t memory_bytes() const override { return sizeof *this + queue_.memory_bytes(); }

 private:
  Ring<Queued> queue_;
  int64_t limit_packets_, limit_bytes_, bytes_ = 0;
  const uint32_t mark_;
  DropSink* sink_;
};

const Entry<DisciplineRecord> entry{{
    .name = "droptail",
    .meaning = "first in, first out; what finds the queue full is dropped",
    .make = make<DropTail>,
    .parameters = {whole("mark_packets", kAutomatic, 0, 1e9,
                         "arrivals of flows that speak ECN are marked while more packets wait; auto: never")},
}};

}  // namespace
}  // namespace netbuf
