// Determinism: the same configuration and seed give the same bits,
// however the run is cut up and on any number of threads.
#include "worlds.h"

#include "netbuf/batch.h"

using namespace netbuf;

namespace {

WorldConfig crowd(uint32_t flows, Stack stack = Stack::linux_kernel) {
  const std::vector<std::string> senders{"cubic", "newreno", "bbr", "vegas", "westwood"};
  WorldConfig world;
  world.stack = stack;
  world.links = {worlds::link(50, 12, 100), worlds::link(0, 12), worlds::link(20, 5, 30)};
  world.links[0].loss = 1e-3;
  for (uint32_t i = 0; i < flows; ++i) {
    const bool reverse = i % 3 == 2;
    world.flows.push_back(worlds::flow(senders[i % senders.size()], {reverse ? 2u : 0u}, {reverse ? 0u : 1u}));
    world.flows.back().start_ns = i % 4 * 100 * kMillisecond;  // ties
    if (i % 5 == 4) {
      world.flows.back().app = "on_off";
      world.flows.back().on_ns = world.flows.back().off_ns = 300 * kMillisecond;
      world.flows.back().random_on_off = true;
    }
  }
  return world;
}

WorldConfig agents(uint32_t count, uint32_t variant) {
  WorldConfig world =
      worlds::dumbbell(5 + variant % 7, 20 + variant % 5 * 10, 30, std::vector<std::string>(count, "agent"));
  world.links[0].loss = 1e-3;
  return world;
}

}  // namespace

TEST(same_seed_same_bits) {
  for (const Stack stack : {Stack::linux_kernel, Stack::ns3}) {
    World a(crowd(7, stack), 5), b(crowd(7, stack), 5), c(crowd(7, stack), 6);
    for (World* world : {&a, &b, &c}) world->run(5 * kSecond);
    CHECK(worlds::fingerprint(a) == worlds::fingerprint(b));
    CHECK(worlds::fingerprint(a) != worlds::fingerprint(c));
  }
}

TEST(steps_of_any_length_give_the_same_bits) {
  World whole(crowd(12), 5), cut(crowd(12), 5);
  whole.run(4 * kSecond);
  Rng rng(1);
  while (cut.now() < 4 * kSecond) {
    cut.run(std::min(4 * kSecond, cut.now() + 1 + static_cast<Time>(rng.exponential(3e6))));
  }
  CHECK(worlds::fingerprint(whole) == worlds::fingerprint(cut));
}

