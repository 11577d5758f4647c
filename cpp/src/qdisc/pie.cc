// PIE: drops arrivals at random, with a probability that a proportional-integral controller
// of the queueing delay updates.
//
// Sources: Pan, Natarajan, Baker and White, RFC 8033, 2017, with its automatic tuning (4.2), burst allowance
// (4.4), cap on increases (5.5) and optional derandomisation (5.4); the delay is that of the last packet sent, by
// its time stamp, 0 when none is left (as net/sched/sch_pie.c of Linux and
// src/traffic-control/model/pie-queue-disc.cc of ns-3.44 do by default).
// ns-3's burst allowance differs from the RFC's: it begins to run down at the first arrival, not when congestion
// begins, is granted again after quiet_s seconds without congestion, and holds the probability at 0 meanwhile:
// burst_quiet_s = 1.5 does that.
#include "qdisc/pie.h"

namespace netbuf {
namespace {

class Pie final : public QueueDiscipline {
 public:
  explicit Pie(const DisciplineSetting& setting)
      : setting_(setting.parameters),
        control_(setting_),
        limit_packets_(setting.limit_packets),
        limit_bytes_(setting.limit_bytes),
        sink_(setting.sink),
        rng_(setting.rng) {}

  void enqueue(Time now, const Queued& item) override {
    control_.catch_up(now, setting_);
    const bool full = queue_.size() >= limit_packets_ || bytes_ + item.bytes > limit_bytes_;
    const PieControl::Verdict verdict = control_.judge(setting_, item, bytes_, full, *rng_);
    if (verdict == PieControl::Verdict::drop) return sink_->dropped(item);
    queue_.push(item);
    if (verdict == PieControl::Verdict::mark) mark(queue_.back(), *sink_);
    bytes_ += item.bytes;
  }
  bool dequeue(Time now, Queued& item) override {
    control_.catch_up(now, setting_);
    if (queue_.empty()) return false;
    item = queue_.front();
    queue_.pop();
    bytes_ -= item.bytes;
    control_.sent(now, item.arrived, !queue_.empty());
    return true;
  }
  uint32_t packets() const override { return queue_.size(); }
  int64_t bytes() const override { return bytes_; }
  size_t memory_bytes() const override { return sizeof *this + queue_.memory_bytes(); }

 private:
  const PieSetting setting_;
  PieControl control_;
  const int64_t limit_packets_, limit_bytes_;
  DropSink* sink_;
  Rng* rng_;
  Ring<Queued> queue_;
  int64_t bytes_ = 0;
};

const Entry<DisciplineRecord> entry{{
    .name = "pie",
    .meaning = "proportional integral controller enhanced (RFC 8033):"
               " drops arrivals at random to keep the delay at a target",
    .make = make<Pie>,
    .parameters = pie_parameters(),
}};

}  // namespace
}  // namespace netbuf
