// Links whose queue is drained seldom, and packets that come in bursts, beside the same where each packet is looked at.
#include <algorithm>
#include <cmath>

#include "worlds.h"

using namespace netbuf;

namespace {

LinkConfig random_link(Rng& rng) {
  LinkConfig link = worlds::link(std::pow(10, 2 * rng.uniform()), 20 * rng.uniform());
  const double limit = rng.uniform();
  if (limit < 0.7) link.queue_limit_packets = 1 + rng.below(rng.uniform() < 0.5 ? 8 : 300);
  if (limit > 0.5) link.queue_limit_bytes = 1600 + rng.below(300'000);
  return link;
}

void check_same(const LinkStats& a, const LinkStats& b) {
  CHECK_EQ(a.packets_in, b.packets_in);
  CHECK_EQ(a.packets_out, b.packets_out);
  CHECK_EQ(a.bytes_out, b.bytes_out);
  CHECK_EQ(a.bytes_sent, b.bytes_sent);
  CHECK_EQ(a.used_bits, b.used_bits);
  CHECK_EQ(a.queue_drops, b.queue_drops);
  CHECK_EQ(a.sojourn_sum, b.sojourn_sum);
  CHECK_EQ(a.sojourn_sum2, b.sojourn_sum2);
  CHECK_EQ(a.queue_integral, b.queue_integral);
  CHECK_EQ(a.queue_max, b.queue_max);
  CHECK_EQ(a.busy, b.busy);
}

// Bursts of one size and single packets of any, at times that often are those of departures.
void compare_links(uint64_t seed) {
  Rng random(seed);
  const LinkConfig config = random_link(random);
  Rng rng(1);
  Link simple(config, &rng), drained(config, &rng);
  drained.keep_drained();
  CHECK(simple.uniform());
  CHECK(!drained.uniform());
  Time now = 0;
  for (int i = 0; i < 3000 && !check::failures; ++i) {
    const double step = random.uniform();
    if (step < 0.4) now += static_cast<Time>(random.below(8)) * simple.transmission_time(1500);
    else if (step < 0.6) now += static_cast<Time>(random.exponential(3e6));
    else if (step > 0.99) now += kSecond;
    const bool burst = random.uniform() < 0.5;
    const uint32_t count = burst ? 1 + random.below(40) : 1, bytes = random.uniform() < 0.6 ? 1500 : 40 + random.below(1461);
    std::vector<Time> arrivals, expected;
    if (burst) {
      const Link::Burst all = simple.transmit_burst(now, count, bytes);
      for (uint32_t k = 0; k < all.count; ++k) arrivals.push_back(all.first + k * all.spacing);
    } else if (const Link::Outcome one = simple.transmit(now, bytes, true); one.fate == Link::Fate::delivered) {
      arrivals.push_back(one.arrival);
    }
    for (uint32_t k = 0; k < count; ++k) {
      const Link::Outcome one = drained.transmit(now, bytes, true);
      if (one.fate == Link::Fate::delivered) expected.push_back(one.arrival);
    }
    CHECK(arrivals == expected);
    CHECK_EQ(simple.free_at(), drained.free_at());
    CHECK_EQ(simple.taken_bytes(), drained.taken_bytes());
    CHECK_EQ(simple.memory_bytes(), drained.memory_bytes());
    if (random.uniform() < 0.05) {
      const Time at = now + static_cast<Time>(random.below(2)) * simple.transmission_time(1500);
      check_same(simple.stats(at), drained.stats(at));
      CHECK_EQ(simple.queue_packets(), drained.queue_packets());
      CHECK_EQ(simple.queue_bytes(), drained.queue_bytes());
      now = at;
    }
    if (random.uniform() < 0.01) {
      const int64_t limit = random.below(200);
      simple.resize_queue(limit), drained.resize_queue(limit);
    }
  }
}

// Several flows over one or two links there and one back, with or without a rate.
WorldConfig random_world(Rng& rng) {
  WorldConfig world;
  world.stack = rng.uniform() < 0.3 ? Stack::ns3 : Stack::linux_kernel;
  world.links = {random_link(rng), random_link(rng), worlds::link(rng.uniform() < 0.5 ? 0 : 1 + 20 * rng.uniform(), 10),
                 worlds::link(0, 1)};
  if (rng.uniform() < 0.2) {
    world.links[0].schedule_time_ns = {0, 777 * kMillisecond};
    world.links[0].schedule_rate_bps = {10e6, 2e6};
    world.links[0].schedule_period_ns = kSecond;
  }
  const auto controls = worlds::controls(world.stack);
  for (uint32_t i = 0, flows = 1 + rng.below(12); i < flows; ++i) {
    const bool agent = rng.uniform() < 0.3;
    FlowConfig flow = worlds::flow(agent ? "agent" : controls[rng.below(static_cast<uint32_t>(controls.size()))], {0}, {2});
    if (rng.uniform() < 0.3) flow.path = {1, 0};
    if (rng.uniform() < 0.2) flow.path = {3, 0};
    if (rng.uniform() < 0.2) flow.return_path = {3, 2};
    if (rng.uniform() < 0.2) flow = worlds::sized(flow, 1 + rng.below(2'000'000));
    flow.start_ns = rng.below(1000) * kMillisecond;
    flow.receive_buffer_bytes = 4'000'000;
    world.flows.push_back(flow);
  }
  return world;
}

void compare_worlds(uint64_t seed) {
  Rng random(seed);
  const WorldConfig config = random_world(random);
  World simple(config, seed), drained(config, seed);
  for (Link& link : drained.links()) link.keep_drained();
  for (int step = 0; step < 60 && !check::failures; ++step) {
    const Time until = simple.now() + static_cast<Time>(random.exponential(6e7));
    const uint32_t flow = random.below(static_cast<uint32_t>(config.flows.size()));
    const double kind = random.uniform();
    for (World* world : {&simple, &drained}) {
      uint32_t events = 200;
      if (kind < 0.2) world->run_to_ack(std::span(&flow, 1), until);
      else if (kind < 0.3) world->run(until, events);
      else world->run(until);
    }
    CHECK_EQ(simple.now(), drained.now());
    CHECK_EQ(simple.next_event(), drained.next_event());
    if (config.flows[flow].controlled) {
      const double window = 1448.0 * (1 + random.below(200));
      simple.set_window(flow, window), drained.set_window(flow, window);
    }
    if (random.uniform() < 0.5) continue;
    CHECK(worlds::fingerprint(simple) == worlds::fingerprint(drained));
    for (size_t i = 0; i < simple.links().size(); ++i) {
      check_same(simple.links()[i].stats(simple.now()), drained.links()[i].stats(drained.now()));
    }
  }
}

}  // namespace

TEST(a_queue_that_is_drained_seldom_is_the_same) {
  for (uint64_t seed = 1; seed <= 40; ++seed) compare_links(seed);
}

TEST(worlds_are_the_same_where_links_are_always_drained) {
  for (uint64_t seed = 1; seed <= 60; ++seed) compare_worlds(seed);
}
