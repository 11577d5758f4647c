// Ports of switches whose packets leave when somebody looks, against the same whose packets leave by events.
#include <cmath>

#include "netbuf/switch_telemetry.h"
#include "worlds.h"

using namespace netbuf;

namespace {

std::string pick(Rng& rng, const std::vector<std::string>& names) {
  return names[rng.below(static_cast<uint32_t>(names.size()))];
}

SwitchConfig random_switch(Rng& rng, std::vector<uint32_t> ports, uint32_t queues) {
  SwitchConfig sw;
  sw.ports = std::move(ports);
  sw.queues = queues;
  sw.capacity = 2 + rng.below(rng.uniform() < 0.5 ? 30 : 300);
  sw.admission = pick(rng, {"static", "dynamic", "abm", "agent", "agent"});
  sw.drop = pick(rng, {"tail", "head"});
  sw.congested = pick(rng, {"drop", "mark"});
  sw.scheduler = pick(rng, {"round_robin", "drr", "strict_priority"});
  sw.protect_syn = rng.uniform() < 0.3;
  if (rng.uniform() < 0.3) sw.mark = 1 + rng.below(20);
  if (rng.uniform() < 0.3) sw.queue_cap = 1 + rng.below(100);
  for (uint32_t q = 0; q < sw.queues; ++q) {
    sw.alphas.push_back(std::exp2(-3 + 6 * rng.uniform()));
    if (sw.admission == "static") sw.thresholds.push_back(1 + rng.below(100));
    if (sw.scheduler == "drr") sw.quanta.push_back(1500 + rng.below(5000));
  }
  if (rng.uniform() < 0.3) {
    sw.in_bytes = true;
    sw.capacity *= 1500, sw.queue_cap *= 1500, sw.mark *= 1500;
    for (int64_t& threshold : sw.thresholds) threshold *= 1500;
  }
  return sw;
}

// Senders behind links of their own, and some at the port; ACKs over another port, or a link. Sometimes two switches in turn.
WorldConfig random_world(Rng& rng) {
  WorldConfig world;
  const auto delay = [&] { return rng.uniform() < 0.2 ? 0 : std::pow(10.0, -2 + 4 * rng.uniform()); };
  for (int i = 0; i < 3; ++i) world.links.push_back(worlds::link(1 + 30 * rng.uniform(), delay()));
  const uint32_t queues = 1 + rng.below(3);
  world.switches = {random_switch(rng, {0}, queues)};
  const bool second = rng.uniform() < 0.3;
  if (second) world.switches.push_back(random_switch(rng, {1}, queues));
  if (rng.uniform() < 0.4) world.switches.push_back(random_switch(rng, {2}, queues));
  else if (rng.uniform() < 0.5) world.links[2].rate_bps = 0;
  const uint32_t senders = 1 + rng.below(6);
  TrafficConfig traffic;
  for (uint32_t i = 0; i < senders; ++i) {
    std::vector<uint32_t> path;
    if (rng.uniform() < 0.8) path.push_back(static_cast<uint32_t>(world.links.size())), world.links.push_back(worlds::link(100, delay()));
    path.push_back(0);
    if (second || rng.uniform() < 0.3) path.push_back(1);
    std::vector<uint32_t> back = {2};
    if (rng.uniform() < 0.5) back.push_back(static_cast<uint32_t>(world.links.size())), world.links.push_back(worlds::link(100, delay()));
    FlowConfig sender = worlds::flow(pick(rng, {"cubic", "bbr", "dctcp"}), path, back);
    sender.ecn = rng.uniform() < 0.3;
    traffic.senders.push_back(sender);
    if (rng.uniform() < 0.3) {
      sender.priority = rng.below(queues);
      sender.start_ns = static_cast<Time>(rng.uniform() * 1e9);
      world.flows.push_back(sender);
    }
  }
  ArrivalsConfig arrivals;
  arrivals.rate_per_s = 1 + 60 * rng.uniform();
  arrivals.size_bytes = {1000, 10'000, 200'000, 1'000'000};
  arrivals.cumulative = {0.1, 0.5, 0.9, 1};
  traffic.arrivals = {arrivals};
  if (queues > 1) traffic.priority_below = {100'000};
  world.traffic = {traffic};
  return world;
}

std::vector<double> observe(World& world) {
  std::vector<double> all;
  for (const auto& sw : world.switches()) {
    std::vector<double> row(switch_fields(sw->queues()).size());
    write_switch(*sw, {}, {world.now(), world.packets_received(), world.opened().size(), world.delivered_bytes()}, row.data());
    for (const double value : row) all.push_back(std::isnan(value) ? -1 : value);
    all.push_back(sw->occupancy_histogram().mean(world.now()));
    all.push_back(static_cast<double>(sw->occupancy_max()));
    for (uint32_t q = 0; q < sw->queues(); ++q) all.push_back(sw->queue(0, q).packets.mean(world.now()));
    sw->begin_interval(world.now());
  }
  for (const Completion& done : world.completions()) all.push_back(static_cast<double>(done.fct));
  const TrafficTotals t = world.traffic_totals();
  for (const uint64_t count : {t.connected, t.failed, t.packets_sent, t.packets_received, t.timeouts, t.queue_drops, t.marks}) {
    all.push_back(static_cast<double>(count));
  }
  for (const OpenedFlow& flow : world.opened()) all.push_back(flow.slot);
  all.push_back(static_cast<double>(world.data_packets_in_network()));
  return all;
}

}  // namespace

TEST(deferred_ports_change_nothing) {
  int deferred = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Rng rng(seed);
    const WorldConfig config = random_world(rng);
    World late(config, seed), in_turn(config, seed);
    in_turn.take_turns();
    const int before = check::failures;
    for (int step = 0; step < 60 && check::failures == before; ++step) {
      const Time until = late.now() + static_cast<Time>(rng.exponential(5e7));
      const uint32_t slice = 1 + rng.below(300);
      const double kind = rng.uniform(), alpha = std::exp2(-6 + 9 * rng.uniform());
      for (World* world : {&late, &in_turn}) {
        uint32_t left = slice, flow = 0;
        if (kind < 0.1 && !config.flows.empty()) world->run_to_ack(std::span(&flow, 1), until);
        else if (kind < 0.3) while (!world->run(until, left)) left = slice;
        else world->run(until);
        SharedBuffer& sw = *world->switches()[0];
        if (kind < 0.6) sw.set_alpha(0, alpha);
        else if (kind < 0.7) sw.set_cut(world->now() + 10 * kMillisecond, std::vector<double>(sw.queues(), alpha).data());
        else if (kind < 0.75) sw.set_drop_head(!sw.drops_head());
      }
      CHECK_EQ(late.now(), in_turn.now());
      CHECK(worlds::fingerprint(late) == worlds::fingerprint(in_turn));
      CHECK(observe(late) == observe(in_turn));
    }
    CHECK(!in_turn.defers_ports());
    deferred += late.defers_ports();
    if (check::failures > before) std::printf("  in world of seed %d\n", static_cast<int>(seed));
  }
  CHECK_EQ(deferred, 150);
}

