// Steps, jitter, and links whose delay and loss change; outages, found in tables and at the links that they empty.
#include <cmath>

#include "netbuf/outages.h"
#include "worlds.h"

using namespace netbuf;

namespace {

LinkConfig stepped(std::vector<Time> times, std::vector<double> rates, Time period) {
  LinkConfig link;
  link.schedule_time_ns = std::move(times);
  link.schedule_rate_bps = std::move(rates);
  link.schedule_period_ns = period;
  link.outage_ns = 10;
  return link;
}

void check_outage(const Outages& outages, Time at, Time begin, Time end) {
  CHECK_EQ(outages.following(at).begin, begin);
  CHECK_EQ(outages.following(at).end, end);
}

}  // namespace

TEST(steps_hold_until_the_next_and_repeat) {
  Steps<int> once({0, 10, 30}, {1, 2, 3}, 0), again({0, 10, 30}, {1, 2, 3}, 40);
  const Time times[] = {0, 9, 10, 29, 30, 39, 40, 50, 75, 5, 1'000'035, 12};
  const int first[] = {1, 1, 2, 2, 3, 3, 3, 3, 3, 1, 3, 2}, repeated[] = {1, 1, 2, 2, 3, 3, 1, 2, 3, 1, 3, 2};
  for (size_t i = 0; i < std::size(times); ++i) {
    CHECK_EQ(once.at(times[i]), first[i]);
    CHECK_EQ(again.at(times[i]), repeated[i]);
  }
}

TEST(outages_of_rates) {
  const Outages once(stepped({0, 20, 30, 50, 55}, {1e6, 0, 0, 1e6, 0}, 0));  // the last for ever
  check_outage(once, 0, 20, 50);
  check_outage(once, 49, 20, 50);
  check_outage(once, 50, 55, kNever);
  const Outages again(stepped({0, 5, 20, 25, 40, 60}, {0, 1e6, 0, 1e6, 0, 0}, 70));
  check_outage(again, 0, -30, 5);            // from the repetition before; five at 20 are too few
  check_outage(again, 5, 40, 75);
  check_outage(again, 75, 110, 145);
  check_outage(Outages(stepped({0}, {1e6}, 0)), 0, kNever, kNever);
  check_outage(Outages(stepped({0, 10}, {0, 1e6}, 0)), 0, 0, 10);
}

TEST(outages_between_opportunities) {
  LinkConfig link;
  link.trace_ns = {5, 6, 30, 31, 95};
  link.trace_period_ns = 100;
  link.outage_ns = 20;
  const Outages outages(link);
  check_outage(outages, 0, 7, 30);
  check_outage(outages, 30, 32, 95);
  check_outage(outages, 95, 107, 130);
  link.outage_ns = 9;
  check_outage(Outages(link), 0, -4, 5);
}

TEST(what_is_in_flight_keeps_its_delay) {
  for (const bool reorder : {false, true}) {
    LinkConfig config;
    config.rate_bps = 8e6;                   // a microsecond a byte
    config.delay_ns = 1000;
    config.delay_time_ns = {0, 1'500'000};
    config.delay_step_ns = {5'000'000, 1000};
    config.delay_reorders = reorder;
    Rng rng(1);
    Link link(config, &rng);
    CHECK(link.changes());
    CHECK_EQ(link.reorders(), reorder);
    CHECK_EQ(link.delay(), 1000);
    CHECK_EQ(link.transmit(0, 1000, true).arrival, 6'000'000);
    CHECK_EQ(link.transmit(0, 1000, true).arrival, 7'000'000);  // begins before the fall, ends after it
    CHECK_EQ(link.transmit(0, 1000, true).arrival, reorder ? 3'001'000 : 7'000'000);
    CHECK_EQ(link.transmit(7'000'000, 1000, true).arrival, 8'001'000);
  }
}

TEST(jitter_has_the_moments_of_its_distribution) {
  struct Case {
    JitterConfig config;
    double mean, deviation;
  };
  const double half_normal = 1e6 / std::sqrt(2 * M_PI);
  const Case cases[] = {
      {{"uniform", 1e6, 0, 3, 0, true}, 5e5, 1e6 / std::sqrt(12.0)},
      {{"exponential", 1e6, 0, 3, 0, true}, 1e6, 1e6},
      {{"normal", 1e6, 8e6, 3, 0, true}, 8e6, 1e6},
      {{"normal", 1e6, 0, 3, 0, true}, half_normal, std::sqrt(5e11 - half_normal * half_normal)},
      {{"pareto", 1e6, 0, 6, 0, true}, 2e5, 1e6 * std::sqrt(6 / (25.0 * 4))},
  };
  for (Case one : cases) {
    for (const double correlation : {0.0, 0.5}) {
      one.config.correlation = correlation;
      Jitter jitter(one.config, 7), same(one.config, 7);
      constexpr int kMany = 400'000;
      double sum = 0, squares = 0;
      for (int i = 0; i < kMany; ++i) {
        const Time extra = jitter.next();
        CHECK_EQ(same.next(), extra);
        CHECK_GE(extra, 0);
        sum += static_cast<double>(extra);
        squares += static_cast<double>(extra) * static_cast<double>(extra);
      }
      const double mean = sum / kMany, deviation = std::sqrt(squares / kMany - mean * mean);
      CHECK_NEAR(mean, one.mean, 0.012 * one.deviation);
      CHECK_NEAR(deviation, one.deviation, 0.06 * one.deviation);
    }
  }
}

