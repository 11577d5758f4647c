// A shared-buffer switch whose thresholds an agent sets: a factor alpha for each queue.
#include <cmath>
#include <limits>

#include "netbuf/agent.h"

namespace netbuf {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double ratio(double sum, double count) { return count > 0 ? sum / count : kNaN; }

// Of the whole switch, of each queue, and what was so when a flow last completed in the interval.
std::vector<std::string> names_of(uint32_t queues) {
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

struct Start {
  Time time = 0;
  uint64_t packets_received = 0, flows_started = 0;
  int64_t delivered_bytes = 0;
};

class Switch final : public AgentOf<Start> {
 public:
  explicit Switch(const Parameters& parameters) : Switch(parameters.as<uint32_t>("queues")) {}

  std::vector<std::string> fields() const override { return names_of(queues_); }
  std::vector<Control> controls() const override {
    std::vector<Control> alphas;
    for (uint32_t q = 0; q < queues_; ++q) alphas.push_back({"alpha_" + std::to_string(q), 0, 1e6, "an alpha in [0, 1e6]"});
    return alphas;
  }
  std::string_view what() const override { return "switches under an agent's control"; }

  std::vector<uint32_t> find(World& world) const override {
    std::vector<uint32_t> switches;
    for (uint32_t i = 0; i < world.switches().size(); ++i) {
      const SharedBuffer& sw = *world.switches()[i];
      if (!sw.agent_controlled()) continue;
      if (sw.queues() != queues_) {
        throw std::invalid_argument("queues = " + std::to_string(sw.queues()) + " at a switch: must be " + std::to_string(queues_));
      }
      switches.push_back(i);
    }
    return switches;
  }

 protected:
  void begin(World& world, uint32_t index, Start& start) const override {
    world.switches()[index]->begin_interval(world.now());
    start = {world.now(), world.packets_received(), world.opened().size(), world.delivered_bytes()};
  }

  void apply(World& world, uint32_t index, const double* control) const override {
    for (uint32_t q = 0; q < queues_; ++q) {
      if (!std::isnan(control[q])) world.switches()[index]->set_alpha(q, control[q]);
    }
  }

  // The worst slowdown of the flows that complete is another one than before: asked at the end of whole intervals.
  void run_to_event(World& world, std::span<const uint32_t> agents, Time interval, uint32_t max_intervals) const override {
    bool changed = false;
    for (uint32_t n = 0; n < max_intervals && !changed; ++n) {
      world.run(world.now() + interval);
      for (const uint32_t agent : agents) changed |= world.switches()[agent]->take_change();
    }
  }

  void write(World& world, uint32_t index, const Start& start, double* out) const override {
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

 private:
  explicit Switch(uint32_t queues) : AgentOf(names_of(queues).size(), queues), queues_(queues) {}

  uint32_t queues_;
};

const Entry<AgentRecord> entry{{
    .name = "switch",
    .meaning = "sets the thresholds of a shared-buffer switch, a factor of the free buffer for each queue",
    .make = make_kind<Switch>,
    .parameters = {whole("queues", 1, 1, 64, "priority queues at each port")},
}};

}  // namespace
}  // namespace netbuf
