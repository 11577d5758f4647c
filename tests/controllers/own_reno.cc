// Reno as Linux runs it (cpp/src/cc/newreno.cc), written as a user would.
#include "netbuf/tcp.h"

namespace netbuf {
namespace {

class Reno final : public CongestionControl {
 public:
  void increase_window(Tcb& tcb, const AckEvent& ack) override {
    uint32_t acked = ack.delivered;
    if (tcb.in_slow_start()) {
      const int64_t grown = tcb.cwnd + static_cast<int64_t>(acked) * tcb.mss;
      if (grown <= tcb.ssthresh) return tcb.set_cwnd(grown);
      const uint32_t used = std::max(tcb.ssthresh_packets(), tcb.cwnd_packets) - tcb.cwnd_packets;
      tcb.set_cwnd_packets(tcb.cwnd_packets + used);
      acked -= used;
    }
    if (acked == 0) return;
    uint32_t gained = 0;
    if (count_ >= tcb.cwnd_packets) count_ = 0, gained = 1;
    count_ += acked;
    for (; count_ >= tcb.cwnd_packets; count_ -= tcb.cwnd_packets) ++gained;
    if (gained) tcb.set_cwnd_packets(tcb.cwnd_packets + gained);
  }

  int64_t ssthresh(Tcb& tcb) override {
    count_ = 0;
    return std::max<int64_t>(tcb.cwnd_packets / 2, 2) * tcb.mss;
  }

  int64_t undo_window(Tcb& tcb, int64_t prior) override { return std::max(tcb.cwnd, prior); }

 private:
  uint32_t count_ = 0;
};

const Entry<CongestionControlRecord> entry{{.name = "reno", .meaning = "Reno", .linux_kernel = make<Reno>}};

}  // namespace
}  // namespace netbuf
