// CUBIC: after a loss at window W_max the window follows W(t) = C (t - K)^3 + W_max, K = cbrt((W_max - cwnd) / C), independent of
// the RTT, but never falls behind what Reno would have reached. HyStart ends slow start before it overflows the queue.
//
// Sources: RFC 9438 (8312); Ha and Rhee, "Taming the elephants: new TCP slow start", Computer Networks 55(9), 2011; behaviour,
// integer scaling and defaults of net/ipv4/tcp_cubic.c (Linux 6.18); behaviour of src/internet/model/tcp-cubic.cc (ns-3.44).
// Parameters carry the kernel's names.
#include <cmath>

#include "cc/linux_window.h"
#include "cc/records.h"

namespace netbuf {
namespace {

constexpr uint32_t kBetaScale = 1024, kBeta = 717;  // beta = 0.7
constexpr uint32_t kBicScale = 41;                  // C = 41 / 1024 x 10 = 0.4 packets/s^3
constexpr uint32_t kBicHz = 10;                     // the curve's time unit is 2^-10 s
// The packets Reno needs acknowledged for one of growth at beta = 0.7, in eighths of its window: 8 (1 + beta) / (3 (1 - beta)).
constexpr uint32_t kFriendlyScale = 8 * (kBetaScale + kBeta) / 3 / (kBetaScale - kBeta);
constexpr uint64_t kCubeFactor = (uint64_t{1} << (10 + 3 * kBicHz)) / (kBicScale * 10);

// HyStart.
constexpr uint32_t kLowWindow = 16;                 // packets: not below
constexpr uint32_t kMinSamples = 8;                 // RTT samples that stand for a round
constexpr Time kAckDelta = 2 * kMillisecond;        // ACKs closer than this belong to one train

class LinuxCubic final : public LinuxReno {
 public:
  void init(Tcb& tcb) override {
    forget();
    if (tcb.hystart) start_round(tcb);
  }

  void on_ack(Tcb& tcb, const AckEvent& ack) override {
    const bool watching = tcb.in_slow_start() && !found_ && tcb.hystart;
    if (ack.rtt < 0 || (ack.rtt >= delay_min_ && delay_min_ && !watching)) return;
    // The RTT falls after a reduction: samples of an epoch's first second are not trusted.
    if (epoch_start_ && static_cast<int32_t>(jiffies(tcb.now) - epoch_start_) < static_cast<int32_t>(kHz)) return;
    const Time rtt = std::max(ack.rtt, kMicrosecond);
    if (!delay_min_ || rtt < delay_min_) delay_min_ = rtt;
    if (watching) hystart(tcb, rtt);
  }

  void increase_window(Tcb& tcb, const AckEvent& ack) override {
    uint32_t acked = ack.delivered;
    if (tcb.in_slow_start()) {
      acked = slow_start(tcb, acked);
      if (!acked) return;
    }
    update(tcb.cwnd_packets, jiffies(tcb.now), acked);
    additive_increase(tcb, count_, acked);
  }

  int64_t ssthresh(Tcb& tcb) override {
    cwnd_count_ = 0;
    epoch_start_ = 0;
    const uint64_t cwnd = tcb.cwnd_packets;
    // Fast convergence: a flow that lost below its last maximum has a newcomer to make room for.
    last_max_cwnd_ =
        static_cast<uint32_t>(cwnd < last_max_cwnd_ ? cwnd * (kBetaScale + kBeta) / (2 * kBetaScale) : cwnd);
    return static_cast<int64_t>(std::max<uint64_t>(cwnd * kBeta / kBetaScale, 2)) * tcb.mss;
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
    delay_min_ = 0;
    found_ = false;
  }

  // Sets count_, the packets to be acknowledged for one packet of growth.
  void update(uint32_t cwnd, uint32_t now, uint32_t acked) {
    ack_count_ += acked;
    if (last_cwnd_ == cwnd && static_cast<int32_t>(now - last_time_) <= static_cast<int32_t>(kHz / 32)) return;
    if (!epoch_start_ || now != last_time_) {  // the curve moves once a jiffy
      last_cwnd_ = cwnd;
      last_time_ = now;
      if (!epoch_start_) start_epoch(cwnd, now, acked);
      follow_curve(cwnd, now);
    }
    keep_up_with_reno(cwnd);
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
      k_ = static_cast<uint32_t>(std::cbrt(static_cast<double>(kCubeFactor * (last_max_cwnd_ - cwnd))));
      origin_point_ = last_max_cwnd_;
    }
  }

