// Links of varying rate, plain and managed, against slow ones over random tables, and what they say they have sent.
#include <cmath>

#include "netbuf/catalogue.h"
#include "slow_links.h"

using namespace netbuf;

namespace {

struct Offered {
  std::vector<Time> times;
  std::vector<uint32_t> sizes;
};

Offered some_packets(Rng& random, int count, double mean_gap_ns) {
  Offered made;
  Time now = static_cast<Time>(random.exponential(mean_gap_ns));
  for (int i = 0; i < count; ++i) {
    if (random.uniform() < 0.6) now += static_cast<Time>(random.exponential(mean_gap_ns));
    if (random.uniform() < 0.01) now += static_cast<Time>(random.exponential(mean_gap_ns * 100));
    made.times.push_back(now);
    const double kind = random.uniform();
    made.sizes.push_back(kind < 0.3 ? 52 : kind < 0.9 ? 40 + random.below(1461) : 1500 + random.below(9000));
  }
  return made;
}

// Rates from a bit a second to a terabit, outages, steps from a nanosecond to seconds, repeated or not.
LinkConfig random_steps(Rng& random, double& mean_gap_ns) {
  LinkConfig config = worlds::link(0, 7, random.uniform() < 0.5 ? 1 + random.below(30) : 0);
  const double base = std::pow(10, 3 + 6 * random.uniform()), packet_ns = 8e12 / base;
  Time at = 0;
  const uint32_t steps = 1 + random.below(12);
  for (uint32_t i = 0; i < steps; ++i) {
    config.schedule_time_ns.push_back(at);
    const double kind = random.uniform();
    const double rate = kind < 0.2   ? 0
                        : kind < 0.3 ? 1 + random.below(5)
                        : kind < 0.4 ? 1e12
                                     : base * (0.1 + 2 * random.uniform());
    config.schedule_rate_bps.push_back(std::floor(rate));
    at += 1 + static_cast<Time>(random.exponential(packet_ns * std::pow(10, 3 * random.uniform() - 1.5)));
  }
  if (const double end = random.uniform(); end < 0.7) config.schedule_period_ns = at;
  if (config.schedule_period_ns == 0 || steps == 1) config.schedule_rate_bps.back() = std::floor(base);
  config.schedule_rate_bps[random.below(steps)] = std::floor(base) + 1;
  mean_gap_ns = packet_ns * (0.3 + 1.5 * random.uniform());
  return config;
}

LinkConfig random_opportunities(Rng& random, double& mean_gap_ns) {
  LinkConfig config = worlds::link(0, 7, random.uniform() < 0.5 ? 1 + random.below(30) : 0);
  const double gap_ns = std::pow(10, 3 + 4 * random.uniform());
  Time at = random.uniform() < 0.3 ? 0 : static_cast<Time>(random.exponential(gap_ns));
  const uint32_t count = 1 + random.below(20);
  for (uint32_t i = 0; i < count; ++i) {
    config.trace_ns.push_back(at);
    if (random.uniform() < 0.7) at += static_cast<Time>(random.exponential(gap_ns));
  }
  if (random.uniform() < 0.5) config.trace_packet_bytes = 4;
  config.trace_period_ns =
      std::max<Time>(1, config.trace_ns.back()) + (random.uniform() < 0.5 ? 0 : static_cast<Time>(gap_ns));
  mean_gap_ns = static_cast<double>(config.trace_period_ns) / count * (0.3 + 1.5 * random.uniform());
  return config;
}

// A link, plain or behind a drop-tail discipline, and when each packet that it is offered leaves it;
// kNever: it does not.
class Run final : public Link::Host {
 public:
  Run(const LinkConfig& config, bool managed) : link(config, &rng_), managed_(managed) {
    const auto make = [](const DisciplineSetting& setting) { return make_discipline("droptail", {}, setting); };
    if (managed) link.manage(make, config, 0, this);
  }
  void offer(Time at, uint32_t bytes) {
    departures.push_back(kNever);
    run_to(at);
    if (!managed_) {
      const Link::Outcome outcome = link.transmit(at, bytes, true);
      if (outcome.fate == Link::Fate::delivered) departures.back() = std::min(kNever, outcome.arrival - link.delay());
      return;
    }
    Queued item;
    item.packet.segment = static_cast<uint32_t>(departures.size() - 1);
    item.bytes = bytes;
    item.is_ack = false;
    link.offer(at, item);
  }
  void run_to(Time until) {
    while (managed_ && link.next() <= until) link.run(link.next());
  }

  std::vector<Time> departures;

 private:
  void sent(const Queued& item, Time arrival) override {
    departures[item.packet.segment] = std::min(kNever, arrival - link.delay());
  }
  void lost(const Queued&, Link::Fate) override {}
  void rescheduled(uint32_t) override {}

  Rng rng_{1};

 public:
  Link link;

