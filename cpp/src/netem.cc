#include "netbuf/netem.h"

namespace netbuf {
namespace {

class Netem final : public QueueDiscipline {
 public:
  Netem(std::unique_ptr<QueueDiscipline> queue, const LinkConfig& link, uint64_t seed, DropSink* sink)
      : queue_(std::move(queue)), duplicate_(link.duplicate), corrupt_(link.corrupt), rng_(seed), sink_(sink) {}

  void enqueue(Time now, const Queued& item) override {
    if (duplicate_ > 0 && rng_.uniform() < duplicate_) {
      sink_->duplicated(item);
      queue(now, item);
    }
    queue(now, item);
  }
  bool dequeue(Time now, Queued& item) override { return queue_->dequeue(now, item); }
  Time ready(Time now) override { return queue_->ready(now); }
  uint32_t packets() const override { return queue_->packets(); }
  int64_t bytes() const override { return queue_->bytes(); }
  void resize(int64_t packets) override { queue_->resize(packets); }
  void reset(Time now) override { queue_->reset(now); }
  void forget(uint32_t owner) override { queue_->forget(owner); }
  bool paces() const override { return queue_->paces(); }
  size_t memory_bytes() const override { return sizeof *this + queue_->memory_bytes(); }

 private:
  void queue(Time now, const Queued& item) {
    if (corrupt_ == 0 || rng_.uniform() >= corrupt_) return queue_->enqueue(now, item);
    sink_->corrupted(item);
    Queued damaged = item;
    damaged.owner = kNobody;
    queue_->enqueue(now, damaged);
  }

  std::unique_ptr<QueueDiscipline> queue_;
  const double duplicate_, corrupt_;
  Rng rng_;
  DropSink* sink_;
};

}  // namespace

std::unique_ptr<QueueDiscipline> add_netem(std::unique_ptr<QueueDiscipline> queue, const LinkConfig& link, uint64_t seed,
                                           DropSink* sink) {
  return std::make_unique<Netem>(std::move(queue), link, seed, sink);
}

}  // namespace netbuf
