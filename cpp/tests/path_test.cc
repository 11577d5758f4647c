// Links whose outcome is known at the link before are folded into it: nothing that anybody can observe may depend on it.
#include "worlds.h"

using namespace netbuf;

namespace {

// From now on no link is folded: on each a flow sets out that starts after the end, and a limit that is never reached keeps
// apart even those of unlimited rate.
void unfold(WorldConfig& world) {
  for (uint32_t i = 0; i < world.links.size(); ++i) {
    if (world.links[i].rate_bps == 0) world.links[i].queue_limit_packets = 1'000'000;
    world.flows.push_back(worlds::flow("cubic", {i}, {i}));
    world.flows.back().start_ns = 1000 * kSecond;
    world.flows.back().receive_buffer_bytes = 100'000;
  }
}

void compare_links(World& one, World& other) {
  for (size_t i = 0; i < one.links().size(); ++i) {
    CHECK(worlds::fingerprint(one.links()[i].stats(one.now())) == worlds::fingerprint(other.links()[i].stats(other.now())));
  }
}

// A multi-hop world.
WorldConfig chain(const std::string& cc, Stack stack, bool unfolded, int flows = 1) {
  WorldConfig world;
  world.stack = stack;
  world.links = {worlds::link(100, 1),    worlds::link(20, 10, 40), worlds::link(1000, 1), worlds::link(50, 3),
                 worlds::link(1000, 0.5), worlds::link(20, 10),     worlds::link(0, 2)};
  for (int i = 0; i < flows; ++i) {
    // Each flow its own access links, the bottleneck and the way back are shared.
    const auto base = static_cast<uint32_t>(world.links.size());
    world.links.push_back(worlds::link(300, 0.7 + i));
    world.links.push_back(worlds::link(200, 0));
    world.flows.push_back(worlds::flow(cc, {0, base, 1, 2, base + 1, 3}, {4, 5, 6}));
    world.flows.back().start_ns = i * 30 * kMillisecond;
  }
  if (unfolded) unfold(world);
  return world;
}

// Three senders of small flows behind access links that each one's flows share, a port between them and the receivers, and
// links of unlimited rate that all ACKs cross after one that each sender's share, or after one that all do.
WorldConfig crossroads(bool unfolded, bool managed, uint64_t seed) {
  Rng rng(seed);
  WorldConfig world;
  world.links = {worlds::link(20, 5, 60), worlds::link(rng.uniform() < 0.5 ? 0 : 500, 2), worlds::link(2, 5),
                 worlds::link(0, 3)};
  if (managed) world.links[0].discipline = "codel";
  TrafficConfig traffic;
  for (int i = 0; i < 3; ++i) {
    const auto base = static_cast<uint32_t>(world.links.size());
    for (int n = 0; n < 4; ++n) world.links.push_back(worlds::link(10 + 90 * rng.uniform(), rng.below(3)));
    FlowConfig sender = worlds::flow("cubic", {base, 0, 1, base + 1}, {base + 2, 3, base + 3});
    if (i == 0) sender.return_path = {2, 3, base + 3};
    if (i == 1) sender.return_path = {2, base + 3, base + 2};
    traffic.senders.push_back(sender);
  }
  ArrivalsConfig arrivals;
  arrivals.rate_per_s = 15, arrivals.size_bytes = {1e3, 1e4, 2e6}, arrivals.cumulative = {0.3, 0.9, 1};
  traffic.arrivals = {arrivals};
  world.traffic = {traffic};
  if (unfolded) unfold(world);
  return world;
}

}  // namespace

TEST(folded_links_give_the_same_bits) {
  for (const Stack stack : {Stack::linux_kernel, Stack::ns3}) {
    for (const std::string& cc : worlds::controls(stack, false)) {
      for (const int flows : {1, 3}) {
        World folded(chain(cc, stack, false, flows), 1), unfolded(chain(cc, stack, true, flows), 1);
        for (int step = 1; step <= 10; ++step) {
          folded.run(step * kSecond);
          unfolded.run(step * kSecond);
          for (int i = 0; i < flows; ++i) {
            CHECK(worlds::fingerprint(folded.flows()[static_cast<size_t>(i)]) ==
                  worlds::fingerprint(unfolded.flows()[static_cast<size_t>(i)]));
          }
          compare_links(folded, unfolded);
        }
        CHECK_GT(folded.flows()[0].counters().queue_drops + folded.flows()[0].counters().packets_sent, 1000u);
      }
    }
  }
}

TEST(folded_links_that_many_share_give_the_same_bits) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    for (const bool managed : {false, true}) {
      World folded(crossroads(false, managed, seed), seed), unfolded(crossroads(true, managed, seed), seed);
      for (int step = 1; step <= 40; ++step) {
        folded.run(step * 97 * kMillisecond);
        unfolded.run(step * 97 * kMillisecond);
        compare_links(folded, unfolded);
      }
      CHECK_EQ(folded.completions().size(), unfolded.completions().size());
      CHECK_GT(folded.completions().size(), 20u);
      for (size_t i = 0; i < std::min(folded.completions().size(), unfolded.completions().size()); ++i) {
        CHECK_EQ(folded.completions()[i].flow, unfolded.completions()[i].flow);
        CHECK_EQ(folded.completions()[i].fct, unfolded.completions()[i].fct);
      }
    }
  }
}

