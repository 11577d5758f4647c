#include "check.h"
#include "qdisc_server.h"

using namespace netbuf;

namespace {
constexpr double kRate = 12e6;  // a packet of 1500 bytes each millisecond
}

TEST(pie_brings_a_load_that_does_not_respond_to_its_target) {
  for (const double target_ms : {15.0, 30.0}) {
    for (const double derandomise : {0.0, 1.0}) {
      Server server("pie", {{"target_ms", target_ms}, {"derandomise", derandomise}}, kRate);
      server.load(0, 30 * kSecond, 1.2 * kRate, true);
      server.forget();
      server.load(30 * kSecond, 150 * kSecond, 1.2 * kRate, true);
      CHECK_NEAR(server.mean_sojourn() * 1e3, target_ms, 0.1 * target_ms);
      const double dropped = static_cast<double>(server.drops) / static_cast<double>(server.drops + server.sent);
      CHECK_NEAR(dropped, 1 - 1 / 1.2, 0.01);
    }
  }
}

TEST(pie_leaves_a_load_below_the_rate_alone) {
  Server server("pie", {}, kRate);
  server.load(0, 20 * kSecond, 0.95 * kRate);
  CHECK_EQ(server.drops, 0u);
}

TEST(pie_lets_a_burst_pass_but_not_congestion) {
  for (const double quiet : {0.0, 1.5}) {
    Server server("pie", {{"burst_quiet_s", quiet}}, kRate);
    // Three bursts of 100 ms at 1.5 times the rate, with much time between: within the allowance of 150 ms.
    for (int k = 0; k < 3; ++k) {
      const Time start = (1 + 10 * k) * kSecond;
      server.load(start, start + kSecond / 10, 1.5 * kRate);
    }
    CHECK_EQ(server.drops, 0u);
    server.load(40 * kSecond, 45 * kSecond, 1.5 * kRate);
    CHECK_GT(server.drops, 100u);
    CHECK_GT(server.drop_times[0], 40 * kSecond + 150 * kMillisecond);
  }
}

TEST(pie_without_an_allowance_drops_sooner) {
  Time first[2];
  for (int k = 0; k < 2; ++k) {
    Server server("pie", {{"max_burst_ms", k ? 150.0 : 0.0}}, kRate);
    server.load(0, 5 * kSecond, 2 * kRate);
    first[k] = server.drop_times[0];
  }
  CHECK_LT(first[0], first[1]);
  CHECK_LT(first[0], kSecond / 2);
}

TEST(pie_keeps_the_link_busy) {
  // A load of 1.2 with a tiny target: nothing is dropped from a queue of two packets or fewer,
  // so that the link never runs dry.
  Server server("pie", {{"target_ms", 0.1}}, kRate);
  server.load(0, kSecond, 1.2 * kRate);
  const int64_t before = server.sent_bytes;
  server.load(kSecond, 11 * kSecond, 1.2 * kRate);
  CHECK_NEAR(static_cast<double>(server.sent_bytes - before) * 8 / 10, kRate, 0.001 * kRate);
}

TEST(pie_derandomised_keeps_drops_apart) {
  Server server("pie", {{"derandomise", 1}}, kRate);
  uint64_t arrivals_between = 0, fewest = UINT64_MAX, seen = 0;
  for (Time t = 0; t < 100 * kSecond; t += 950 * kMicrosecond) {  // load 1.053: one in 20 dropped
    server.arrive(t);
    ++arrivals_between;
    if (server.drops == seen) continue;
    if (t > 40 * kSecond) fewest = std::min(fewest, arrivals_between);
    seen = server.drops;
    arrivals_between = 0;
  }
  CHECK_GE(fewest, 5u);  // 0.85 / p, and p wavers about 1/20
  CHECK_LE(fewest, 20u);
}

TEST(pie_forgets_congestion_while_nothing_happens) {
  Server server("pie", {}, kRate);
  server.load(0, 20 * kSecond, 1.5 * kRate);
  server.run(30 * kSecond);
  server.forget();
  const Time later = 1'000'000'000 * kSecond;  // more than 6e10 updates: they are not made one by one
  server.load(later, later + kSecond / 10, 1.5 * kRate);
  CHECK_EQ(server.drops, 0u);  // the allowance is whole again
}

TEST(pie_catches_up_as_if_it_had_been_called_all_along) {
  // With calls that change nothing (no room for a packet) or without: the same fate for all packets.
  std::vector<Time> drops[2];
  for (int k = 0; k < 2; ++k) {
    Server server("pie", {}, kRate);
    for (int n = 0; n < 20; ++n) {
      server.load(n * kSecond, n * kSecond + 700 * kMillisecond, 1.5 * kRate);
      server.run(n * kSecond + 990 * kMillisecond);
      if (k == 0 || server.queue->packets()) continue;
      Queued none;
      for (Time t = server.now; t < (n + 1) * kSecond; t += kMillisecond) CHECK(!server.queue->dequeue(t, none));
    }
    drops[k] = server.drop_times;
  }
  CHECK_GT(drops[0].size(), 100u);
  CHECK(drops[0] == drops[1]);
}

TEST(pie_by_bytes_spares_small_packets) {
  for (const double byte_mode : {0.0, 1.0}) {
    Server server("pie", {{"byte_mode", byte_mode}}, kRate);
    for (Time t = 0; t < 60 * kSecond; t += kMillisecond) {
      server.arrive(t, 1, 1500);
      server.arrive(t + 1000, 2, 150);
    }
    const double large = static_cast<double>(server.drops_of[1]), small = static_cast<double>(server.drops_of[2]);
    CHECK_GT(large, 1000.0);
    if (byte_mode != 0) {
      CHECK_LT(small, 0.15 * large);
    } else {
      CHECK_NEAR(small, large, 0.15 * large);
    }
  }
}

TEST(pie_conserves_packets_and_keeps_its_limits) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    CHECK(survives_anything("pie", {}, 50, INT64_MAX, seed));
    CHECK(survives_anything("pie", {{"derandomise", 1}, {"max_burst_ms", 0}}, INT64_MAX, 30'000, seed));
    CHECK(survives_anything("pie", {{"burst_quiet_s", 1.5}, {"byte_mode", 1}}, 0, INT64_MAX, seed));
  }
}
