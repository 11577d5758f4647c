// Agents' senders: windows that are paced, and decisions that take time to be in force.
#include "netbuf/agent.h"

#include <algorithm>
#include <limits>
#include <map>

#include "netbuf/batch.h"
#include "worlds.h"

using namespace netbuf;

namespace {

constexpr double kMss = 1448, kKeep = std::numeric_limits<double>::quiet_NaN();
constexpr Time kInterval = 100 * kMillisecond;

// The most packets that leave a world's only sender at one instant until then.
uint64_t largest_burst(World& world, Time until) {
  std::map<Time, uint64_t> bursts;
  const SenderCounters& counters = world.flows()[0].sender.counters;
  for (uint64_t before = counters.packets_sent; world.next_event() <= until; before = counters.packets_sent) {
    world.run(world.next_event());
    bursts[world.now()] += counters.packets_sent - before;
  }
  uint64_t most = 0;
  for (const auto& [time, packets] : bursts) most = std::max(most, packets);
  return most;
}

// A window of 20 segments, from 2 s on 100, on 100 Mbit/s and 40 ms: the largest burst that follows, and how many
// packets leave in the first 5 ms of it and in a round trip.
struct Widened {
  uint64_t burst, soon, in_round_trip, drops, delivered;
};
Widened widened(bool paced, int64_t queue_packets = 0, Stack stack = Stack::linux_kernel) {
  World world(worlds::dumbbell(100, 40, queue_packets, {"agent"}, stack), 1);
  const auto kind = make_agent("sender", {{"paced", paced}});
  CHECK_EQ(kind->find(world).size(), 1u);
  world.set_window(0, 20 * kMss);
  world.run(2 * kSecond);
  const uint64_t before = world.flows()[0].counters().packets_sent;
  const auto sent = [&] { return world.flows()[0].counters().packets_sent - before; };
  world.set_window(0, 100 * kMss);
  uint64_t burst = sent();
  burst = std::max(burst, largest_burst(world, 2005 * kMillisecond));
  const uint64_t soon = sent();
  burst = std::max(burst, largest_burst(world, 2040 * kMillisecond));
  const uint64_t in_round_trip = sent();
  burst = std::max(burst, largest_burst(world, 4 * kSecond));
  const FlowCounters counters = world.flows()[0].counters();
  return {burst, soon, in_round_trip, counters.queue_drops, static_cast<uint64_t>(counters.delivered_bytes)};
}

// Worlds of agents alone, one interval after the other; what window was in force, in byte seconds, told from the rest.
class Late {
 public:
  Late(const Given& parameters, uint64_t seed, uint32_t agents = 1)
      : world_(worlds::dumbbell(50, 20, 0, std::vector<std::string>(agents, "agent")), seed),
        kind_(make_agent("sender", parameters)),
        agents_(kind_->find(world_)),
        telemetry_(agents * kind_->fields().size()) {
    step(std::vector<double>(agents, 10 * kMss));
  }

  void step(const std::vector<double>& windows) {
    kind_->step(world_, agents_, {.interval = kInterval}, windows.data(), telemetry_.data());
  }

  // How late decisions are in force: agents' windows change between these numbers of segments.
  std::vector<double> lateness(double from = 10, double to = 20) {
    step(std::vector<double>(agents_.size(), from * kMss));
    std::vector<double> before;
    for (const uint32_t a : agents_) before.push_back(world_.flows()[a].cwnd_integral(world_.now()));
    step(std::vector<double>(agents_.size(), to * kMss));
    std::vector<double> late;
    for (const uint32_t a : agents_) {
      const double held = (world_.flows()[a].cwnd_integral(world_.now()) - before[late.size()]) / kMss;
      late.push_back((to * seconds(kInterval) - held) / (to - from));
    }
    return late;
  }

  World& world() { return world_; }
  double field(size_t agent, size_t column) const { return telemetry_[agent * kind_->fields().size() + column]; }

