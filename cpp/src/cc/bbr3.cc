// BBR version 3: a model of the path from the largest delivery rate of two probing cycles and the smallest RTT of ten
// seconds, bounded by what losses have taught: for long (inflight_longterm, what a probe may put into flight) and for
// the moment (bw_shortterm and inflight_shortterm, forgotten when the next probe begins).
//
//   Startup --(bandwidth stops growing, or much loss)--> Drain --(queue gone)--> ProbeBW (Down, Cruise, Refill, Up)
//   every 5 s: ProbeRTT, half of a bandwidth-delay product for 200 ms
//
// Source: draft-ietf-ccwg-bbr, "BBR congestion control"; the names of parameters and functions are the draft's. Rates
// are packets a second, windows packets. Of the draft's two readings of a burst of losses the number of ACKs that
// report some stands for ranges.
#include <algorithm>
#include <cmath>
#include <limits>

#include "netbuf/tcp.h"

namespace netbuf {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();
constexpr double kFullGrowth = 1.25;         // less growth a round than this: the bandwidth is found
constexpr uint32_t kFullRounds = 3, kDrainRounds = 3, kMostRenoRounds = 63, kExtraAckedRounds = 10;
constexpr Time kQuantum = kMillisecond;      // of pacing, sent at once
constexpr uint32_t kLargestQuantum = 64'000;  // bytes

class Bbr3 final : public CongestionControl {
 public:
  explicit Bbr3(const Parameters& p)
      : startup_gain_(p["startup_pacing_gain"]),
        drain_gain_(p["drain_pacing_gain"]),
        cwnd_gain_(p["default_cwnd_gain"]),
        loss_thresh_(p["loss_thresh"]),
        beta_(p["beta"]),
        headroom_(p["headroom"]),
        margin_(1 - p["pacing_margin_percent"] / 100),
        min_pipe_(p["min_pipe_packets"]),
        full_losses_(p.as<uint32_t>("startup_full_loss_count")),
        min_rtt_len_(from_seconds(p["min_rtt_filter_s"])),
        probe_rtt_interval_(from_seconds(p["probe_rtt_interval_s"])),
        probe_rtt_duration_(from_seconds(p["probe_rtt_ms"] * 1e-3)) {
    owns_window_ = wants_rate_ = wants_losses_ = true;
  }

  void init(Tcb& tcb) override {
    tcb.ssthresh = kInfiniteWindow;
    min_rtt_ = probe_rtt_min_ = tcb.min_rtt;
    min_rtt_stamp_ = probe_rtt_stamp_ = extra_acked_start_ = tcb.now;
    start_round(tcb);
    loss_round_end_ = tcb.delivered;
    const Time rtt = tcb.srtt > 0 ? tcb.srtt : kMillisecond;
    tcb.pacing_rate = startup_gain_ * tcb.initial_cwnd * tcb.mss * 1e9 / static_cast<double>(rtt);
  }

  void control(Tcb& tcb, const AckEvent& ack) override {
    const Sample s = sample(tcb, ack);
    update_latest_delivery_signals(tcb, s);
    update_congestion_signals(tcb, s, ack);
    update_ack_aggregation(tcb, ack);
    check_full_bw_reached(s);
    check_startup_done(tcb, s, ack);
    if (state_ == State::drain && (tcb.in_flight() <= inflight(1) || round_count_ > drain_start_ + kDrainRounds)) {
      start_down(tcb);
    }
    update_probe_bw_cycle_phase(tcb, s, ack);
    update_min_rtt(tcb, ack);
    check_probe_rtt(tcb, s);
    if (loss_round_start_) bw_latest_ = s.rate, inflight_latest_ = s.delivered;
    bw_ = std::min(max_bw(), bw_shortterm_);
    set_pacing_rate(tcb, pacing_gain());
    set_cwnd(tcb, ack);
  }

  void on_lost(Tcb& tcb, const RateSample& lost) override {
    if (!loss_in_round_) loss_round_end_ = tcb.delivered;
    loss_in_round_ = true;
    if (!bw_probe_samples_) return;
    const double in_flight = lost.sent_in_flight, losses = tcb.lost - lost.prior_lost;
    if (losses <= in_flight * loss_thresh_) return;
    // What was in flight when the loss rate crossed the threshold.
    const double before = in_flight - 1, lost_before = losses - 1;
    const double prefix = std::max(0.0, (loss_thresh_ * before - lost_before) / (1 - loss_thresh_));
    handle_inflight_too_high(tcb, before + prefix, lost.app_limited);
  }

