// PCC Vivace: sends at a rate, looks what came of it over about a round trip (a monitor interval),
// and follows the gradient of
//
//   utility = rate - rate (900 dRTT/dt + 11 lost / sent)
//
//   start (rate x 1.5 an interval) --(utility falls)--> probing (5 % above and below, twice)
//       <--> moving along the gradient
//
// Sources: Dong et al., "PCC Vivace: online-learning congestion control", NSDI 2018; behaviour, whole-number scaling
// and defaults of its authors' kernel module, github.com/PCCproject/PCC-Kernel, branch vivace at ed39d0f
// (src/tcp_pcc.c, November 2018), whose utility is linear in the rate where the paper has rate^0.9. Parameters carry
// the module's names. What differs, each with a parameter that brings the module's way back: it begins with the
// initial window in a round trip, not with 4.2 Mbit/s; a move begins at the rate that won the probe; a time-out
// halves the rate and starts anew, where the module goes on as it was. The packets it counts as sent are those
// delivered, lost and in flight.
#include <algorithm>
#include <limits>

#include "netbuf/tcp.h"

namespace netbuf {
namespace {

constexpr int64_t kScale = 1000;                   // fractions, gradients
constexpr int64_t kMillion = 1'000'000;            // microseconds a second
constexpr int64_t kMinRate = 1024;                 // bytes a second
constexpr int64_t kMinPacketsPerRtt = 2;
constexpr int kIntervals = 4;                      // to a decision while probing
constexpr int64_t kStartLoss = 100;                // 1/kScale: fewer losses do not count while starting
constexpr uint32_t kMinWindow = 4;                 // packets
constexpr int64_t kLargestUtility = int64_t{1} << 43;  // far from any that is real; gradients fit into 64 bits

struct Setting {
  explicit Setting(const Parameters& p)
      : probing_eps(p.as<int64_t>("probing_eps_percent")),
        interval_min_packets(p.as<uint32_t>("interval_min_packets")),
        ignore_packets(p.as<uint32_t>("ignore_packets")),
        latency_filter(p.as<int64_t>("lat_infl_filter")),
        latency_coefficient(p.as<int64_t>("latency_coefficient")),
        loss_coefficient(p.as<int64_t>("loss_coefficient")),
        min_rate_diff(p.as<int64_t>("min_rate_diff")),
        grad_step(p.as<int64_t>("grad_step_size")),
        amp_min(p.as<int64_t>("amp_min")),
        max_swing_buffer(p.as<int64_t>("max_swing_buffer")),
        min_change_bound(p.as<int64_t>("min_change_bound")),
        change_bound_step(p.as<int64_t>("change_bound_step")),
        initial_rate(static_cast<int64_t>(p.or_else("initial_rate", 0))),
        timeout_rate(p.as<int64_t>("timeout_rate_percent")),
        moves_late(p.is("moves_late")) {}

  int64_t probing_eps;                             // percent
  uint32_t interval_min_packets, ignore_packets;
  int64_t latency_filter, latency_coefficient, loss_coefficient;
  int64_t min_rate_diff, grad_step, amp_min, max_swing_buffer, min_change_bound, change_bound_step;
  int64_t initial_rate;                            // bytes a second; 0: the initial window in a round trip
  int64_t timeout_rate;                            // percent
  bool moves_late;
};

struct Interval {
  int64_t rate = 0;                                // bytes a second
  int64_t receive_start = 0, receive_end = 0, send_start = 0, send_end = 0;  // microseconds
  int64_t start_rtt = 0, end_rtt = 0;              // smoothed, microseconds
  uint32_t sent_base = 0;                          // packets sent before it; 0: not begun
  uint32_t sent_end = 0;                           // and at its end; 0: it goes on
  int64_t utility = 0;
  uint32_t lost = 0, delivered = 0;
};

class Vivace final : public CongestionControl {
 public:
  explicit Vivace(const Parameters& parameters)
      : setting_(parameters), amplifier_(setting_.amp_min), change_bound_(setting_.min_change_bound) {
    owns_window_ = true;
  }

  void init(Tcb& tcb) override {
    tcb.ssthresh = kInfiniteWindow;
    rate_ = setting_.initial_rate ? setting_.initial_rate : kMillion * tcb.initial_cwnd * tcb.mss / rtt_us(tcb);
    rate_ = std::max(rate_, kMinRate);
    start();
    lost_base_ = tcb.lost;
    delivered_base_ = tcb.delivered;
    set_up_probing(tcb);
    start_interval(tcb);
  }