  void follow_curve(uint32_t cwnd, uint32_t now) {
    const uint64_t ticks = now - epoch_start_ + jiffies_rounded_up(delay_min_);  // one RTT ahead
    const uint64_t t = (ticks << kBicHz) / kHz;
    const uint64_t offset = t < k_ ? k_ - t : t - k_;
    const uint32_t delta = static_cast<uint32_t>((kBicScale * 10 * offset * offset * offset) >> (10 + 3 * kBicHz));
    const uint32_t target = t < k_ ? origin_point_ - delta : origin_point_ + delta;
    count_ = target > cwnd ? cwnd / (target - cwnd) : 100 * cwnd;
    if (!last_max_cwnd_) count_ = std::min(count_, 20u);  // nothing is known of the path yet: 5 % a round trip
  }

  void keep_up_with_reno(uint32_t cwnd) {
    const uint32_t per_packet = (cwnd * kFriendlyScale) >> 3;
    while (ack_count_ > per_packet) {
      ack_count_ -= per_packet;
      ++tcp_cwnd_;
    }
    if (tcp_cwnd_ > cwnd) count_ = std::min(count_, cwnd / (tcp_cwnd_ - cwnd));
  }

  void start_round(const Tcb& tcb) {
    round_start_ = last_ack_ = tcb.now;
    end_seq_ = tcb.nxt;
    curr_rtt_ = kNever;
    sample_count_ = 0;
  }

