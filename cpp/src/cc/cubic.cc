// CUBIC: after a loss at window W_max the window follows W(t) = C (t - K)^3 + W_max,
// K = cbrt((W_max - cwnd) / C), independent of the RTT, but never falls behind what Reno would have reached.
// HyStart ends slow start before it overflows the queue.
//
// Sources: RFC 9438 (8312); Ha and Rhee, "Taming the elephants: new TCP slow start", Computer Networks 55(9), 2011;
// behaviour, integer scaling and defaults of net/ipv4/tcp_cubic.c (Linux 6.18); behaviour of
// src/internet/model/tcp-cubic.cc (ns-3.44). Parameters carry the kernel's names.
#include <cmath>

#include "cc/hystart_plus_plus.h"
#include "cc/linux_window.h"

namespace netbuf {
namespace {

constexpr uint32_t kBicHz = 10;                     // the curve's time unit is 2^-10 s

// What both stacks' CUBIC are made with, in the kernel's fixed point.
struct Setting {
  explicit Setting(const Parameters& p)
      : hystart(p.is("hystart")),
        fast_convergence(p.is("fast_convergence")),
        friendly(p.is("tcp_friendliness")),
        low_window(p.as<uint32_t>("hystart_low_window")),
        min_samples(p.as<uint32_t>("hystart_min_samples")),
        ack_delta(from_seconds(p["hystart_ack_delta_ms"] * 1e-3)),
        delay_min(from_seconds(p["hystart_delay_min_ms"] * 1e-3)),
        delay_max(std::max(delay_min, from_seconds(p["hystart_delay_max_ms"] * 1e-3))) {
    const auto beta = static_cast<uint32_t>(scaled_fraction(p["beta"]));
    friendly_scale = static_cast<uint32_t>(8 * (kFraction + beta) / 3 / (kFraction - beta));
  }

  // How many packets of growth Reno would have had by now: those that it needs acknowledged for one are in eighths of
  // its window 8 (1 + beta) / (3 (1 - beta)).
  void count_reno(uint32_t cwnd, uint32_t& acked, uint32_t& reno_cwnd) const {
    const uint32_t per_packet = std::max((cwnd * friendly_scale) >> 3, 1u);
    while (acked > per_packet) {
      acked -= per_packet;
      ++reno_cwnd;
    }
  }

  bool hystart, fast_convergence, friendly;
  uint32_t friendly_scale;
  uint32_t low_window;                              // packets: HyStart does not look below
  uint32_t min_samples;                             // RTT samples that stand for a round
  Time ack_delta;                                   // ACKs closer than this belong to one train
  Time delay_min, delay_max;                        // that the RTT must have risen by, at least and at most
};

class alignas(64) LinuxCubic final : public LinuxReno {  // what every ACK needs of it stands in the first cache line
 public:
  explicit LinuxCubic(const Parameters& parameters)
      : plus_plus_(parameters),
        setting_(parameters),
        beta_(static_cast<uint64_t>(scaled_fraction(parameters["beta"]))),
        bic_scale_(static_cast<uint64_t>(parameters["c"] * 1024 / 10 + 0.5)),
        cube_factor_((uint64_t{1} << (10 + 3 * kBicHz)) / (bic_scale_ * 10)) {}
  std::unique_ptr<CongestionControl> copy() const override { return std::make_unique<LinuxCubic>(*this); }

  void init(Tcb& tcb) override {
    forget();
    plus_plus_.start(tcb);
    if (tcb.hystart) start_round(tcb);
  }

