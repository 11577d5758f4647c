// Drop-tail: first in, first out; what finds the queue full is dropped.
#include "netbuf/queue_discipline.h"

namespace netbuf {
namespace {

class DropTail final : public QueueDiscipline {
 public:
  explicit DropTail(const DisciplineSetting& setting)
      : limit_packets_(setting.limit_packets), limit_bytes_(setting.limit_bytes), sink_(setting.sink) {}

  void enqueue(Time, const Queued& item) override {
    if (queue_.size() >= limit_packets_ || bytes_ + item.bytes > limit_bytes_) return sink_->dropped(item);
    queue_.push(item);
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
  DropSink* sink_;
};

const Entry<DisciplineRecord> entry{{
    .name = "droptail",
    .meaning = "first in, first out; what finds the queue full is dropped",
    .make = make<DropTail>,
}};

}  // namespace
}  // namespace netbuf
