#include "netbuf/switch_telemetry.h"

#include <limits>

namespace netbuf {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Of what never comes near 2^63: in one instruction.
double number(uint64_t count) { return static_cast<double>(static_cast<int64_t>(count)); }

double ratio(double sum, double count) { return count > 0 ? sum / count : kNaN; }

}  // namespace

std::vector<std::string> switch_fields(uint32_t queues) {
  std::vector<std::string> names{"elapsed_s",       "capacity",      "free",
                                 "free_fraction",   "packets_received", "delivered_bytes",
                                 "flows_started",   "flows_completed", "worst_difference_s",
                                 "worst_ratio",     "packets_dropped", "drop_head"};
  for (uint32_t q = 0; q < queues; ++q) {
    for (const char* name : {"alpha", "queue_packets", "queue_bytes", "arrivals", "drops", "drained_bytes",
                             "queue_delay_mean_s", "flows_completed", "ratio_sum", "log_ratio_sum", "worst_ratio",
                             "queue_packets_max", "queue_bytes_min", "syns", "flows_opened", "flows_closed"}) {
      names.push_back(std::string(name) + "_" + std::to_string(q));
    }
  }
  for (const char* name : {"at_free_fraction", "at_flows_completed", "at_packets_dropped", "at_elapsed_s"}) {
    names.emplace_back(name);
  }
  for (uint32_t q = 0; q < queues; ++q) names.push_back("at_drained_bytes_" + std::to_string(q));
  return names;
}

void write_switch(const SharedBuffer& sw, const SwitchSeen& start, const SwitchSeen& now, double* out) {
  const SwitchInterval& interval = sw.interval();
  const bool completed = interval.flows > 0;
  const auto free = static_cast<double>(sw.capacity() - sw.occupancy());
  *out++ = seconds(now.time - start.time);
  *out++ = static_cast<double>(sw.capacity());
  *out++ = free;
  *out++ = free / static_cast<double>(sw.capacity());
  *out++ = number(now.packets_received - start.packets_received);
  *out++ = static_cast<double>(now.delivered_bytes - start.delivered_bytes);
  *out++ = number(now.flows_started - start.flows_started);
  *out++ = number(interval.flows);
  *out++ = completed ? interval.worst_difference : kNaN;
  *out++ = completed ? interval.worst_ratio : kNaN;
  double& dropped = *out++;
  *out++ = sw.drops_head() ? 1 : 0;
  uint64_t drops = 0;
  for (uint32_t q = 0; q < sw.queues(); ++q) {
    QueueState sum;
    const QueueState& state = sw.state(q, sum);
    const PriorityInterval& own = sw.interval(q);
    const QueueCounters &total = state.counters, &then = own.before;
    drops += total.drops - then.drops;
    *out++ = sw.alpha(q);
    *out++ = state.packets;
    *out++ = static_cast<double>(state.bytes);
    *out++ = number(total.arrivals - then.arrivals);
    *out++ = number(total.drops - then.drops);
    *out++ = static_cast<double>(total.bytes_out - then.bytes_out);
    *out++ = ratio(seconds(total.sojourn - then.sojourn), number(total.departures - then.departures));
    *out++ = number(own.flows);
    *out++ = own.ratio_sum;
    *out++ = own.log_ratio_sum;
    *out++ = own.flows ? own.worst_ratio : kNaN;
    *out++ = state.interval_max;
    *out++ = static_cast<double>(state.interval_min);
    *out++ = number(total.syns - then.syns);
    *out++ = number(total.opened - then.opened);
    *out++ = number(total.closed - then.closed);
  }
  dropped = number(drops);
  *out++ = completed ? interval.at_free : kNaN;
  *out++ = completed ? number(interval.flows) : kNaN;
  *out++ = completed ? number(interval.at_dropped) : kNaN;
  *out++ = completed ? seconds(interval.at - interval.start) : kNaN;
  for (uint32_t q = 0; q < sw.queues(); ++q) *out++ = completed ? static_cast<double>(sw.interval(q).at_drained) : kNaN;
}

std::vector<std::string> switch_lever_fields(uint32_t queues) {
  std::vector<std::string> names;
  for (uint32_t q = 0; q < queues; ++q) {
    for (const char* name : {"share", "slots_used", "largest_share"}) {
      names.push_back(std::string(name) + "_" + std::to_string(q));
    }
  }
  return names;
}

void write_switch_levers(const SharedBuffer& sw, double* out) {
  for (uint32_t q = 0; q < sw.queues(); ++q) {
    const int64_t bytes = sw.bytes(q);
    *out++ = sw.share(q);
    *out++ = sw.slots_used(q);
    *out++ = bytes > 0 ? static_cast<double>(sw.largest_slot(q)) / static_cast<double>(bytes) : 0;
  }
}

}  // namespace netbuf
