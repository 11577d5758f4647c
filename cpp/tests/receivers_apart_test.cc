// Receivers that are run apart, in trains, against the same that take turns with all else.
#include <cstring>

#include "worlds.h"

using namespace netbuf;

namespace {

// One to three links there, which keep packets back to back, and as many back, without a rate or with one.
WorldConfig random_world(Rng& rng) {
  WorldConfig world;
  world.hystart = rng.uniform() < 0.5;
  if (rng.uniform() < 0.3) world.delayed_ack_packets = 1 + rng.below(rng.uniform() < 0.3 ? 50 : 5);
  world.sack = rng.uniform() < 0.9;
  if (rng.uniform() < 0.1) world.timestamps = false;
  const uint32_t links = 1 + rng.below(3), flows = 1 + rng.below(rng.uniform() < 0.3 ? 30 : 5);
  for (uint32_t i = 0; i < 2 * links; ++i) {
    const bool back = i >= links, limited = !back || rng.uniform() < 0.3;
    const double slow = rng.uniform() < 0.15 ? 0.01 : 1;
    LinkConfig link = worlds::link(limited ? slow * (1 + 100 * rng.uniform()) : 0, std::pow(10.0, -2 + 4 * rng.uniform()));
    if (rng.uniform() < 0.6) link.queue_limit_packets = 1 + rng.below(200);
    else if (rng.uniform() < 0.5) link.queue_limit_bytes = 3000 + rng.below(300'000);
    if (!back && rng.uniform() < 0.4) {
      const double kind = rng.uniform();
      if (kind < 0.2) link.ge = {0.01 * rng.uniform(), 0.3, 0.001, 0.5};
      else if (kind < 0.4) link.loss_list = {rng.below(100), 100 + rng.below(100), 200, 201, 202};
      if (kind > 0.2) link.loss = std::pow(10.0, -4 + 3 * rng.uniform());
    }
    world.links.push_back(link);
  }
  const auto senders = worlds::controls(world.stack);
  for (uint32_t i = 0; i < flows; ++i) {
    FlowConfig flow = worlds::flow(senders[rng.below(static_cast<uint32_t>(senders.size()))], {rng.below(links)},
                                   {links + rng.below(links)});
    flow.start_ns = static_cast<Time>(rng.uniform() * 1e9);
    flow.initial_cwnd_packets = 1 + rng.below(20);
    flow.ecn = rng.uniform() < 0.1;
    if (rng.uniform() < 0.1) flow.receive_buffer_bytes = 3000 + rng.below(400'000);
    if (rng.uniform() < 0.1) flow.send_buffer_bytes = 3000 + rng.below(400'000);
    if (rng.uniform() < 0.05) {
      flow.misbehaviour = rng.uniform() < 0.5 ? "optimistic" : "split";
      flow.send_buffer_bytes = 300'000, flow.receive_buffer_bytes = 0;
    }
    world.flows.push_back(flow);
  }
  return world;
}

void check_same(World& apart, World& in_turn) {
  CHECK_EQ(apart.now(), in_turn.now());
  CHECK(worlds::fingerprint(apart) == worlds::fingerprint(in_turn));
  for (size_t i = 0; i < apart.flows().size(); ++i) {
    const Flow &one = apart.flows()[i], &other = in_turn.flows()[i];
    const FlowCounters counted = one.counters(), expected = other.counters();
    CHECK(std::memcmp(&counted, &expected, sizeof counted) == 0);
    CHECK_EQ(one.sender.tcb.cwnd, other.sender.tcb.cwnd);
    CHECK_EQ(one.sender.tcb.srtt, other.sender.tcb.srtt);
    CHECK_EQ(one.sender.timer(), other.sender.timer());
    CHECK_EQ(one.receiver.last_event(), other.receiver.last_event());
    CHECK_EQ(one.receiver.advertised_bytes(), other.receiver.advertised_bytes());
    CHECK_EQ(one.path.round_trips.average(), other.path.round_trips.average());
    CHECK_EQ(one.path.empty(), other.path.empty());
    CHECK_EQ(one.cwnd_integral(apart.now()), other.cwnd_integral(in_turn.now()));
  }
  for (size_t i = 0; i < apart.links().size(); ++i) {
    const LinkStats one = apart.links()[i].stats(apart.now()), other = in_turn.links()[i].stats(in_turn.now());
    CHECK_EQ(one.packets_in, other.packets_in);
    CHECK_EQ(one.bytes_sent, other.bytes_sent);
    CHECK_EQ(one.sojourn_sum2, other.sojourn_sum2);
    CHECK_EQ(one.queue_drops, other.queue_drops);
    CHECK_EQ(one.random_losses, other.random_losses);
    CHECK_EQ(one.busy, other.busy);
  }
}

}  // namespace

TEST(receivers_apart_change_nothing) {
  int runs_apart = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Rng rng(seed);
    const WorldConfig config = random_world(rng);
    World apart(config, seed), in_turn(config, seed);
    in_turn.take_turns();
    const int before = check::failures;
    for (int step = 0; step < 40 && check::failures == before; ++step) {
      const Time until = apart.now() + static_cast<Time>(rng.exponential(1e8));
      const double kind = rng.uniform();
      const uint32_t flow = rng.below(static_cast<uint32_t>(config.flows.size())), slice = 1 + rng.below(300);
      const double window = 1448.0 * (1 + rng.below(200));
      for (World* world : {&apart, &in_turn}) {
        uint32_t left = slice;
        if (kind < 0.15) world->run_to_ack(std::span(&flow, 1), until);
        else if (kind < 0.3) world->run_to_data(std::span(&flow, 1), until);
        else if (kind < 0.5) while (!world->run(until, left)) left = slice;
        else world->run(until);
        if (world->flows()[flow].controlled()) world->set_window(flow, window);
      }
      check_same(apart, in_turn);
    }
    CHECK(!in_turn.runs_apart());
    runs_apart += apart.runs_apart();
    if (check::failures > before) std::printf("  in world of seed %d\n", static_cast<int>(seed));
  }
  CHECK(runs_apart > 100);
}

// Of a control of the user's, which sends more at once than a train can hold.
TEST(longer_bursts_than_trains_arrive_whole) {
  struct Bursts final : CongestionControl {
    int64_t ssthresh(Tcb& tcb) override { return tcb.cwnd / 2; }
    void on_ack(Tcb& tcb, const AckEvent&) override {
      if (tcb.now > kSecond) tcb.set_cwnd_packets(3 * kLongestTrain), tcb.pacing_rate = 1e12;
    }
    uint32_t burst_packets(const Tcb&) const override { return 2 * kLongestTrain; }
  };
  WorldConfig config;
  config.links = {worlds::link(1000, 10), worlds::link(0, 20)};
  config.flows = {worlds::flow("mine", {0}, {1})};
  config.flows[0].own_control = [](Stack) { return std::make_unique<Bursts>(); };
  World apart(config, 1), in_turn(config, 1);
  in_turn.take_turns();
  for (World* world : {&apart, &in_turn}) world->run(3 * kSecond);
  CHECK(apart.runs_apart());
  check_same(apart, in_turn);
}

// Somebody else sees what a receiver does, or when, or packets come one by one: then all take turns.
TEST(receivers_take_turns_where_that_shows) {
  const auto apart = [](auto&& change) {
    WorldConfig config;
    config.links = {worlds::link(10, 10), worlds::link(0, 10), worlds::link(10, 1)};
    config.flows = {worlds::flow("cubic", {0}, {1}), worlds::flow("cubic", {0}, {1})};
    change(config);
    World world(config, 1);
    world.run(kSecond);
    return world.runs_apart();
  };
  CHECK(apart([](WorldConfig&) {}));
  CHECK(!apart([](WorldConfig& world) { world.stack = Stack::ns3; }));
  CHECK(!apart([](WorldConfig& world) { world.log_packets = true; }));
  CHECK(!apart([](WorldConfig& world) { world.flows.resize(40, world.flows[0]); }));
  CHECK(!apart([](WorldConfig& world) { world.links[1].delay_ns = 0; }));
  CHECK(!apart([](WorldConfig& world) { world.links[1].loss = 0.1; }));
  CHECK(apart([](WorldConfig& world) { world.links[0].loss = 0.1; }));
  CHECK(apart([](WorldConfig& world) { world.links[0].loss = 0.1, world.links[0].loss_list = {5}; }));
  CHECK(!apart([](WorldConfig& world) { world.links[0].discipline = "codel"; }));
  CHECK(!apart([](WorldConfig& world) { world.flows[1].path = {0, 2}; }));
  CHECK(!apart([](WorldConfig& world) { world.flows[1].path = {2}, world.flows[1].return_path = {0}; }));
  CHECK(!apart([](WorldConfig& world) { world.flows[1] = worlds::sized(world.flows[1], 100'000); }));
  CHECK(!apart([](WorldConfig& world) { world.flows[1].sack = false; }));
  CHECK(apart([](WorldConfig& world) { world.sack = world.timestamps = false; }));
  CHECK(!apart([](WorldConfig& world) { world.flows[1].stop_ns = kSecond / 2; }));
  CHECK(!apart([](WorldConfig& world) { world.flows[1].read_bps = 1e6, world.flows[1].receive_buffer_bytes = 100'000; }));
}
