// Vegas: keeps between alpha and beta packets of its own in the queue, judged once a round trip from the smallest
// RTT of that round (delayed ACKs make the others larger) and the smallest RTT ever. Without enough samples, and
// while in trouble, it is Reno.
//
// Sources: Brakmo and Peterson, "TCP Vegas: end to end congestion avoidance on a global Internet", IEEE JSAC 13(8),
// 1995; net/ipv4/tcp_vegas.c of Linux 6.18, and TcpVegas of ns-3.44 (behaviour and defaults). ns-3 takes smoothed RTTs,
// ACKs that acknowledge nothing for samples too, and a recovery that ends for the start of a round trip.
#include <cmath>

#include "cc/linux_window.h"
#include "cc/ns3_newreno.h"

namespace netbuf {
namespace {

constexpr uint32_t kEnoughSamples = 3;  // in a round trip: fewer can all be delayed ACKs

class Vegas final : public LinuxReno {
 public:
  explicit Vegas(const Parameters& parameters)
      : alpha_(parameters.as<uint64_t>("alpha")),
        beta_(parameters.as<uint64_t>("beta")),
        gamma_(parameters.as<uint64_t>("gamma")) {}

  void init(Tcb& tcb) override {
    base_rtt_ = kNever;
    enable(tcb);
  }

  void on_ack(Tcb&, const AckEvent& ack) override {
    if (ack.rtt < 0) return;
    const Time rtt = ack.rtt / kMicrosecond + 1;  // microseconds, never 0
    base_rtt_ = std::min(base_rtt_, rtt);
    min_rtt_ = std::min(min_rtt_, rtt);
    ++rtt_count_;
  }

  void increase_window(Tcb& tcb, const AckEvent& ack) override {
    if (!enabled_) {
      reno_increase(tcb, ack.delivered);
    } else if (after(tcb.una, round_end_)) {
      round_end_ = tcb.nxt;
      if (rtt_count_ < kEnoughSamples) {
        reno_increase(tcb, ack.delivered);
      } else {
        adjust(tcb, ack.delivered);
      }
      rtt_count_ = 0;
      min_rtt_ = kNever;
    } else if (tcb.in_slow_start()) {
      slow_start(tcb, ack.delivered);
    }
  }

  void on_state(Tcb& tcb, CaState state) override {
    if (state == CaState::open) enable(tcb);
    else enabled_ = false;
  }

  void on_idle_restart(Tcb& tcb) override { init(tcb); }

 private:
  // Wait for a full round trip of fresh samples before the next decision.
  void enable(Tcb& tcb) {
    enabled_ = true;
    round_end_ = tcb.nxt;
    rtt_count_ = 0;
    min_rtt_ = kNever;
  }

  // The once-a-round-trip decision.
  void adjust(Tcb& tcb, uint32_t acked) {
    const uint64_t cwnd = tcb.cwnd_packets;
    const uint64_t rtt = static_cast<uint64_t>(min_rtt_), base = static_cast<uint64_t>(base_rtt_);
    const uint64_t target = cwnd * base / rtt;         // packets that fill the path without a queue
    const uint64_t diff = cwnd * (rtt - base) / base;  // packets this flow holds in the queue
    uint64_t next = cwnd;
    if (tcb.in_slow_start()) {
      if (diff > gamma_) {
        next = std::min(cwnd, target + 1);
        tcb.ssthresh = std::min(tcb.ssthresh, static_cast<int64_t>(next) * tcb.mss);
      } else {
        slow_start(tcb, acked);
        next = tcb.cwnd_packets;
      }
    } else if (diff > beta_) {
      next = cwnd - 1;
      tcb.ssthresh = std::min(tcb.ssthresh, static_cast<int64_t>(next) * tcb.mss);
    } else if (diff < alpha_) {
      next = cwnd + 1;
    }
    next = std::max<uint64_t>(next, 2);
    if (next != tcb.cwnd_packets) tcb.set_cwnd_packets(static_cast<uint32_t>(next));
    tcb.ssthresh = std::max(tcb.ssthresh, static_cast<int64_t>(next / 2 + next / 4) * tcb.mss);
  }

