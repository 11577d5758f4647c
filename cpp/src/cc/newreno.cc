// NewReno: slow start and congestion avoidance of RFC 5681; recovery (RFC 6582, 6675) is the sender's.
//
// On the Linux stack tcp_reno (net/ipv4/tcp_cong.c, 6.18), which counts packets: a round trip doubles the window in
// slow start and adds one packet after it. On the ns-3 stack TcpNewReno (3.44), which counts ACKs.
#include "cc/hystart_plus_plus.h"
#include "cc/linux_window.h"
#include "cc/ns3_newreno.h"

namespace netbuf {
namespace {

class LinuxNewReno final : public LinuxReno {
 public:
  explicit LinuxNewReno(const Parameters& parameters) : LinuxReno(parameters["beta"]), plus_plus_(parameters) {}

  void init(Tcb& tcb) override { plus_plus_.start(tcb); }
  void on_ack(Tcb& tcb, const AckEvent& ack) override {
    if (plus_plus_.on()) plus_plus_.observe(tcb, ack.rtt);
  }
  void increase_window(Tcb& tcb, const AckEvent& ack) override {
    if (plus_plus_.rules(tcb)) {
      slow_start(tcb, plus_plus_.growth(tcb, ack.delivered));
    } else {
      reno_increase(tcb, ack.delivered);
    }
  }

 private:
  HyStartPlusPlus plus_plus_;
};

class NewReno final : public Ns3NewReno {
 public:
  explicit NewReno(const Parameters& parameters) : Ns3NewReno(parameters["beta"]) {}
};

const Entry<CongestionControlRecord> entry{{
    .name = "newreno",
    .meaning = "slow start and congestion avoidance of RFC 5681; Linux counts packets, ns-3 ACKs",
    .linux_kernel = make<LinuxNewReno>,
    .ns3 = make<NewReno>,
    .parameters = {real("beta", 0.5, 0.1, 0.99,
                        "share that is left after a loss, of the window (linux) or of what is in flight (ns3)"),
                   kHyStartPlusPlusParameter},
}};

}  // namespace
}  // namespace netbuf
