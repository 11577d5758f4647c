// LEDBAT++: LEDBAT that multiplicatively gives way beyond its target, grows more slowly on short paths than
// standard TCP does, and slows down now and then so that all who share a queue see the path's own delay:
// latecomers have no advantage.
//
// Source: draft-irtf-iccrg-ledbat-plus-plus, 4.1 to 4.5. Window changes of a round trip are spread over its ACKs.
#include <cmath>

#include "cc/delay_history.h"

namespace netbuf {
namespace {

constexpr double kMostDivisor = 16;           // of the gain
constexpr double kEarlyExit = 0.75;           // of the target: the first slow start is over
constexpr Time kFrozenRounds = 2, kFirstRounds = 2;

class LedbatPlusPlus final : public CongestionControl {
 public:
  explicit LedbatPlusPlus(const Parameters& p)
      : target_(p["target_ms"] * 1e6),
        constant_(p["constant"]),
        least_(p["min_cwnd_packets"]),
        slowdown_ratio_(p["slowdown_ratio"]),
        delays_(p.as<uint32_t>("base_history_minutes"), p.as<uint32_t>("current_filter")) {}

  void init(Tcb& tcb) override { tcb.set_cwnd_packets(static_cast<uint32_t>(least_)); }

  void on_ack(Tcb& tcb, const AckEvent& ack) override {
    if (ack.rtt >= 0) delays_.add(tcb.now, ack.rtt);
  }

  void increase_window(Tcb& tcb, const AckEvent& ack) override {
    if (!delays_.known() || ack.delivered == 0) return;
    if (tcb.cwnd_packets != static_cast<uint32_t>(window_)) window_ = tcb.cwnd_packets;  // somebody else has set it
    if (tcb.now >= next_slowdown_) slow_down(tcb);
    if (tcb.now < frozen_until_) return;
    const double queueing = static_cast<double>(delays_.queueing());
    const double gain =
        1 / std::min(kMostDivisor, std::ceil(2 * target_ / static_cast<double>(std::max<Time>(delays_.base(), 1))));
    if (tcb.in_slow_start() && first_ && queueing > kEarlyExit * target_) tcb.ssthresh = tcb.cwnd;
    const bool starting = tcb.in_slow_start();
    if (starting) {
      window_ = std::min(window_ + gain * ack.delivered, static_cast<double>(tcb.ssthresh) / tcb.mss);
    } else {
      const double excess = constant_ * window_ * (queueing / target_ - 1);
      const double change = queueing > target_ ? std::max(gain - excess, -window_ / 2) : gain;
      window_ += change * ack.delivered / window_;
    }
    window_ = std::max(window_, least_);
    tcb.set_cwnd_packets(static_cast<uint32_t>(window_));
    // A smaller window is no reason for another slow start.
    if (!starting) tcb.ssthresh = std::min(tcb.ssthresh, tcb.cwnd);
    if (!tcb.in_slow_start() && next_slowdown_ == kNever) plan(tcb);
  }

  int64_t ssthresh(Tcb& tcb) override {
    return static_cast<int64_t>(std::max<double>(tcb.cwnd_packets / 2, least_)) * tcb.mss;
  }

 private:
  void slow_down(Tcb& tcb) {
    tcb.ssthresh = std::max<int64_t>(tcb.cwnd, 2 * int64_t{tcb.mss});
    window_ = least_;
    tcb.set_cwnd_packets(static_cast<uint32_t>(window_));
    slowed_at_ = tcb.now;
    frozen_until_ = tcb.now + kFrozenRounds * tcb.srtt;
    next_slowdown_ = kNever;
  }

  // The window is where it was before:
  // the next slowdown comes when as much time has passed as makes this one a tenth of all.
  void plan(const Tcb& tcb) {
    next_slowdown_ =
        tcb.now + (first_ ? kFirstRounds * tcb.srtt
                          : static_cast<Time>(slowdown_ratio_ * static_cast<double>(tcb.now - slowed_at_)));
    first_ = false;
  }

  const double target_, constant_, least_, slowdown_ratio_;  // target: ns
  DelayHistory delays_;
  double window_ = 0;            // packets, of which the whole ones are the congestion window
  bool first_ = true;            // no slow start is over yet
  Time slowed_at_ = 0, frozen_until_ = 0, next_slowdown_ = kNever;
};

const Entry<CongestionControlRecord> entry{{
    .name = "ledbatpp",
    .meaning = "LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus): LEDBAT that is fair among its own,"
               " with periodic slowdowns",
    .linux_kernel = make<LedbatPlusPlus>,
    .parameters = {real("target_ms", 60, 1, 10'000, "queueing delay that it aims at, ms"),
                   real("constant", 1, 0.01, 10, "of the multiplicative decrease beyond the target"),
                   real("slowdown_ratio", 9, 1, 1000, "time between two slowdowns, in lengths of the last one"),
                   whole("min_cwnd_packets", 2, 2, 1000, "least window, the first, and that of slowdowns"),
                   whole("base_history_minutes", 10, 1, 1000, "the path's own delay is the least of so many"),
                   whole("current_filter", 4, 1, 1000, "the present delay is the least of so many samples")},
}};

}  // namespace
}  // namespace netbuf