  void control(Tcb& tcb, const AckEvent&) override {
    set_window(tcb);
    if (!in_loss_) process(tcb);
    lost_base_ = tcb.lost;
    delivered_base_ = tcb.delivered;
  }

  int64_t ssthresh(Tcb&) override { return kInfiniteWindow; }

  int64_t undo_window(Tcb& tcb, int64_t) override { return tcb.cwnd; }

  // After a time-out nothing is learnt until what was lost is repaired.
  // With every one the rate falls, to start anew from there.
  void on_state(Tcb& tcb, CaState next) override {
    if (next == CaState::loss) {
      rate_ = std::max(rate_ * setting_.timeout_rate / 100, least_rate(tcb));
      if (setting_.timeout_rate < 100) {
        start();
      }
    }
    if (in_loss_ == (next == CaState::loss)) return;
    in_loss_ = !in_loss_;
    if (in_loss_) waiting_ = true;
    else set_up_probing(tcb);
    start_interval(tcb);
  }

 private:
  static uint32_t sent(const Tcb& tcb) { return tcb.delivered + tcb.lost + tcb.in_flight(); }
  static int64_t now_us(const Tcb& tcb) { return tcb.now / kMicrosecond; }
  static int64_t rtt_us(const Tcb& tcb) { return tcb.srtt > 0 ? std::max<int64_t>(tcb.srtt / kMicrosecond, 1) : 1000; }

  static int64_t least_rate(const Tcb& tcb) { return kMillion * kMinPacketsPerRtt * tcb.mss / rtt_us(tcb); }

  // Two round trips' worth of the rate.
  static void set_window(Tcb& tcb) {
    const auto bytes = static_cast<uint64_t>(tcb.pacing_rate) * static_cast<uint64_t>(rtt_us(tcb));
    const uint64_t packets = 2 * (bytes / tcb.mss / kMillion);
    const auto window = static_cast<uint32_t>(std::clamp<uint64_t>(packets, kMinWindow, 1u << 30));
    if (window != tcb.cwnd_packets) tcb.set_cwnd_packets(window);
  }

  // ---- monitor intervals

  void start() {
    mode_ = Mode::start;
    last_rate_ = rate_;
    intervals_[0].utility = std::numeric_limits<int64_t>::min();  // whatever comes is better
  }

  void set_up_probing(Tcb& tcb) {
    const int64_t high = rate_ * (100 + setting_.probing_eps) / 100, low = rate_ * (100 - setting_.probing_eps) / 100;
    const uint32_t coins = tcb.rng ? tcb.rng->below(4) : 0;
    for (int i = 0; i < kIntervals; ++i) {
      const bool starts_low = coins >> (i / 2) & 1;
      intervals_[i].rate = starts_low == (i % 2 == 0) ? low : high;
      intervals_[i].sent_base = 0;
    }
    sending_ = receiving_ = 0;
    waiting_ = false;
  }

  void set_up_moving(int64_t rate) {
    intervals_[0].rate = rate;
    intervals_[0].sent_base = 0;
    sending_ = receiving_ = 0;
    waiting_ = false;
  }

  void start_interval(Tcb& tcb) {
    int64_t rate = rate_;
    if (!waiting_) {
      Interval& interval = intervals_[sending_];
      interval.sent_end = interval.lost = interval.delivered = 0;
      interval.sent_base = std::max(sent(tcb), 1u);
      interval.send_start = now_us(tcb);
      rate = interval.rate;
    }
    tcb.pacing_rate = static_cast<double>(std::max(rate, kMinRate));
    set_window(tcb);
  }

  // What was sent fills an interval: enough of it, and about a round trip of it.
  bool sending_is_over(const Tcb& tcb, const Interval& interval) const {
    return static_cast<int32_t>(sent(tcb) - interval.sent_base) >=
               static_cast<int32_t>(setting_.interval_min_packets) &&
           counted_ > interval.sent_base;
  }