  uint32_t buffer_windows() const override { return 3; }

  int64_t ssthresh(Tcb& tcb) override {
    save_cwnd(tcb);
    return tcb.ssthresh;
  }

  // Nothing was lost after all.
  int64_t undo_window(Tcb& tcb, int64_t) override {
    reset_full_bw();
    loss_in_round_ = false;
    reset_short_term_model();
    inflight_longterm_ = std::max(inflight_longterm_, undo_longterm_);
    return std::max(tcb.cwnd, static_cast<int64_t>(prior_cwnd_) * tcb.mss);
  }

  void on_state(Tcb&, CaState next) override {
    if (next >= CaState::recovery) undo_longterm_ = inflight_longterm_;
    if (next == CaState::loss) previous_ = CaState::loss;
  }

  void on_idle_restart(Tcb& tcb) override {
    if (!tcb.app_limited) return;
    idle_restart_ = true;
    extra_acked_start_ = tcb.now;
    extra_acked_delivered_ = 0;
    if (in_probe_bw()) set_pacing_rate(tcb, 1);
    else if (state_ == State::probe_rtt) check_probe_rtt_done(tcb);
  }

  uint32_t burst_packets(const Tcb& tcb) const override {
    const double quantum = std::min<double>(tcb.pacing_rate * 1e-9 * kQuantum, kLargestQuantum);
    return std::max<uint32_t>(static_cast<uint32_t>(quantum) / tcb.mss, 2);
  }

 private:
  enum class State : uint8_t { startup, drain, down, cruise, refill, up, probe_rtt };
  enum class Acks : uint8_t { init, refilling, probe_starting, probe_feedback, probe_stopping };

  // Of an ACK; rate 0: none.
  struct Sample {
    double rate, delivered, in_flight, lost;
    bool app_limited;
  };
  static Sample sample(const Tcb& tcb, const AckEvent& ack) {
    const RateSample& r = ack.rate;
    if (r.delivered < 0 || r.interval <= 0) return {0, 0, 0, 0, true};
    const auto delivered = static_cast<double>(r.delivered);
    return {delivered * 1e9 / static_cast<double>(r.interval), delivered, static_cast<double>(r.sent_in_flight),
            static_cast<double>(tcb.lost - r.prior_lost), r.app_limited};
  }

  bool in_probe_bw() const { return state_ >= State::down && state_ <= State::up; }
  bool probing() const { return state_ == State::startup || state_ == State::refill || state_ == State::up; }
  double max_bw() const { return std::max(bw_cycle_[0], bw_cycle_[1]); }
  double pacing_gain() const {
    switch (state_) {
      case State::startup: return startup_gain_;
      case State::drain: return drain_gain_;
      case State::down: return 0.9;
      case State::up: return 1.25;
      default: return 1;
    }
  }
  double bdp(double bw, double gain) const {
    return min_rtt_ >= kNever ? initial_cwnd_ : gain * bw * static_cast<double>(min_rtt_) * 1e-9;
  }
  double quantized(double packets) const {
    packets = std::max({packets, 3.0 * quantum_, min_pipe_});
    return state_ == State::up ? packets + 2 : packets;
  }
  double inflight(double gain) const { return quantized(bdp(max_bw(), gain)); }
  double target_inflight(const Tcb& tcb) const { return std::min<double>(bdp(bw_, 1), tcb.cwnd_packets); }
  double with_headroom() const {
    if (inflight_longterm_ == kNone) return kNone;
    return std::max(inflight_longterm_ - std::max(1.0, headroom_ * inflight_longterm_), min_pipe_);
  }
  double probe_rtt_cwnd() const { return std::max(bdp(bw_, 0.5), min_pipe_); }

  // ---- rounds and signals
  void start_round(const Tcb& tcb) { round_end_ = tcb.delivered; }

