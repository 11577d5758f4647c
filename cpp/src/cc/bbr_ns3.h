// BBR version 1 as ns-3.44 has it (TcpBbr; behaviour, arithmetic and defaults): in bytes of 32 bits and whole bits a
// second. It differs from Linux' where that was not taken over: the first window after a recovery is the slow-start
// threshold, which in STARTUP is without limit, so that pacing alone holds it back; ACKs that bring no new sample count
// what they deliver over the interval of the last; the aggregation of ACKs is at most what one of them acknowledges.
#pragma once
#include <algorithm>

#include "cc/windowed_max.h"
#include "netbuf/rate_control.h"
#include "netbuf/tcp.h"

namespace netbuf {
namespace bbr {

class Ns3Bbr final : public CongestionControl, public ControlsByNs3Rate {
 public:
  explicit Ns3Bbr(const Parameters& p)
      : high_gain_(p["high_gain"]),
        probe_bw_cwnd_gain_(p["cwnd_gain"]),
        cycle_{p["probe_gain"], p["yield_gain"]},
        full_bw_growth_(p["full_bw_growth"]),
        margin_(p["pacing_margin_percent"] / 100),
        extra_acked_max_s_(p["extra_acked_max_ms"] / 1e3),
        full_bw_rounds_(p.as<uint32_t>("full_bw_rounds")),
        bw_rounds_(p.as<uint32_t>("bw_window_rounds")),
        min_window_packets_(p.as<uint32_t>("min_window_packets")),
        extra_acked_rounds_(p.as<uint32_t>("extra_acked_rounds")),
        min_rtt_window_(static_cast<Time>(p["min_rtt_window_s"] * 1e9)),
        probe_rtt_time_(static_cast<Time>(p["probe_rtt_ms"] * 1e6)) {
    owns_window_ = true;
    wants_rate_ = true;
  }

  void init(Tcb& tcb) override {
    min_rtt_ = min_srtt_ = tcb.srtt;
    min_rtt_stamp_ = ack_epoch_start_ = tcb.now;
    prior_cwnd_ = window(tcb);
    tcb.ssthresh = kInfiniteWindow;
    enter_startup();
    const Time rtt = std::max<Time>(min_srtt_ / kMillisecond, 1) * kMillisecond;
    nominal_bw_ = static_cast<uint64_t>(window(tcb) * 8 / (static_cast<double>(rtt) / 1e9));
    max_bw_.reset(0, nominal_bw_);
    pace(tcb, static_cast<uint64_t>(pacing_gain_ * static_cast<double>(nominal_bw_)));
  }

  void control(Tcb& tcb, const AckEvent& ack) override {
    min_srtt_ = std::min(min_srtt_, tcb.srtt);
    take_sample(tcb, ack);
    update_bandwidth();
    update_ack_aggregation(tcb);
    if (mode_ == Mode::probe_bw && cycle_phase_ends(tcb)) advance_cycle(tcb.now);
    check_full_pipe();
    check_drain(tcb);
    update_min_rtt(tcb.now, ack.rtt);
    check_probe_rtt(tcb);
    set_pacing_rate(tcb, pacing_gain_);
    set_cwnd(tcb);
    delivered_before_ = tcb.delivered;
  }

  uint32_t buffer_windows() const override { return 3; }

  int64_t ssthresh(Tcb& tcb) override {
    save_cwnd(tcb);
    return tcb.ssthresh;
  }

  void on_state(Tcb& tcb, CaState next) override {
    if (next == CaState::loss) {
      save_cwnd(tcb);
      round_start_ = true;
    } else if (next == CaState::recovery) {
      save_cwnd(tcb);
      const uint32_t acked = (tcb.delivered - delivered_before_) * tcb.mss;
      set_window(tcb, in_flight(tcb) + std::max(acked, tcb.mss));
      conserves_packets_ = true;
    } else if (next == CaState::open && tcb.state == CaState::recovery) {
      conserves_packets_ = false;
      set_window(tcb, static_cast<uint32_t>(std::min<int64_t>(tcb.ssthresh, UINT32_MAX)));
    }
  }