  void process(Tcb& tcb) {
    if (!waiting_ && sending_is_over(tcb, intervals_[sending_])) {
      Interval& interval = intervals_[sending_];
      interval.sent_end = sent(tcb);
      interval.send_end = now_us(tcb);
      ++sending_;
      if (sending_ == kIntervals || mode_ != Mode::probing) waiting_ = true;
      start_interval(tcb);
    }
    Interval& interval = intervals_[receiving_];
    const uint32_t before = counted_;
    counted_ = tcb.delivered + tcb.lost;
    if (interval.sent_base == 0) return;
    if (before > setting_.ignore_packets + interval.sent_base) account(tcb, interval);
    if (interval.sent_end == 0 || interval.sent_end - setting_.ignore_packets >= counted_) return;
    ++receiving_;
    if (mode_ == Mode::start) decide_start(tcb);
    else if (mode_ == Mode::moving) decide_moving(tcb);
    else if (receiving_ == kIntervals) decide_probing(tcb);
  }

  void account(const Tcb& tcb, Interval& interval) const {
    const int64_t rtt = tcb.srtt / kMicrosecond;
    interval.receive_end = now_us(tcb);
    interval.end_rtt = rtt;
    if (interval.lost + interval.delivered == 0) {
      interval.receive_start = interval.receive_end;
      interval.start_rtt = rtt;
    }
    interval.lost += tcb.lost - lost_base_;
    interval.delivered += tcb.delivered - delivered_base_;
  }

  // ---- utility

  int64_t utility(const Tcb& tcb, const Interval& interval) const {
    if (interval.delivered == 0) return 0;
    const int64_t delivered = interval.delivered, lost = interval.lost, mss = tcb.mss;
    const int64_t sending = interval.send_end - interval.send_start,
                  receiving = interval.receive_end - interval.receive_start;
    const int64_t throughput = receiving > 0 ? kMillion * delivered * mss / receiving : 0;
    const int64_t rtt_change = interval.end_rtt - interval.start_rtt;
    const int64_t two_packets = throughput > 0 ? 2 * kMillion * mss / throughput : 0;
    int64_t inflation = sending > 0 ? kScale * rtt_change / sending : 0;
    if (std::abs(rtt_change) < two_packets || std::abs(inflation) < setting_.latency_filter) inflation = 0;
    int64_t loss = lost * kScale / (lost + delivered);
    if (mode_ == Mode::start) {
      inflation = std::max<int64_t>(inflation, 0);
      if (loss < kStartLoss) loss = 0;
    }
    const int64_t cost =
        interval.rate * (setting_.latency_coefficient * inflation + setting_.loss_coefficient * loss) / kScale;
    return std::clamp(interval.rate - cost, -kLargestUtility, kLargestUtility);
  }

  // Per byte a second; 0 where the rates are too close to tell.
  int64_t gradient(int64_t rate_1, int64_t utility_1, int64_t rate_2, int64_t utility_2) const {
    if (std::abs(kScale * (rate_2 - rate_1) / rate_1) < setting_.min_rate_diff) return 0;
    return kScale * kScale * (utility_2 - utility_1) / (rate_2 - rate_1);
  }

  // ---- decisions

  void decide_start(Tcb& tcb) {
    Interval& interval = intervals_[0];
    const int64_t previous = interval.utility;
    interval.utility = utility(tcb, interval);
    if (interval.utility > previous) {
      last_rate_ = rate_;
      rate_ += rate_ / 2;
      interval.rate = rate_;
      sending_ = receiving_ = 0;
      waiting_ = false;
    } else {
      std::swap(rate_, last_rate_);
      mode_ = Mode::probing;
      set_up_probing(tcb);
    }
    start_interval(tcb);
  }

  // Up or down, if both pairs of intervals say so.
  // The move's first gradient is that between this rate and the worse one.
  void decide_probing(Tcb& tcb) {
    for (Interval& interval : intervals_) interval.utility = utility(tcb, interval);
    const bool first = intervals_[0].utility > intervals_[1].utility,
               second = intervals_[2].utility > intervals_[3].utility;
    const bool same_order = intervals_[0].rate == intervals_[2].rate;
    const Interval &better = intervals_[second ? 2 : 3], &worse = intervals_[second ? 3 : 2];
    if ((first == second) == same_order && better.rate != rate_) {
      const int64_t rate = better.rate;
      const Interval& compared = setting_.moves_late ? better : worse;
      last_rate_ = compared.rate;
      intervals_[0].utility = compared.utility;
      mode_ = Mode::moving;
      set_up_moving(setting_.moves_late ? rate_ : rate);
      rate_ = rate;
    } else {
      set_up_probing(tcb);
    }
    start_interval(tcb);
  }

