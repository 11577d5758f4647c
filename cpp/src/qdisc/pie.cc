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
#include <algorithm>

#include "netbuf/queue_discipline.h"

namespace netbuf {
namespace {

class Pie final : public QueueDiscipline {
 public:
  explicit Pie(const DisciplineSetting& setting)
      : target_(setting.parameters["target_ms"] * 1e-3),
        alpha_(setting.parameters["alpha"]),
        beta_(setting.parameters["beta"]),
        mean_packet_bytes_(setting.parameters["mean_packet_bytes"]),
        update_(from_seconds(setting.parameters["update_ms"] * 1e-3)),
        max_burst_(from_seconds(setting.parameters["max_burst_ms"] * 1e-3)),
        quiet_(from_seconds(setting.parameters["burst_quiet_s"])),
        cap_(setting.parameters.is("cap_increase")),
        derandomise_(setting.parameters.is("derandomise")),
        byte_mode_(setting.parameters.is("byte_mode")),
        ecn_(setting.parameters.is("ecn")),
        mark_ecnth_(setting.parameters["mark_ecnth"]),
        limit_packets_(setting.limit_packets),
        limit_bytes_(setting.limit_bytes),
        sink_(setting.sink),
        rng_(setting.rng),
        next_update_(update_) {
    if (!quiet_) burst_ = max_burst_;
  }

  void enqueue(Time now, const Queued& item) override {
    catch_up(now);
    const bool full = queue_.size() >= limit_packets_ || bytes_ + item.bytes > limit_bytes_,
               chosen = !full && drop_early(item.bytes);
    if (full || chosen) accumulated_ = 0;
    const bool marks = chosen && ecn_ && item.ecn && probability_ <= mark_ecnth_;
    if (full || (chosen && !marks)) return sink_->dropped(item);
    queue_.push(item);
    if (marks) mark(queue_.back(), *sink_);
    bytes_ += item.bytes;
  }
  bool dequeue(Time now, Queued& item) override {
    catch_up(now);
    if (queue_.empty()) return false;
    item = queue_.front();
    queue_.pop();
    bytes_ -= item.bytes;
    delay_ = queue_.empty() ? 0 : seconds(now - item.arrived);
    return true;
  }
  uint32_t packets() const override { return queue_.size(); }
  int64_t bytes() const override { return bytes_; }
  size_t memory_bytes() const override { return sizeof *this + queue_.memory_bytes(); }

 private:
  bool drop_early(uint32_t bytes) {
    if (burst_ > 0) return false;
    if (quiet_ && burst_state_ == Burst::granted) {
      burst_state_ = Burst::running;
      burst_ = max_burst_;
    }
    // A queue of next to nothing is left alone, or the link could run dry.
    if (old_delay_ < 0.5 * target_ && probability_ < 0.2) return false;
    if (static_cast<double>(bytes_) <= 2 * mean_packet_bytes_) return false;
    const double p = byte_mode_ ? std::min(1.0, probability_ * bytes / mean_packet_bytes_) : probability_;
    if (derandomise_) {
      if (probability_ == 0) accumulated_ = 0;
      accumulated_ += p;
      if (accumulated_ < 0.85) return false;
      if (accumulated_ >= 8.5) return true;
    }
    return rng_->uniform() < p;
  }

  // The delay does not change between calls: the updates that fell due meanwhile can be made up for now.
  void catch_up(Time now) {
    while (next_update_ <= now) {
      const double probability = probability_, old_delay = old_delay_;
      const Time burst = burst_, quiet = quiet_so_far_;
      const Burst state = burst_state_;
      update();
      next_update_ += update_;
      if (probability == probability_ && old_delay == old_delay_ && burst == burst_ && quiet == quiet_so_far_ &&
          state == burst_state_ && next_update_ <= now) {
        // Nor would any of the others change a thing.
        next_update_ += (now - next_update_) / update_ * update_ + update_;
      }
    }
  }