 private:
  World world_;
  std::unique_ptr<netbuf::Agent> kind_;
  std::vector<uint32_t> agents_;
  std::vector<double> telemetry_;
};

}  // namespace

TEST(a_paced_window_spreads_what_it_lets_go) {
  const Widened plain = widened(false), paced = widened(true);
  CHECK_GE(plain.burst, 78u);                  // what the window grew by, at once
  CHECK_GE(paced.burst, 2u);
  CHECK_LE(paced.burst, 5u);                   // a millisecond's worth of 1.2 windows in 40 ms is 3
  CHECK_GE(plain.soon, 80u);
  CHECK_LE(paced.soon, 20u);
  CHECK_GE(paced.in_round_trip, 90u);
  CHECK_NEAR(static_cast<double>(paced.delivered), static_cast<double>(plain.delivered),
             0.02 * static_cast<double>(plain.delivered));
}

TEST(a_paced_window_does_not_overrun_a_small_queue) {
  CHECK_GT(widened(false, 30).drops, 10u);
  CHECK_EQ(widened(true, 30).drops, 0u);
}

TEST(windows_of_a_stack_without_pacing_are_as_they_were) {
  CHECK_EQ(widened(true, 0, Stack::ns3).burst, widened(false, 0, Stack::ns3).burst);
}

TEST(a_decision_is_in_force_as_late_as_said) {
  for (const double latency : {0.0, 0.001, 0.037, 0.1}) {
    Late late({{"latency_s", latency}, {"latency_high_s", latency}}, 1);
    for (int i = 0; i < 3; ++i) CHECK_NEAR(late.lateness()[0], latency, 1e-9);
    CHECK_NEAR(late.lateness(30, 15)[0], latency, 1e-9);
    CHECK_EQ(late.world().now(), 9 * kInterval);
  }
  Late late({{"latency_s", 0.2}, {"latency_high_s", 0.3}}, 1);  // an interval at most
  CHECK_NEAR(late.lateness()[0], 0.1, 1e-9);
}

TEST(the_telemetry_is_of_the_whole_interval) {
  Late late({{"latency_s", 0.06}, {"latency_high_s", 0.06}}, 1);
  late.step({20 * kMss});
  const auto& counters = late.world().flows()[0].sender.counters;
  const auto before = static_cast<double>(counters.acks);
  late.step({40 * kMss});
  CHECK_NEAR(late.field(0, 0), 0.1, 1e-12);
  CHECK_EQ(late.field(0, 2), 40 * kMss);
  CHECK_EQ(late.field(0, 17), static_cast<double>(counters.acks) - before);
  late.step({kKeep});
  CHECK_EQ(late.field(0, 2), 40 * kMss);
}

TEST(a_latency_is_a_senders_own_and_jitter_each_decisions) {
  const Given latency{{"latency_s", 0.01}, {"latency_high_s", 0.05}},
      jitter{{"jitter_s", 0.02}, {"jitter_high_s", 0.02}};
  Late own(latency, 3, 4), again(latency, 3, 4), other(latency, 4, 4), jittered(jitter, 3, 4);
  const std::vector<double> first = own.lateness();
  for (int i = 0; i < 5; ++i) {
    const auto more = own.lateness();
    for (size_t a = 0; a < 4; ++a) CHECK_NEAR(more[a], first[a], 1e-9);
  }
  CHECK(again.lateness() == first);
  CHECK(other.lateness() != first);
  for (size_t a = 0; a < 4; ++a) {
    CHECK_GE(first[a], 0.01 - 1e-9);
    CHECK_LE(first[a], 0.05 + 1e-9);
    for (size_t b = 0; b < a; ++b) CHECK_GT(std::fabs(first[a] - first[b]), 1e-6);
  }
  double sum = 0, least = 1, most = 0;
  for (int i = 0; i < 100; ++i) {
    for (const double late : jittered.lateness()) {
      sum += late;
      least = std::min(least, late);
      most = std::max(most, late);
    }
  }
  CHECK_GE(least, -1e-9);
  CHECK_LE(most, 0.02 + 1e-9);
  CHECK_LT(least, 0.002);
  CHECK_GT(most, 0.018);
  CHECK_NEAR(sum / 400, 0.01, 0.0015);
}

