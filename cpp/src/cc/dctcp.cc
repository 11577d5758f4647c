// DCTCP: the share of what is delivered that was marked on the way, tracked once a round trip, says how far the window
// gives way: by half of it once a window, so that a queue that marks early stays short without the link running dry.
// Needs switches that mark by the length of their queue at the moment, and a receiver that echoes every mark.
//
// Sources: RFC 8257; behaviour, fixed-point scaling and defaults of net/ipv4/tcp_dctcp.c (Linux 6.18). Losses are
// answered as by Reno (3.5). Parameters carry the kernel's names.
#include "cc/linux_window.h"

namespace netbuf {
namespace {

constexpr uint32_t kMaxAlpha = 1024;  // the share 1

class Dctcp final : public LinuxReno {
 public:
  explicit Dctcp(const Parameters& parameters)
      : shift_g_(parameters.as<uint32_t>("dctcp_shift_g")), alpha_(parameters.as<uint32_t>("dctcp_alpha_on_init")) {
    accurate_ecn_ = true;
  }

  void init(Tcb& tcb) override { begin_round(tcb); }

  void on_ack(Tcb& tcb, const AckEvent& ack) override {
    marked_ += ack.marked;
    if (before(tcb.una, round_end_)) return;
    const uint32_t delivered = tcb.delivered - delivered_;
    const uint32_t part = alpha_ >> shift_g_;
    alpha_ -= part > 0 ? part : alpha_;
    if (marked_ > 0) alpha_ = std::min(alpha_ + (marked_ << (10 - shift_g_)) / std::max(delivered, 1u), kMaxAlpha);
    begin_round(tcb);
  }

  int64_t ssthresh(Tcb& tcb) override {
    cwnd_count_ = 0;
    prior_cwnd_ = tcb.cwnd_packets;
    return int64_t{std::max(prior_cwnd_ - (prior_cwnd_ * alpha_ >> 11), 2u)} * tcb.mss;
  }

  void on_state(Tcb& tcb, CaState next) override {
    if (next < CaState::recovery || next == tcb.state) return;
    prior_cwnd_ = tcb.cwnd_packets;
    tcb.ssthresh = int64_t{std::max(prior_cwnd_ / 2, 2u)} * tcb.mss;
  }

  int64_t undo_window(Tcb& tcb, int64_t) override { return std::max(tcb.cwnd, int64_t{prior_cwnd_} * tcb.mss); }

 private:
  void begin_round(const Tcb& tcb) {
    round_end_ = tcb.nxt;
    delivered_ = tcb.delivered;
    marked_ = 0;
  }

  const uint32_t shift_g_;
  uint32_t alpha_;                           // kMaxAlpha = 1
  uint32_t round_end_ = 0, delivered_ = 0, marked_ = 0;
  uint32_t prior_cwnd_ = 0;                  // packets, when the window last gave way
};

const Entry<CongestionControlRecord> entry{{
    .name = "dctcp",
    .meaning = "DCTCP (RFC 8257): gives way by the share of packets that were marked; speaks ECN in any case",
    .linux_kernel = make<Dctcp>,
    .parameters = {whole("dctcp_shift_g", 4, 0, 10, "the share of marks is forgotten by 1 / 2^g a round trip"),
                   whole("dctcp_alpha_on_init", kMaxAlpha, 0, kMaxAlpha, "what it is taken for at first, in 1/1024")},
}};

}  // namespace
}  // namespace netbuf