 private:
  bool managed_;
};

std::vector<Time> departures_of(const LinkConfig& config, bool managed, const Offered& offered) {
  Run run(config, managed);
  for (size_t i = 0; i < offered.times.size(); ++i) run.offer(offered.times[i], offered.sizes[i]);
  run.run_to(kNever - 1);
  return run.departures;
}

// Between any two moments a link uses no more than its rate offers, and sends what it has taken, in the end all.
struct Sampler {
  double fastest;  // bit/s
  double sent = 0, used = 0, offered = 0, before = 0;

  void look(Link& link, Time now, int64_t accepted) {
    const LinkStats s = link.stats(now);
    const double offers = link.offered_bits(now), packets = static_cast<double>(s.packets_out);
    const double slack = 1e-9 * (1 + offers);
    CHECK_LE(s.used_bits - used, offers - offered + slack);
    CHECK_GE(s.used_bits, used - slack);
    CHECK_GE(s.bytes_sent, sent - slack);
    CHECK_LE(s.bytes_sent, static_cast<double>(accepted) + 1e-6);
    // An end is rounded by half a nanosecond at most.
    CHECK_LE((s.bytes_sent - sent) * 8, offers - offered + slack + 1e-9 * fastest * (1 + packets - before));
    sent = s.bytes_sent, used = s.used_bits, offered = offers, before = packets;
  }
};

double fastest(const LinkConfig& config) {
  double rate = config.rate_bps;
  for (const double one : config.schedule_rate_bps) rate = std::max(rate, one);
  return rate;
}

void sample_while_offered(LinkConfig config, const Offered& offered, bool managed, Rng& random) {
  if (managed) config.device_packets = random.below(4);
  Run run(config, managed);
  Sampler sampler{.fastest = fastest(config)};
  int64_t taken = 0;
  for (size_t i = 0; i < offered.times.size(); ++i) {
    const Time before = i > 0 ? offered.times[i - 1] : 0;
    if (offered.times[i] > before && random.uniform() < 0.5) {  // all that happens at a moment has happened
      const Time between =
          before + static_cast<Time>(random.uniform() * static_cast<double>(offered.times[i] - before));
      run.run_to(between);
      sampler.look(run.link, between, taken);
    }
    taken += offered.sizes[i];
    run.offer(offered.times[i], offered.sizes[i]);
  }
}

}  // namespace

TEST(stepped_links_equal_a_walk_in_integers) {
  Rng random(11);
  for (int table = 0; table < 300; ++table) {
    double gap;
    const LinkConfig config = random_steps(random, gap);
    const Offered offered = some_packets(random, 120, gap);
    slow::Queue queue(config);
    std::vector<Time> expected;
    for (size_t i = 0; i < offered.times.size(); ++i) {
      Time departs = kNever;
      if (!queue.arrive(offered.times[i], offered.sizes[i], departs)) departs = kNever;
      expected.push_back(departs);
    }
    CHECK(departures_of(config, false, offered) == expected);
    CHECK(departures_of(config, true, offered) == expected);
  }
}

TEST(opportunities_equal_the_shell_over_random_traces) {
  Rng random(12);
  for (int table = 0; table < 300; ++table) {
    double gap;
    const LinkConfig config = random_opportunities(random, gap);
    const Offered offered = some_packets(random, 120, gap);
    const std::vector<Time> expected = slow::shell(config, offered.times, offered.sizes);
    CHECK(departures_of(config, false, offered) == expected);
    CHECK(departures_of(config, true, offered) == expected);
  }
}

TEST(steps_of_one_rate_are_a_constant_rate) {
  Rng random(13);
  for (int table = 0; table < 200; ++table) {
    // At lower ones a double's last bit is a nanosecond's half now and then.
    const double rate = std::pow(10, 5 + 6 * random.uniform());
    LinkConfig constant = worlds::link(0, 7, 1 + random.below(50)), stepped = constant;
    constant.rate_bps = rate;
    const Offered offered = some_packets(random, 200, 8e12 / rate);
    Time at = 0;
    for (uint32_t i = 1 + random.below(9); i > 0; --i) {
      stepped.schedule_time_ns.push_back(at);
      stepped.schedule_rate_bps.push_back(rate);
      at += 1 + static_cast<Time>(random.exponential(20e12 / rate));
    }
    if (table % 2) stepped.schedule_period_ns = at;
    for (const bool managed : {false, true}) {
      CHECK(departures_of(stepped, managed, offered) == departures_of(constant, managed, offered));
    }
  }
}