  void update_latest_delivery_signals(const Tcb& tcb, const Sample& s) {
    loss_round_start_ = false;
    round_start_ = false;
    if (s.rate == 0) return;
    const uint32_t prior = tcb.delivered - static_cast<uint32_t>(s.delivered);
    bw_latest_ = std::max(bw_latest_, s.rate);
    inflight_latest_ = std::max(inflight_latest_, s.delivered);
    if (!before(prior, loss_round_end_)) {
      loss_round_end_ = tcb.delivered;
      loss_round_start_ = true;
    }
    if (before(prior, round_end_)) return;
    start_round(tcb);
    ++round_count_;
    ++rounds_since_probe_;
    round_start_ = true;
    packet_conservation_ = false;
  }

  void update_congestion_signals(const Tcb& tcb, const Sample& s, const AckEvent& ack) {
    if (s.rate > 0 && (s.rate >= max_bw() || !s.app_limited)) bw_cycle_[1] = std::max(bw_cycle_[1], s.rate);
    if (ack.lost > 0) loss_in_round_ = true;
    if (!loss_round_start_) return;
    if (loss_in_round_ && !probing()) {
      if (bw_shortterm_ == kNone) bw_shortterm_ = max_bw();
      if (inflight_shortterm_ == kNone) inflight_shortterm_ = tcb.cwnd_packets;
      bw_shortterm_ = std::max(bw_latest_, beta_ * bw_shortterm_);
      inflight_shortterm_ = std::max(inflight_latest_, beta_ * inflight_shortterm_);
    }
    loss_in_round_ = false;
  }

  void reset_short_term_model() { bw_shortterm_ = inflight_shortterm_ = kNone; }

  // Deliveries beyond what the bandwidth accounts for came in clumps: the window needs as much more.
  void update_ack_aggregation(const Tcb& tcb, const AckEvent& ack) {
    double expected = bw_ * seconds(tcb.now - extra_acked_start_);
    if (extra_acked_delivered_ <= expected) {
      extra_acked_delivered_ = expected = 0;
      extra_acked_start_ = tcb.now;
    }
    extra_acked_delivered_ += ack.delivered;
    const double extra = std::min<double>(extra_acked_delivered_ - expected, tcb.cwnd_packets);
    const uint32_t window = full_bw_reached_ ? kExtraAckedRounds : 1;
    if (round_count_ - extra_acked_turn_ >= window) {  // two half-filled windows, of which the older goes
      extra_acked_[0] = extra_acked_[1];
      extra_acked_[1] = 0;
      extra_acked_turn_ = round_count_;
    }
    extra_acked_[1] = std::max(extra_acked_[1], extra);
  }

  // ---- startup and drain
  void reset_full_bw() {
    full_bw_ = 0;
    full_bw_count_ = 0;
    full_bw_now_ = false;
  }

  void check_full_bw_reached(const Sample& s) {
    if (full_bw_now_ || !round_start_ || s.app_limited) return;
    if (s.rate >= full_bw_ * kFullGrowth) {
      reset_full_bw();
      full_bw_ = s.rate;
      return;
    }
    full_bw_now_ = ++full_bw_count_ >= kFullRounds;
    full_bw_reached_ |= full_bw_now_;
  }

  void check_startup_done(const Tcb& tcb, const Sample& s, const AckEvent& ack) {
    if (state_ != State::startup) return;
    if (ack.lost > 0) ++loss_events_;
    if (loss_round_start_) {
      const bool lossy = s.lost > s.in_flight * loss_thresh_ && s.in_flight > 0;
      if (tcb.state == CaState::recovery && loss_events_ >= full_losses_ && lossy) {
        full_bw_reached_ = true;
        inflight_longterm_ = std::max(bdp(max_bw(), 1), inflight_latest_);
      }
      loss_events_ = 0;
    }
    if (!full_bw_reached_) return;
    state_ = State::drain;
    drain_start_ = round_count_;
  }

  // ---- the cycle
  void start_down(Tcb& tcb) {
    loss_in_round_ = false;
    bw_latest_ = inflight_latest_ = 0;
    probe_up_count_ = kNone;
    rounds_since_probe_ = tcb.rng ? tcb.rng->below(2) : 0;
    probe_wait_ = 2 * kSecond + (tcb.rng ? static_cast<Time>(tcb.rng->uniform() * kSecond) : 0);
    cycle_stamp_ = tcb.now;
    acks_ = Acks::probe_stopping;
    start_round(tcb);
    state_ = State::down;
  }

