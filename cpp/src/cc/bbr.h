// BBR version 1: sends at the estimated bottleneck bandwidth (the largest delivery rate of ten round trips) and keeps
// about two bandwidth-delay products in flight at most (delay: the smallest RTT of ten seconds).
//
//   STARTUP --(bandwidth stops growing)--> DRAIN --(queue gone)--> PROBE_BW <--(every 10 s, 200 ms)--> PROBE_RTT
//
// Sources: Cardwell et al., "BBR: congestion-based congestion control", ACM Queue 14(5), 2016;
// draft-cardwell-iccrg-bbr-00; draft-cheng-iccrg-delivery-rate-estimation; behaviour, fixed-point scaling and defaults
// of net/ipv4/tcp_bbr.c and tcp_tso_autosize() in net/ipv4/tcp_output.c (Linux 6.18). Parameters carry the kernel's
// names. What is virtual is what BBRPlus has otherwise.
#pragma once
#include <algorithm>

#include "cc/bbr_setting.h"
#include "cc/windowed_max.h"

namespace netbuf {
namespace bbr {

class Bbr : public CongestionControl {
 public:
  explicit Bbr(const Parameters& parameters)
      : setting_(parameters), pacing_gain_(setting_.high_gain), cwnd_gain_(setting_.high_gain) {
    owns_window_ = true;
    wants_rate_ = true;
  }

  void init(Tcb& tcb) override {
    tcb.ssthresh = kInfiniteWindow;
    next_rtt_delivered_ = tcb.delivered;
    min_rtt_us_ = tcb.min_rtt < kNever ? static_cast<uint64_t>(tcb.min_rtt / kMicrosecond) : kNoRtt;
    min_rtt_stamp_ = jiffies(tcb.now);
    ack_epoch_start_ = tcb.now;
    reset_lt_bw_sampling(tcb);
    init_pacing_rate_from_rtt(tcb);
  }

  void control(Tcb& tcb, const AckEvent& ack) override {
    update_bw(tcb, ack);
    update_ack_aggregation(tcb, ack);
    if (mode_ == Mode::probe_bw) update_cycle(tcb, ack);
    check_full_bw_reached(ack);
    check_drain(tcb);
    update_min_rtt(tcb, ack);
    update_gains();
    set_pacing_rate(tcb, bw(), pacing_gain_);
    set_cwnd(tcb, ack);
  }

  uint32_t buffer_windows() const override { return 3; }

  int64_t ssthresh(Tcb& tcb) override {
    save_cwnd(tcb);
    return tcb.ssthresh;
  }

  int64_t undo_window(Tcb& tcb, int64_t) override {
    full_bw_ = 0;
    full_bw_count_ = 0;
    reset_lt_bw_sampling(tcb);
    return tcb.cwnd;
  }

  void on_state(Tcb& tcb, CaState next) override {
    if (next != CaState::loss) return;
    previous_state_ = CaState::loss;
    full_bw_ = 0;
    round_start_ = true;
    lt_bw_sampling(tcb, 1, false);
  }

  void on_idle_restart(Tcb& tcb) override {
    if (!tcb.app_limited) return;
    idle_restart_ = true;
    ack_epoch_start_ = tcb.now;
    ack_epoch_acked_ = 0;
    if (mode_ == Mode::probe_bw) set_pacing_rate(tcb, bw(), kUnit);
    else if (mode_ == Mode::probe_rtt) check_probe_rtt_done(tcb);
  }

  // The size of the sender's segmentation bursts at this pacing rate.
  uint32_t burst_packets(const Tcb& tcb) const override {
    uint64_t bytes = static_cast<uint64_t>(tcb.pacing_rate) >> kPacingShift;
    const uint64_t halvings =
        tcb.min_rtt < kNever ? static_cast<uint64_t>(tcb.min_rtt / kMicrosecond) >> kTsoRttLog : 32;
    if (halvings < 32) bytes += kGsoMaxSize >> halvings;
    return std::max(static_cast<uint32_t>(std::min<uint64_t>(bytes, kGsoMaxSize)) / tcb.mss, min_tso_segs(tcb));
  }

 protected:
  enum class Mode : uint8_t { startup, drain, probe_bw, probe_rtt };
  static constexpr uint64_t kNoRtt = ~uint64_t{0};

