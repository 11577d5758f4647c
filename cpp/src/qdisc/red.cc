// RED: drops arrivals at random, with a probability that grows with an average of the queue length.
//
// Sources: Floyd and Jacobson, "Random early detection gateways for congestion avoidance", IEEE/ACM ToN 1(4), 1993; Floyd,
// "Recommendation on using the gentle_ variant of RED", 2000; Floyd, Gummadi and Shenker, "Adaptive RED", 2001 (thresholds, weight
// and the AIMD of the maximum probability when adaptive). wait = 1 keeps drops apart by at least 1/p arrivals, as ns-2 and
// ns-3.44 (src/traffic-control/model/red-queue-disc.cc) do by default; without it drops are spread over [1, 1/p] as in the paper.
// Lengths are in packets.
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "netbuf/queue_discipline.h"

namespace netbuf {
namespace {

class Red final : public QueueDiscipline {
 public:
  explicit Red(const DisciplineSetting& setting)
      : min_(setting.parameters.at("min_packets")),
        max_(setting.parameters.at("max_packets")),
        weight_(setting.parameters.at("weight")),
        max_probability_(setting.parameters.at("max_probability")),
        gentle_(setting.parameters.at("gentle") != 0),
        wait_(setting.parameters.at("wait") != 0),
        adaptive_(setting.parameters.at("adaptive") != 0),
        rate_bps_(setting.rate_bps > 0 ? setting.rate_bps : std::numeric_limits<double>::infinity()),
        packets_per_s_(rate_bps_ / (8 * setting.parameters.at("mean_packet_bytes"))),
        adapt_interval_(from_seconds(setting.parameters.at("adapt_ms") * 1e-3)),
        limit_packets_(setting.limit_packets),
        limit_bytes_(setting.limit_bytes),
        sink_(setting.sink),
        rng_(setting.rng) {
    if (min_ == 0 && max_ == 0) {
      const double limit = std::min(static_cast<double>(limit_packets_),
                                    static_cast<double>(limit_bytes_) / setting.parameters.at("mean_packet_bytes"));
      if (!adaptive_ && limit < 1e9) {
        min_ = 0.2 * limit;
      } else {
        const double target = setting.parameters.at("target_ms") * 1e-3 * packets_per_s_;
        min_ = std::max(5.0, std::isfinite(target) ? target / 2 : 0.0);
      }
    }
    if (min_ == 0) min_ = max_ / 3;
    if (max_ == 0) max_ = 3 * min_;
    if (max_ <= min_) throw std::invalid_argument("red: max_packets must be greater than min_packets");
    if (weight_ == 0) weight_ = adaptive_ && std::isfinite(packets_per_s_) ? 1 - std::exp(-1 / packets_per_s_) : 0.002;
  }

  void enqueue(Time now, const Queued& item) override {
    average(now);
    ++since_drop_;
    if (drops(queue_.size()) || queue_.size() >= limit_packets_ || bytes_ + item.bytes > limit_bytes_) {
      return sink_->dropped(item);
    }
    queue_.push(item);
    bytes_ += item.bytes;
  }
  bool dequeue(Time now, Queued& item) override {
    if (queue_.empty()) return false;
    item = queue_.front();
    queue_.pop();
    bytes_ -= item.bytes;
    if (queue_.empty()) idle_since_ = now + from_seconds(item.bytes * 8 / rate_bps_);  // the link is busy with this one till then
    return true;
  }
  uint32_t packets() const override { return queue_.size(); }
  int64_t bytes() const override { return bytes_; }
  size_t memory_bytes() const override { return sizeof *this + queue_.memory_bytes(); }

 private:
  // As many packets as the link could have sent while it was idle are averaged in as if each had found the queue empty.
  void average(Time now) {
    if (queue_.empty() && now > idle_since_) [[unlikely]] {
      const double missed = std::floor(packets_per_s_ * seconds(now - idle_since_));
      if (missed > 0) average_ *= std::pow(1 - weight_, missed);
      idle_since_ = now;  // should this arrival be dropped
    }
    average_ = average_ * (1 - weight_) + weight_ * queue_.size();
    if (adaptive_ && now > adapted_ + adapt_interval_) adapt(now);
  }

  // Keeps the average in the middle fifth between the thresholds.
  void adapt(Time now) {
    const double margin = 0.4 * (max_ - min_);
    if (average_ > max_ - margin && max_probability_ < 0.5) {
      max_probability_ += std::min(0.01, max_probability_ / 4);
      adapted_ = now;
    } else if (average_ < min_ + margin && max_probability_ > 0.01) {
      max_probability_ *= 0.9;
      adapted_ = now;
    }
  }

  bool drops(uint32_t queued) {
    if (average_ < min_ || queued <= 1) {
      above_ = false;
      return false;
    }
    if (average_ >= (gentle_ ? 2 * max_ : max_)) return true;
    if (!above_) {  // just now: count from here
      above_ = true;
      since_drop_ = 1;
      return false;
    }
    const double p = average_ < max_ ? max_probability_ * (average_ - min_) / (max_ - min_)
                                     : max_probability_ + (1 - max_probability_) * (average_ - max_) / max_;
    const double expected = since_drop_ * p;
    double now = 1;
    if (!wait_) {
      if (expected < 1) now = p / (1 - expected);
    } else if (expected < 1) {
      now = 0;
    } else if (expected < 2) {
      now = p / (2 - expected);
    }
    if (rng_->uniform() >= now) return false;
    since_drop_ = 0;
    return true;
  }

  double min_, max_, weight_, max_probability_;
  const bool gentle_, wait_, adaptive_;
  const double rate_bps_, packets_per_s_;
  const Time adapt_interval_;
  const int64_t limit_packets_, limit_bytes_;
  DropSink* sink_;
  Rng* rng_;

  Ring<Queued> queue_;
  int64_t bytes_ = 0;
  double average_ = 0;
  Time idle_since_ = 0, adapted_ = 0;
  uint32_t since_drop_ = 0;  // arrivals
  bool above_ = false;
};

}  // namespace

extern const DisciplineRecord kRed{
    "red",
    {{"min_packets", 0, 0, 1e9},  // 0: a fifth of the limit; adaptive (or without a limit): max(5, half of the target delay)
     {"max_packets", 0, 0, 1e9},  // 0: three times the minimum
     {"weight", 0, 0, 1},         // 0: 0.002; adaptive: 1 - exp(-1 / packets a second)
     {"max_probability", 0.02, 1e-9, 1},
     {"gentle", 1, 0, 1},
     {"wait", 0, 0, 1},
     {"adaptive", 0, 0, 1},
     {"target_ms", 5, 0.01, 10'000},  // adaptive
     {"adapt_ms", 500, 1, 100'000},   // adaptive
     {"mean_packet_bytes", 1500, 1, 65'536}},
    [](const DisciplineSetting& s) -> std::unique_ptr<QueueDiscipline> { return std::make_unique<Red>(s); }};

}  // namespace netbuf