// Between slices of events too what has left by then is seen to have left.
TEST(what_has_left_a_deferred_port_shows_between_slices) {
  WorldConfig config;
  config.links = {worlds::link(10, 200), worlds::link(0, 1), worlds::link(1, 0), worlds::link(0, 0)};
  config.flows = {worlds::flow("cubic", {0}, {1}), worlds::flow("cubic", {2}, {3})};  // the second alone has events for long
  config.flows[0].initial_cwnd_packets = 100;
  SwitchConfig sw;
  sw.ports = {0}, sw.capacity = 1000, sw.alphas = {8};
  config.switches = {sw};
  World late(config, 1), in_turn(config, 1);
  in_turn.take_turns();
  const auto left = [](World& world) { return world.switches()[0]->totals(0).departures; };
  for (uint32_t events = 1; !late.run(kSecond, events); events = 1) {
    if (late.now() > in_turn.now()) in_turn.run(late.now() - 1);
    CHECK(left(late) >= left(in_turn));
  }
  CHECK(late.defers_ports());
}

// Somebody else looks, or draws, or packets take several ways: then what leaves is an event.
TEST(ports_have_events_where_that_shows) {
  const auto defers = [](auto&& change) {
    WorldConfig config;
    config.links = {worlds::link(10, 10), worlds::link(0, 10), worlds::link(10, 1)};
    config.flows = {worlds::flow("cubic", {0}, {1})};
    SwitchConfig sw;
    sw.ports = {0}, sw.capacity = 100, sw.alphas = {1};
    config.switches = {sw};
    change(config);
    World world(config, 1);
    world.run(kSecond);
    return world.defers_ports();
  };
  CHECK(defers([](WorldConfig&) {}));
  CHECK(!defers([](WorldConfig& config) { config.switches[0].ports = {0, 2}; }));
  CHECK(!defers([](WorldConfig& config) { config.stack = Stack::ns3; }));
  CHECK(!defers([](WorldConfig& config) { config.log_packets = true; }));
  CHECK(!defers([](WorldConfig& config) { config.links[1].loss = 0.01; }));
  CHECK(!defers([](WorldConfig& config) { config.links[0].device_packets = 1; }));
  CHECK(!defers([](WorldConfig& config) { config.links[0].schedule_time_ns = {0}, config.links[0].schedule_rate_bps = {1e7}; }));
  CHECK(!defers([](WorldConfig& config) { config.probes = {{{0}, 0, kSecond, 0, 94}}; }));
  CHECK(!defers([](WorldConfig& config) { config.flows[0].routes = {{kSecond, {2}, {1}}}; }));
}