  uint64_t max_bw() const { return bw_.get(); }
  uint64_t bw() const { return lt_use_bw_ ? lt_bw_ : max_bw(); }

  uint64_t bytes_per_second(const Tcb& tcb, uint64_t bw, uint32_t gain) const {
    const uint64_t rate = (bw * tcb.mss * gain >> kScale) * setting_.rate_scale;
    return rate >> kBwScale;
  }

  // ---- pacing

  void init_pacing_rate_from_rtt(Tcb& tcb) {
    uint64_t rtt_us = 1000;
    if (tcb.srtt > 0) {
      rtt_us = std::max<uint64_t>(static_cast<uint64_t>(tcb.srtt / kMicrosecond), 1);
      has_seen_rtt_ = true;
    }
    tcb.pacing_rate =
        static_cast<double>(bytes_per_second(tcb, tcb.cwnd_packets * kBwUnit / rtt_us, setting_.high_gain));
  }

  void set_pacing_rate(Tcb& tcb, uint64_t bw, uint32_t gain) {
    const double rate = static_cast<double>(bytes_per_second(tcb, bw, gain));
    if (!has_seen_rtt_ && tcb.srtt > 0) init_pacing_rate_from_rtt(tcb);
    if (full_bw_reached_ || rate > tcb.pacing_rate) tcb.pacing_rate = rate;
  }

  static uint32_t min_tso_segs(const Tcb& tcb) { return tcb.pacing_rate < kMinTsoRate / 8 ? 1 : 2; }

  static uint32_t tso_segs_goal(const Tcb& tcb) {
    const uint64_t bytes = std::min<uint64_t>(static_cast<uint64_t>(tcb.pacing_rate) >> kPacingShift, kGsoMaxSize);
    return std::min(std::max(static_cast<uint32_t>(bytes) / tcb.mss, min_tso_segs(tcb)), 0x7fu);
  }

  // ---- window

  void save_cwnd(const Tcb& tcb) {
    const bool good = previous_state_ < CaState::recovery && mode_ != Mode::probe_rtt;
    prior_cwnd_ = good ? tcb.cwnd_packets : std::max(prior_cwnd_, tcb.cwnd_packets);
  }

  uint32_t bdp(uint64_t bw, uint32_t gain) const {
    if (min_rtt_us_ == kNoRtt) return kInitialCwnd;
    return static_cast<uint32_t>(((bw * min_rtt_us_ * gain >> kScale) + kBwUnit - 1) / kBwUnit);
  }

  // Room for a burst in each host's queues, and for delayed ACKs.
  virtual uint32_t quantization_budget(const Tcb& tcb, uint32_t cwnd) const {
    cwnd += 3 * tso_segs_goal(tcb);
    cwnd = (cwnd + 1) & ~1u;
    if (mode_ == Mode::probe_bw && cycle_index_ == 0) cwnd += 2;
    return cwnd;
  }

  uint32_t inflight(const Tcb& tcb, uint64_t bw, uint32_t gain) const {
    return quantization_budget(tcb, bdp(bw, gain));
  }

  // Packets still in the network when pacing lets the next burst go.
  virtual uint32_t packets_in_net_at_departure(const Tcb& tcb, uint32_t inflight_now) const {
    const uint64_t wait_us = static_cast<uint64_t>(std::max<Time>(tcb.next_departure - tcb.now, 0) / kMicrosecond);
    const uint32_t delivered = static_cast<uint32_t>(bw() * wait_us >> kBwScale);
    const uint32_t then = inflight_now + (pacing_gain_ > kUnit ? tso_segs_goal(tcb) : 0);
    return delivered >= then ? 0 : then - delivered;
  }

  uint32_t ack_aggregation_cwnd() const {
    if (!full_bw_reached_) return 0;
    const uint32_t most = static_cast<uint32_t>(bw() * setting_.extra_acked_max_us / kBwUnit);
    return std::min(std::max(extra_acked_[0], extra_acked_[1]), most);
  }

