// LEDBAT: keeps the queue that it makes at a target delay, and so gives way to whoever fills queues.
//
// Source: RFC 6817. The RFC measures one-way delays; here the round trip stands for them, so that a queue on
// the way back counts too. Without its slow start, which is optional, the window grows by one packet a round
// trip at most, as its gain says.
#include <cmath>

#include "cc/delay_history.h"

namespace netbuf {
namespace {

class Ledbat final : public CongestionControl {
 public:
  explicit Ledbat(const Parameters& p)
      : target_(from_seconds(p["target_ms"] * 1e-3)),
        gain_(p["gain"]),
        allowed_increase_(p["allowed_increase_packets"]),
        least_(p["min_cwnd_packets"]),
        slow_start_(p.is("slow_start")),
        delays_(p.as<uint32_t>("base_history_minutes"), p.as<uint32_t>("current_filter")) {}

  void init(Tcb& tcb) override {
    tcb.set_cwnd_packets(static_cast<uint32_t>(least_));
    if (!slow_start_) tcb.ssthresh = tcb.cwnd;
  }

  void on_ack(Tcb& tcb, const AckEvent& ack) override {
    if (ack.rtt >= 0) delays_.add(tcb.now, ack.rtt);
  }

  void increase_window(Tcb& tcb, const AckEvent& ack) override {
    if (!delays_.known() || ack.delivered == 0) return;
    if (tcb.cwnd_packets != static_cast<uint32_t>(window_)) window_ = tcb.cwnd_packets;  // somebody else has set it
    const double queueing = static_cast<double>(delays_.queueing()), target = static_cast<double>(target_);
    if (tcb.in_slow_start() && queueing < target) {
      window_ += ack.delivered;
    } else {
      if (tcb.in_slow_start()) tcb.ssthresh = tcb.cwnd;
      window_ += gain_ * (target - queueing) / target * ack.delivered / window_;
    }
    // While a group of segments waits to be complete, less is in flight than the window that limits it.
    const uint32_t used = std::max(tcb.packets_out() + ack.delivered, tcb.cwnd_limited ? tcb.cwnd_packets : 0);
    window_ = std::max(std::min(window_, used + allowed_increase_), least_);
    const bool starting = tcb.in_slow_start();
    tcb.set_cwnd_packets(static_cast<uint32_t>(window_));
    // A smaller window is no reason for another slow start.
    if (!starting) tcb.ssthresh = std::min(tcb.ssthresh, tcb.cwnd);
  }

  int64_t ssthresh(Tcb& tcb) override {
    return static_cast<int64_t>(std::max<double>(tcb.cwnd_packets / 2, least_)) * tcb.mss;
  }

 private:
  const Time target_;
  const double gain_, allowed_increase_, least_;
  const bool slow_start_;
  DelayHistory delays_;
  double window_ = 0;            // packets, of which the whole ones are the congestion window
};

const Entry<CongestionControlRecord> entry{{
    .name = "ledbat",
    .meaning = "LEDBAT (RFC 6817): keeps the queue that it makes at a target delay, and gives way to others",
    .linux_kernel = make<Ledbat>,
    .parameters = {real("target_ms", 100, 1, 10'000, "queueing delay that it aims at, ms"),
                   real("gain", 1, 0.01, 1, "packets a round trip by which the window grows at an empty queue"),
                   real("allowed_increase_packets", 1, 1, 1000, "the window is at most what is in flight and this"),
                   whole("min_cwnd_packets", 2, 2, 1000, "least window, and the first"),
                   truth("slow_start", true,
                         "the window doubles each round trip until the target, or a loss, is met for the first time"),
                   whole("base_history_minutes", 10, 1, 1000, "the path's own delay is the least of so many"),
                   whole("current_filter", 4, 1, 1000, "the present delay is the least of so many samples")},
}};

}  // namespace
}  // namespace netbuf
