// NewReno: slow start and congestion avoidance of RFC 5681; recovery (RFC 6582, 6675) is the sender's.
//
// On the Linux stack tcp_reno (net/ipv4/tcp_cong.c, 6.18), which counts packets: a round trip doubles the window in slow start
// and adds one packet after it. On the ns-3 stack TcpNewReno (3.44), which counts ACKs.
#include "cc/linux_window.h"
#include "cc/ns3_newreno.h"
#include "cc/records.h"

namespace netbuf {
namespace {

std::unique_ptr<CongestionControl> make(Stack stack) {
  if (stack == Stack::ns3) return std::make_unique<Ns3NewReno>();
  return std::make_unique<LinuxReno>();
}

}  // namespace

const CongestionControlRecord newreno_record{"newreno", make};

}  // namespace netbuf