  void update() {
    double change = 0;
    if (quiet_ && burst_ > 0) {
      probability_ = 0;
    } else {
      change = alpha_ * (delay_ - target_) + beta_ * (delay_ - old_delay_);
      if (probability_ < 0.000001) {
        change /= 2048;
      } else if (probability_ < 0.00001) {
        change /= 512;
      } else if (probability_ < 0.0001) {
        change /= 128;
      } else if (probability_ < 0.001) {
        change /= 32;
      } else if (probability_ < 0.01) {
        change /= 8;
      } else if (probability_ < 0.1) {
        change /= 2;
      } else if (cap_) {
        change = std::min(change, 0.02);
      }
    }
    double p = probability_ + change;
    if (delay_ == 0 && old_delay_ == 0) p *= 0.98;
    probability_ = std::clamp(p, 0.0, 1.0);

    const bool calm = delay_ < 0.5 * target_ && old_delay_ < 0.5 * target_ && probability_ == 0;
    burst_ = std::max<Time>(0, burst_ - update_);
    if (!quiet_) {
      if (calm) burst_ = max_burst_;
    } else if (!calm || burst_ > 0) {
      quiet_so_far_ = 0;
    } else if (burst_state_ == Burst::running) {
      burst_state_ = Burst::spent;
      quiet_so_far_ = 0;
    } else if (burst_state_ == Burst::spent) {
      quiet_so_far_ += update_;
      if (quiet_so_far_ > quiet_ / update_ * update_) {
        quiet_so_far_ = 0;
        burst_state_ = Burst::granted;
      }
    }
    old_delay_ = delay_;
  }

  enum class Burst : uint8_t { granted, running, spent };

  const double target_, alpha_, beta_, mean_packet_bytes_;
  const Time update_, max_burst_, quiet_;
  const bool cap_, derandomise_, byte_mode_, ecn_;
  const double mark_ecnth_;
  const int64_t limit_packets_, limit_bytes_;
  DropSink* sink_;
  Rng* rng_;

  Ring<Queued> queue_;
  int64_t bytes_ = 0;
  double probability_ = 0, accumulated_ = 0;
  double delay_ = 0, old_delay_ = 0;  // seconds: now, and at the last update
  Time next_update_;
  Time burst_ = 0;                    // how much longer arrivals are exempt
  Time quiet_so_far_ = 0;
  Burst burst_state_ = Burst::granted;
};

const Entry<DisciplineRecord> entry{{
    .name = "pie",
    .meaning = "proportional integral controller enhanced (RFC 8033):"
               " drops arrivals at random to keep the delay at a target",
    .make = make<Pie>,
    .parameters =
        {real("target_ms", 15, 0.01, 10'000, "reference delay, ms"),
         real("update_ms", 15, 0.1, 10'000, "time between two updates of the drop probability, ms"),
         real("alpha", 0.125, 0, 1'000, "weight of the delay's deviation, 1/s"),
         real("beta", 1.25, 0, 1'000, "weight of the delay's change, 1/s"),
         real("max_burst_ms", 150, 0, 10'000, "bursts up to this long are let through, ms"),
         real("burst_quiet_s", 0, 0, 1'000,
              "so long without congestion, and bursts are let through again, from the first arrival on (ns-3: 1.5), s;"
              " 0: as in the RFC"),
         whole("mean_packet_bytes", 1514, 1, 65'536, "of the packets expected"),
         truth("cap_increase", true, "the probability grows by at most 0.02 an update where it is high"),
         truth("derandomise", false, "drops are kept apart (section 5.4)"),
         truth("byte_mode", false, "a packet's drop probability is proportional to its size"), kEcnParameter,
         real("mark_ecnth", 0.1, 0, 1,
              "largest drop probability at which they are marked (section 5.1); beyond it they are dropped")},
}};

}  // namespace
}  // namespace netbuf
