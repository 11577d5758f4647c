// What Linux' window-based congestion controls share: time in jiffies, windows in whole packets, Reno's growth.
//
// Sources: net/ipv4/tcp_cong.c of Linux 6.18 (behaviour), RFC 5681, RFC 3465.
#pragma once
#include <algorithm>
#include <cstdint>

#include "netbuf/tcp.h"

namespace netbuf {

// Jiffies of a kernel built with CONFIG_HZ=250, as the reference measurements' is:
// CUBIC's clock and BBR's timers tick with it.
inline constexpr uint32_t kHz = 250;
inline constexpr Time kJiffy = kSecond / kHz;

inline uint32_t jiffies(Time t) { return static_cast<uint32_t>(t / kJiffy) + 1; }  // never 0, which means "not set"
inline uint32_t jiffies_rounded_up(Time t) { return static_cast<uint32_t>((t + kJiffy - 1) / kJiffy); }
inline bool jiffies_after(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b) > 0; }

// Reno as Linux runs it: every packet acknowledged counts, however few ACKs report them.
class LinuxReno : public CongestionControl {
 public:
  explicit LinuxReno(double beta = 0.5) : reduction_(static_cast<uint32_t>(scaled_fraction(beta))) {}

  void increase_window(Tcb& tcb, const AckEvent& ack) override { reno_increase(tcb, ack.delivered); }

  int64_t ssthresh(Tcb& tcb) override {
    cwnd_count_ = 0;
    return static_cast<int64_t>(std::max<uint64_t>(uint64_t{tcb.cwnd_packets} * reduction_ / kFraction, 2)) * tcb.mss;
  }

  int64_t undo_window(Tcb& tcb, int64_t prior_cwnd) override { return std::max(tcb.cwnd, prior_cwnd); }

 protected:
  void reno_increase(Tcb& tcb, uint32_t acked) {
    if (tcb.in_slow_start()) acked = slow_start(tcb, acked);
    if (acked) additive_increase(tcb, tcb.cwnd_packets, acked);
  }

  // One packet per packet acknowledged, up to ssthresh; returns the packets left over for congestion avoidance.
  static uint32_t slow_start(Tcb& tcb, uint32_t acked) {
    const int64_t grown = tcb.cwnd + static_cast<int64_t>(acked) * tcb.mss;
    if (grown <= tcb.ssthresh) {
      tcb.set_cwnd(grown);
      return 0;
    }
    const uint32_t used = std::max(tcb.ssthresh_packets(), tcb.cwnd_packets) - tcb.cwnd_packets;
    tcb.set_cwnd_packets(tcb.cwnd_packets + used);
    return acked - used;
  }

  // One packet per count packets acknowledged. Credit saved up under a larger count buys at most one packet.
  void additive_increase(Tcb& tcb, uint32_t count, uint32_t acked) {
    uint32_t gained = 0;
    if (cwnd_count_ >= count) {
      cwnd_count_ = 0;
      gained = 1;
    }
    cwnd_count_ += acked;
    if (cwnd_count_ >= count) {
      const uint32_t packets = cwnd_count_ / count;
      cwnd_count_ -= packets * count;
      gained += packets;
    }
    if (gained) tcb.set_cwnd_packets(tcb.cwnd_packets + gained);
  }

  uint32_t cwnd_count_ = 0;  // snd_cwnd_cnt: packets acknowledged towards the next increase

 private:
  const uint32_t reduction_;      // of the window that is left after a loss, in 1/kFraction
};

}  // namespace netbuf
