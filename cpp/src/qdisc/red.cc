// RED: drops arrivals at random, with a probability that grows with an average of the queue length.
//
// Sources: Floyd and Jacobson, "Random early detection gateways for congestion avoidance", IEEE/ACM ToN 1(4), 1993;
// Floyd, "Recommendation on using the gentle_ variant of RED", 2000; Floyd, Gummadi and Shenker, "Adaptive RED", 2001
// (thresholds, weight and the AIMD of the maximum probability when adaptive). wait = 1 keeps drops apart by at least
// 1/p arrivals, as ns-2 and ns-3.44 (src/traffic-control/model/red-queue-disc.cc) do by default; without it drops are
// spread over [1, 1/p] as in the paper. Lengths are in packets. Packets of flows that speak ECN are marked where others
// are dropped at random (RFC 3168, 7).
#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <stdexcept>

#include "netbuf/queue_discipline.h"

namespace netbuf {
namespace {

class Red final : public QueueDiscipline {
 public:
  explicit Red(const DisciplineSetting& setting)
      : min_(setting.parameters["min_packets"]),
        max_(setting.parameters["max_packets"]),
        max_probability_(setting.parameters["max_probability"]),
        gentle_(setting.parameters.is("gentle")),
        wait_(setting.parameters.is("wait")),
        adaptive_(setting.parameters.is("adaptive")),
        ecn_(setting.parameters.is("ecn")),
        hard_drop_(setting.parameters.is("hard_drop")),
        rate_bps_(setting.rate_bps > 0 ? setting.rate_bps : std::numeric_limits<double>::infinity()),
        packets_per_s_(rate_bps_ / (8 * setting.parameters["mean_packet_bytes"])),
        adapt_interval_(from_seconds(setting.parameters["adapt_ms"] * 1e-3)),
        limit_packets_(setting.limit_packets),
        limit_bytes_(setting.limit_bytes),
        sink_(setting.sink),
        rng_(setting.rng) {
    const bool least = !setting.parameters.automatic("min_packets"),
               most = !setting.parameters.automatic("max_packets");
    if (!least && !most) {
      const double limit = std::min(static_cast<double>(limit_packets_),
                                    static_cast<double>(limit_bytes_) / setting.parameters["mean_packet_bytes"]);
      if (!adaptive_ && limit < 1e9) {
        min_ = 0.2 * limit;
      } else {
        const double target = setting.parameters["target_ms"] * 1e-3 * packets_per_s_;
        min_ = std::max(5.0, std::isfinite(target) ? target / 2 : 0.0);
      }
    }
    if (most && !least) min_ = max_ / 3;
    if (!most) max_ = 3 * min_;
    const bool by_rate = adaptive_ && std::isfinite(packets_per_s_);
    weight_ = setting.parameters.or_else("weight", by_rate ? 1 - std::exp(-1 / packets_per_s_) : 0.002);
  }

  void enqueue(Time now, const Queued& item) override {
    average(now);
    ++since_drop_;
    const bool chosen = drops(queue_.size());
    const bool marks = chosen && ecn_ && item.ecn && !(hard_drop_ && beyond());
    if ((chosen && !marks) || queue_.size() >= limit_packets_ || bytes_ + item.bytes > limit_bytes_) {
      return sink_->dropped(item);
    }
    queue_.push(item);
    if (marks) mark(queue_.back(), *sink_);
    bytes_ += item.bytes;
  }
  bool dequeue(Time now, Queued& item) override {
    if (queue_.empty()) return false;
    item = queue_.front();
    queue_.pop();
    bytes_ -= item.bytes;
    // The link is busy with this one till then.
    if (queue_.empty()) idle_since_ = now + from_seconds(item.bytes * 8 / rate_bps_);
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

  bool beyond() const { return average_ >= (gentle_ ? 2 * max_ : max_); }  // what is random

  bool drops(uint32_t queued) {
    if (average_ < min_ || queued <= 1) {
      above_ = false;
      return false;
    }
    if (beyond()) return true;
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
  const bool gentle_, wait_, adaptive_, ecn_, hard_drop_;
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

const Entry<DisciplineRecord> entry{{
    .name = "red",
    .meaning = "random early detection, gentle, optionally adaptive: drops arrivals at random by the mean queue length",
    .make = make<Red>,
    .parameters =
        {real("min_packets", kAutomatic, 1e-3, 1e9,
              "mean queue at which drops begin; auto: a third of max_packets, without one a fifth of the limit,"
              " or by target_ms when adaptive or without a limit"),
         real("max_packets", kAutomatic, 1e-3, 1e9,
              "mean queue at which max_probability is reached; auto: three times min_packets"),
         real("weight", kAutomatic, 1e-9, 1,
              "of a sample in the mean queue; auto: 0.002, when adaptive by the link's rate"),
         real("max_probability", 0.02, 1e-9, 1, "drop probability at max_packets"),
         truth("gentle", true, "above max_packets the probability rises to 1 at twice that, instead of being 1"),
         truth("wait", false, "drops are at least 1/p arrivals apart, as in ns-3"),
         truth("adaptive", false, "max_probability is adapted to a mean queue between the thresholds"),
         real("target_ms", 5, 0.01, 10'000, "the delay that adaptive thresholds aim at, ms"),
         real("adapt_ms", 500, 1, 100'000, "time between two adaptations, ms"),
         whole("mean_packet_bytes", 1500, 1, 65'536, "for turning rates into packets"), kEcnParameter,
         truth("hard_drop", true, "beyond the range of random drops packets of flows that speak ECN are dropped too")},
    .check =
        [](const Parameters& p) {
          if (!(p["max_packets"] <= p["min_packets"])) return;  // as for NaN
          std::ostringstream message;
          message << "max_packets = " << p["max_packets"] << " is not above min_packets = " << p["min_packets"];
          throw std::invalid_argument(message.str());
        },
}};

}  // namespace
}  // namespace netbuf