TEST(jitter_is_the_seeds) {
  const Given given{{"latency_high_s", 0.03}, {"jitter_high_s", 0.05}};
  Late one(given, 7, 3), same(given, 7, 3), other(given, 8, 3);
  for (int i = 0; i < 20; ++i) {
    one.lateness();
    same.lateness();
    other.lateness();
  }
  CHECK(worlds::fingerprint(one.world()) == worlds::fingerprint(same.world()));
  CHECK(worlds::fingerprint(one.world()) != worlds::fingerprint(other.world()));
}

TEST(late_decisions_of_several_agents_come_in_order_of_time) {
  const Given given{{"latency_high_s", 0.1}};
  constexpr size_t kAgents = 6;
  Late late(given, 5, kAgents);
  const std::vector<double> at = late.lateness();
  CHECK(!std::is_sorted(at.begin(), at.end()));
  late.step(std::vector<double>(kAgents, 10 * kMss));
  const Time began = late.world().now();
  // The same by hand: the world runs to each decision in turn.
  Late by_hand(given, 5, kAgents);
  by_hand.lateness();
  by_hand.step(std::vector<double>(kAgents, 10 * kMss));
  std::vector<double> windows;
  std::vector<std::pair<Time, uint32_t>> due;
  for (uint32_t a = 0; a < kAgents; ++a) {
    windows.push_back((20 + a) * kMss);
    due.emplace_back(began + std::llround(at[a] * 1e9), a);
  }
  late.step(windows);
  std::sort(due.begin(), due.end());
  for (const auto& [time, a] : due) {
    by_hand.world().run(time);
    by_hand.world().set_window(a, windows[a]);
  }
  by_hand.world().run(began + kInterval);
  CHECK_EQ(late.world().now(), by_hand.world().now());
  CHECK(worlds::fingerprint(late.world()) == worlds::fingerprint(by_hand.world()));
}

TEST(a_batch_is_the_same_on_any_number_of_threads) {
  const WorldConfig config = worlds::dumbbell(20, 30, 60, {"agent", "cubic", "agent"});
  std::vector<std::vector<uint64_t>> seen;
  for (const uint32_t threads : {1, 2}) {
    Batch batch(6, 2, threads, make_agent("sender", {{"paced", 1}, {"latency_high_s", 0.02}, {"jitter_high_s", 0.03}}));
    for (uint32_t w = 0; w < 6; ++w) batch.reset(w, config, w / 2);
    for (int i = 0; i < 30; ++i) {
      for (uint32_t row = 0; row < 12; ++row) batch.control()[row] = (5 + (i * 7 + row % 4) % 40) * kMss;
      batch.advance(kInterval, nullptr);
    }
    for (uint32_t w = 0; w < 6; ++w) {
      const auto one = worlds::fingerprint(batch.world(w));
      if (threads == 1) seen.push_back(one);
      CHECK(one == seen[w]);
    }
  }
  CHECK(seen[0] != seen[2]);
}

TEST(parameters_that_cannot_be_are_refused_by_name) {
  CHECK_THROWS(make_agent("sender", {{"latency_s", -0.1}}), std::invalid_argument);
  CHECK_THROWS(make_agent("sender", {{"jitter_high_s", 101}}), std::invalid_argument);
  CHECK_THROWS(make_agent("sender", {{"paced", 0.5}}), std::invalid_argument);
  CHECK_THROWS(make_agent("sender", {{"delay_s", 1}}), std::invalid_argument);
}