  void on_ack(Tcb& tcb, const AckEvent& ack) override {
    if (plus_plus_.on()) plus_plus_.observe(tcb, ack.rtt);
    const bool watching = tcb.in_slow_start() && !found_ && tcb.hystart && setting_.hystart && !plus_plus_.on();
    if (ack.rtt < 0 || (ack.rtt >= delay_min_ && delay_min_ && !watching)) return;
    // The RTT falls after a reduction: samples of an epoch's first second are not trusted.
    if (epoch_start_ && static_cast<int32_t>(jiffies(tcb.now) - epoch_start_) < static_cast<int32_t>(kHz)) return;
    const Time rtt = std::max(ack.rtt, kMicrosecond);
    if (!delay_min_ || rtt < delay_min_) delay_min_ = rtt;
    if (watching) hystart(tcb, rtt);
  }

  [[gnu::flatten]] void take_in(Tcb& tcb, const AckEvent& ack) override { take(*this, tcb, ack); }

  void increase_window(Tcb& tcb, const AckEvent& ack) override {
    uint32_t acked = ack.delivered;
    if (tcb.in_slow_start()) {
      acked = slow_start(tcb, plus_plus_.rules(tcb) ? plus_plus_.growth(tcb, acked) : acked);
      if (!acked) return;
    }
    update(tcb.cwnd_packets, tcb.now, acked);
    additive_increase(tcb, count_, acked);
  }

  int64_t ssthresh(Tcb& tcb) override {
    cwnd_count_ = 0;
    epoch_start_ = 0;
    const uint64_t cwnd = tcb.cwnd_packets;
    // Fast convergence: a flow that lost below its last maximum has a newcomer to make room for.
    const bool room = setting_.fast_convergence && cwnd < last_max_cwnd_;
    last_max_cwnd_ = static_cast<uint32_t>(room ? cwnd * (kFraction + beta_) / (2 * kFraction) : cwnd);
    return static_cast<int64_t>(std::max<uint64_t>(cwnd * beta_ / kFraction, 2)) * tcb.mss;
  }

  void on_state(Tcb& tcb, CaState next) override {
    if (next != CaState::loss) return;
    forget();
    start_round(tcb);
  }

  // Time without data to send does not count: the epoch moves on with it.
  void on_idle_restart(Tcb& tcb) override {
    const uint32_t now = jiffies(tcb.now);
    const int32_t idle = static_cast<int32_t>(now - jiffies(tcb.last_departure));
    if (!epoch_start_ || idle <= 0) return;
    epoch_start_ += static_cast<uint32_t>(idle);
    if (jiffies_after(epoch_start_, now)) epoch_start_ = now;
  }

 private:
  void forget() {
    count_ = last_max_cwnd_ = last_cwnd_ = last_time_ = origin_point_ = k_ = epoch_start_ = ack_count_ = tcp_cwnd_ = 0;
    delay_min_ = same_until_ = 0;
    found_ = false;
  }

  // Sets count_, the packets to be acknowledged for one packet of growth.
  void update(uint32_t cwnd, Time time, uint32_t acked) {
    ack_count_ += acked;
    if (last_cwnd_ == cwnd && time < same_until_) return;
    const uint32_t now = jiffies(time);
    if (!epoch_start_ || now != last_time_) {  // the curve moves once a jiffy
      last_cwnd_ = cwnd;
      last_time_ = now;
      same_until_ = (time / kJiffy + kHz / 32 + 1) * kJiffy;
      if (!epoch_start_) start_epoch(cwnd, now, acked);
      follow_curve(cwnd, now);
    }
    if (setting_.friendly) keep_up_with_reno(cwnd);
    count_ = std::max(count_, 2u);  // at most a packet for two acknowledged: 1.5 a round trip
  }

  void start_epoch(uint32_t cwnd, uint32_t now, uint32_t acked) {
    epoch_start_ = now;
    ack_count_ = acked;
    tcp_cwnd_ = cwnd;
    if (last_max_cwnd_ <= cwnd) {
      k_ = 0;
      origin_point_ = cwnd;
    } else {
      k_ = static_cast<uint32_t>(std::cbrt(static_cast<double>(cube_factor_ * (last_max_cwnd_ - cwnd))));
      origin_point_ = last_max_cwnd_;
    }
  }

