// A shared-buffer switch whose thresholds an agent sets: a factor alpha for each queue, others for a while (a cut), and
// which packet goes where a queue may not grow, or whether it is marked instead. With its levers also the scheduler of
// all ports, and whom drops and marks hit where there is a table of flows.
#include <cmath>

#include "netbuf/agent.h"
#include "netbuf/switch_telemetry.h"

namespace netbuf {
namespace {

SwitchSeen seen(World& world) {
  return {world.now(), world.packets_received(), world.opened().size(), world.delivered_bytes()};
}

class Switch final : public AgentOf<SwitchSeen> {
 public:
  explicit Switch(const Parameters& parameters)
      : Switch(parameters.as<uint32_t>("queues"), parameters.as<uint32_t>("levers") != 0) {}

  std::vector<std::string> fields() const override { return all_fields(queues_, levers_); }
  std::vector<Control> controls() const override {
    std::vector<Control> all;
    for (const char* name : {"alpha_", "cut_alpha_"}) {
      for (uint32_t q = 0; q < queues_; ++q) all.push_back({name + std::to_string(q), 0, 1e6, "an alpha in [0, 1e6]"});
    }
    all.push_back({"cut_s", 0, 100, "a time in [0, 100] s"});
    all.push_back({"drop_head", 0, 1, "0 or 1 (from 0.5 on)"});
    all.push_back({"mark", 0, 1, "0 or 1 (from 0.5 on)"});
    if (!levers_) return all;
    all.push_back({"scheduler", 0, 2, "0 (round robin by packet), 1 (deficit round robin) or 2 (strict priority)"});
    for (uint32_t q = 0; q < queues_; ++q) {
      all.push_back({"quantum_" + std::to_string(q), 1, 1e9, "a quantum in [1, 1e9] bytes"});
    }
    all.push_back({"large_victims", 0, 1, "0 or 1 (from 0.5 on)"});
    return all;
  }
  std::string_view what() const override { return "switches under an agent's control"; }

  std::vector<uint32_t> find(World& world) const override {
    std::vector<uint32_t> switches;
    for (uint32_t i = 0; i < world.switches().size(); ++i) {
      const SharedBuffer& sw = *world.switches()[i];
      if (!sw.agent_controlled()) continue;
      if (sw.queues() != queues_) {
        throw std::invalid_argument("queues = " + std::to_string(sw.queues()) + " at a switch: must be " +
                                    std::to_string(queues_));
      }
      switches.push_back(i);
    }
    return switches;
  }

 protected:
  void begin(World& world, uint32_t index, SwitchSeen& start) const override {
    world.switches()[index]->begin_interval(world.now());
    start = seen(world);
  }

  void apply(World& world, uint32_t index, const double* control) const override {
    SharedBuffer& sw = *world.switches()[index];
    for (uint32_t q = 0; q < queues_; ++q) {
      if (!std::isnan(control[q])) sw.set_alpha(q, control[q]);
    }
    const double cut_s = control[2 * queues_], drop_head = control[2 * queues_ + 1], mark = control[2 * queues_ + 2];
    if (!std::isnan(cut_s)) sw.set_cut(world.now() + from_seconds(cut_s), control + queues_);
    if (!std::isnan(drop_head)) sw.set_drop_head(drop_head >= 0.5);
    if (!std::isnan(mark)) sw.set_congested(mark >= 0.5);
    if (levers_) apply_levers(sw, control + 2 * queues_ + 3);
  }

  // The worst slowdown of the flows that complete is another one than before: asked at the end of whole intervals.
  void run_to_event(World& world, std::span<const uint32_t> agents, Time interval,
                    uint32_t max_intervals) const override {
    bool changed = false;
    for (uint32_t n = 0; n < max_intervals && !changed; ++n) {
      world.run(world.now() + interval);
      for (const uint32_t agent : agents) changed |= world.switches()[agent]->take_change();
    }
  }

  void write(World& world, uint32_t index, const SwitchSeen& start, double* out) const override {
    const SharedBuffer& sw = *world.switches()[index];
    write_switch(sw, start, seen(world), out);
    if (levers_) write_switch_levers(sw, out + own_fields_);
  }

 private:
  static std::vector<std::string> all_fields(uint32_t queues, bool levers) {
    std::vector<std::string> all = switch_fields(queues);
    if (!levers) return all;
    const std::vector<std::string> own = switch_lever_fields(queues);
    all.insert(all.end(), own.begin(), own.end());
    return all;
  }

  Switch(uint32_t queues, bool levers)
      : AgentOf(all_fields(queues, levers).size(), 2 * queues + 3 + (levers ? queues + 2 : 0)),
        own_fields_(switch_fields(queues).size()),
        queues_(queues),
        levers_(levers) {}

  void apply_levers(SharedBuffer& sw, const double* control) const {
    using Scheduler = SharedBuffer::Scheduler;
    constexpr Scheduler kSchedulers[] = {Scheduler::round_robin, Scheduler::drr, Scheduler::strict_priority};
    if (const double scheduler = control[0]; !std::isnan(scheduler)) {
      const Scheduler chosen = kSchedulers[static_cast<size_t>(std::lround(scheduler))];
      const bool by_bytes = chosen == Scheduler::drr;
      sw.set_scheduler(chosen, by_bytes ? std::span(control + 1, queues_) : std::span<const double>());
    }
    if (const double large = control[1 + queues_]; !std::isnan(large)) sw.set_victims(large >= 0.5);
  }

  size_t own_fields_;
  uint32_t queues_;
  bool levers_;
};

const Entry<AgentRecord> entry{{
    .name = "switch",
    .meaning = "sets the thresholds of a shared-buffer switch, factors of the free buffer for each queue,"
               " and which packet is dropped",
    .make = make_kind<Switch>,
    .parameters = {whole("queues", 1, 1, 64, "priority queues at each port"),
                   truth("levers", false, "sets the scheduler too, and whom drops hit; measures tables of flows")},
}};

}  // namespace
}  // namespace netbuf
