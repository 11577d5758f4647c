// Flows that one sender opens share its links, and no other sender's: whether such a link is crossed at once or when
// the packet arrives there may not matter to anybody.
#include "worlds.h"

using namespace netbuf;

namespace {

// Senders with links of their own around a bottleneck; alone: no flow but theirs ever crosses those.
WorldConfig senders(uint64_t seed, Stack stack, bool alone) {
  Rng rng(seed);
  WorldConfig world;
  world.stack = stack;
  world.links = {worlds::link(5 + rng.below(20), 5, 20 + rng.below(60)), worlds::link(rng.uniform() < 0.5 ? 20 : 0, 5)};
  if (rng.uniform() < 0.5) world.links[0].loss = 0.01;
  TrafficConfig traffic;
  const uint32_t hosts = 1 + rng.below(3);
  for (uint32_t host = 0; host < hosts; ++host) {
    const auto own = static_cast<uint32_t>(world.links.size());
    for (int i = 0; i < 4; ++i) {
      world.links.push_back(worlds::link(rng.uniform() < 0.3 ? 0 : 5 + rng.below(100), 4 * rng.uniform()));
    }
    FlowConfig sender =
        worlds::flow(rng.uniform() < 0.5 ? "cubic" : "newreno", {own, 0, own + 1}, {own + 2, 1, own + 3});
    if (rng.uniform() < 0.3) sender.path = {own, own + 1, 0};
    if (rng.uniform() < 0.3) sender.return_path = {1, own + 2, own + 3};
    traffic.senders.push_back(sender);
  }
  const double kind = rng.uniform();
  if (kind < 0.2) world.links[0].discipline = "codel";
  if (kind > 0.6) {
    SwitchConfig sw;
    sw.ports = {0};
    sw.queues = 2;
    sw.capacity = 60;
    sw.alphas = {1, 1};
    if (rng.uniform() < 0.5) sw.scheduler = "strict_priority";
    world.links[0].queue_limit_packets = 0;
    world.switches = {sw};
  }
  ArrivalsConfig list;
  list.kind = "list";
  Time at = 0;
  for (int i = 0; i < 60; ++i) {
    if (rng.uniform() < 0.7) at += rng.below(100) * kMillisecond;  // some start at once
    list.list_start_ns.push_back(at);
    list.list_sender.push_back(rng.below(hosts));
    list.list_priority.push_back(rng.below(2));
    list.list_size.push_back(1 + rng.below(200'000));
  }
  traffic.arrivals = {list};
  world.traffic = {traffic};
  if (!alone) {
    std::vector<uint32_t> all;
    for (uint32_t i = 0; i < world.links.size(); ++i) all.push_back(i);
    world.flows = {worlds::flow("cubic", all, all)};
    world.flows[0].start_ns = 1000 * kSecond;
  }
  return world;
}

}  // namespace

TEST(flows_that_are_over_are_forgotten) {
  for (const Stack stack : {Stack::linux_kernel, Stack::ns3}) {
    for (uint64_t seed = 1; seed <= 40; ++seed) {
      WorldConfig config = senders(seed, stack, true);
      // The last packets of a connection are dropped too.
      if (!config.switches.empty()) config.switches[0].capacity = 4;
      World world(config, seed);
      world.run(1000 * kSecond);
      CHECK_EQ(world.completions().size(), world.opened().size());
      for (const OpenedFlow& flow : world.opened()) {
        CHECK_EQ(flow.slot, uint32_t{OpenedFlow::kForgotten});
        CHECK_EQ(flow.received_bytes, flow.size_bytes);
      }
    }
  }
}

TEST(flows_of_one_sender_keep_their_order) {
  for (const Stack stack : {Stack::linux_kernel, Stack::ns3}) {
    for (uint64_t seed = 1; seed <= 60; ++seed) {
      World alone(senders(seed, stack, true), seed), shared(senders(seed, stack, false), seed);
      alone.run(20 * kSecond);
      shared.run(20 * kSecond);
      CHECK_GT(alone.completions().size(), 30u);
      CHECK_EQ(alone.completions().size(), shared.completions().size());
      for (size_t i = 0; i < std::min(alone.completions().size(), shared.completions().size()); ++i) {
        CHECK_EQ(alone.completions()[i].flow, shared.completions()[i].flow);
        CHECK_EQ(alone.completions()[i].fct, shared.completions()[i].fct);
      }
    }
  }
}
