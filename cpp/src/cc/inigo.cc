// TCP Inigo, its half that goes by round-trip times: late ones, more than 17 % above the smallest, are marks of
// congestion, whose share alpha is tracked as DCTCP tracks that of its marks, looked at every ten packets. While there
// is any, the window falls by alpha / 2 of a tenth, at most once a round trip, spread over it; it grows by two packets
// a round trip. A loss takes no more.
//
// Sources: Shewmaker, Maltzahn, Obraczka, Brandt and Bent, "TCP Inigo: ambidextrous congestion control", ICCCN 2016;
// behaviour and defaults of its kernel module, github.com/systemslab/tcp_inigo at b3592ff (tcp_inigo.c, January 2016):
// what runs where ECN is not spoken, as it is not here. How the window falls is Linux' proportional rate reduction.
// Parameters carry the module's names.
#include "cc/linux_window.h"

namespace netbuf {
namespace {

constexpr uint32_t kMaxAlpha = 1024;               // the share 1, and of markthresh
constexpr uint32_t kLeastWindow = 2;               // packets

class Inigo final : public LinuxReno {
 public:
  explicit Inigo(const Parameters& p)
      : shift_g_(p.as<uint32_t>("shift_g")),
        markthresh_(p.as<uint64_t>("markthresh")),
        observations_needed_(p.as<uint32_t>("slowstart_rtt_observations_needed")),
        rtt_fairness_(p.as<uint32_t>("rtt_fairness")) {}

  void on_ack(Tcb& tcb, const AckEvent& ack) override {
    if (ack.rtt >= kMicrosecond) note_rtt(static_cast<uint64_t>(ack.rtt / kMicrosecond));
    if (!reducing_ || tcb.state >= CaState::recovery) return;
    if (after(tcb.una, reduction_end_)) {
      reducing_ = false;
      tcb.set_cwnd(tcb.ssthresh);
    } else {
      reduce(tcb, ack.delivered);
    }
  }

  void increase_window(Tcb& tcb, const AckEvent& ack) override {
    if (reducing_) return;
    uint32_t acked = ack.delivered;
    if (tcb.cwnd <= tcb.ssthresh) {
      if (observed_ >= observations_needed_) {
        update_alpha();
        if (alpha_ > 0) return begin_reduction(tcb);
      }
      const uint64_t most = uint64_t{tcb.ssthresh_packets()} + 1;
      const auto window = static_cast<uint32_t>(std::min<uint64_t>(uint64_t{tcb.cwnd_packets} + acked, most));
      acked -= window - tcb.cwnd_packets;
      tcb.set_cwnd_packets(window);
      if (acked == 0) return;
    }
    avoid_congestion(tcb, tcb.cwnd_packets, acked);
  }

  int64_t ssthresh(Tcb& tcb) override {
    cwnd_count_ = 0;
    return int64_t{reduced(tcb.cwnd_packets)} * tcb.mss;
  }

  void on_state(Tcb&, CaState next) override {
    if (next >= CaState::recovery) reducing_ = false;
  }

 private:
  void note_rtt(uint64_t rtt_us) {
    ++observed_;
    min_rtt_us_ = std::min(min_rtt_us_, rtt_us);
    late_ += rtt_us > min_rtt_us_ + min_rtt_us_ * markthresh_ / kMaxAlpha;
  }

  // Forgets 2^-g of what it was, and all of what is too small for that.
  void update_alpha() {
    const uint32_t part = alpha_ >> shift_g_;
    alpha_ -= part > 0 ? part : alpha_;
    if (late_ > 0) alpha_ = std::min(alpha_ + (late_ << (10 - shift_g_)) / std::max(observed_, 1u), kMaxAlpha);
  }

  // What alpha leaves of a window. With many subwindows of rtt_fairness packets only one of them gives way.
  uint32_t reduced(uint32_t window) const {
    const uint32_t parts = rtt_fairness_ ? (window + rtt_fairness_ - 1) / rtt_fairness_ : 1;
    const auto cut = static_cast<uint32_t>(uint64_t{window} * alpha_ >> 11) / std::max(parts, 1u);
    return std::max(window - cut, kLeastWindow);
  }

  void avoid_congestion(Tcb& tcb, uint32_t window, uint32_t acked) {
    if (cwnd_count_ >= window) {
      tcb.set_cwnd_packets(tcb.cwnd_packets + (rtt_fairness_ ? 2 : 1));
      cwnd_count_ = 0;
    }
    // The window from before it grew is the interval: the module has it so.
    const uint32_t interval = rtt_fairness_ ? std::min(window, rtt_fairness_) : window;
    if (cwnd_count_ >= interval && (cwnd_count_ % interval == 0 || cwnd_count_ >= window)) {
      update_alpha();
      if (alpha_ > 0) begin_reduction(tcb);
    }
    if (cwnd_count_ < window) cwnd_count_ += acked;
  }

  // ---- the reduction, over a round trip: Linux' CWR state

  static uint32_t sent(const Tcb& tcb) { return tcb.delivered + tcb.lost + tcb.in_flight(); }

  void begin_reduction(Tcb& tcb) {
    reducing_ = true;
    reduction_end_ = tcb.nxt;
    prior_window_ = std::max(tcb.cwnd_packets, 1u);
    reduced_delivered_ = 0;
    sent_base_ = sent(tcb);
    tcb.ssthresh = int64_t{reduced(tcb.cwnd_packets)} * tcb.mss;
    late_ = observed_ = 0;
  }

  void reduce(Tcb& tcb, uint32_t delivered) {
    if (delivered == 0) return;
    const int64_t target = tcb.ssthresh_packets(), in_flight = tcb.in_flight();
    const int64_t out = sent(tcb) - sent_base_;
    reduced_delivered_ += delivered;
    int64_t room;
    if (in_flight > target) room = (target * reduced_delivered_ + prior_window_ - 1) / prior_window_ - out;
    else room = std::min(target - in_flight, std::max<int64_t>(reduced_delivered_ - out, delivered) + 1);
    room = std::max<int64_t>(room, out ? 0 : 1);
    tcb.set_cwnd_packets(static_cast<uint32_t>(in_flight + room));
  }

  const uint32_t shift_g_;
  const uint64_t markthresh_;
  const uint32_t observations_needed_, rtt_fairness_;

  uint32_t alpha_ = 0;                             // share of late RTTs, kMaxAlpha = 1
  uint32_t late_ = 0, observed_ = 0;               // RTTs since the last reduction
  uint64_t min_rtt_us_ = 1'000'000;

  bool reducing_ = false;
  uint32_t reduction_end_ = 0;                     // it is over when something sent later is acknowledged
  uint32_t prior_window_ = 1, sent_base_ = 0;      // when it began
  int64_t reduced_delivered_ = 0;                  // packets, since then
};

const Entry<CongestionControlRecord> entry{{
    .name = "inigo",
    .meaning = "TCP Inigo: DCTCP's answer to marks, with late round trips for marks",
    .linux_kernel = make<Inigo>,
    .parameters =
        {whole("shift_g", 4, 1, 10, "alpha forgets 1 / 2^g of what it was"),
         whole("markthresh", 174, 1, 1024, "1/1024 of the smallest RTT: an RTT that exceeds it by more is a mark"),
         whole("slowstart_rtt_observations_needed", 8, 1, 1000, "RTTs before slow start may end by them"),
         whole("rtt_fairness", 10, 0, 512,
               "packets after which marks are looked at, and the part of the window that gives way; 0: all")},
}};

}  // namespace
}  // namespace netbuf