  // Slow start is over when a train of ACKs is half a round trip long (a whole one when packets were spread by pacing), or when
  // the smallest of the round's RTTs has risen by an eighth (4 to 16 ms).
  void hystart(Tcb& tcb, Time rtt) {
    if (after(tcb.una, end_seq_)) start_round(tcb);
    if (tcb.cwnd_packets < kLowWindow) return;
    if (tcb.now - last_ack_ <= kAckDelta) {
      last_ack_ = tcb.now;
      Time threshold = delay_min_ + burst_allowance(tcb);
      if (tcb.pacing_rate <= 0) threshold /= 2;
      if (tcb.now - round_start_ > threshold) leave_slow_start(tcb);
    }
    curr_rtt_ = std::min(curr_rtt_, rtt);
    if (sample_count_ < kMinSamples) {
      ++sample_count_;
    } else if (curr_rtt_ > delay_min_ + std::clamp(delay_min_ / 8, 4 * kMillisecond, 16 * kMillisecond)) {
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

  uint32_t count_ = 0;          // cnt
  uint32_t last_max_cwnd_ = 0;  // packets
  uint32_t last_cwnd_ = 0, last_time_ = 0;
  uint32_t origin_point_ = 0;   // packets: the curve's plateau
  uint32_t k_ = 0;              // 2^-10 s from the epoch's start to the plateau
  uint32_t epoch_start_ = 0;    // jiffies; 0: none
  uint32_t ack_count_ = 0, tcp_cwnd_ = 0;
  Time delay_min_ = 0;          // 0: none yet
  // HyStart's round
  Time round_start_ = 0, last_ack_ = 0, curr_rtt_ = kNever;
  uint32_t end_seq_ = 0, sample_count_ = 0;
  bool found_ = false;
};

// ns-3's TcpCubic: real arithmetic, the curve evaluated on every ACK, and a HyStart that looks at the smoothed RTT, takes only a
// round's first samples and waits for the delay to double, and so fires late.
class Ns3Cubic final : public CongestionControl {
 public:
  void init(Tcb& tcb) override { start_round(tcb); }

  void on_ack(Tcb& tcb, const AckEvent&) override {
    const Time rtt = tcb.srtt;
    if (rtt <= 0) return;
    if (epoch_start_ >= 0 && tcb.now - epoch_start_ < kCubicDelta) return;
    if (delay_min_ < 0 || rtt < delay_min_) delay_min_ = rtt;
    if (tcb.hystart && !found_ && tcb.cwnd <= tcb.ssthresh && tcb.cwnd >= static_cast<int64_t>(kLowWindow) * tcb.mss)
      hystart(tcb, rtt);
  }

  void increase_window(Tcb& tcb, const AckEvent& ack) override {
    const uint32_t segments_acked = ack.acked;
    if (!tcb.cwnd_limited) return;
    if (tcb.in_slow_start()) {
      if (tcb.hystart && after(tcb.una, end_seq_)) start_round(tcb);
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
    last_max_cwnd_ = cwnd < last_max_cwnd_ ? static_cast<uint32_t>(cwnd * (1 + kBetaReal) / 2) : cwnd;
    epoch_start_ = -1;
    return static_cast<int64_t>(std::max(static_cast<uint32_t>(cwnd * kBetaReal), 2u)) * tcb.mss;
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
  static constexpr double kBetaReal = 0.7, kC = 0.4;
  static constexpr Time kCubicDelta = 10 * kMillisecond;  // of an epoch: no delay samples
  static constexpr uint32_t kCountClamp = 20;

  uint32_t update(const Tcb& tcb, uint32_t segments_acked) {
    const uint32_t cwnd = tcb.cwnd_packets;
    ack_count_ += segments_acked;
    if (epoch_start_ < 0) {
      epoch_start_ = tcb.now;
      ack_count_ = segments_acked;
      tcp_cwnd_ = cwnd;
      k_ = last_max_cwnd_ <= cwnd ? 0 : std::pow((last_max_cwnd_ - cwnd) / kC, 1 / 3.0);  // rounds as ns-3 does
      origin_point_ = std::max(last_max_cwnd_, cwnd);
    }
    const double t = static_cast<double>(tcb.now - epoch_start_ + std::max<Time>(delay_min_, 0)) / 1e9;
    const double offset = std::fabs(t - k_);
    const uint32_t delta = static_cast<uint32_t>(kC * std::pow(offset, 3));
    const uint32_t target = t < k_ ? origin_point_ - delta : origin_point_ + delta;
    uint32_t count = target > cwnd ? cwnd / (target - cwnd) : 100 * cwnd;
    if (!last_max_cwnd_) count = std::min(count, kCountClamp);

    const uint32_t per_packet = (cwnd * kFriendlyScale) >> 3;
    while (ack_count_ > per_packet) {
      ack_count_ -= per_packet;
      ++tcp_cwnd_;
    }
    if (tcp_cwnd_ > cwnd) count = std::min(count, cwnd / (tcp_cwnd_ - cwnd));
    return std::max(count, 2u);
  }

  void start_round(const Tcb& tcb) {
    round_start_ = last_ack_ = tcb.now;
    end_seq_ = tcb.nxt;
    curr_rtt_ = kNever;
    sample_count_ = 0;
  }

  void hystart(Tcb& tcb, Time rtt) {
    if (tcb.now - last_ack_ <= kAckDelta) {
      last_ack_ = tcb.now;
      if (tcb.now - round_start_ > delay_min_) found_ = true;
    }
    if (sample_count_ < kMinSamples) {
      curr_rtt_ = std::min(curr_rtt_, rtt);
      ++sample_count_;
    } else if (curr_rtt_ > delay_min_ + std::clamp(delay_min_, 4 * kMillisecond, kSecond)) {
      found_ = true;
    }
    if (found_) tcb.ssthresh = tcb.cwnd;
  }

  uint32_t cwnd_count_ = 0, last_max_cwnd_ = 0, origin_point_ = 0, ack_count_ = 0, tcp_cwnd_ = 0;
  double k_ = 0;                               // seconds
  Time epoch_start_ = -1, delay_min_ = -1;     // negative: none
  Time round_start_ = 0, last_ack_ = 0, curr_rtt_ = kNever;
  uint32_t end_seq_ = 0, sample_count_ = 0;
  bool found_ = false;
};

std::unique_ptr<CongestionControl> make(Stack stack) {
  if (stack == Stack::ns3) return std::make_unique<Ns3Cubic>();
  return std::make_unique<LinuxCubic>();
}

}  // namespace

const CongestionControlRecord cubic_record{"cubic", make};

}  // namespace netbuf
