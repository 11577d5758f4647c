#include "netbuf/report.h"

#include <cmath>
#include <limits>

namespace netbuf {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double ratio(double sum, double count) { return count > 0 ? sum / count : kNaN; }

}  // namespace

IntervalStart begin_interval(World& world, uint32_t index) {
  Flow& flow = world.flows()[index];
  Link& link = world.links()[flow.bottleneck()];
  link.drain(world.now());
  flow.sender.interval_rtt_min = kNever;
  return {world.now(), flow.counters(), flow.sender.tcb.lost, link.sojourn_sum(), link.counters().packets_out,
          link.counters().queue_drops};
}

void write_telemetry(World& world, uint32_t index, const IntervalStart& start, double* out) {
  const Flow& flow = world.flows()[index];
  const Tcb& tcb = flow.sender.tcb;
  const FlowCounters now = flow.counters(), &then = start.counters;
  Link& link = world.links()[flow.bottleneck()];
  link.drain(world.now());

  const double elapsed = seconds(world.now() - start.time);
  const double acks = static_cast<double>(now.acks - then.acks);
  const double in_flight_sum = static_cast<double>(now.in_flight_sum - then.in_flight_sum) * tcb.mss;
  const double segments = static_cast<double>(now.segments_acked - then.segments_acked);
  const double sent = static_cast<double>(now.packets_sent - then.packets_sent);
  const double previous_sent = static_cast<double>(then.packets_sent > 0), previous_acks = static_cast<double>(then.acks > 0);

  *out++ = elapsed;
  *out++ = tcb.ssthresh >= kInfiniteWindow ? kNaN : static_cast<double>(tcb.ssthresh);
  *out++ = static_cast<double>(tcb.cwnd);
  *out++ = tcb.mss;
  *out++ = in_flight_sum;
  *out++ = ratio(in_flight_sum, acks);
  *out++ = segments;
  *out++ = ratio(segments, acks);
  *out++ = ratio(static_cast<double>(now.rtt_sum - then.rtt_sum) * 1e-9, static_cast<double>(now.rtt_count - then.rtt_count));
  *out++ = flow.sender.interval_rtt_min < kNever ? seconds(flow.sender.interval_rtt_min) : kNaN;
  // Gaps that end in this interval; the first packet of all has none before it.
  *out++ = ratio(seconds(now.last_sent - (then.packets_sent ? then.last_sent : flow.sender.first_sent())), sent - 1 + previous_sent);
  *out++ = ratio(seconds(now.last_ack - (then.acks ? then.last_ack : flow.sender.first_ack())), acks - 1 + previous_acks);
  *out++ = ratio(static_cast<double>(now.acked_bytes - then.acked_bytes) * 8, elapsed);
  *out++ = ratio(static_cast<double>(now.delivered_bytes - then.delivered_bytes) * 8, elapsed);
  *out++ = sent;
  *out++ = static_cast<double>(tcb.lost - start.lost);
  *out++ = static_cast<double>(now.packets_retransmitted - then.packets_retransmitted);
  *out++ = acks;
  *out++ = static_cast<double>(now.timeouts - then.timeouts);
  *out++ = static_cast<double>(tcb.in_flight()) * tcb.mss;
  *out++ = flow.sender.rtt_min < kNever ? seconds(flow.sender.rtt_min) : kNaN;
  *out++ = ratio(link.sojourn_sum() - start.sojourn_sum, static_cast<double>(link.counters().packets_out - start.dequeued));
  *out++ = link.queue_packets();
  *out++ = static_cast<double>(link.counters().queue_drops - start.link_drops);
}

std::vector<std::string> switch_telemetry_fields(uint32_t queues) {
  std::vector<std::string> names{"elapsed_s",       "capacity",      "free",
                                 "free_fraction",   "packets_received", "delivered_bytes",
                                 "flows_started",   "flows_completed", "worst_difference_s",
                                 "worst_ratio",     "packets_dropped"};
  for (uint32_t q = 0; q < queues; ++q) {
    for (const char* name : {"alpha", "queue_packets", "queue_bytes", "arrivals", "drops", "drained_bytes", "queue_delay_mean_s",
                             "flows_completed", "ratio_sum", "log_ratio_sum", "worst_ratio", "queue_packets_max"}) {
      names.push_back(std::string(name) + "_" + std::to_string(q));
    }
  }
  for (const char* name : {"at_free_fraction", "at_flows_completed", "at_packets_dropped", "at_elapsed_s"}) names.emplace_back(name);
  for (uint32_t q = 0; q < queues; ++q) names.push_back("at_drained_bytes_" + std::to_string(q));
  return names;
}

SwitchIntervalStart begin_switch_interval(World& world, uint32_t index) {
  world.switches()[index]->begin_interval(world.now());
  return {world.now(), world.packets_received(), world.opened().size(), world.delivered_bytes()};
}

void write_switch_telemetry(World& world, uint32_t index, const SwitchIntervalStart& start, double* out) {
  const SharedBuffer& sw = *world.switches()[index];
  const SwitchInterval& interval = sw.interval();
  const bool completed = interval.flows > 0;
  const auto free = static_cast<double>(sw.capacity() - sw.occupancy());
  *out++ = seconds(world.now() - start.time);
  *out++ = static_cast<double>(sw.capacity());
  *out++ = free;
  *out++ = free / static_cast<double>(sw.capacity());
  *out++ = static_cast<double>(world.packets_received() - start.packets_received);
  *out++ = static_cast<double>(world.delivered_bytes() - start.delivered_bytes);
  *out++ = static_cast<double>(world.opened().size() - start.flows_started);
  *out++ = static_cast<double>(interval.flows);
  *out++ = completed ? interval.worst_difference : kNaN;
  *out++ = completed ? interval.worst_ratio : kNaN;
  *out++ = static_cast<double>(sw.interval_drops());
  for (uint32_t q = 0; q < sw.queues(); ++q) {
    const QueueCounters now = sw.totals(q), &then = interval.before[q];
    const SwitchInterval::Completed& flows = interval.completed[q];
    *out++ = sw.alpha(q);
    *out++ = sw.packets(q);
    *out++ = static_cast<double>(sw.bytes(q));
    *out++ = static_cast<double>(now.arrivals - then.arrivals);
    *out++ = static_cast<double>(now.drops - then.drops);
    *out++ = static_cast<double>(now.bytes_out - then.bytes_out);
    *out++ = ratio(seconds(now.sojourn - then.sojourn), static_cast<double>(now.departures - then.departures));
    *out++ = static_cast<double>(flows.flows);
    *out++ = flows.ratio_sum;
    *out++ = flows.log_ratio_sum;
    *out++ = flows.flows ? flows.worst_ratio : kNaN;
    *out++ = sw.interval_max(q);
  }
  *out++ = completed ? interval.at_free : kNaN;
  *out++ = completed ? static_cast<double>(interval.flows) : kNaN;
  *out++ = completed ? static_cast<double>(interval.at_dropped) : kNaN;
  *out++ = completed ? seconds(interval.at - interval.start) : kNaN;
  for (uint32_t q = 0; q < sw.queues(); ++q) *out++ = completed ? static_cast<double>(interval.at_drained[q]) : kNaN;
}

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
  *out++ = static_cast<double>(stats.bytes_out);
  *out++ = static_cast<double>(stats.queue_drops);
  *out++ = static_cast<double>(stats.random_losses);
}

}  // namespace netbuf