  void on_idle_restart(Tcb& tcb) override {
    if (!has_probed_rtt_) return;
    idle_restart_ = true;
    ack_epoch_start_ = tcb.now;
    ack_epoch_acked_ = 0;
    if (mode_ == Mode::probe_bw) set_pacing_rate(tcb, 1);
    else if (mode_ == Mode::probe_rtt) check_probe_rtt_done(tcb);
  }

 private:
  enum class Mode : uint8_t { startup, drain, probe_bw, probe_rtt };
  // Of the whole connection's state when an ACK came. Bytes.
  struct Sample {
    int64_t delivered = -1;        // negative: none
    Time interval = 0;
    uint32_t prior_delivered = 0, acked = 0, lost = 0, prior_in_flight = 0;
    bool app_limited = false;
  };
  static constexpr uint32_t kPhases = 8;
  static constexpr uint32_t kAckEpochBytes = 1 << 12;          // then the epoch of aggregation begins anew
  static constexpr uint64_t kFastest = 4'000'000'000;          // bit/s: TcpSocketState's MaxPacingRate

  static uint32_t window(const Tcb& tcb) { return static_cast<uint32_t>(std::min<int64_t>(tcb.cwnd, UINT32_MAX)); }
  static void set_window(Tcb& tcb, uint32_t bytes) { tcb.set_cwnd(bytes); }
  static uint32_t in_flight(const Tcb& tcb) { return static_cast<uint32_t>(tcb.bytes_in_flight()); }
  static void pace(Tcb& tcb, uint64_t bps) { tcb.pacing_rate = static_cast<double>(bps) / 8; }
  uint32_t min_window(const Tcb& tcb) const { return min_window_packets_ * tcb.mss; }

  // TcpRateLinux::GenerateSample. A segment whose interval is beyond belief is no sample, nor is it for later ACKs.
  void take_sample(const Tcb& tcb, const AckEvent& ack) {
    const uint32_t before = sample_.prior_delivered;
    if (ack.delivered > 0) {
      sample_.prior_delivered = ack.rate.prior_delivered * tcb.mss;
      if (sample_.prior_delivered == 0 || sample_.prior_delivered != before) believed_ = true;
      interval_ = ack.rate.interval;
      sample_.app_limited = ack.rate.app_limited;
    }
    sample_.acked = ack.delivered * tcb.mss;
    sample_.lost = ack.lost * tcb.mss;
    sample_.prior_in_flight = ack.prior_in_flight * tcb.mss;
    delivered_ = tcb.delivered * tcb.mss;
    sample_.interval = 0;
    sample_.delivered = -1;
    if (!believed_) return;
    sample_.delivered = static_cast<int32_t>(delivered_ - sample_.prior_delivered);
    if (interval_ < min_srtt_) {
      believed_ = false;
      return;
    }
    sample_.interval = interval_;
    const auto rate =
        static_cast<uint64_t>(static_cast<double>(sample_.delivered) * 8 / (static_cast<double>(interval_) / 1e9));
    if (!sample_.app_limited || rate >= rate_) rate_ = rate;
  }

  void update_bandwidth() {
    if (sample_.delivered < 0 || sample_.interval == 0) return;
    round_start_ = !before(sample_.prior_delivered, round_ends_);
    if (round_start_) {
      round_ends_ = delivered_;
      ++rounds_;
      conserves_packets_ = false;
    }
    if (rate_ < max_bw_.get() && sample_.app_limited) return;
    if (max_bw_.get() == nominal_bw_) max_bw_.reset(rounds_, rate_);
    else max_bw_.update(bw_rounds_, rounds_, rate_);
  }

  // Time is counted in whole seconds here.
  void update_ack_aggregation(const Tcb& tcb) {
    if (sample_.acked == 0 || sample_.delivered < 0) return;
    if (round_start_) {
      extra_acked_age_ = std::min(31u, extra_acked_age_ + 1);
      if (extra_acked_age_ >= extra_acked_rounds_) {
        extra_acked_age_ = 0;
        extra_acked_index_ = 1 - extra_acked_index_;
        extra_acked_[extra_acked_index_] = 0;
      }
    }
    const auto epoch_s = static_cast<uint64_t>((tcb.now - ack_epoch_start_) / kSecond);
    auto expected = static_cast<uint32_t>(max_bw_.get() * epoch_s / 8);
    if (ack_epoch_acked_ <= expected || ack_epoch_acked_ + sample_.acked >= kAckEpochBytes) {
      ack_epoch_acked_ = 0;
      ack_epoch_start_ = tcb.now;
      expected = 0;
    }
    ack_epoch_acked_ += sample_.acked;
    const uint32_t extra = std::min(ack_epoch_acked_ - expected, window(tcb));
    extra_acked_[extra_acked_index_] = std::max(extra_acked_[extra_acked_index_], extra);
  }

