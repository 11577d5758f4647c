// An agent's own window: cwnd is what the agent last set. Neither ACKs nor losses move it; only a time-out
// does, in the sender, to one segment (until the agent speaks again). ssthresh is kept as RFC 5681 would have
// it, for the agent to look at.
//
// Until the agent's first decision the window may grow by what is acknowledged (slow start, RFC 5681), if it is asked
// to: until in a round more than 2 % and at least eight packets are lost (BBR's rule, draft-ietf-ccwg-bbr section
// 5.3.1.3: paths lose a few at random), a time-out, or eight round trips in a row were longer than the least by an
// eighth of it, 4 to 16 ms (HyStart's delay, RFC 9406, without its rounds). What was in flight a round trip ago is then
// half of the window, since as much has been acknowledged as it has grown by; of that, what the least round trip holds
// is the window that the agent begins with, and ssthresh.
#pragma once
#include <algorithm>

#include "netbuf/tcp.h"

namespace netbuf {

class SteeredWindow : public CongestionControl {
 public:
  SteeredWindow() { owns_window_ = true; }

  void on_agent(bool slow_start) override { starting_ = slow_start; }
  void on_decision() override { starting_ = false; }

  void control(Tcb& tcb, const AckEvent& ack) override {
    if (!starting_) return;
    if (too_much_lost(tcb, ack)) {
      tcb.ssthresh = end_start(tcb);
      return;
    }
    // A window that was not half used has not been confirmed (tcp_is_cwnd_limited).
    if (tcb.cwnd_packets < 2 * (tcb.packets_out() + ack.delivered)) {
      tcb.set_cwnd(tcb.cwnd + int64_t{ack.delivered} * tcb.mss);
    }
    if (ack.rtt <= 0) return;
    rtt_ = ack.rtt;
    least_ = std::min(least_, rtt_);
    long_ = rtt_ > least_ + std::clamp(least_ / 8, kLeastRise, kMostRise) ? long_ + 1 : 0;
    if (long_ == kLongRoundTrips) tcb.ssthresh = end_start(tcb);
  }

  void on_state(Tcb& tcb, CaState state) override {
    if (starting_ && state == CaState::loss) tcb.ssthresh = end_start(tcb);
  }

  int64_t ssthresh(Tcb& tcb) override {
    if (starting_) return kInfiniteWindow;
    return std::max<int64_t>(2 * tcb.mss, static_cast<int64_t>(tcb.in_flight()) * tcb.mss / 2);
  }

  int64_t undo_window(Tcb& tcb, int64_t) override { return tcb.cwnd; }

 private:
  static constexpr uint32_t kLongRoundTrips = 8;
  static constexpr uint32_t kLeastLost = 8, kPacketsToOneLost = 50;  // of a round
  static constexpr Time kLeastRise = 4 * kMillisecond, kMostRise = 16 * kMillisecond;

  bool too_much_lost(const Tcb& tcb, const AckEvent& ack) {
    if (static_cast<int32_t>(tcb.delivered - round_end_) >= 0) {
      round_ = tcb.packets_out() + ack.delivered;
      round_end_ = tcb.delivered + round_;
      lost_ = 0;
    }
    lost_ += ack.lost;
    return lost_ >= kLeastLost && lost_ * kPacketsToOneLost > round_;
  }

  int64_t end_start(Tcb& tcb) {
    starting_ = false;
    const double held = rtt_ > 0 ? static_cast<double>(least_) / static_cast<double>(rtt_) : 1;
    const auto packets = static_cast<uint32_t>(tcb.cwnd_packets / 2 * held);
    tcb.set_cwnd_packets(std::max(packets, 2u));
    return tcb.cwnd;
  }

  bool starting_ = false;
  Time rtt_ = 0, least_ = kNever;  // of the slow start: the latest; the least
  uint32_t long_ = 0;              // round trips in a row
  uint32_t round_ = 0, round_end_ = 0, lost_ = 0;  // packets of the round, delivered when it ends, lost in it
};

}  // namespace netbuf