  // Loss: packet conservation for the first round trip of recovery, then growth again;
  // the window from before comes back after.
  bool recover_or_restore(Tcb& tcb, const AckEvent& ack, uint32_t& cwnd) {
    if (ack.lost) cwnd = cwnd > ack.lost ? cwnd - ack.lost : 1;
    if (tcb.state == CaState::recovery && previous_state_ != CaState::recovery) {
      packet_conservation_ = true;
      next_rtt_delivered_ = tcb.delivered;
      cwnd = tcb.in_flight() + ack.delivered;
    } else if (previous_state_ >= CaState::recovery && tcb.state < CaState::recovery) {
      cwnd = std::max(cwnd, prior_cwnd_);
      packet_conservation_ = false;
    }
    previous_state_ = tcb.state;
    if (packet_conservation_) cwnd = std::max(cwnd, tcb.in_flight() + ack.delivered);
    return packet_conservation_;
  }

  void set_cwnd(Tcb& tcb, const AckEvent& ack) {
    uint32_t cwnd = tcb.cwnd_packets;
    if (ack.delivered && !recover_or_restore(tcb, ack, cwnd)) {
      const uint32_t target = quantization_budget(tcb, bdp(bw(), cwnd_gain_) + ack_aggregation_cwnd());
      if (full_bw_reached_) cwnd = std::min(cwnd + ack.delivered, target);
      else if (cwnd < target || tcb.delivered < kInitialCwnd) cwnd += ack.delivered;
      cwnd = std::max(cwnd, setting_.cwnd_min_target);
    }
    if (mode_ == Mode::probe_rtt) cwnd = std::min(cwnd, setting_.cwnd_min_target);
    if (cwnd != tcb.cwnd_packets) tcb.set_cwnd_packets(cwnd);
  }

  // ---- gain cycle

  bool cycle_phase_is_over(const Tcb& tcb, const AckEvent& ack) const {
    const bool full_length = static_cast<uint64_t>((tcb.delivered_time - cycle_start_) / kMicrosecond) > min_rtt_us_;
    if (pacing_gain_ == kUnit) return full_length;
    const uint32_t in_net = packets_in_net_at_departure(tcb, ack.prior_in_flight);
    if (pacing_gain_ > kUnit) return full_length && (ack.lost || in_net >= inflight(tcb, max_bw(), pacing_gain_));
    return full_length || in_net <= inflight(tcb, max_bw(), kUnit);
  }

  virtual void update_cycle(const Tcb& tcb, const AckEvent& ack) {
    if (cycle_phase_is_over(tcb, ack)) advance_cycle_phase(tcb);
  }

  void advance_cycle_phase(const Tcb& tcb) {
    cycle_index_ = (cycle_index_ + 1) % kCycleLength;
    cycle_start_ = tcb.delivered_time;
  }

  void enter_probe_bw(const Tcb& tcb) {
    mode_ = Mode::probe_bw;
    cycle_index_ = kCycleLength - 1 - (tcb.rng ? tcb.rng->below(kCycleRand) : 0);
    advance_cycle_phase(tcb);
  }

  void update_gains() {
    switch (mode_) {
      case Mode::startup:
        pacing_gain_ = cwnd_gain_ = setting_.high_gain;
        break;
      case Mode::drain:
        pacing_gain_ = setting_.drain_gain;
        cwnd_gain_ = setting_.high_gain;
        break;
      case Mode::probe_bw:
        pacing_gain_ = lt_use_bw_ ? kUnit : setting_.cycle_gain(cycle_index_);
        cwnd_gain_ = setting_.cwnd_gain;
        break;
      case Mode::probe_rtt:
        pacing_gain_ = cwnd_gain_ = kUnit;
        break;
    }
  }

  // ---- bandwidth

  void update_bw(Tcb& tcb, const AckEvent& ack) {
    round_start_ = false;
    const int64_t interval_us = ack.rate.interval / kMicrosecond;
    if (ack.rate.delivered < 0 || interval_us <= 0) return;
    if (!before(ack.rate.prior_delivered, next_rtt_delivered_)) {
      next_rtt_delivered_ = tcb.delivered;
      ++rtt_count_;
      round_start_ = true;
      packet_conservation_ = false;
    }
    lt_bw_sampling(tcb, ack.lost, ack.rate.app_limited);
    const uint64_t sample = static_cast<uint64_t>(ack.rate.delivered) * kBwUnit / static_cast<uint64_t>(interval_us);
    if (!ack.rate.app_limited || sample >= max_bw()) bw_.update(setting_.bw_rtts, rtt_count_, sample);
  }

