// LinuxReno: Reno that counts packets, not ACKs, as ns-3's TcpLinuxReno does it
// (src/internet/model/tcp-linux-reno.cc, 3.44): the window holds bytes, and slow start throws away what is left of an
// ACK that reaches ssthresh. Linux' own is newreno there.
#include "netbuf/tcp.h"

namespace netbuf {
namespace {

class Ns3LinuxReno final : public CongestionControl {
 public:
  explicit Ns3LinuxReno(const Parameters& parameters) : beta_(scaled_fraction(parameters["beta"])) {}

  void increase_window(Tcb& tcb, const AckEvent& ack) override {
    const uint32_t segments_acked = ack.acked;
    if (tcb.in_slow_start()) {
      tcb.set_cwnd(std::min(tcb.cwnd + static_cast<int64_t>(segments_acked) * tcb.mss, tcb.ssthresh));
      return;
    }
    if (!tcb.cwnd_limited) return;
    const uint32_t window = std::max(tcb.cwnd_packets, 1u);
    int64_t cwnd = tcb.cwnd;
    if (cwnd_count_ >= window) {
      cwnd_count_ = 0;
      cwnd += tcb.mss;
    }
    cwnd_count_ += segments_acked;
    if (cwnd_count_ >= window) {
      const uint32_t packets = cwnd_count_ / window;
      cwnd_count_ -= packets * window;
      cwnd += static_cast<int64_t>(packets) * tcb.mss;
    }
    if (cwnd != tcb.cwnd) tcb.set_cwnd(cwnd);
  }

  int64_t ssthresh(Tcb& tcb) override { return std::max<int64_t>(2 * tcb.mss, tcb.cwnd * beta_ / kFraction); }

 private:
  const int64_t beta_;           // in 1/kFraction
  uint32_t cwnd_count_ = 0;
};

const Entry<CongestionControlRecord> entry{{
    .name = "linuxreno",
    .meaning = "Reno that counts packets instead of ACKs, as TcpLinuxReno; in the linux stack newreno does",
    .ns3 = make<Ns3LinuxReno>,
    .parameters = {real("beta", 0.5, 0.1, 0.99, "share of the window that is left after a loss")},
}};

}  // namespace
}  // namespace netbuf