  void start_refill(Tcb& tcb) {
    reset_short_term_model();
    probe_up_rounds_ = 0;
    probe_up_acks_ = 0;
    acks_ = Acks::refilling;
    start_round(tcb);
    state_ = State::refill;
  }

  void start_up(Tcb& tcb, const Sample& s) {
    bw_probe_samples_ = true;
    acks_ = Acks::probe_starting;
    start_round(tcb);
    reset_full_bw();
    full_bw_ = s.rate;
    state_ = State::up;
    raise_slope(tcb);
  }

  void raise_slope(const Tcb& tcb) {
    const double growth = std::ldexp(1.0, static_cast<int>(probe_up_rounds_));
    probe_up_rounds_ = std::min(probe_up_rounds_ + 1, 30u);
    probe_up_count_ = std::max(tcb.cwnd_packets / growth, 1.0);
  }

  bool time_to_probe(Tcb& tcb) {
    const double reno = std::min<double>(target_inflight(tcb), kMostRenoRounds);
    if (tcb.now <= cycle_stamp_ + probe_wait_ && rounds_since_probe_ < reno) return false;
    start_refill(tcb);
    return true;
  }

  void update_probe_bw_cycle_phase(Tcb& tcb, const Sample& s, const AckEvent& ack) {
    if (!full_bw_reached_) return;
    adapt_long_term_model(tcb, s, ack);
    switch (state_) {
      case State::down:
        if (!time_to_probe(tcb) && tcb.in_flight() <= std::min(with_headroom(), inflight(1))) state_ = State::cruise;
        break;
      case State::cruise: time_to_probe(tcb); break;
      case State::refill:
        if (round_start_) start_up(tcb, s);
        break;
      case State::up:
        if (tcb.cwnd_limited && tcb.cwnd_packets >= inflight_longterm_) {
          reset_full_bw();
          full_bw_ = s.rate;
        } else if (full_bw_now_) {
          start_down(tcb);
        }
        break;
      default: break;
    }
  }

  void adapt_long_term_model(Tcb& tcb, const Sample& s, const AckEvent& ack) {
    if (acks_ == Acks::probe_starting && round_start_) acks_ = Acks::probe_feedback;
    if (acks_ == Acks::probe_stopping && round_start_) {
      acks_ = Acks::init;
      bw_probe_samples_ = false;
      if (in_probe_bw() && !s.app_limited && bw_cycle_[1] > 0) {
        bw_cycle_[0] = bw_cycle_[1];
        bw_cycle_[1] = 0;
      }
    }
    if (s.rate == 0) return;
    if (s.lost > s.in_flight * loss_thresh_) {
      if (bw_probe_samples_) handle_inflight_too_high(tcb, s.in_flight, s.app_limited);
      return;
    }
    if (inflight_longterm_ == kNone) return;
    inflight_longterm_ = std::max(inflight_longterm_, s.in_flight);
    if (state_ != State::up) return;
    if (tcb.cwnd_limited && tcb.cwnd_packets >= std::floor(inflight_longterm_)) {
      probe_up_acks_ += ack.delivered;
      if (probe_up_acks_ >= probe_up_count_) {
        const double delta = std::floor(probe_up_acks_ / probe_up_count_);
        probe_up_acks_ -= delta * probe_up_count_;
        inflight_longterm_ += delta;
      }
      if (round_start_) raise_slope(tcb);
    }
  }

  void handle_inflight_too_high(Tcb& tcb, double in_flight, bool app_limited) {
    bw_probe_samples_ = false;
    if (!app_limited) inflight_longterm_ = std::max(in_flight, target_inflight(tcb) * beta_);
    if (state_ == State::up) start_down(tcb);
  }