  // Packets delivered beyond what the bandwidth accounts for since the epoch began: they arrived in clumps, so that the
  // window needs as much more to keep sending through the silences between.
  void update_ack_aggregation(const Tcb& tcb, const AckEvent& ack) {
    if (!ack.delivered || ack.rate.delivered < 0 || ack.rate.interval < kMicrosecond) return;
    if (round_start_ && ++extra_acked_rtts_ >= setting_.extra_acked_rtts) {
      extra_acked_rtts_ = 0;
      extra_acked_index_ ^= 1;
      extra_acked_[extra_acked_index_] = 0;
    }
    const uint64_t epoch_us = static_cast<uint64_t>((tcb.delivered_time - ack_epoch_start_) / kMicrosecond);
    uint32_t expected = static_cast<uint32_t>(bw() * epoch_us / kBwUnit);
    if (ack_epoch_acked_ <= expected || ack_epoch_acked_ + ack.delivered >= kAckEpochAckedResetThresh) {
      ack_epoch_acked_ = 0;
      ack_epoch_start_ = tcb.delivered_time;
      expected = 0;
    }
    ack_epoch_acked_ += ack.delivered;
    const uint32_t extra = std::min(ack_epoch_acked_ - expected, tcb.cwnd_packets);
    extra_acked_[extra_acked_index_] = std::max(extra_acked_[extra_acked_index_], extra);
  }

  void check_full_bw_reached(const AckEvent& ack) {
    if (full_bw_reached_ || !round_start_ || ack.rate.app_limited) return;
    if (max_bw() >= full_bw_ * setting_.full_bw_thresh >> kScale) {
      full_bw_ = max_bw();
      full_bw_count_ = 0;
      return;
    }
    full_bw_reached_ = ++full_bw_count_ >= setting_.full_bw_count;
  }

  void check_drain(Tcb& tcb) {
    if (mode_ == Mode::startup && full_bw_reached_) {
      mode_ = Mode::drain;
      tcb.ssthresh = static_cast<int64_t>(inflight(tcb, max_bw(), kUnit)) * tcb.mss;
    }
    if (mode_ == Mode::drain &&
        packets_in_net_at_departure(tcb, tcb.in_flight()) <= inflight(tcb, max_bw(), kUnit))
      enter_probe_bw(tcb);
  }

  // ---- long-term bandwidth: two intervals in a row with much loss and equal throughput betray a policer

  void reset_lt_bw_sampling_interval(const Tcb& tcb) {
    lt_last_stamp_ms_ = tcb.delivered_time / kMillisecond;
    lt_last_delivered_ = tcb.delivered;
    lt_last_lost_ = tcb.lost;
    lt_rtt_count_ = 0;
  }

  void reset_lt_bw_sampling(const Tcb& tcb) {
    lt_bw_ = 0;
    lt_use_bw_ = false;
    lt_is_sampling_ = false;
    reset_lt_bw_sampling_interval(tcb);
  }

  void lt_bw_sampling(const Tcb& tcb, uint32_t losses, bool app_limited) {
    if (!setting_.policer_detection) return;
    if (lt_use_bw_) {
      if (mode_ == Mode::probe_bw && round_start_ && ++lt_rtt_count_ >= kLtBwMaxRtts) {
        reset_lt_bw_sampling(tcb);
        enter_probe_bw(tcb);
      }
      return;
    }
    if (!lt_is_sampling_) {  // the first loss says that the policer's tokens are used up
      if (!losses) return;
      reset_lt_bw_sampling_interval(tcb);
      lt_is_sampling_ = true;
    }
    if (app_limited) return reset_lt_bw_sampling(tcb);
    if (round_start_) ++lt_rtt_count_;
    if (lt_rtt_count_ < kLtIntervalMinRtts) return;
    if (lt_rtt_count_ > 4 * kLtIntervalMinRtts) return reset_lt_bw_sampling(tcb);
    if (!losses) return;
    const uint32_t lost = tcb.lost - lt_last_lost_;
    const uint32_t delivered = tcb.delivered - lt_last_delivered_;
    if (!delivered || uint64_t{lost} << kScale < uint64_t{kLtLossThresh} * delivered) return;
    const int64_t elapsed_ms = tcb.delivered_time / kMillisecond - lt_last_stamp_ms_;
    if (elapsed_ms < 1) return;
    finish_lt_interval(tcb, delivered * kBwUnit / static_cast<uint64_t>(elapsed_ms * 1000));
  }