  uint32_t target(const Tcb& tcb, double gain) const {
    const double product = static_cast<double>(max_bw_.get()) * (static_cast<double>(min_rtt_) / 1e9) / 8;
    const bool probes = mode_ == Mode::probe_bw && phase_ == 0;
    return static_cast<uint32_t>(static_cast<uint64_t>(gain * product + (probes ? 5.0 : 3.0) * tcb.mss));  // wraps
  }

  bool cycle_phase_ends(const Tcb& tcb) const {
    const bool full_length = tcb.now - cycle_stamp_ > min_rtt_;
    if (pacing_gain_ == 1) return full_length;
    if (pacing_gain_ < 1) return full_length || sample_.prior_in_flight <= target(tcb, 1);
    return full_length && (sample_.lost > 0 || sample_.prior_in_flight >= target(tcb, pacing_gain_));
  }

  void advance_cycle(Time now) {
    cycle_stamp_ = now;
    phase_ = (phase_ + 1) % kPhases;
    pacing_gain_ = phase_ < 2 ? cycle_[phase_] : 1;
  }

  void check_full_pipe() {
    if (full_pipe_ || !round_start_ || sample_.app_limited) return;
    if (static_cast<double>(max_bw_.get()) >= static_cast<double>(full_bw_) * full_bw_growth_) {
      full_bw_ = max_bw_.get();
      full_bw_count_ = 0;
    } else {
      full_pipe_ = ++full_bw_count_ >= full_bw_rounds_;
    }
  }

  void check_drain(Tcb& tcb) {
    if (mode_ == Mode::startup && full_pipe_) {
      mode_ = Mode::drain;
      pacing_gain_ = 1 / high_gain_;
      cwnd_gain_ = high_gain_;
      tcb.ssthresh = target(tcb, 1);
    }
    if (mode_ == Mode::drain && in_flight(tcb) <= target(tcb, 1)) enter_probe_bw(tcb);
  }

  void enter_startup() {
    mode_ = Mode::startup;
    pacing_gain_ = cwnd_gain_ = high_gain_;
  }

  void enter_probe_bw(const Tcb& tcb) {
    mode_ = Mode::probe_bw;
    cwnd_gain_ = probe_bw_cwnd_gain_;
    phase_ = kPhases - 1 - (tcb.rng ? tcb.rng->below(kPhases - 2) : 0);
    advance_cycle(tcb.now);
  }

  void update_min_rtt(Time now, Time rtt) {
    min_rtt_expired_ = now > min_rtt_stamp_ + min_rtt_window_;
    if (rtt < 0 || (rtt > min_rtt_ && !min_rtt_expired_)) return;
    min_rtt_ = rtt;
    min_rtt_stamp_ = now;
  }

  void check_probe_rtt(Tcb& tcb) {
    if (mode_ != Mode::probe_rtt && min_rtt_expired_ && !idle_restart_) {
      mode_ = Mode::probe_rtt;
      pacing_gain_ = cwnd_gain_ = 1;
      save_cwnd(tcb);
      probe_rtt_done_ = 0;
    }
    if (mode_ == Mode::probe_rtt) handle_probe_rtt(tcb);
    if (sample_.delivered != 0) idle_restart_ = false;
  }

  void handle_probe_rtt(Tcb& tcb) {
    has_probed_rtt_ = true;
    if (probe_rtt_done_ == 0) {
      if (in_flight(tcb) > min_window(tcb)) return;
      probe_rtt_done_ = tcb.now + probe_rtt_time_;
      probe_rtt_round_done_ = false;
      round_ends_ = delivered_;
      return;
    }
    if (round_start_) probe_rtt_round_done_ = true;
    check_probe_rtt_done(tcb);
  }