  // ---- the smallest RTT
  void update_min_rtt(const Tcb& tcb, const AckEvent& ack) {
    probe_rtt_expired_ = tcb.now > probe_rtt_stamp_ + probe_rtt_interval_;
    if (ack.rtt >= 0 && (ack.rtt < probe_rtt_min_ || probe_rtt_expired_)) {
      probe_rtt_min_ = ack.rtt;
      probe_rtt_stamp_ = tcb.now;
    }
    if (probe_rtt_min_ < min_rtt_ || tcb.now > min_rtt_stamp_ + min_rtt_len_) {
      min_rtt_ = probe_rtt_min_;
      min_rtt_stamp_ = probe_rtt_stamp_;
    }
  }

  void check_probe_rtt(Tcb& tcb, const Sample& s) {
    if (state_ != State::probe_rtt && probe_rtt_expired_ && !idle_restart_) {
      save_cwnd(tcb);
      state_ = State::probe_rtt;
      probe_rtt_done_ = 0;
      acks_ = Acks::probe_stopping;
      start_round(tcb);
    }
    if (state_ == State::probe_rtt) {
      tcb.app_limited = std::max(1u, tcb.delivered + tcb.in_flight());  // what leaves now says nothing of the bandwidth
      if (probe_rtt_done_ == 0) {
        if (tcb.in_flight() <= probe_rtt_cwnd()) {
          probe_rtt_done_ = tcb.now + probe_rtt_duration_;
          probe_rtt_round_done_ = false;
          start_round(tcb);
        }
      } else {
        probe_rtt_round_done_ |= round_start_;
        if (probe_rtt_round_done_) check_probe_rtt_done(tcb);
      }
    }
    if (s.delivered > 0) idle_restart_ = false;
  }

  void check_probe_rtt_done(Tcb& tcb) {
    if (probe_rtt_done_ == 0 || tcb.now <= probe_rtt_done_) return;
    probe_rtt_stamp_ = tcb.now;
    if (tcb.cwnd_packets < prior_cwnd_) tcb.set_cwnd_packets(prior_cwnd_);
    reset_short_term_model();
    if (full_bw_reached_) {
      start_down(tcb);
      state_ = State::cruise;
    } else {
      state_ = State::startup;
    }
  }

  // ---- pacing and window
  void set_pacing_rate(Tcb& tcb, double gain) {
    const double rate = gain * bw_ * tcb.mss * margin_;
    if (rate > 0 && (full_bw_reached_ || rate > tcb.pacing_rate)) tcb.pacing_rate = rate;
    quantum_ = burst_packets(tcb);
    initial_cwnd_ = tcb.initial_cwnd;
  }

  void save_cwnd(const Tcb& tcb) {
    const bool good = previous_ < CaState::recovery && state_ != State::probe_rtt;
    prior_cwnd_ = good ? tcb.cwnd_packets : std::max(prior_cwnd_, tcb.cwnd_packets);
  }

  // Packets are conserved in the first round of a recovery; when it is over, the window is as it was.
  double recovered(const Tcb& tcb, const AckEvent& ack, double cwnd) {
    cwnd = std::max(cwnd - ack.lost, 1.0);
    if (tcb.state == CaState::recovery && previous_ != CaState::recovery) {
      packet_conservation_ = true;
      round_end_ = tcb.delivered;
      cwnd = tcb.in_flight() + ack.delivered;
    } else if (previous_ >= CaState::recovery && tcb.state < CaState::recovery) {
      packet_conservation_ = false;
      cwnd = std::max<double>(cwnd, prior_cwnd_);
    }
    previous_ = tcb.state;
    return packet_conservation_ ? std::max<double>(cwnd, tcb.in_flight() + ack.delivered) : cwnd;
  }

  void set_cwnd(Tcb& tcb, const AckEvent& ack) {
    if (ack.delivered == 0) return;
    double cwnd = recovered(tcb, ack, tcb.cwnd_packets);
    if (!packet_conservation_) {
      const double gain = state_ == State::up ? cwnd_gain_ + 0.25 : state_ == State::probe_rtt ? 0.5 : cwnd_gain_;
      const double most = std::ceil(quantized(bdp(bw_, gain) + std::max(extra_acked_[0], extra_acked_[1])));
      if (full_bw_reached_) cwnd = std::min(cwnd + ack.delivered, most);
      else if (cwnd < most || tcb.delivered < tcb.initial_cwnd) cwnd += ack.delivered;
      cwnd = std::max(cwnd, min_pipe_);
    }
    if (state_ == State::probe_rtt) cwnd = std::min(cwnd, probe_rtt_cwnd());
    double cap = inflight_shortterm_;
    if (state_ == State::cruise || state_ == State::probe_rtt) cap = std::min(cap, with_headroom());
    else if (in_probe_bw()) cap = std::min(cap, inflight_longterm_);
    cwnd = std::min(cwnd, std::max(cap, min_pipe_));
    const auto packets = static_cast<uint32_t>(std::max(cwnd, 1.0));
    if (packets != tcb.cwnd_packets) tcb.set_cwnd_packets(packets);
  }

