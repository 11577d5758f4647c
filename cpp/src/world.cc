#include "netbuf/world.h"

#include <bit>
#include <stdexcept>
#include <string>

#include "netbuf/relay.h"

namespace netbuf {

World::World(const WorldConfig& config, uint64_t seed) : rng_(seed) {
  validate(config);
  links_.reserve(config.links.size());
  for (const LinkConfig& link : config.links) links_.emplace_back(link, &rng_);
  std::vector<uint32_t> uses(config.links.size(), 0);
  for (const FlowConfig& flow : config.flows) {
    for (const uint32_t link : flow.path) ++uses[link];
    for (const uint32_t link : flow.return_path) ++uses[link];
  }
  flows_.reserve(config.flows.size());
  for (const FlowConfig& flow : config.flows) {
    if (flow.controlled) agents_.push_back(static_cast<uint32_t>(flows_.size()));
    flows_.emplace_back(flow, config, links_, uses, &rng_);
  }
  for (uint32_t i = 0; i < flows_.size(); ++i) {
    const FlowConfig& flow = config.flows[i];
    if (flow.relay_from >= 0) make_relay(flows_, static_cast<uint32_t>(flow.relay_from), i, flow.relay_buffer_bytes, woken_);
  }
  if (config.stack == Stack::ns3) order_ties(config);
  build_tree();
}

void World::order_ties(const WorldConfig& config) {
  const StackProfile& profile = stack_profile(config.stack);
  const uint32_t bytes = profile.mss + profile.data_overhead;
  for (const FlowConfig& flow : config.flows) {
    for (size_t i = 1; i < flow.path.size(); ++i) {
      const Link& before = links_[flow.path[i - 1]];
      links_[flow.path[i]].order_ties(before.delay() + before.transmission_time(bytes), bytes);
    }
  }
}

void World::build_tree() {
  const size_t leaves = std::bit_ceil(std::max<size_t>(2, flows_.size()));
  tree_.assign(2 * leaves, Entry{kNever, 0});
  for (uint32_t i = 0; i < flows_.size(); ++i) update(i);
}

void World::check_until(Time until) const {
  if (until >= now_ && until < kNever) return;
  throw std::invalid_argument("until_ns = " + std::to_string(until) + ": must be in [" + std::to_string(now_) + ", 2^61)");
}

void World::run(Time until) {
  check_until(until);
  if (flows_.size() == 1) {
    flows_[0].run(until);
    update(0);
  } else {
    while (tree_[1].time <= until) {
      const uint32_t i = tree_[1].flow;
      flows_[i].run_next();
      update(i);
      if (!woken_.empty()) update_woken();
    }
  }
  now_ = until;
}

bool World::run_to_agent_ack(Time until) {
  check_until(until);
  while (tree_[1].time <= until) {
    const uint32_t i = tree_[1].flow;
    Flow& flow = flows_[i];
    now_ = tree_[1].time;
    const uint64_t acks = flow.counters.acks;
    flow.run_next();
    update(i);
    if (!woken_.empty()) update_woken();
    if (flow.controlled() && flow.counters.acks != acks) return true;
  }
  now_ = until;
  return false;
}

void World::agent_window(uint32_t agent, double bytes) {
  const uint32_t flow = agents_.at(agent);
  flows_[flow].agent_window(now_, bytes);
  update(flow);
  update_woken();
}

void World::update_woken() {
  for (const uint32_t flow : woken_) update(flow);
  woken_.clear();
}

size_t World::memory_bytes() const {
  size_t bytes = sizeof *this + tree_.capacity() * sizeof(Entry);
  for (const Link& link : links_) bytes += link.memory_bytes();
  for (const Flow& flow : flows_) bytes += flow.memory_bytes();
  return bytes;
}

}  // namespace netbuf
