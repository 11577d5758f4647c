// A shared-buffer switch whose thresholds an agent sets: a factor alpha for each queue, others for a while (a cut), and
// which packet goes where a queue may not grow, or whether it is marked instead.
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
  explicit Switch(const Parameters& parameters) : Switch(parameters.as<uint32_t>("queues")) {}

  std::vector<std::string> fields() const override { return switch_fields(queues_); }
  std::vector<Control> controls() const override {
    std::vector<Control> all;
    for (const char* name : {"alpha_", "cut_alpha_"}) {
      for (uint32_t q = 0; q < queues_; ++q) all.push_back({name + std::to_string(q), 0, 1e6, "an alpha in [0, 1e6]"});
    }
    all.push_back({"cut_s", 0, 100, "a time in [0, 100] s"});
    all.push_back({"drop_head", 0, 1, "0 or 1 (from 0.5 on)"});
    all.push_back({"mark", 0, 1, "0 or 1 (from 0.5 on)"});
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
    write_switch(*world.switches()[index], start, seen(world), out);
  }

 private:
  explicit Switch(uint32_t queues) : AgentOf(switch_fields(queues).size(), 2 * queues + 3), queues_(queues) {}

  uint32_t queues_;
};

const Entry<AgentRecord> entry{{
    .name = "switch",
    .meaning = "sets the thresholds of a shared-buffer switch, factors of the free buffer for each queue,"
               " and which packet is dropped",
    .make = make_kind<Switch>,
    .parameters = {whole("queues", 1, 1, 64, "priority queues at each port")},
}};

}  // namespace
}  // namespace netbuf