  void follow_curve(uint32_t cwnd, uint32_t now) {
    const uint64_t ticks = now - epoch_start_ + jiffies_rounded_up(delay_min_);  // one RTT ahead
    const uint64_t t = (ticks << kBicHz) / kHz;
    const uint64_t offset = t < k_ ? k_ - t : t - k_;
    const uint32_t delta = static_cast<uint32_t>((bic_scale_ * 10 * offset * offset * offset) >> (10 + 3 * kBicHz));
    const uint32_t target = t < k_ ? origin_point_ - delta : origin_point_ + delta;
    count_ = target > cwnd ? cwnd / (target - cwnd) : 100 * cwnd;
    if (!last_max_cwnd_) count_ = std::min(count_, 20u);  // nothing is known of the path yet: 5 % a round trip
  }

  void keep_up_with_reno(uint32_t cwnd) {
    setting_.count_reno(cwnd, ack_count_, tcp_cwnd_);
    if (tcp_cwnd_ > cwnd) count_ = std::min(count_, cwnd / (tcp_cwnd_ - cwnd));
  }

  void start_round(const Tcb& tcb) {
    round_start_ = last_ack_ = tcb.now;
    end_seq_ = tcb.nxt;
    curr_rtt_ = kNever;
    sample_count_ = 0;
  }

  // Slow start is over when a train of ACKs is half a round trip long (a whole one when packets were spread by pacing),
  // or when the smallest of the round's RTTs has risen by an eighth (4 to 16 ms).
  void hystart(Tcb& tcb, Time rtt) {
    if (after(tcb.una, end_seq_)) start_round(tcb);
    if (tcb.cwnd_packets < setting_.low_window) return;
    if (tcb.now - last_ack_ <= setting_.ack_delta) {
      last_ack_ = tcb.now;
      Time threshold = delay_min_ + burst_allowance(tcb);
      if (tcb.pacing_rate <= 0) threshold /= 2;
      if (tcb.now - round_start_ > threshold) leave_slow_start(tcb);
    }
    curr_rtt_ = std::min(curr_rtt_, rtt);
    if (sample_count_ < setting_.min_samples) {
      ++sample_count_;
    } else if (curr_rtt_ > delay_min_ + std::clamp(delay_min_ / 8, setting_.delay_min, setting_.delay_max)) {
      leave_slow_start(tcb);
    }
  }

  void leave_slow_start(Tcb& tcb) {
    found_ = true;
    tcb.ssthresh = tcb.cwnd;
  }

  // The time four of the largest bursts take at the sending rate (twice a window a round trip), at most 1 ms.
  static Time burst_allowance(const Tcb& tcb) {
    if (tcb.srtt <= 0) return 0;
    const double rate = 2.0 * tcb.mss * std::max(tcb.cwnd_packets, tcb.packets_out()) / static_cast<double>(tcb.srtt);
    return static_cast<Time>(std::min(static_cast<double>(kMillisecond), 4 * 65536 / rate));
  }

  Time delay_min_ = 0;          // 0: none yet
  Time same_until_ = 0;         // count_ holds for last_cwnd_ until then: kHz / 32 jiffies after last_time_
  uint32_t count_ = 0;          // cnt
  uint32_t last_cwnd_ = 0, ack_count_ = 0;
  bool found_ = false;          // HyStart has ended slow start
  HyStartPlusPlus plus_plus_;
  const Setting setting_;
  const uint64_t beta_;         // of the window that is left after a loss, in 1/kFraction
  const uint64_t bic_scale_;    // C, in 10/1024 packets/s^3
  const uint64_t cube_factor_;  // 2^40 / C, in the same unit
  uint32_t last_max_cwnd_ = 0;  // packets
  uint32_t last_time_ = 0;
  uint32_t origin_point_ = 0;   // packets: the curve's plateau
  uint32_t k_ = 0;              // 2^-10 s from the epoch's start to the plateau
  uint32_t epoch_start_ = 0;    // jiffies; 0: none
  uint32_t tcp_cwnd_ = 0;
  // HyStart's round
  Time round_start_ = 0, last_ack_ = 0, curr_rtt_ = kNever;
  uint32_t end_seq_ = 0, sample_count_ = 0;
};

// ns-3's TcpCubic: real arithmetic, the curve evaluated on every ACK, and a HyStart that looks at the smoothed RTT,
// takes only a round's first samples and waits for the delay to double, and so fires late.
class Ns3Cubic final : public CongestionControl {
 public:
  explicit Ns3Cubic(const Parameters& parameters)
      : setting_(parameters),
        beta_(parameters["beta"]),
        c_(parameters["c"]),
        cubic_delta_(from_seconds(parameters["cubic_delta_ms"] * 1e-3)),
        count_clamp_(parameters.as<uint32_t>("count_clamp")) {}