  const double startup_gain_, drain_gain_, cwnd_gain_, loss_thresh_, beta_, headroom_, margin_, min_pipe_;
  const uint32_t full_losses_;
  const Time min_rtt_len_, probe_rtt_interval_, probe_rtt_duration_;

  State state_ = State::startup;
  Acks acks_ = Acks::init;
  CaState previous_ = CaState::open;          // at the last ACK
  bool round_start_ = false, loss_round_start_ = false, loss_in_round_ = false, bw_probe_samples_ = false,
       packet_conservation_ = false, full_bw_reached_ = false, full_bw_now_ = false, idle_restart_ = false,
       probe_rtt_expired_ = false, probe_rtt_round_done_ = false;
  uint32_t round_end_ = 0, loss_round_end_ = 0;  // a round is over when what was sent at so many delivered is acked
  uint32_t round_count_ = 0, rounds_since_probe_ = 0, drain_start_ = 0, full_bw_count_ = 0, loss_events_ = 0,
           probe_up_rounds_ = 0;
  double bw_ = 0, bw_cycle_[2] = {0, 0};      // largest of the cycle before, of this one
  double bw_latest_ = 0, inflight_latest_ = 0, full_bw_ = 0;
  double bw_shortterm_ = kNone, inflight_shortterm_ = kNone, inflight_longterm_ = kNone, undo_longterm_ = 0;
  double probe_up_acks_ = 0, probe_up_count_ = kNone;
  Time cycle_stamp_ = 0, probe_wait_ = 0;
  Time min_rtt_ = kNever, min_rtt_stamp_ = 0, probe_rtt_min_ = kNever, probe_rtt_stamp_ = 0, probe_rtt_done_ = 0;
  double extra_acked_[2] = {0, 0}, extra_acked_delivered_ = 0;
  Time extra_acked_start_ = 0;
  uint32_t extra_acked_turn_ = 0, quantum_ = 2, initial_cwnd_ = 10, prior_cwnd_ = 0;
};

const Entry<CongestionControlRecord> entry{{
    .name = "bbr3",
    .meaning = "BBR version 3 (draft-ietf-ccwg-bbr): bounds what it puts into flight by what losses have taught",
    .linux_kernel = make<Bbr3>,
    .parameters =
        {real("startup_pacing_gain", 2.77, 1.1, 10, "of pacing in Startup"),
         real("drain_pacing_gain", 0.5, 0.01, 1, "of pacing in Drain"),
         real("default_cwnd_gain", 2, 1, 10, "of the window"),
         real("loss_thresh", 0.02, 0.001, 0.5,
              "share of a round trip's packets whose loss says that too much was in flight"),
         real("beta", 0.7, 0.1, 0.99, "share that a lossy round leaves of the short-term bounds"),
         real("headroom", 0.15, 0, 0.9, "share of inflight_longterm that is left to others"),
         real("pacing_margin_percent", 1, 0, 50, "pacing stays below the bandwidth by so much"),
         whole("min_pipe_packets", 4, 1, 10'000, "least window"),
         whole("startup_full_loss_count", 6, 1, 1000, "ACKs with losses in a round trip that may end Startup"),
         real("min_rtt_filter_s", 10, 0.1, 10'000, "for so long a smallest round-trip time holds, s"),
         real("probe_rtt_interval_s", 5, 0.1, 10'000, "between two ProbeRTTs, s"),
         real("probe_rtt_ms", 200, 1, 10'000, "length of ProbeRTT, ms")},
}};

}  // namespace
}  // namespace netbuf
