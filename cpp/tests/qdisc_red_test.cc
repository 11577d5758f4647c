#include <cmath>
#include <stdexcept>

#include "check.h"
#include "qdisc_server.h"

using namespace netbuf;

namespace {

constexpr double kRate = 12e6;  // a packet of 1500 bytes each millisecond

// The fraction of arrivals that are dropped while the queue is held at so many packets.
double dropped_at(uint32_t length, std::map<std::string, double> parameters, int arrivals = 200'000) {
  Server server("red", std::move(parameters), kRate, 1000);
  Queued item{};
  item.bytes = 1500;
  Time now = 1;
  uint64_t before = 0;
  for (int i = 0; i < arrivals + 10'000; ++i) {  // the average needs a while: 1 / weight arrivals
    if (i == 10'000) before = server.drops;
    server.queue->enqueue(now++, item);
    Queued sent;
    if (server.queue->packets() > length) server.queue->dequeue(now, sent);
  }
  return static_cast<double>(server.drops - before) / arrivals;
}

}  // namespace

TEST(red_drops_nothing_below_the_minimum) {
  CHECK_EQ(dropped_at(49, {{"min_packets", 50}, {"max_packets", 150}}), 0.0);
  CHECK_EQ(dropped_at(49, {{"min_packets", 50}, {"max_packets", 150}, {"wait", 1}}), 0.0);
}

// Between the thresholds the paper's p_b grows linearly; spread over [1, 1/p_b), a drop comes each 1 / (2 p_b)
// arrivals; with wait = 1 over [1/p_b, 2/p_b]: each 1.5 / p_b.
TEST(red_drops_by_the_average_length) {
  for (const double max_probability : {0.02, 0.1}) {
    for (const uint32_t length : {75u, 100u, 140u}) {
      const double p = max_probability * (length - 50) / 100;
      std::map<std::string, double> parameters{
          {"min_packets", 50}, {"max_packets", 150}, {"max_probability", max_probability}};
      CHECK_NEAR(dropped_at(length, parameters), 2 * p, 0.05 * p + 1e-4);
      parameters["wait"] = 1;
      CHECK_NEAR(dropped_at(length, parameters), p / 1.5, 0.1 * p + 1e-4);
    }
  }
}

TEST(red_is_gentle_above_the_maximum_unless_told_otherwise) {
  std::map<std::string, double> parameters{{"min_packets", 50}, {"max_packets", 150}, {"max_probability", 0.1}};
  const double p = 0.1 + 0.9 * (180 - 150) / 150.0;
  CHECK_NEAR(dropped_at(180, parameters), 2 * p, 0.1 * p);
  parameters["gentle"] = 0;
  // The average cannot stay above the maximum where all is dropped: the queue of 180 is never reached.
  Server server("red", parameters, kRate, 1000);
  Queued item{};
  item.bytes = 1500;
  for (int i = 0; i < 100'000; ++i) server.queue->enqueue(i, item);
  CHECK_GT(server.drops, 99'000u);
}

TEST(red_forgives_bursts_and_idle_time) {
  // 100 packets at once: the average has hardly moved.
  Server server("red", {{"min_packets", 20}, {"max_packets", 60}}, kRate, 1000);
  for (int i = 0; i < 100; ++i) server.arrive(0);
  CHECK_EQ(server.drops, 0u);
  server.run(kSecond);
  // After long congestion and a second of idleness (1000 packets of the link's:
  // (1 - 0.002)^1000 = 0.135) the average is low again.
  server.load(kSecond, 20 * kSecond, 1.2 * kRate);
  CHECK_GT(server.drops, 100u);
  server.run(25 * kSecond);
  server.forget();
  for (int i = 0; i < 100; ++i) server.arrive(26 * kSecond);
  CHECK_EQ(server.drops, 0u);
}

TEST(red_derives_its_thresholds_from_the_limit) {
  // Of the 1000 that dropped_at allows.
  std::map<std::string, double> given{{"min_packets", 200}, {"max_packets", 600}};
  for (const uint32_t length : {190u, 300u, 500u}) CHECK_EQ(dropped_at(length, {}), dropped_at(length, given));
  CHECK_EQ(dropped_at(300, {{"min_packets", 200}}), dropped_at(300, given));
  CHECK_EQ(dropped_at(300, {{"max_packets", 600}}), dropped_at(300, given));
}

TEST(red_adapts_its_probability_to_the_load) {
  // Target 40 ms at a packet a millisecond: thresholds 20 and 60,
  // the average to be between 36 and 44 whatever the load.
  for (const double load : {1.05, 1.15, 1.3}) {
    Server server("red", {{"adaptive", 1}, {"target_ms", 40}}, kRate, 1000);
    server.load(0, 100 * kSecond, load * kRate, true);
    server.forget();
    server.load(100 * kSecond, 300 * kSecond, load * kRate, true);
    CHECK_GT(server.mean_sojourn(), 34e-3);
    CHECK_LT(server.mean_sojourn(), 46e-3);
  }
}

TEST(red_refuses_thresholds_in_the_wrong_order) {
  for (const double max : {10.0, 20.0}) {
    CHECK_THROWS(Server("red", {{"min_packets", 20}, {"max_packets", max}}, kRate), std::invalid_argument);
  }
}

TEST(red_needs_neither_limit_nor_rate) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double adaptive : {0.0, 1.0}) {
    Server server("red", {{"adaptive", adaptive}}, infinity, INT64_MAX);  // sends at once
    for (Time t = 0; t < 1000; ++t) server.arrive(t * kMillisecond);
    CHECK_EQ(server.drops, 0u);
    CHECK_EQ(server.total_sent, 1000u);
  }
}

TEST(red_conserves_packets_and_keeps_its_limits) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    CHECK(survives_anything("red", {}, 50, INT64_MAX, seed));
    CHECK(survives_anything("red", {{"adaptive", 1}}, INT64_MAX, 30'000, seed));
    CHECK(survives_anything("red", {{"gentle", 0}, {"wait", 1}}, 10, INT64_MAX, seed));
  }
}
