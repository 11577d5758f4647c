// A congestion control of ours over the path that the kernel module was recorded on.
#pragma once
#include <memory>

#include "netbuf/tcp.h"
#include "references/kernel_path.h"

namespace netbuf {

class BesideKernel {
 public:
  BesideKernel(std::string_view name, const Given& parameters)
      : cc(make_congestion_control(name, Stack::linux_kernel, parameters)), rng_(7) {
    tcb.mss = KernelPath::kMss;
    tcb.rng = &rng_;
    tcb.set_cwnd_packets(10);
    tcb.min_rtt = KernelPath::kRtt * kMicrosecond;
    tell();
    cc->init(tcb);
  }

  void tick() {
    path.step(tcb.pacing_rate > 0 ? static_cast<uint64_t>(tcb.pacing_rate) : KernelPath::kUnpaced, tcb.cwnd_packets);
    tell();
    if (path.newly_delivered + path.newly_lost == 0) return;
    AckEvent ack;
    ack.acked = ack.delivered = path.newly_delivered;
    ack.lost = path.newly_lost;
    ack.prior_in_flight = path.prior_in_flight;
    ack.rtt = path.rtt_us < 0 ? -1 : path.rtt_us * kMicrosecond;
    ack.una_advanced = true;
    if (path.sample_interval_us > 0) {
      ack.rate = {path.sample_delivered, path.sample_prior_delivered, path.sample_interval_us * kMicrosecond, false,
                  false};
    }
    cc->on_ack(tcb, ack);
    if (cc->owns_window()) cc->control(tcb, ack);
    else if (ack.delivered > 0) cc->increase_window(tcb, ack);
  }

  Tcb tcb;
  KernelPath path;
  std::unique_ptr<CongestionControl> cc;

 private:
  void tell() {
    tcb.now = path.now_us * kMicrosecond;
    tcb.srtt = path.srtt_us * kMicrosecond;
    tcb.delivered = path.delivered;
    tcb.delivered_time = path.delivered_us * kMicrosecond;
    tcb.lost = path.lost;
    tcb.una = path.delivered + path.lost;
    tcb.nxt = path.sent;
  }

  Rng rng_;
};

}  // namespace netbuf