TEST(looking_does_not_change_the_run) {
  World watched(chain("cubic", Stack::linux_kernel, false, 3), 1),
      alone(chain("cubic", Stack::linux_kernel, false, 3), 1);
  for (int step = 1; step <= 3000; ++step) {
    watched.run(step * kMillisecond);
    worlds::fingerprint(watched);
  }
  alone.run(3 * kSecond);
  CHECK(worlds::fingerprint(watched) == worlds::fingerprint(alone));
}

TEST(round_trip_time_is_the_sum_of_the_hops) {
  WorldConfig config;
  config.links = {worlds::link(10, 5), worlds::link(100, 3), worlds::link(0, 4), worlds::link(1, 2)};
  config.flows = {worlds::sized(worlds::flow("cubic", {0, 1, 2}, {3, 2}), 1448)};
  World world(config, 1);
  CHECK(worlds::run_until(world, kSecond, [](Flow& f) { return f.counters().acks == 1; }));
  const Time handshake = 52 * 800;  // the ACK of the SYN/ACK leaves just before
  const Time data = handshake + 1'200'000 + 5 * kMillisecond + 120'000 + 3 * kMillisecond + 4 * kMillisecond;
  const Time ack = 52 * 8'000 + 2 * kMillisecond + 4 * kMillisecond;
  CHECK_EQ(world.flows()[0].sender.tcb.last_rtt, data + ack);
}

TEST(data_and_acks_of_opposite_flows_share_a_queue) {
  // Flow 0's ACKs wait behind flow 1's data.
  WorldConfig config;
  config.links = {worlds::link(10, 10, 50), worlds::link(10, 10, 50)};
  config.flows = {worlds::flow("cubic", {0}, {1}), worlds::flow("cubic", {1}, {0})};
  World both(config, 1);
  both.run(20 * kSecond);
  config.flows.pop_back();
  World one(config, 1);
  one.run(20 * kSecond);
  CHECK_GT(one.flows()[0].counters().delivered_bytes, 23'000'000);
  const auto mean_wait = [](World& w) {
    const LinkStats s = w.links()[1].stats(w.now());
    return s.sojourn_sum / static_cast<double>(s.packets_out);
  };
  CHECK_LT(mean_wait(one), 1e-4);
  CHECK_GT(mean_wait(both), 0.01);
  // Link 1 carried the data of flow 1 and the ACKs of flow 0.
  CHECK_GT(both.links()[1].stats(both.now()).packets_in, both.flows()[1].counters().packets_sent + 5000);
}

TEST(packets_of_one_flow_never_overtake_each_other) {
  // Opportunities and arrivals on one millisecond grid, without propagation: what waited leaves before what comes.
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed);
    WorldConfig config;
    LinkConfig burst = worlds::link(0, 0), bottleneck = worlds::link(0, 0);
    for (Time t = 0; t < 200; ++t) {
      if (rng.uniform() < 0.5) burst.trace_ns.insert(burst.trace_ns.end(), 3, t * kMillisecond);
      if (rng.uniform() < 0.6) bottleneck.trace_ns.push_back(t * kMillisecond);
    }
    burst.trace_period_ns = bottleneck.trace_period_ns = 200 * kMillisecond;
    config.links = {burst, bottleneck, worlds::link(0, 20)};
    config.flows = {worlds::flow("cubic", {0, 1}, {2}), worlds::flow("cubic", {1, 0}, {2})};
    config.flows[0].receive_buffer_bytes = config.flows[1].receive_buffer_bytes = 40'000;
    World world(config, seed);
    world.run(20 * kSecond);
    for (const Flow& flow : world.flows()) {
      CHECK_EQ(flow.counters().packets_retransmitted, 0u);  // a packet overtaken would look lost
    }
  }
}

TEST(a_shared_link_serves_in_order_of_arrival) {
  // Flow 0 sets out first and arrives last: flow 1, nearer to the link, must not wait for it.
  WorldConfig config;
  config.links = {worlds::link(0, 200), worlds::link(0, 1), worlds::link(1, 1), worlds::link(0, 1)};
  config.flows = {worlds::sized(worlds::flow("cubic", {1, 2}, {3}), 2896),
                  worlds::sized(worlds::flow("cubic", {0, 2}, {3}), 2896)};
  World alone(config, 1);
  alone.run(100 * kMillisecond);
  std::swap(config.flows[0], config.flows[1]);
  World both(config, 1);
  both.run(10 * kSecond);
  CHECK(alone.flows()[0].completed_at() < 100 * kMillisecond);
  CHECK_EQ(both.flows()[1].completed_at(), alone.flows()[0].completed_at());
}
