#include "netbuf/report.h"

#include <limits>

namespace netbuf {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace

void sample_flow(World& world, uint32_t index, double* out) {
  const Flow& flow = world.flows()[index];
  const Tcb& tcb = flow.sender.tcb;
  *out++ = static_cast<double>(tcb.cwnd) / tcb.mss;
  *out++ = tcb.ssthresh >= kInfiniteWindow ? kNaN : static_cast<double>(tcb.ssthresh) / tcb.mss;
  *out++ = tcb.last_rtt >= 0 ? static_cast<double>(tcb.last_rtt) * 1e-6 : kNaN;
  *out++ = tcb.srtt > 0 ? static_cast<double>(tcb.srtt) * 1e-6 : kNaN;
  *out++ = tcb.in_flight();
  *out++ = static_cast<double>(flow.receiver.counters().delivered_bytes);
  *out++ = tcb.pacing_rate > 0 ? tcb.pacing_rate * 8e-6 : kNaN;
}

void sample_link(World& world, uint32_t index, double* out) {
  Link& link = world.links()[index];
  const LinkStats stats = link.stats(world.now());
  *out++ = link.queue_packets();
  *out++ = static_cast<double>(link.queue_bytes());
  *out++ = stats.sojourn_sum;
  *out++ = static_cast<double>(stats.packets_out);
  *out++ = stats.bytes_sent;
  *out++ = static_cast<double>(stats.queue_drops);
  *out++ = static_cast<double>(stats.random_losses);
}

}  // namespace netbuf