TEST(an_outage_empties_the_queue_and_whoever_comes_finds_the_link_gone) {
  WorldConfig config = worlds::dumbbell(10, 40, 50, {"cubic"});
  LinkConfig& link = config.links[0];
  link.schedule_time_ns = {0, 4 * kSecond, 6 * kSecond};
  link.schedule_rate_bps = {link.rate_bps, 0, link.rate_bps};
  link.rate_bps = 0;
  link.outage_ns = kSecond;
  World world(config, 1);
  world.run(4 * kSecond - 1);
  const uint32_t waiting = world.links()[0].queue_packets();
  const LinkStats before = world.links()[0].stats(world.now());
  CHECK_GE(waiting, 2u);
  world.run(4 * kSecond);
  const LinkStats after = world.links()[0].stats(world.now());
  CHECK_EQ(world.links()[0].queue_packets(), 0u);
  CHECK_EQ(after.queue_drops, before.queue_drops + waiting);
  CHECK_EQ(after.random_losses, 1u);         // the one in service
  CHECK_NEAR(after.bytes_sent, before.bytes_sent, 1.0);
  world.run(6 * kSecond - 1);
  CHECK_EQ(world.links()[0].stats(world.now()).packets_out, after.packets_out);
  const uint64_t received = world.packets_received();
  world.run(20 * kSecond);
  CHECK_GE(world.packets_received(), received + 5'000);
  const LinkStats end = world.links()[0].stats(world.now());
  CHECK_EQ(end.packets_in, end.packets_out + end.queue_drops + world.links()[0].queue_packets());
}

TEST(what_wires_cannot_be_is_refused) {
  const auto refused = [](const char* field, const std::function<void(LinkConfig&)>& spoil) {
    WorldConfig config = worlds::dumbbell(10, 40, 50, {"cubic"});
    spoil(config.links[0]);
    std::string message;
    try {
      validate(config);
    } catch (const std::invalid_argument& error) {
      message = error.what();
    }
    CHECK(message.find(std::string("links[0].") + field) != std::string::npos);
  };
  refused("delay_time_ns", [](LinkConfig& l) { l.delay_time_ns = {0, 1}; });
  refused("delay_time_ns[0]", [](LinkConfig& l) { l.delay_time_ns = {1}, l.delay_step_ns = {kSecond}; });
  refused("delay_time_ns", [](LinkConfig& l) { l.delay_time_ns = {0, 0}, l.delay_step_ns = {kSecond, kSecond}; });
  refused("delay_period_ns", [](LinkConfig& l) {
    l.delay_time_ns = {0, 9}, l.delay_step_ns = {kSecond, kSecond}, l.delay_period_ns = 9;
  });
  refused("delay_step_ns", [](LinkConfig& l) { l.delay_time_ns = {0}, l.delay_step_ns = {l.delay_ns - 1}; });
  refused("loss_step", [](LinkConfig& l) { l.loss_time_ns = {0}, l.loss_step = {1.5}; });
  refused("loss_step", [](LinkConfig& l) { l.loss_time_ns = {0}, l.loss_step = {0.5}, l.loss = 0.1; });
  refused("jitter.distribution", [](LinkConfig& l) { l.jitter.distribution = "cauchy"; });
  refused("jitter.scale_ns", [](LinkConfig& l) { l.jitter.scale_ns = -1; });
  refused("jitter.mean_ns", [](LinkConfig& l) { l.jitter.mean_ns = NAN; });
  refused("jitter.shape", [](LinkConfig& l) { l.jitter.shape = 0; });
  refused("jitter.correlation", [](LinkConfig& l) { l.jitter.correlation = 1; });
  refused("jitter.reorder", [](LinkConfig& l) { l.jitter.distribution = "uniform", l.delay_reorders = true; });
  refused("outage_ns", [](LinkConfig& l) { l.outage_ns = 5; });
}