  const uint64_t alpha_, beta_, gamma_;  // packets
  bool enabled_ = false;
  uint32_t round_end_ = 0;   // a round trip is over when the segment sent next at its start is acknowledged
  uint32_t rtt_count_ = 0;
  Time base_rtt_ = kNever;   // microseconds, as the next
  Time min_rtt_ = kNever;    // of this round trip
};

class Ns3Vegas final : public Ns3NewReno {
 public:
  explicit Ns3Vegas(const Parameters& parameters)
      : alpha_(parameters.as<uint32_t>("alpha")),
        beta_(parameters.as<uint32_t>("beta")),
        gamma_(parameters.as<uint32_t>("gamma")) {}

  void on_ack(Tcb& tcb, const AckEvent&) override {
    min_rtt_ = std::min(min_rtt_, tcb.srtt);
    base_rtt_ = std::min(base_rtt_, tcb.srtt);
    ++rtt_count_;
  }

  void increase_window(Tcb& tcb, const AckEvent& ack) override {
    if (!enabled_) return Ns3NewReno::increase_window(tcb, ack);
    if (before(tcb.una, round_end_)) {
      if (tcb.in_slow_start()) slow_start(tcb, ack);
      return;
    }
    round_end_ = tcb.nxt;
    if (rtt_count_ < kEnoughSamples) {
      Ns3NewReno::increase_window(tcb, ack);
    } else {
      adjust(tcb, ack);
    }
    rtt_count_ = 0;
    min_rtt_ = kNever;
  }

  int64_t ssthresh(Tcb& tcb) override {
    return std::max<int64_t>(std::min(tcb.ssthresh, tcb.cwnd - tcb.mss), 2 * tcb.mss);
  }

  void on_state(Tcb& tcb, CaState state) override {
    enabled_ = state == CaState::open;
    if (!enabled_) return;
    round_end_ = tcb.nxt;
    rtt_count_ = 0;
    min_rtt_ = kNever;
  }

 private:
  static void slow_start(Tcb& tcb, const AckEvent& ack) {
    if (ack.acked > 0) tcb.set_cwnd(tcb.cwnd + tcb.mss);
  }

  // Windows in segments, rounded down.
  void adjust(Tcb& tcb, const AckEvent& ack) {
    const uint32_t cwnd = tcb.cwnd_packets;
    const double share = static_cast<double>(base_rtt_) / static_cast<double>(min_rtt_);
    const auto target = static_cast<uint32_t>(cwnd * share);
    const uint32_t diff = cwnd - target;
    if (tcb.in_slow_start() && diff > gamma_) {
      tcb.set_cwnd_packets(std::min(cwnd, target + 1));
      tcb.ssthresh = ssthresh(tcb);
    } else if (tcb.in_slow_start()) {
      slow_start(tcb, ack);
    } else if (diff > beta_) {
      tcb.set_cwnd_packets(std::max(cwnd - 1, 1u));  // ns-3 comes to 0 with a beta of 0, and sends no more
      tcb.ssthresh = ssthresh(tcb);
    } else if (diff < alpha_) {
      tcb.set_cwnd_packets(cwnd + 1);
    }
    tcb.ssthresh = std::max(tcb.ssthresh, 3 * tcb.cwnd / 4);
  }

  const uint32_t alpha_, beta_, gamma_;            // packets
  bool enabled_ = true;
  uint32_t round_end_ = 0, rtt_count_ = 0;
  Time base_rtt_ = kNever, min_rtt_ = kNever;      // smallest smoothed RTT of all, and of this round trip
};

const Entry<CongestionControlRecord> entry{{
    .name = "vegas",
    .meaning = "keeps a few packets of its own in the queue, judged by the round-trip time",
    .linux_kernel = make<Vegas>,
    .ns3 = make<Ns3Vegas>,
    .parameters = {whole("alpha", 2, 0, 10'000, "packets in the queue, fewer: the window grows by one a round trip"),
                   whole("beta", 4, 0, 10'000, "packets in the queue, more: the window shrinks by one a round trip"),
                   whole("gamma", 1, 0, 10'000, "packets in the queue, more: slow start ends")},
}};

}  // namespace
}  // namespace netbuf