  void init(Tcb& tcb) override { start_round(tcb); }

  void on_ack(Tcb& tcb, const AckEvent&) override {
    const Time rtt = tcb.srtt;
    if (rtt <= 0) return;
    if (epoch_start_ >= 0 && tcb.now - epoch_start_ < cubic_delta_) return;
    if (delay_min_ < 0 || rtt < delay_min_) delay_min_ = rtt;
    if (tcb.hystart && setting_.hystart && !found_ && tcb.cwnd <= tcb.ssthresh &&
        tcb.cwnd >= static_cast<int64_t>(setting_.low_window) * tcb.mss) {
      hystart(tcb, rtt);
    }
  }

  void increase_window(Tcb& tcb, const AckEvent& ack) override {
    const uint32_t segments_acked = ack.acked;
    if (!tcb.cwnd_limited) return;
    if (tcb.in_slow_start()) {
      if (tcb.hystart && setting_.hystart && after(tcb.una, end_seq_)) start_round(tcb);
      tcb.set_cwnd(tcb.cwnd + static_cast<int64_t>(segments_acked) * tcb.mss);
    } else if (segments_acked) {
      cwnd_count_ += segments_acked;
      const uint32_t count = update(tcb, segments_acked);
      if (cwnd_count_ >= count) {
        tcb.set_cwnd(tcb.cwnd + tcb.mss);
        cwnd_count_ -= count;
      }
    }
  }

  int64_t ssthresh(Tcb& tcb) override {
    const uint32_t cwnd = tcb.cwnd_packets;
    last_max_cwnd_ =
        setting_.fast_convergence && cwnd < last_max_cwnd_ ? static_cast<uint32_t>(cwnd * (1 + beta_) / 2) : cwnd;
    epoch_start_ = -1;
    return static_cast<int64_t>(std::max(static_cast<uint32_t>(cwnd * beta_), 2u)) * tcb.mss;
  }

  void on_state(Tcb& tcb, CaState next) override {
    if (next != CaState::loss) return;
    origin_point_ = ack_count_ = tcp_cwnd_ = 0;
    k_ = 0;
    delay_min_ = -1;
    found_ = false;
    start_round(tcb);
  }

 private:
  uint32_t update(const Tcb& tcb, uint32_t segments_acked) {
    const uint32_t cwnd = tcb.cwnd_packets;
    ack_count_ += segments_acked;
    if (epoch_start_ < 0) {
      epoch_start_ = tcb.now;
      ack_count_ = segments_acked;
      tcp_cwnd_ = cwnd;
      k_ = last_max_cwnd_ <= cwnd ? 0 : std::pow((last_max_cwnd_ - cwnd) / c_, 1 / 3.0);  // rounds as ns-3 does
      origin_point_ = std::max(last_max_cwnd_, cwnd);
    }
    const double t = static_cast<double>(tcb.now - epoch_start_ + std::max<Time>(delay_min_, 0)) / 1e9;
    const double offset = std::fabs(t - k_);
    const uint32_t delta = static_cast<uint32_t>(c_ * std::pow(offset, 3));
    const uint32_t target = t < k_ ? origin_point_ - delta : origin_point_ + delta;
    uint32_t count = target > cwnd ? cwnd / (target - cwnd) : 100 * cwnd;
    if (!last_max_cwnd_) count = std::min(count, count_clamp_);

    if (setting_.friendly) {
      setting_.count_reno(cwnd, ack_count_, tcp_cwnd_);
      if (tcp_cwnd_ > cwnd) count = std::min(count, cwnd / (tcp_cwnd_ - cwnd));
    }
    return std::max(count, 2u);
  }

