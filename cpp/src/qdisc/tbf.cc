// A shaper: packets wait, first in, first out, until there are tokens for them (Linux' sch_tbf with a peak rate, which
// is the link's). A packet longer than the burst never gets them, and is dropped as it comes.
#include "qdisc/token_bucket.h"

namespace netbuf {
namespace {

class Tbf final : public QueueDiscipline {
 public:
  explicit Tbf(const DisciplineSetting& setting)
      : bucket_(setting.parameters),
        limit_packets_(setting.limit_packets),
        limit_bytes_(setting.limit_bytes),
        sink_(setting.sink) {}

  void enqueue(Time, const Queued& item) override {
    const bool full = queue_.size() >= limit_packets_ || bytes_ + item.bytes > limit_bytes_;
    if (full || !bucket_.holds(item.bytes)) return sink_->dropped(item);
    queue_.push(item);
    bytes_ += item.bytes;
  }
  Time ready(Time now) override { return queue_.empty() ? now : bucket_.ready(now, queue_.front().bytes); }
  bool dequeue(Time now, Queued& item) override {
    if (queue_.empty()) return false;
    item = queue_.front();
    bucket_.take(now, item.bytes);
    queue_.pop();
    bytes_ -= item.bytes;
    return true;
  }
  void reset(Time now) override { bucket_.refill(now); }  // as Linux's tbf_reset
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
    .name = "tbf",
    .meaning = "a token bucket that holds back what exceeds its rate and burst (Linux' sch_tbf)",
    .make = make<Tbf>,
    .parameters = token_bucket_parameters(),
}};

}  // namespace
}  // namespace netbuf