// What the packet in service was held back by is over: 1500 bytes begin at 1 kbit/s,
// 1 ms before the link is back at 12 Mbit/s.
TEST(a_packet_that_began_in_a_slow_step_goes_on_in_a_fast_one) {
  LinkConfig config = worlds::link(0, 0);
  config.schedule_time_ns = {0, kMillisecond};
  config.schedule_rate_bps = {1000, 12e6};
  // 12'000 bits less one, at 12 Mbit/s.
  const std::vector<Time> expected = {kMillisecond + 999'917, kMillisecond + 1'999'917};
  for (const bool managed : {false, true}) CHECK(departures_of(config, managed, {{0, 0}, {1500, 1500}}) == expected);
}

TEST(a_packet_may_take_many_repetitions) {
  LinkConfig config = worlds::link(0, 0);
  config.schedule_time_ns = {0, 1};
  config.schedule_rate_bps = {0, 1};  // a bit a second for one nanosecond in ten million
  config.schedule_period_ns = 10 * kMillisecond;
  const Time ones = 8 * kSecond;      // nanoseconds at that rate for a byte, of 9'999'999 in a repetition
  const Time rounds = (ones - 1) / 9'999'999;
  const std::vector<Time> expected = {rounds * config.schedule_period_ns + 1 + (ones - rounds * 9'999'999)};
  CHECK(departures_of(config, false, {{0}, {1}}) == expected);
}

TEST(links_send_no_more_than_their_rate_offers) {
  Rng random(14);
  for (int table = 0; table < 200; ++table) {
    double gap;
    LinkConfig config = table % 2 ? random_steps(random, gap) : random_opportunities(random, gap);
    if (table % 5 == 0) {
      const double rate = std::pow(10, 3 + 6 * random.uniform());
      config = worlds::link(rate * 1e-6, 7, random.below(30)), gap = 8e12 / rate;
    }
    const Offered offered = some_packets(random, 200, gap);
    for (const bool managed : {false, true}) sample_while_offered(config, offered, managed, random);
  }
}

// A device that holds packets has not sent them.
TEST(what_a_device_holds_has_not_been_sent) {
  LinkConfig config = worlds::link(8, 0);  // a byte a microsecond
  config.device_packets = 1000;
  Run run(config, true);
  for (int i = 0; i < 1000; ++i) run.offer(0, 1000);
  run.run_to(10'500'000);
  const LinkStats stats = run.link.stats(10'500'000);
  CHECK_EQ(stats.packets_out, 1000u);
  CHECK_NEAR(stats.bytes_sent, 10'500, 1e-3);
  CHECK_NEAR(stats.used_bits, 84'000, 1e-3);
}

TEST(the_rate_asked_for_is_that_of_the_moment) {
  LinkConfig config = worlds::link(0, 0);
  config.schedule_time_ns = {0, kSecond};
  config.schedule_rate_bps = {1e6, 2e6};
  config.schedule_period_ns = 2 * kSecond;
  Run run(config, false);
  for (int i = 0; i < 2000; ++i) run.offer(0, 1500);  // until 16 s
  for (const int s : {0, 1, 2, 3}) CHECK_EQ(run.link.rate_bps(s * kSecond + 1), s % 2 ? 2e6 : 1e6);
}

TEST(small_packets_use_all_that_a_trace_offers) {
  // Each takes 4 bytes of opportunities beside its own.
  LinkConfig config = worlds::link(0, 1);
  config.trace_ns = {kMillisecond};
  config.trace_period_ns = kMillisecond;
  config.trace_packet_bytes = 4;
  for (const bool managed : {false, true}) {
    if (managed) config.discipline = "droptail";
    Run run(config, managed);
    for (int i = 0; i < 1000; ++i) run.offer(0, 60);
    const Time now = 20 * kMillisecond;
    run.run_to(now);
    CHECK_NEAR(run.link.stats(now).used_bits, run.link.offered_bits(now), 64 * 8);
  }
}

TEST(carrying_takes_as_long_as_the_table_says) {
  Rng random(15);
  for (int table = 0; table < 200; ++table) {
    double gap;
    const LinkConfig stepped = random_steps(random, gap);
    const Link link(stepped, nullptr);
    const slow::Steps steps(stepped);
    const Time from = static_cast<Time>(random.exponential(gap * 20));
    const double bytes = 1 + random.below(100'000);
    const double expected = seconds(steps.end(from, static_cast<__int128>(bytes) * 8'000'000'000) - from);
    CHECK_NEAR(link.carry_s(from, bytes * 8), expected, 1e-9 + 1e-9 * expected);
    const LinkConfig trace = random_opportunities(random, gap);
    uint64_t k = 0;
    const auto time = [&](uint64_t index) {
      return static_cast<Time>(index / trace.trace_ns.size()) * trace.trace_period_ns +
             trace.trace_ns[index % trace.trace_ns.size()];
    };
    while (time(k) <= from) ++k;
    CHECK_NEAR(Link(trace, nullptr).carry_s(from, bytes * 8),
               seconds(time(k + static_cast<uint64_t>((bytes + 1503) / 1504) - 1) - from), 1e-9);
  }
}
