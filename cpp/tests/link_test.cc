// The link against a slow, obviously correct queue: every departure is found by looking at all packets before.
#include "netbuf/link.h"

#include "slow_links.h"

using namespace netbuf;

namespace {

// Random arrivals, in bursts and with silences, at about the load given.
void compare_with_slow_queue(LinkConfig config, uint64_t seed, int packets = 1500, double mean_gap_us = 1200) {
  config.delay_ns = 7 * kMillisecond;
  Rng rng(seed);
  Link link(config, &rng);
  slow::Queue slow(config);
  Rng random(seed * 77 + 1);
  Time now = 0;
  uint64_t drops = 0;
  for (int i = 0; i < packets; ++i) {
    const double kind = random.uniform();
    if (kind < 0.7) now += static_cast<Time>(random.exponential(mean_gap_us * 1.2e3));
    if (kind > 0.995) now += 100 * kMillisecond;
    const uint32_t bytes = random.uniform() < 0.3 ? 52 : 40 + random.below(1461);
    Time departs = 0;
    const bool taken = slow.arrive(now, bytes, departs);
    const Link::Outcome outcome = link.transmit(now, bytes, true);
    CHECK_EQ(outcome.fate == Link::Fate::delivered, taken);
    if (taken) CHECK_EQ(outcome.arrival, departs + config.delay_ns);
    drops += !taken;
    if (i % 50 == 0) slow.compare(link, now);
    if (config.queue_limit_packets) CHECK_LE(link.queue_packets(), config.queue_limit_packets);
    if (config.queue_limit_bytes) CHECK_LE(link.queue_bytes(), config.queue_limit_bytes);
  }
  CHECK_EQ(link.stats(now).queue_drops, drops);
  CHECK_EQ(link.stats(now).packets_in, static_cast<uint64_t>(packets));
  if (config.queue_limit_packets || config.queue_limit_bytes) CHECK_GT(drops, 0u);
  slow.compare(link, now + kSecond);
}

}  // namespace

TEST(constant_rate_equals_lindleys_recursion) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    compare_with_slow_queue(worlds::link(5, 0), seed);
    compare_with_slow_queue(worlds::link(5, 0, 10), seed);
    compare_with_slow_queue(worlds::link(5, 0, 1), seed);
    LinkConfig bytes = worlds::link(5, 0);
    bytes.queue_limit_bytes = 9000;
    compare_with_slow_queue(bytes, seed);
    bytes.queue_limit_packets = 8;
    compare_with_slow_queue(bytes, seed);
    compare_with_slow_queue(worlds::link(0, 0), seed);
  }
}

TEST(busy_time_is_the_sum_of_services) {
  Rng rng(1);
  Link link(worlds::link(12, 1), &rng);  // 1 ms a packet of 1500 bytes
  for (int i = 0; i < 10; ++i) link.transmit(0, 1500, true);
  link.transmit(50 * kMillisecond, 1500, true);
  CHECK_NEAR(link.stats(kSecond).busy, 0.011, 1e-12);
  CHECK_EQ(link.stats(kSecond).queue_max, 9u);
}

TEST(stepped_rates_equal_a_walk_through_the_steps) {
  LinkConfig config = worlds::link(0, 0, 20);
  config.schedule_time_ns = {0, 100 * kMillisecond, 250 * kMillisecond, 600 * kMillisecond};
  config.schedule_rate_bps = {5e6, 1e6, 20e6, 3e6};
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    config.schedule_period_ns = 0;
    compare_with_slow_queue(config, seed);
    config.schedule_period_ns = 700 * kMillisecond;
    compare_with_slow_queue(config, seed);
  }
}

TEST(outages_hold_packets_back) {
  LinkConfig config = worlds::link(0, 0, 30);
  config.schedule_time_ns = {0, 300 * kMillisecond, 500 * kMillisecond, 520 * kMillisecond, 800 * kMillisecond};
  config.schedule_rate_bps = {0, 5e6, 0, 0, 8e6};
  config.schedule_period_ns = 900 * kMillisecond;
  for (uint64_t seed = 1; seed <= 3; ++seed) compare_with_slow_queue(config, seed);
}

TEST(a_last_outage_is_for_ever) {
  LinkConfig config = worlds::link(0, 0, 30);
  config.schedule_time_ns = {0, 300 * kMillisecond};
  config.schedule_rate_bps = {5e6, 0};
  compare_with_slow_queue(config, 4, 600);
}

namespace {

void compare_with_shell(const LinkConfig& config, uint64_t seed, Time grid, double mean_gap_us) {
  Rng random(seed);
  std::vector<Time> arrivals;
  std::vector<uint32_t> sizes;
  Time now = 0;
  for (int i = 0; i < 3000; ++i) {
    if (random.uniform() < 0.6) now += static_cast<Time>(random.exponential(mean_gap_us * 1000));
    if (random.uniform() < 0.004) now += 2500 * kMillisecond;
    arrivals.push_back(now / grid * grid + (grid > 1 && config.queue_limit_packets ? 1 : 0));
    sizes.push_back(random.uniform() < 0.3 ? 52 : 40 + random.below(1461));
  }
  const std::vector<Time> departures = slow::shell(config, arrivals, sizes);
  Rng rng(1);
  Link link(config, &rng);
  for (size_t i = 0; i < arrivals.size(); ++i) {
    const Link::Outcome outcome = link.transmit(arrivals[i], sizes[i], true);
    CHECK_EQ(outcome.fate == Link::Fate::delivered ? outcome.arrival - config.delay_ns : kNever, departures[i]);
  }
}

LinkConfig trace(std::vector<Time> ms, Time period_ms, int64_t queue_packets = 0) {
  LinkConfig link = worlds::link(0, 5, queue_packets);
  for (const Time t : ms) link.trace_ns.push_back(t * kMillisecond);
  link.trace_period_ns = period_ms * kMillisecond;
  return link;
}

}  // namespace

