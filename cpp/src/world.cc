#include "netbuf/world.h"

#include <bit>
#include <stdexcept>

namespace netbuf {

namespace {
constexpr size_t kScanLimit = 8;  // up to so many flows a linear scan beats the tree
}

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
  if (flows_.size() > kScanLimit) build_tree();
}

void World::build_tree() {
  const size_t leaves = std::bit_ceil(flows_.size());
  tree_.assign(2 * leaves, 0);
  for (size_t i = 0; i < leaves; ++i) tree_[leaves + i] = static_cast<uint32_t>(std::min(i, flows_.size() - 1));
  for (size_t i = leaves - 1; i > 0; --i) {
    const uint32_t a = tree_[2 * i], b = tree_[2 * i + 1];
    tree_[i] = flows_[b].next() < flows_[a].next() ? b : a;
  }
}

void World::update_tree(uint32_t flow) {
  for (size_t i = (tree_.size() / 2 + flow) / 2; i > 0; i /= 2) {
    const uint32_t a = tree_[2 * i], b = tree_[2 * i + 1];
    tree_[i] = flows_[b].next() < flows_[a].next() ? b : a;
  }
}

uint32_t World::earliest() const {
  if (!tree_.empty()) return tree_[1];
  uint32_t best = 0;
  for (uint32_t i = 1; i < flows_.size(); ++i) {
    if (flows_[i].next() < flows_[best].next()) best = i;
  }
  return best;
}

void World::run(Time until) {
  if (until < now_) throw std::invalid_argument("until lies before now");
  if (flows_.size() == 1) {
    flows_[0].run(until);
  } else {
    for (;;) {
      const uint32_t i = earliest();
      if (flows_[i].next() > until) break;
      flows_[i].run_next();
      if (!tree_.empty()) update_tree(i);
    }
  }
  now_ = until;
}

bool World::run_to_agent_ack(Time until) {
  for (;;) {
    const uint32_t i = earliest();
    Flow& flow = flows_[i];
    if (flow.next() > until) break;
    now_ = flow.next();
    const uint64_t acks = flow.counters.acks;
    flow.run_next();
    if (!tree_.empty()) update_tree(i);
    if (flow.controlled() && flow.counters.acks != acks) return true;
  }
  now_ = until;
  return false;
}

void World::agent_window(uint32_t agent, double bytes) {
  const uint32_t flow = agents_.at(agent);
  flows_[flow].agent_window(now_, bytes);
  if (!tree_.empty()) update_tree(flow);
}

size_t World::memory_bytes() const {
  size_t bytes = sizeof *this + tree_.capacity() * sizeof(uint32_t);
  for (const Link& link : links_) bytes += link.memory_bytes();
  for (const Flow& flow : flows_) bytes += flow.memory_bytes();
  return bytes;
}

}  // namespace netbuf
