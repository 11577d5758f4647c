#include <cmath>

#include "check.h"
#include "qdisc_server.h"

using namespace netbuf;

namespace {
constexpr double kRate = 12e6;  // a packet of 1500 bytes each millisecond
}

TEST(codel_leaves_a_load_below_the_rate_alone) {
  Server server("codel", {}, kRate);
  server.load(0, 20 * kSecond, 0.95 * kRate);
  CHECK_EQ(server.drops, 0u);
}

TEST(codel_lets_a_burst_pass_that_is_gone_within_an_interval) {
  Server server("codel", {}, kRate);
  for (int i = 0; i < 90; ++i) server.arrive(0);
  server.run(kSecond);
  CHECK_EQ(server.drops, 0u);
  CHECK_NEAR(server.longest_sojourn, 89e-3, 1e-9);
}

// A load that does not respond keeps the delay above the target: drops come interval / sqrt(n) apart, the first an
// interval after the delay went above the target.
TEST(codel_spaces_drops_by_the_control_law) {
  for (const double interval_ms : {100.0, 40.0}) {
    Server server("codel", {{"interval_ms", interval_ms}}, kRate, 100'000);
    for (int i = 0; i < 10; ++i) server.arrive(0);  // packet k waits for k ms: the sixth is the first above 5 ms
    server.load(0, 10 * kSecond, 1.5 * kRate);
    CHECK_GT(server.drop_times.size(), 50u);
    CHECK_NEAR(seconds(server.drop_times[0]), 5e-3 + interval_ms * 1e-3, 1.1e-3);
    for (size_t n = 1; n < 50; ++n) {
      const double gap = seconds(server.drop_times[n] - server.drop_times[n - 1]);
      // One Newton step from 1 makes 1/sqrt(2) a half, as in Linux; soon it is exact.
      const double exact = interval_ms * 1e-3 / std::sqrt(static_cast<double>(n));
      CHECK_NEAR(gap, n == 2 ? interval_ms * 1e-3 / 2 : exact, 1.1e-3 + (n < 6 ? 0.05 : 0.01) * exact);
    }
  }
}

TEST(codel_in_control_keeps_the_delay_near_the_target) {
  // A crude sender: its rate grows by 1 % of the link's each 100 ms and is cut by a third at a drop, once a 100 ms.
  Server server("codel", {}, kRate);
  double rate = 0.5 * kRate;
  uint64_t seen = 0;
  for (Time t = 0; t < 200 * kSecond; t += kSecond / 10) {
    server.load(t, t + kSecond / 10, rate);
    rate = server.drops > seen ? rate * 2 / 3 : rate + 0.01 * kRate;
    seen = server.drops;
    if (t == 20 * kSecond) {
      server.forget();
      seen = 0;
    }
  }
  CHECK_GT(server.drops, 0u);
  CHECK_LT(server.mean_sojourn(), 10e-3);
}

TEST(codel_resumes_its_drop_rate_when_the_queue_comes_back_soon) {
  for (const double pause_s : {0.1, 3.0}) {  // less and more than 16 intervals
    Server server("codel", {}, kRate, 100'000);
    server.load(0, 3 * kSecond, 1.2 * kRate);
    CHECK_GT(server.drops, 50u);
    server.run(10 * kSecond);
    CHECK_EQ(server.queue->packets(), 0u);
    const Time from = server.free_at + static_cast<Time>(pause_s * 1e9);  // free_at: when it fell idle
    server.forget();
    server.load(from, from + 2 * kSecond, 1.5 * kRate);
    const double gap = seconds(server.drop_times[1] - server.drop_times[0]);
    if (pause_s < 1) {
      CHECK_LT(gap, 30e-3);
    } else {
      CHECK_NEAR(gap, 100e-3, 2e-3);
    }
  }
}

// 120 ms a packet: all that waits does so for longer than the target. Two at the start and one as each is
// done: whenever one is taken there is one left, which the RFC's MTU protects and ns-3's rule (fewer than
// 1500 bytes left) does not.
TEST(codel_never_drops_the_last_packet) {
  Server rfc("codel", {}, 0.1e6), ns3("codel", {{"mtu_bytes", 1499}}, 0.1e6), alone("codel", {{"mtu_bytes", 0}}, 0.1e6);
  for (Server* server : {&rfc, &ns3}) {
    for (int i = 0; i < 2; ++i) server->arrive(0);
    for (int k = 0; k < 500; ++k) server->arrive(k * 120 * kMillisecond + 1);
  }
  CHECK_EQ(rfc.drops, 0u);
  CHECK_GT(ns3.drops, 0u);
  alone.arrive(0);
  for (int k = 0; k < 500; ++k) alone.arrive(k * 120 * kMillisecond + 1);
  CHECK_EQ(alone.drops, 0u);  // nothing is left behind the one that is taken
}

TEST(codel_conserves_packets_and_keeps_its_limits) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    CHECK(survives_anything("codel", {}, 50, INT64_MAX, seed));
    CHECK(survives_anything("codel", {{"target_ms", 0.5}, {"interval_ms", 5}}, INT64_MAX, 100'000, seed));
    CHECK(survives_anything("codel", {{"mtu_bytes", 0}}, 0, INT64_MAX, seed));
  }
}