TEST(opportunities_equal_the_shells_rule) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    for (const int64_t limit : {0, 7}) {
      compare_with_shell(trace({1, 2, 3, 5, 8, 8, 8, 13, 21, 34}, 34, limit), seed, 1, 4000);
      compare_with_shell(trace({0, 0, 4, 9}, 10, limit), seed, 1, 3000);
      compare_with_shell(trace({0, 1000}, 1001, limit), seed, 1, 600'000);
      compare_with_shell(trace({700}, 700, limit), seed, 1, 600'000);
      compare_with_shell(trace({5, 5, 5, 5, 5}, 20, limit), seed, 1, 5000);
    }
  }
}

TEST(with_its_device_header_a_full_packet_fills_an_opportunity) {
  for (const auto& [bytes, header, packets] :
       std::vector<std::tuple<uint32_t, uint32_t, int>>{{1500, 4, 6000}, {1500, 0, 6016}, {52, 4, 161142}}) {
    LinkConfig config = trace({1}, 1);
    config.trace_packet_bytes = header;
    Rng rng(1);
    Link link(config, &rng);
    int there = 0;
    for (int i = 0; i < 170'000; ++i) there += link.transmit(0, bytes, true).arrival <= config.delay_ns + 6 * kSecond;
    CHECK_EQ(there, packets);
  }
}

TEST(opportunities_are_over_for_what_arrives_at_their_instant) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    compare_with_shell(trace({1, 2, 3, 5, 8, 8, 8, 13, 21, 34}, 34), seed, kMillisecond, 4000);
    compare_with_shell(trace({0, 0, 4, 9}, 10), seed, kMillisecond, 3000);
    compare_with_shell(trace({0, 10}, 10), seed, kMillisecond, 3000);
    compare_with_shell(trace({3, 10}, 10), seed, kMillisecond, 30'000);
  }
}

TEST(bernoulli_loss_has_its_rate_and_spares_acks) {
  LinkConfig config = worlds::link(0, 1);
  config.loss = 0.02;
  Rng rng(3);
  Link link(config, &rng);
  int lost = 0, lost_acks = 0;
  for (int i = 0; i < 200'000; ++i) {
    lost += link.transmit(i, 1500, true).fate == Link::Fate::random_loss;
    lost_acks += link.transmit(i, 52, false).fate == Link::Fate::random_loss;
  }
  CHECK_NEAR(lost, 4000, 250);
  CHECK_EQ(lost_acks, 0);
  CHECK_EQ(link.stats(kSecond).random_losses, static_cast<uint64_t>(lost));
  config.loss_on_acks = true;
  Link both(config, &rng);
  for (int i = 0; i < 200'000; ++i) lost_acks += both.transmit(i, 52, false).fate == Link::Fate::random_loss;
  CHECK_NEAR(lost_acks, 4000, 250);
}

TEST(gilbert_elliott_loses_in_bursts) {
  LinkConfig config = worlds::link(0, 1);
  config.ge = {0.01, 0.2, 0.001, 0.5};
  Rng rng(9);
  Link link(config, &rng);
  constexpr int n = 1'000'000;
  int lost = 0, after_loss = 0, both = 0;
  bool previous = false;
  for (int i = 0; i < n; ++i) {
    const bool loss = link.transmit(i, 1500, true).fate == Link::Fate::random_loss;
    lost += loss, after_loss += previous, both += previous && loss;
    previous = loss;
  }
  const double bad = 0.01 / (0.01 + 0.2), rate = bad * 0.5 + (1 - bad) * 0.001;
  CHECK_NEAR(lost / double{n}, rate, 0.0008);
  // P(loss after loss), by which of the two states the first loss came from.
  const double from_bad = bad * 0.5 / rate, next = 0.8 * 0.5 + 0.2 * 0.001, next_good = 0.99 * 0.001 + 0.01 * 0.5;
  CHECK_NEAR(both / double(after_loss), from_bad * next + (1 - from_bad) * next_good, 0.01);
}

TEST(scripted_losses_hit_the_packets_named) {
  LinkConfig config = worlds::link(10, 1);
  config.loss_list = {0, 3, 4};
  Rng rng(1);
  Link link(config, &rng);
  for (int i = 0; i < 10; ++i) {
    link.transmit(i, 52, false);  // ACKs do not count
    CHECK_EQ(link.transmit(i, 1500, true).fate == Link::Fate::random_loss, i == 0 || i == 3 || i == 4);
  }
}

TEST(the_mean_of_a_varying_rate) {
  LinkConfig config = worlds::link(0, 1);
  config.schedule_time_ns = {0, kSecond};
  config.schedule_rate_bps = {0, 8e6};
  config.schedule_period_ns = 4 * kSecond;
  CHECK_NEAR(Link(config, nullptr).mean_rate_bps(), 6e6, 1);
  config.schedule_period_ns = 0;  // nothing until the last step, whose rate holds
  CHECK_NEAR(Link(config, nullptr).mean_rate_bps(), 8e6, 1);
  CHECK_NEAR(Link(worlds::link(5, 1), nullptr).mean_rate_bps(), 5e6, 1);
}