  // On as long as it goes up. Whatever goes down is probed again.
  void decide_moving(Tcb& tcb) {
    const int64_t next = next_rate(tcb);
    const bool up = next > rate_;
    last_rate_ = rate_;
    rate_ = std::max(next, least_rate(tcb));
    if (up) {
      set_up_moving(rate_);
    } else {
      mode_ = Mode::probing;
      set_up_probing(tcb);
    }
    start_interval(tcb);
  }

  int64_t next_rate(const Tcb& tcb) {
    Interval& interval = intervals_[0];
    const int64_t previous = interval.utility;
    interval.utility = utility(tcb, interval);
    int64_t step = gradient(rate_, interval.utility, last_rate_, previous) * setting_.grad_step;
    update_step(step);
    step = bounded(step * amplifier_ / kScale);
    const int64_t least = rate_ * setting_.min_rate_diff / kScale * 11 / 10;  // the next gradient must show
    if (step >= 0) step = std::max(step, least);
    else step = std::min(step, -least);
    return rate_ + step;
  }

  // Larger steps the longer the direction stays, after a while.
  void update_step(int64_t step) {
    if ((step > 0) != (rate_ > last_rate_)) {
      swing_buffer_ = std::min(swing_buffer_ + 1, setting_.max_swing_buffer);
      amplifier_ = setting_.amp_min;
      change_bound_ = setting_.min_change_bound;
    } else if (swing_buffer_ > 0) {
      --swing_buffer_;
    } else {
      ++amplifier_;
    }
  }

  int64_t bounded(int64_t step) {
    const int64_t size = std::abs(step);
    if (static_cast<double>(kScale) * static_cast<double>(size) / static_cast<double>(rate_) <
        static_cast<double>(change_bound_ + 1)) {
      change_bound_ = setting_.min_change_bound;
      return step;
    }
    const int64_t most = rate_ * change_bound_ / kScale;
    change_bound_ += setting_.change_bound_step;
    return step > 0 ? most : -most;
  }

  enum class Mode : uint8_t { start, probing, moving };

  const Setting setting_;
  Interval intervals_[kIntervals];
  int sending_ = 0, receiving_ = 0;                // which of them is sent, and of which packets come back
  Mode mode_ = Mode::start;
  bool in_loss_ = false;
  bool waiting_ = false;                           // nothing is left to send of this decision
  int64_t rate_ = 0, last_rate_ = 0;               // bytes a second
  int64_t amplifier_, swing_buffer_ = 0, change_bound_;
  uint32_t counted_ = 0;                           // packets of which it is known what became of them
  uint32_t lost_base_ = 0, delivered_base_ = 0;    // at the last ACK
};

const Entry<CongestionControlRecord> entry{{
    .name = "vivace",
    .meaning = "PCC Vivace: a rate that follows the gradient of a utility of rate, growing delay and loss",
    .linux_kernel = make<Vivace>,
    .parameters =
        {whole("probing_eps_percent", 5, 1, 50, "how far rates are probed above and below"),
         whole("interval_min_packets", 50, 2, 10'000, "packets of a monitor interval at least"),
         whole("ignore_packets", 10, 0, 1000, "of an interval's first packets nothing is looked at"),
         whole("lat_infl_filter", 30, 0, 1000, "1/1000: growth of the delay in time below which it counts as none"),
         whole("latency_coefficient", 900, 0, 100'000, "of the delay's growth in the utility"),
         whole("loss_coefficient", 11, 0, 1000, "of the share of lost packets in the utility"),
         whole("min_rate_diff", 20, 1, 500,
               "1/1000: rates that differ less have no gradient; steps are a tenth larger"),
         whole("grad_step_size", 25, 1, 1000, "bytes a second for a gradient of 1/1000, before amplification"),
         whole("amp_min", 2, 1, 1000, "amplifier of the first step in a direction"),
         whole("max_swing_buffer", 2, 0, 100,
               "steps in a direction, at most, before the amplifier grows by 1 with each"),
         whole("min_change_bound", 100, 1, 1000, "1/1000 of the rate: the first step at most"),
         whole("change_bound_step", 70, 0, 1000, "1/1000: so much more with each step that meets its bound"),
         whole("initial_rate", kAutomatic, 1024, 4'000'000, "bytes a second; else the initial window in a round trip"),
         whole("timeout_rate_percent", 50, 1, 100,
               "of the rate that a time-out leaves; 100: it goes on as it was, as the module"),
         truth("moves_late", false,
               "a move's first interval has the rate from before and no gradient, as in the module")},
}};

}  // namespace
}  // namespace netbuf
