#include "check.h"
#include "qdisc_server.h"

using namespace netbuf;

namespace {
constexpr double kRate = 12e6;  // a packet of 1500 bytes each millisecond
}

TEST(fq_pie_isolates_a_sparse_flow) {
  Server server("fq_pie", {}, kRate, 10'240);
  for (Time t = 0; t < 10 * kSecond; t += kMillisecond) {
    for (uint32_t owner : {1u, 2u}) server.arrive(t, owner);
    if (t % (20 * kMillisecond) == 0) server.arrive(t, 7, 200);
  }
  CHECK_EQ(server.drops_of[7], 0u);
  CHECK_EQ(server.sent_of[7], 500u);
  CHECK_LT(server.sojourn_of[7] / 500, 1.1e-3);
  CHECK_NEAR(static_cast<double>(server.sent_of[1]), static_cast<double>(server.sent_of[2]), 100);
}

// PIE's law: at the point of rest each flow's probability is its excess, and its delay the target.
TEST(fq_pie_drops_each_flows_excess_at_the_target_delay) {
  Server server("fq_pie", {{"target_ms", 20}}, kRate, 10'240);
  const auto load = [&](Time from, Time to) {
    for (Time t = from; t < to; t += 10 * kMillisecond) {
      for (int i = 0; i < 6; ++i) server.arrive(t + i * 10 * kMillisecond / 6, 1);   // 1.2 times its half
      for (int i = 0; i < 7; ++i) server.arrive(t + 10 * kMillisecond * 5 / 6, 2);   // 1.4 times
    }
  };
  load(0, 60 * kSecond);
  server.forget();
  load(60 * kSecond, 120 * kSecond);
  CHECK_NEAR(static_cast<double>(server.drops_of[1]) / (60 * 600), 1.0 / 6, 0.02);
  CHECK_NEAR(static_cast<double>(server.drops_of[2]) / (60 * 700), 2.0 / 7, 0.02);
  CHECK_NEAR(server.sojourn_of[1] / static_cast<double>(server.sent_of[1]), 20e-3, 4e-3);
}

TEST(fq_pie_with_one_queue_is_pie_but_for_turns) {
  Server one("fq_pie", {{"flows", 1}, {"perturbation", 1}}, kRate), pie("pie", {}, kRate);
  one.load(0, 20 * kSecond, 1.05 * kRate);
  pie.load(0, 20 * kSecond, 1.05 * kRate);
  CHECK(one.drop_times == pie.drop_times);
  CHECK_GT(one.drops, 10u);
}

TEST(fq_pie_conserves_packets_and_keeps_its_limits) {
  for (uint64_t seed = 0; seed < 3; ++seed) {
    CHECK(survives_anything("fq_pie", {}, 50, INT64_MAX, seed));
    CHECK(survives_anything("fq_pie", {{"flows", 3}, {"quantum_bytes", 100}}, INT64_MAX, 20'000, seed));
    CHECK(survives_anything("fq_pie", {}, 0, INT64_MAX, seed));
  }
}
