// TCP Prague: DCTCP for the Internet. Its packets are ECT(1), by which queues tell that it answers marks by their
// number (L4S), and its receiver counts marks (accurate ECN). The share of marks, alpha, is tracked as DCTCP does; the
// window gives way by half of it once a round trip, and grows by a packet a round trip for what came unmarked, while it
// gives way too: marks come all the time where they are meant to. A loss halves the window, as Reno's.
//
// Some rounds after slow start it no longer goes by its own round trip where that is shorter than a target: it grows by
// a packet a target, in terms of its rate, and follows alpha and gives way once a target, so that flows of different
// short round trips get the same rates. It paces, half a round a little faster and half a round slower than its window.
//
// Sources: De Schepper, Tilmans, Briscoe and Goel, draft-briscoe-iccrg-prague-congestion-control; RFC 9331, section
// 4.3; behaviour and defaults of net/ipv4/tcp_prague.c (the L4S team's Linux 6.6, version 0.7), in floating point.
// Otherwise than there the first mark, like a loss, surely ends slow start, and the window counts as used where half of
// it is in flight. Left out: smaller segments, and windows set by a rate, for rates of a few packets a round trip; the
// return of the window after a loss that was none; falling back to Reno where a queue of RFC 3168 marks (classic ECN),
// which is not detected: Prague gets more than its share there. Parameters carry the module's names.
#include <algorithm>
#include <cmath>

#include "netbuf/tcp.h"

namespace netbuf {
namespace {

constexpr double kGain = 1.0 / 16;              // of a round in alpha
constexpr double kLeastWindow = 2;              // packets
constexpr double kRateOffset = 4.0 / 128;       // of the pacing rate
constexpr Time kMostScaledRtt = 100 * kMillisecond;

class Prague final : public CongestionControl {
 public:
  explicit Prague(const Parameters& parameters)
      : target_(from_seconds(parameters["prague_rtt_target_ms"] * 1e-3)),
        transition_(parameters.as<uint32_t>("prague_rtt_transition")),
        burst_s_(std::ldexp(1.0, -parameters.as<int>("prague_burst_shift"))) {
    owns_window_ = accurate_ecn_ = l4s_ = true;
  }

  void init(Tcb& tcb) override {
    window_ = tcb.cwnd_packets;
    begin_round(tcb);
    pace(tcb);
  }

  void on_state(Tcb& tcb, CaState next) override {
    if (next == tcb.state) return;
    if (next == CaState::open) {
      in_loss_ = false;
    } else if (next == CaState::recovery || next == CaState::loss) {
      in_loss_ = true;
      if (tcb.state != CaState::recovery) give_way(tcb, 0.5);
    } else if (next == CaState::cwr && tcb.now - gave_way_ >= shortest_round(tcb)) {
      gave_way_ = tcb.now;
      give_way(tcb, alpha_ / 2);
    }
  }

  int64_t ssthresh(Tcb& tcb) override { return tcb.ssthresh; }

  void control(Tcb& tcb, const AckEvent& ack) override {
    marked_ += ack.marked;
    seen_marks_ |= ack.marked > 0;
    if (!grow(tcb, ack)) follow_window(tcb);
    if (!before(tcb.una, round_end_) && tcb.now - followed_ >= shortest_round(tcb)) {
      follow_marks(tcb);
      begin_round(tcb);
    }
    pace(tcb);
  }

  uint32_t burst_packets(const Tcb& tcb) const override {
    return static_cast<uint32_t>(std::clamp(tcb.pacing_rate * burst_s_ / tcb.mss, 1.0, 1e6));
  }

 private:
  bool rtt_independent(const Tcb& tcb) const { return !tcb.in_slow_start() && rounds_ >= transition_; }
  Time shortest_round(const Tcb& tcb) const { return rtt_independent(tcb) ? target_ : 0; }

  void give_way(Tcb& tcb, double share) {
    window_ = std::max(window_ * (1 - share), kLeastWindow);
    tcb.ssthresh = static_cast<int64_t>(window_) * tcb.mss;
  }

  // For what came unmarked. True: by slow start, at once.
  bool grow(Tcb& tcb, const AckEvent& ack) {
    const uint32_t unmarked = ack.delivered - std::min(ack.marked, ack.delivered);
    if (unmarked == 0 || in_loss_ || 2 * ack.prior_in_flight < tcb.cwnd_packets) return false;
    if (tcb.in_slow_start()) {
      window_ = std::min<double>(tcb.cwnd_packets + unmarked, tcb.ssthresh_packets());
      tcb.set_cwnd_packets(static_cast<uint32_t>(window_));
      return true;
    }
    window_ += unmarked * increase(tcb) / window_;
    return false;
  }

  // Packets a round trip.
  double increase(const Tcb& tcb) const {
    if (!rtt_independent(tcb) || tcb.srtt >= target_ || tcb.srtt > kMostScaledRtt) return 1;
    const double part = static_cast<double>(tcb.srtt) / static_cast<double>(target_);
    return part * part;
  }

  // The window in whole packets, a packet an ACK.
  void follow_window(Tcb& tcb) {
    const auto window = static_cast<uint32_t>(std::ceil(window_));
    if (tcb.cwnd_packets > window) tcb.set_cwnd_packets(tcb.cwnd_packets - 1);
    else if (tcb.cwnd_packets < window) tcb.set_cwnd_packets(tcb.cwnd_packets + 1);
  }

  void follow_marks(const Tcb& tcb) {
    if (!seen_marks_) return;
    const double share = static_cast<double>(marked_) / std::max(tcb.delivered - delivered_, 1u);
    alpha_ = std::min(alpha_ + kGain * (share - alpha_), 1.0);
  }

  void begin_round(const Tcb& tcb) {
    followed_ = tcb.now;
    round_end_ = tcb.nxt;
    delivered_ = tcb.delivered;
    marked_ = 0;
    if (!tcb.in_slow_start()) rounds_ = std::max(rounds_ + 1, rounds_);
  }

  void pace(Tcb& tcb) {
    if (tcb.srtt <= 0) return;
    const double rate = window_ * tcb.mss * 1e9 / static_cast<double>(tcb.srtt);
    const bool late = 2 * (tcb.now - followed_) >= std::max(tcb.srtt, target_);
    if (2 * tcb.cwnd < tcb.ssthresh) tcb.pacing_rate = 2 * rate;
    else tcb.pacing_rate = rate * (late ? 1 - kRateOffset : 1 + kRateOffset);
  }

  const Time target_;
  const uint32_t transition_;
  const double burst_s_;

  double window_ = kLeastWindow;                // packets
  double alpha_ = 1;                            // share of marks
  bool seen_marks_ = false, in_loss_ = false;
  Time gave_way_ = -kNever, followed_ = 0;      // to marks; the last round's begin
  uint32_t round_end_ = 0, delivered_ = 0, marked_ = 0;
  uint32_t rounds_ = 0;                         // after slow start
};

const Entry<CongestionControlRecord> entry{{
    .name = "prague",
    .meaning = "TCP Prague: for L4S queues; sends ECT(1), gives way by the share of packets that were marked",
    .linux_kernel = make<Prague>,
    .parameters =
        {real("prague_rtt_target_ms", 25, 0.001, 1000, "shorter round trips go as if they took this, ms"),
         whole("prague_rtt_transition", 4, 0, 1'000'000, "rounds after slow start from which on they do"),
         whole("prague_burst_shift", 12, 0, 30, "at most 2^-n s of its pacing rate leave at once")},
}};

}  // namespace
}  // namespace netbuf