  void check_probe_rtt_done(Tcb& tcb) {
    if (!probe_rtt_round_done_ || tcb.now <= probe_rtt_done_) return;
    min_rtt_stamp_ = tcb.now;
    set_window(tcb, std::max(prior_cwnd_, window(tcb)));
    if (full_pipe_) enter_probe_bw(tcb);
    else enter_startup();
  }

  void set_pacing_rate(Tcb& tcb, double gain) const {
    auto rate = static_cast<uint64_t>(gain * static_cast<double>(max_bw_.get()));
    rate = std::min(static_cast<uint64_t>(static_cast<double>(rate) * (1 - margin_)), kFastest);
    if (full_pipe_ || static_cast<double>(rate) > tcb.pacing_rate * 8) pace(tcb, rate);
  }

  void set_cwnd(Tcb& tcb) {
    if (sample_.acked > 0 && !set_cwnd_in_recovery(tcb)) {
      uint32_t cwnd = window(tcb);
      const uint32_t goal = target(tcb, cwnd_gain_) + aggregation();
      if (full_pipe_) cwnd = std::min(cwnd + sample_.acked, goal);
      else if (cwnd < goal || delivered_ < tcb.initial_cwnd * tcb.mss) cwnd += sample_.acked;
      set_window(tcb, std::max(cwnd, min_window(tcb)));
    }
    if (mode_ == Mode::probe_rtt) set_window(tcb, std::min(window(tcb), min_window(tcb)));
  }

  bool set_cwnd_in_recovery(Tcb& tcb) {
    if (tcb.state != CaState::recovery) return false;
    if (sample_.lost > 0) {
      const int64_t left = int64_t{window(tcb)} - sample_.lost;
      set_window(tcb, static_cast<uint32_t>(std::max<int64_t>(left, tcb.mss)));
    }
    if (conserves_packets_) set_window(tcb, std::max(window(tcb), in_flight(tcb) + sample_.acked));
    return conserves_packets_;
  }

  uint32_t aggregation() const {
    if (!full_pipe_) return 0;
    const auto most = static_cast<uint32_t>(static_cast<uint64_t>(static_cast<double>(max_bw_.get()) / 8 * extra_acked_max_s_));
    return std::min(std::max(extra_acked_[0], extra_acked_[1]), most);
  }

  void save_cwnd(const Tcb& tcb) {
    const bool usual = tcb.state != CaState::recovery && mode_ != Mode::probe_rtt;
    prior_cwnd_ = usual ? window(tcb) : std::max(prior_cwnd_, window(tcb));
  }

  const double high_gain_, probe_bw_cwnd_gain_, cycle_[2], full_bw_growth_, margin_, extra_acked_max_s_;
  const uint32_t full_bw_rounds_, bw_rounds_, min_window_packets_, extra_acked_rounds_;
  const Time min_rtt_window_, probe_rtt_time_;

  Mode mode_ = Mode::startup;
  WindowedMax max_bw_;             // bit/s, as the next three
  uint64_t nominal_bw_ = 0, rate_ = 0, full_bw_ = 0;
  double pacing_gain_ = 1, cwnd_gain_ = 1;
  Sample sample_;
  bool believed_ = false;          // the segment that the sample is taken from
  Time interval_ = 0;              // its own
  uint32_t delivered_ = 0;         // bytes, as the next
  uint32_t round_ends_ = 0, rounds_ = 0, full_bw_count_ = 0, phase_ = 0;
  uint32_t delivered_before_ = 0;  // packets, after the ACK before
  uint32_t prior_cwnd_ = 0;        // bytes
  uint32_t extra_acked_[2] = {0, 0}, extra_acked_index_ = 0, extra_acked_age_ = 0, ack_epoch_acked_ = 0;
  bool round_start_ = false, full_pipe_ = false, conserves_packets_ = false, idle_restart_ = false;
  bool min_rtt_expired_ = false, probe_rtt_round_done_ = false, has_probed_rtt_ = false;
  Time min_srtt_ = kNever, min_rtt_ = kNever, min_rtt_stamp_ = 0, cycle_stamp_ = 0, probe_rtt_done_ = 0,
       ack_epoch_start_ = 0;
};

}  // namespace bbr
}  // namespace netbuf
