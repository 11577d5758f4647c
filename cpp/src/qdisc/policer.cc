// A policer: what finds too few tokens is dropped at once, so that nothing waits for the contract's rate; what passes
// is sent first in, first out at the link's.
#include "qdisc/token_bucket.h"

namespace netbuf {
namespace {

class Policer final : public QueueDiscipline {
 public:
  explicit Policer(const DisciplineSetting& setting)
      : bucket_(setting.parameters),
        limit_packets_(setting.limit_packets),
        limit_bytes_(setting.limit_bytes),
        sink_(setting.sink) {}

  void enqueue(Time now, const Queued& item) override {
    const bool full = queue_.size() >= limit_packets_ || bytes_ + item.bytes > limit_bytes_;
    if (full || bucket_.ready(now, item.bytes) > now) return sink_->dropped(item);
    bucket_.take(now, item.bytes);
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
  TokenBucket bucket_;
  Ring<Queued> queue_;
  int64_t limit_packets_, limit_bytes_, bytes_ = 0;
  DropSink* sink_;
};

const Entry<DisciplineRecord> entry{{
    .name = "policer",
    .meaning = "a token bucket that drops what exceeds its rate and burst; what passes waits first in, first out",
    .make = make<Policer>,
    .parameters = token_bucket_parameters(),
}};

}  // namespace
}  // namespace netbuf