  void finish_lt_interval(const Tcb& tcb, uint64_t bw) {
    if (lt_bw_) {
      const uint64_t diff = bw > lt_bw_ ? bw - lt_bw_ : lt_bw_ - bw;
      if (diff * kUnit <= kLtBwRatio * lt_bw_ || bytes_per_second(tcb, diff, kUnit) <= kLtBwDiff) {
        lt_bw_ = (bw + lt_bw_) / 2;
        lt_use_bw_ = true;
        pacing_gain_ = kUnit;
        lt_rtt_count_ = 0;
        return;
      }
    }
    lt_bw_ = bw;
    reset_lt_bw_sampling_interval(tcb);
  }

  // ---- round-trip time

  virtual bool is_new_minimum(uint64_t rtt_us) const { return rtt_us < min_rtt_us_; }

  void update_min_rtt(Tcb& tcb, const AckEvent& ack) {
    const uint32_t now = jiffies(tcb.now);
    const bool expired = jiffies_after(now, min_rtt_stamp_ + setting_.min_rtt_window);
    if (ack.rtt >= 0) {
      const uint64_t rtt_us = static_cast<uint64_t>(ack.rtt / kMicrosecond);
      if (is_new_minimum(rtt_us) || expired) {
        min_rtt_us_ = rtt_us;
        min_rtt_stamp_ = now;
      }
    }
    if (expired && !idle_restart_ && mode_ != Mode::probe_rtt) {
      mode_ = Mode::probe_rtt;
      save_cwnd(tcb);
      probe_rtt_done_stamp_ = 0;
    }
    if (mode_ == Mode::probe_rtt) {
      tcb.app_limited = std::max(tcb.delivered + tcb.in_flight(), 1u);  // low rates now say nothing about the path
      if (!probe_rtt_done_stamp_ && tcb.in_flight() <= setting_.cwnd_min_target) {
        probe_rtt_done_stamp_ = now + setting_.probe_rtt_mode;
        probe_rtt_round_done_ = false;
        next_rtt_delivered_ = tcb.delivered;
      } else if (probe_rtt_done_stamp_) {
        if (round_start_) probe_rtt_round_done_ = true;
        if (probe_rtt_round_done_) check_probe_rtt_done(tcb);
      }
    }
    if (ack.rate.delivered > 0) idle_restart_ = false;
  }

  void check_probe_rtt_done(Tcb& tcb) {
    const uint32_t now = jiffies(tcb.now);
    if (!probe_rtt_done_stamp_ || !jiffies_after(now, probe_rtt_done_stamp_)) return;
    min_rtt_stamp_ = now;
    if (prior_cwnd_ > tcb.cwnd_packets) tcb.set_cwnd_packets(prior_cwnd_);
    if (full_bw_reached_) enter_probe_bw(tcb);
    else mode_ = Mode::startup;
  }

  const Setting setting_;
  Mode mode_ = Mode::startup;
  CaState previous_state_ = CaState::open;     // at the last ACK
  bool packet_conservation_ = false, round_start_ = false, idle_restart_ = false, has_seen_rtt_ = false;
  bool probe_rtt_round_done_ = false, full_bw_reached_ = false;
  uint32_t pacing_gain_, cwnd_gain_;

  WindowedMax bw_;
  uint32_t rtt_count_ = 0;                     // round trips, counted by packets
  uint32_t next_rtt_delivered_ = 0;            // the round trip ends when a packet sent after this is acknowledged
  uint64_t min_rtt_us_ = kNoRtt;
  uint32_t min_rtt_stamp_ = 0, probe_rtt_done_stamp_ = 0;  // jiffies

  uint32_t cycle_index_ = 0;
  Time cycle_start_ = 0;
  uint32_t prior_cwnd_ = 0;                    // packets, before recovery or PROBE_RTT
  uint64_t full_bw_ = 0;
  uint32_t full_bw_count_ = 0;

  bool lt_is_sampling_ = false, lt_use_bw_ = false;
  uint32_t lt_rtt_count_ = 0, lt_last_delivered_ = 0, lt_last_lost_ = 0;
  uint64_t lt_bw_ = 0;
  int64_t lt_last_stamp_ms_ = 0;

  Time ack_epoch_start_ = 0;
  uint32_t ack_epoch_acked_ = 0, extra_acked_[2] = {0, 0}, extra_acked_rtts_ = 0, extra_acked_index_ = 0;
};

}  // namespace bbr
}  // namespace netbuf
