// LinuxReno: Reno that counts packets, not ACKs. On the Linux stack the same as newreno; on the ns-3 stack ns-3's TcpLinuxReno
// (src/internet/model/tcp-linux-reno.cc, 3.44), whose window holds bytes and whose slow start throws away what is left of an
// ACK that reaches ssthresh.
#include "cc/linux_window.h"
#include "cc/records.h"

namespace netbuf {
namespace {

class Ns3LinuxReno final : public CongestionControl {
 public:
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

  int64_t ssthresh(Tcb& tcb) override { return std::max<int64_t>(2 * tcb.mss, tcb.cwnd / 2); }

 private:
  uint32_t cwnd_count_ = 0;
};

std::unique_ptr<CongestionControl> make(Stack stack) {
  if (stack == Stack::ns3) return std::make_unique<Ns3LinuxReno>();
  return std::make_unique<LinuxReno>();
}

}  // namespace

const CongestionControlRecord linuxreno_record{"linuxreno", make};

}  // namespace netbuf