TEST(events_come_in_order_of_time_however_many_round_trip_times_there_are) {
  WorldConfig config = worlds::dumbbell(20, 10, 100, {});
  config.flows.clear();
  for (uint32_t i = 0; i < 24; ++i) {  // more sorted runs of packets than there are lanes
    config.links.push_back(worlds::link(0, 5 + 3.7 * (i * 7 % 24)));
    config.flows.push_back(worlds::flow("cubic", {0, i + 2}, {1}));
  }
  World world(config, 3);
  Time last = 0;
  while (world.next_event() <= 3 * kSecond) {
    CHECK(world.next_event() >= last);
    last = world.next_event();
    world.run(last);
    CHECK(world.next_event() > last);
  }
  World whole(config, 3);
  whole.run(last);
  CHECK(worlds::fingerprint(whole) == worlds::fingerprint(world));
  for (const Flow& flow : whole.flows()) CHECK(flow.counters().delivered_bytes > 50'000);
}

TEST(an_idle_flow_changes_nothing) {
  WorldConfig config = crowd(6);
  World without(config, 4);
  config.flows.push_back(worlds::flow("cubic", {0}, {1}));
  config.flows.back().start_ns = 100 * kSecond;
  World with(config, 4);
  without.run(4 * kSecond);
  with.run(4 * kSecond);
  for (size_t i = 0; i < 6; ++i) CHECK(worlds::fingerprint(without.flows()[i]) == worlds::fingerprint(with.flows()[i]));
}

TEST(batches_give_the_same_bits_on_any_number_of_threads) {
  constexpr uint32_t kWorlds = 13;
  const auto run = [](uint32_t threads) {
    Batch batch(kWorlds, 3, threads, make_agent("sender"));
    const size_t fields = batch.fields().size();
    for (uint32_t w = 0; w < kWorlds; ++w) batch.reset(w, agents(1 + w % 3, w), 100 + w);
    Rng rng(9);
    std::vector<uint64_t> bits;
    std::vector<uint8_t> selected(kWorlds);
    for (int step = 0; step < 60; ++step) {
      for (uint32_t i = 0; i < kWorlds * 3; ++i) {
        batch.control()[i] = rng.uniform() < 0.2 ? std::nan("") : 1448 * (1 + 60 * rng.uniform());
      }
      for (auto& s : selected) s = rng.uniform() < 0.7;
      switch (step % 3) {
        case 0: batch.advance(100 * kMillisecond, nullptr); break;
        case 1: batch.advance(37 * kMillisecond, selected.data()); break;
        case 2: batch.advance_to_event(100 * kMillisecond, 1, step % 2 ? selected.data() : nullptr); break;
      }
      for (size_t i = 0; i < kWorlds * 3 * fields; ++i) {
        const double value = batch.telemetry()[i];
        bits.push_back(std::isnan(value) ? 1 : std::bit_cast<uint64_t>(value));
      }
    }
    for (uint32_t w = 0; w < kWorlds; ++w) {
      const auto one = worlds::fingerprint(batch.world(w));
      bits.insert(bits.end(), one.begin(), one.end());
    }
    return bits;
  };
  const auto one = run(1);
  CHECK(one == run(2));
  CHECK(one == run(4));
}

TEST(a_batch_refuses_what_it_cannot_run) {
  Batch batch(2, 1, 1, make_agent("sender"));
  CHECK_THROWS(batch.advance(kSecond, nullptr), std::logic_error);  // never reset
  CHECK_THROWS(batch.reset(2, agents(1, 0), 1), std::out_of_range);
  CHECK_THROWS(batch.reset(0, agents(2, 0), 1), std::invalid_argument);
  CHECK_THROWS(batch.reset(0, crowd(1), 1), std::invalid_argument);
  batch.reset(0, agents(1, 0), 1);
  batch.reset(1, agents(1, 0), 1);
  CHECK_THROWS(batch.advance(0, nullptr), std::invalid_argument);
  CHECK_THROWS(batch.advance(INT64_MAX, nullptr), std::invalid_argument);
  batch.control()[1] = -5;
  CHECK_THROWS(batch.advance(kSecond, nullptr), std::invalid_argument);
  batch.control()[1] = INFINITY;
  CHECK_THROWS(batch.advance(kSecond, nullptr), std::invalid_argument);
  batch.control()[1] = 3000;
  batch.advance(kSecond, nullptr);
  CHECK_EQ(batch.telemetry()[batch.fields().size() + 2], 3000);
  CHECK_THROWS(Batch(0, 1, 1, make_agent("sender")), std::invalid_argument);
  CHECK_THROWS(Batch(1, 0, 1, make_agent("sender")), std::invalid_argument);
  CHECK_THROWS(Batch(1, 1, 0, make_agent("sender")), std::invalid_argument);
}

TEST(a_world_runs_forward_only) {
  World world(crowd(2), 1);
  world.run(kSecond);
  world.run(kSecond);
  CHECK_THROWS(world.run(kSecond - 1), std::invalid_argument);
  CHECK_THROWS(world.run(INT64_MAX), std::invalid_argument);
  CHECK_THROWS(world.run_to_ack({}, kNever), std::invalid_argument);
  CHECK_EQ(world.now(), kSecond);
}

TEST(advancing_to_an_ack_stops_at_each_one) {
  World world(worlds::dumbbell(10, 40, 50, {"agent"}), 1);
  const uint32_t flows[] = {0};
  uint64_t acks = 0;
  while (world.now() < 2 * kSecond) {
    const bool came = world.run_to_ack(flows, world.now() + 100 * kMillisecond);
    CHECK_EQ(world.flows()[0].counters().acks, acks + came);
    if (came) CHECK_EQ(world.flows()[0].counters().last_ack, world.now());
    acks += came;
  }
  CHECK_GT(acks, 100u);
}

TEST(memory_follows_the_queue_not_its_limit) {
  World idle(worlds::dumbbell(10, 48, 150'000, {"agent"}), 1);
  idle.set_window(0, 1448 * 50);
  idle.run(10 * kSecond);
  CHECK_LT(idle.memory_bytes(), 64u * 1024);
}

TEST(a_flow_of_a_crowd_takes_less_than_five_kilobytes) {
  constexpr uint32_t kFlows = 2000;  // of which each has some dozen packets on their way and as many in the queue
  World crowd(worlds::dumbbell(1.5 * kFlows, 48, 6 * kFlows, std::vector<std::string>(kFlows, "cubic")), 1);
  crowd.run(3 * kSecond);
  CHECK_GT(crowd.flows()[kFlows / 2].counters().packets_sent, 100u);
  CHECK_LT(crowd.memory_bytes() / kFlows, 5u * 1024);
}
