// Westwood+: Reno that after a loss sets its window to estimated bandwidth x smallest RTT instead of half.
//
// Sources: Grieco and Mascolo, "Performance evaluation and comparison of Westwood+, New Reno and Vegas TCP congestion
// control", ACM CCR 34(2), 2004; behaviour of net/ipv4/tcp_westwood.c (Linux 6.18) and of
// src/internet/model/tcp-westwood-plus.cc (ns-3.44, Tustin filter).
#include <cmath>
#include <utility>

#include "cc/linux_window.h"
#include "cc/ns3_newreno.h"

namespace netbuf {
namespace {

constexpr uint32_t kInitialRtt = 20 * kHz;

// Linux: a sample a round trip, acknowledged bytes per jiffy, through two cascaded low-pass filters of gain 1/8. The
// estimate replaces ssthresh and cwnd when recovery completes, and ssthresh after a time-out.
class LinuxWestwood final : public LinuxReno {
 public:
  explicit LinuxWestwood(const Parameters& parameters)
      : least_sample_(static_cast<uint32_t>(parameters["sample_min_ms"] * kHz / 1000)),
        filter_(parameters.as<int64_t>("filter")) {}

  void init(Tcb& tcb) override {
    window_start_ = jiffies(tcb.now);
    accounted_una_ = tcb.una;
  }

  void on_ack(Tcb& tcb, const AckEvent& ack) override {
    if (ack.rtt > 0) rtt_ = std::max(jiffies_rounded_up(ack.rtt), 1u);
    update_window(tcb);
    const int64_t advanced = static_cast<int64_t>(tcb.una - accounted_una_) * tcb.mss;
    accounted_una_ = tcb.una;
    const bool clean = tcb.state == CaState::open && advanced > 0 && ack.delivered == ack.acked;
    acked_bytes_ += clean ? advanced : count_delivered(tcb.mss, advanced);
    rtt_min_ = reset_rtt_min_ ? rtt_ : std::min(rtt_min_, rtt_);
    reset_rtt_min_ = false;
  }

  void on_state(Tcb& tcb, CaState next) override {
    if (next == CaState::loss) {
      tcb.ssthresh = bandwidth_window(tcb);
      reset_rtt_min_ = true;
    } else if (tcb.state >= CaState::cwr && tcb.state != CaState::loss && next < CaState::cwr &&
               !before(tcb.una, tcb.high_seq)) {
      tcb.ssthresh = bandwidth_window(tcb);
      tcb.set_cwnd(tcb.ssthresh);
    }
  }

 private:
  void update_window(const Tcb& tcb) {
    const uint32_t now = jiffies(tcb.now);
    const int32_t elapsed = static_cast<int32_t>(now - window_start_);
    if (elapsed <= static_cast<int32_t>(std::max(rtt_, least_sample_))) return;
    const int64_t sample = acked_bytes_ / elapsed;
    if (!bandwidth_raw_ && !bandwidth_) {
      bandwidth_ = bandwidth_raw_ = sample;
    } else {
      bandwidth_raw_ = ((filter_ - 1) * bandwidth_raw_ + sample) / filter_;
      bandwidth_ = ((filter_ - 1) * bandwidth_ + bandwidth_raw_) / filter_;
    }
    acked_bytes_ = 0;
    window_start_ = now;
  }

  // A duplicate ACK is worth a segment, taken back from the cumulative ACK that covers it later.
  int64_t count_delivered(int64_t mss, int64_t advanced) {
    if (!advanced) {
      counted_early_ += mss;
      return mss;
    }
    if (advanced <= mss) return advanced;
    if (counted_early_ >= advanced) {
      counted_early_ -= advanced;
      return mss;
    }
    return advanced - std::exchange(counted_early_, 0);
  }

  int64_t bandwidth_window(const Tcb& tcb) const {
    return std::max<int64_t>(bandwidth_ * rtt_min_ / tcb.mss, 2) * tcb.mss;
  }

  const uint32_t least_sample_;                // jiffies: no bandwidth sample over less
  const int64_t filter_;                       // 1 / gain
  int64_t bandwidth_raw_ = 0, bandwidth_ = 0;  // bytes per jiffy: filtered once, twice
  int64_t acked_bytes_ = 0;                    // in the current sample
  int64_t counted_early_ = 0;
  uint32_t window_start_ = 1, accounted_una_ = 0;
  uint32_t rtt_ = kInitialRtt, rtt_min_ = kInitialRtt;
  bool reset_rtt_min_ = true;
};

// ns-3: segments counted over one smoothed RTT, Tustin's filter with pole 0.9, and ssthresh from it when
// recovery begins. The window grows as TcpNewReno's. An estimate falls due at a point in time; nothing looks at
// it before the next ACK or loss.
class Ns3Westwood final : public Ns3NewReno {
 public:
  explicit Ns3Westwood(const Parameters& parameters) : pole_(parameters["pole"]) {}

  void init(Tcb& tcb) override { note_rtt(tcb); }

  void on_ack(Tcb& tcb, const AckEvent& ack) override {
    note_rtt(tcb);
    estimate_if_due(tcb);
    acked_segments_ += ack.acked;
    if (!counting_ && tcb.srtt > 0) {
      counting_ = true;
      interval_ = tcb.srtt;
      due_ = tcb.now + interval_;
    }
  }

  int64_t ssthresh(Tcb& tcb) override {
    estimate_if_due(tcb);
    return std::max<int64_t>(2 * tcb.mss, static_cast<int64_t>(static_cast<double>(min_rtt_) / 1e9 * bandwidth_ / 8));
  }

 private:
  void note_rtt(const Tcb& tcb) {
    if (tcb.srtt > 0) min_rtt_ = std::min(min_rtt_, tcb.srtt);
  }

  void estimate_if_due(const Tcb& tcb) {
    if (!counting_ || tcb.now < due_) return;
    // Rates are whole bits a second.
    const double sample =
        std::floor(static_cast<double>(acked_segments_) * tcb.mss * 8 / (static_cast<double>(interval_) / 1e9));
    bandwidth_ = std::floor(bandwidth_ * pole_) + std::floor(std::floor((sample + last_sample_) * 0.5) * (1 - pole_));
    last_sample_ = sample;
    acked_segments_ = 0;
    counting_ = false;
  }

  const double pole_;
  double bandwidth_ = 0, last_sample_ = 0;  // bit/s
  Time min_rtt_ = kNever;                   // the smallest smoothed RTT
  Time interval_ = 0, due_ = 0;             // of the estimate under way
  uint32_t acked_segments_ = 0;
  bool counting_ = false;
};

const Entry<CongestionControlRecord> entry{{
    .name = "westwood",
    .meaning = "Westwood+: Reno that after a loss takes estimated bandwidth x smallest RTT for its window",
    .linux_kernel = make<LinuxWestwood>,
    .ns3 = make<Ns3Westwood>,
    .parameters =
        {whole("filter", 8, 1, 1024, "each of the two low-pass filters has a gain of 1 over this")
             .only(Stack::linux_kernel),
         real("sample_min_ms", 50, 4, 10'000, "least length of a bandwidth sample, ms").only(Stack::linux_kernel),
         real("pole", 0.9, 0, 0.999, "of Tustin's filter of the bandwidth: the weight of the past").only(Stack::ns3)},
}};

}  // namespace
}  // namespace netbuf
