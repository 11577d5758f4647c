// BBRPlus: BBR version 1 whose bandwidth probing ends as soon as it has shown something. A cycle lasts two to eight
// round trips, drawn anew each time: it probes until the probe is full, is lost in part or has no data, drains until
// the queue is gone, and cruises for the rest. The window has more room for aggregated ACKs, looked at over longer, and
// none for bursts while it probes.
//
// Source: behaviour of github.com/cx9208/bbrplus at 8e46a57 (tcp_bbrplus.c, for Linux 4.14.129, July 2019), with what
// it inherits from the BBR of that kernel. It paces packets with their headers as the fq queue discipline counts them,
// one per cent below the bandwidth; as payload here, the margin is a parameter. Parameters carry the names of bbr's.
#include "cc/bbr.h"

namespace netbuf {
namespace {

using bbr::kUnit;

class BbrPlus final : public bbr::Bbr {
 public:
  using Bbr::Bbr;

 private:
  enum Phase : uint32_t { probe_up, probe_down, cruise };

  void update_cycle(const Tcb& tcb, const AckEvent& ack) override {
    const auto elapsed_us = static_cast<uint64_t>((tcb.delivered_time - cycle_start_) / kMicrosecond);
    if (elapsed_us > cycle_rounds_ * min_rtt_us_) {
      cycle_start_ = tcb.delivered_time;
      cycle_rounds_ = bbr::kCycleLength - (tcb.rng ? tcb.rng->below(bbr::kCycleRand) : 0);
      enter(probe_up);
    } else if (pacing_gain_ < kUnit) {
      if (ack.prior_in_flight <= inflight(tcb, max_bw(), kUnit)) enter(cruise);
    } else if (pacing_gain_ > kUnit && elapsed_us > min_rtt_us_) {
      if (ack.lost || ack.rate.app_limited || ack.prior_in_flight >= inflight(tcb, max_bw(), pacing_gain_)) {
        enter(probe_down);
      }
    }
  }

  void enter(Phase phase) {
    cycle_index_ = phase;
    update_gains();
  }

  uint32_t quantization_budget(const Tcb& tcb, uint32_t cwnd) const override { return cwnd + 3 * tso_segs_goal(tcb); }

  uint32_t packets_in_net_at_departure(const Tcb&, uint32_t inflight_now) const override { return inflight_now; }

  bool is_new_minimum(uint64_t rtt_us) const override { return rtt_us <= min_rtt_us_; }

  uint32_t cycle_rounds_ = 0;  // the length of this cycle, smallest round trips
};

const Entry<CongestionControlRecord> entry{{
    .name = "bbrplus",
    .meaning = "BBRPlus: BBR whose probes for bandwidth end as soon as they have shown something",
    .linux_kernel = make<BbrPlus>,
    .parameters = bbr::parameters(10),
}};

}  // namespace
}  // namespace netbuf
