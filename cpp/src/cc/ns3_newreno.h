// The window growth of ns-3's TcpNewReno (src/internet/model/tcp-congestion-ops.cc, 3.44),
// which Westwood+ there inherits.
#pragma once
#include <algorithm>

#include "netbuf/tcp.h"

namespace netbuf {

// Counts ACKs: with an ACK for two segments a round trip is worth a factor 1.5 in slow start
// and half a segment after it.
class Ns3NewReno : public CongestionControl {
 public:
  explicit Ns3NewReno(double beta = 0.5) : reduction_(scaled_fraction(beta)) {}

  void increase_window(Tcb& tcb, const AckEvent& ack) override {
    uint32_t segments_acked = ack.acked;
    if (!segments_acked) return;
    if (tcb.in_slow_start()) {
      tcb.set_cwnd(tcb.cwnd + tcb.mss);
      --segments_acked;
    }
    if (!tcb.in_slow_start() && segments_acked) {
      const int64_t adder = static_cast<int64_t>(tcb.mss) * tcb.mss / tcb.cwnd;
      tcb.set_cwnd(tcb.cwnd + std::max<int64_t>(adder, 1));
    }
  }

  // Half the bytes in flight, as the RFC says; Linux halves the window.
  int64_t ssthresh(Tcb& tcb) override {
    return std::max<int64_t>(2 * tcb.mss, tcb.bytes_in_flight() * reduction_ / kFraction);
  }

 private:
  const int64_t reduction_;  // of what is in flight, that is left after a loss, in 1/kFraction
};

}  // namespace netbuf