  void start_round(const Tcb& tcb) {
    round_start_ = last_ack_ = tcb.now;
    end_seq_ = tcb.nxt;
    curr_rtt_ = kNever;
    sample_count_ = 0;
  }

  void hystart(Tcb& tcb, Time rtt) {
    if (tcb.now - last_ack_ <= setting_.ack_delta) {
      last_ack_ = tcb.now;
      if (tcb.now - round_start_ > delay_min_) found_ = true;
    }
    if (sample_count_ < setting_.min_samples) {
      curr_rtt_ = std::min(curr_rtt_, rtt);
      ++sample_count_;
    } else if (curr_rtt_ > delay_min_ + std::clamp(delay_min_, setting_.delay_min, setting_.delay_max)) {
      found_ = true;
    }
    if (found_) tcb.ssthresh = tcb.cwnd;
  }

  const Setting setting_;
  const double beta_, c_;
  const Time cubic_delta_;                     // into an epoch: no delay samples before
  const uint32_t count_clamp_;                 // packets acknowledged for one of growth at most, until the first loss
  uint32_t cwnd_count_ = 0, last_max_cwnd_ = 0, origin_point_ = 0, ack_count_ = 0, tcp_cwnd_ = 0;
  double k_ = 0;                               // seconds
  Time epoch_start_ = -1, delay_min_ = -1;     // negative: none
  Time round_start_ = 0, last_ack_ = 0, curr_rtt_ = kNever;
  uint32_t end_seq_ = 0, sample_count_ = 0;
  bool found_ = false;
};

const Entry<CongestionControlRecord> entry{{
    .name = "cubic",
    .meaning = "after a loss a cubic curve of time towards the window of the loss (RFC 9438), HyStart before it",
    .linux_kernel = make<LinuxCubic>,
    .ns3 = make<Ns3Cubic>,
    .parameters =
        {real("beta", 0.7, 0.1, 0.99, "share of the window that is left after a loss"),
         real("c", 0.4, 0.01, 4, "steepness of the curve, packets/s^3"),
         truth("fast_convergence", true, "a loss below the last maximum makes room for others"),
         truth("tcp_friendliness", true, "never behind what Reno with this beta would have reached"),
         kHyStartPlusPlusParameter,
         truth("hystart", true, "slow start ends before it overflows the queue, where the scenario has HyStart"),
         whole("hystart_low_window", 16, 2, 1'000'000, "packets: HyStart does not look at smaller windows"),
         whole("hystart_min_samples", 8, 1, 1000, "round-trip samples that stand for a round"),
         real("hystart_ack_delta_ms", 2, 0, 1000, "ACKs that are no further apart belong to one train, ms"),
         real("hystart_delay_min_ms", 4, 0, 10'000, "rise of the round-trip time that ends slow start, at least, ms"),
         real("hystart_delay_max_ms", 16, 0, 10'000, "and at most (not less than at least), ms")
             .only(Stack::linux_kernel),
         real("hystart_delay_max_ms", 1000, 0, 10'000, "and at most (not less than at least), ms").only(Stack::ns3),
         real("cubic_delta_ms", 10, 0, 10'000, "after a loss for so long no delay samples, ms").only(Stack::ns3),
         whole("count_clamp", 20, 2, 1'000'000,
               "packets acknowledged for one of growth at most, until the first loss").only(Stack::ns3)},
}};

}  // namespace
}  // namespace netbuf
