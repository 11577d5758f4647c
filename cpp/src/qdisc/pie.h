// The controller of PIE (RFC 8033): shared by PIE and by each queue of FQ-PIE.
#pragma once
#include <algorithm>

#include "netbuf/queue_discipline.h"

namespace netbuf {

inline std::vector<Parameter> pie_parameters() {
  return {
      real("target_ms", 15, 0.01, 10'000, "reference delay, ms"),
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
      truth("byte_mode", false, "a packet's drop probability is proportional to its size"),
      kEcnParameter,
      real("mark_ecnth", 0.1, 0, 1,
           "largest drop probability at which they are marked (section 5.1); beyond it they are dropped"),
  };
}

struct PieSetting {
  explicit PieSetting(const Parameters& given)
      : target(given["target_ms"] * 1e-3),
        alpha(given["alpha"]),
        beta(given["beta"]),
        mean_packet_bytes(given["mean_packet_bytes"]),
        update(from_seconds(given["update_ms"] * 1e-3)),
        max_burst(from_seconds(given["max_burst_ms"] * 1e-3)),
        quiet(from_seconds(given["burst_quiet_s"])),
        cap(given.is("cap_increase")),
        derandomise(given.is("derandomise")),
        byte_mode(given.is("byte_mode")),
        ecn(given.is("ecn")),
        mark_ecnth(given["mark_ecnth"]) {}

  double target, alpha, beta, mean_packet_bytes;
  Time update, max_burst, quiet;
  bool cap, derandomise, byte_mode, ecn;
  double mark_ecnth;
};

// What rules on one queue.
class PieControl {
 public:
  enum class Verdict : uint8_t { take, mark, drop };

  PieControl() = default;  // to be assigned one that is made
  explicit PieControl(const PieSetting& setting)
      : next_update_(setting.update), burst_(setting.quiet ? 0 : setting.max_burst) {}

  // Of a packet that comes to queued_bytes of others; full: there is no room for it in any case.
  Verdict judge(const PieSetting& setting, const Queued& item, int64_t queued_bytes, bool full, Rng& rng) {
    const bool chosen = !full && drop_early(setting, item.bytes, queued_bytes, rng);
    if (full || chosen) accumulated_ = 0;
    if (!full && !chosen) return Verdict::take;
    return chosen && setting.ecn && item.ecn && probability_ <= setting.mark_ecnth ? Verdict::mark : Verdict::drop;
  }
  // A packet was sent that had come at arrived; left: others wait.
  void sent(Time now, Time arrived, bool left) { delay_ = left ? seconds(now - arrived) : 0; }

  // The delay does not change between calls: the updates that fell due meanwhile can be made up for now.
  void catch_up(Time now, const PieSetting& setting) {
    while (next_update_ <= now) {
      const double probability = probability_, old_delay = old_delay_;
      const Time burst = burst_, quiet = quiet_so_far_;
      const Burst state = burst_state_;
      update(setting);
      next_update_ += setting.update;
      if (probability == probability_ && old_delay == old_delay_ && burst == burst_ && quiet == quiet_so_far_ &&
          state == burst_state_ && next_update_ <= now) {
        // Nor would any of the others change a thing.
        next_update_ += (now - next_update_) / setting.update * setting.update + setting.update;
      }
    }
  }

 private:
  bool drop_early(const PieSetting& setting, uint32_t bytes, int64_t queued_bytes, Rng& rng) {
    if (burst_ > 0) return false;
    if (setting.quiet && burst_state_ == Burst::granted) {
      burst_state_ = Burst::running;
      burst_ = setting.max_burst;
    }
    // A queue of next to nothing is left alone, or the link could run dry.
    if (old_delay_ < 0.5 * setting.target && probability_ < 0.2) return false;
    if (static_cast<double>(queued_bytes) <= 2 * setting.mean_packet_bytes) return false;
    const double p = setting.byte_mode ? std::min(1.0, probability_ * bytes / setting.mean_packet_bytes) : probability_;
    if (setting.derandomise) {
      if (probability_ == 0) accumulated_ = 0;
      accumulated_ += p;
      if (accumulated_ < 0.85) return false;
      if (accumulated_ >= 8.5) return true;
    }
    return rng.uniform() < p;
  }

  void update(const PieSetting& setting) {
    double change = 0;
    if (setting.quiet && burst_ > 0) {
      probability_ = 0;
    } else {
      change = setting.alpha * (delay_ - setting.target) + setting.beta * (delay_ - old_delay_);
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
      } else if (setting.cap) {
        change = std::min(change, 0.02);
      }
    }
    double p = probability_ + change;
    if (delay_ == 0 && old_delay_ == 0) p *= 0.98;
    probability_ = std::clamp(p, 0.0, 1.0);

    const bool calm = delay_ < 0.5 * setting.target && old_delay_ < 0.5 * setting.target && probability_ == 0;
    burst_ = std::max<Time>(0, burst_ - setting.update);
    if (!setting.quiet) {
      if (calm) burst_ = setting.max_burst;
    } else if (!calm || burst_ > 0) {
      quiet_so_far_ = 0;
    } else if (burst_state_ == Burst::running) {
      burst_state_ = Burst::spent;
      quiet_so_far_ = 0;
    } else if (burst_state_ == Burst::spent) {
      quiet_so_far_ += setting.update;
      if (quiet_so_far_ > setting.quiet / setting.update * setting.update) {
        quiet_so_far_ = 0;
        burst_state_ = Burst::granted;
      }
    }
    old_delay_ = delay_;
  }

  enum class Burst : uint8_t { granted, running, spent };

  double probability_ = 0, accumulated_ = 0;
  double delay_ = 0, old_delay_ = 0;  // seconds: now, and at the last update
  Time next_update_ = 0;
  Time burst_ = 0;                    // how much longer arrivals are exempt
  Time quiet_so_far_ = 0;
  Burst burst_state_ = Burst::granted;
};

}  // namespace netbuf
