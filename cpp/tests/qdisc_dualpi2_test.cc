// DualPI2 by RFC 9332: which queue packets wait in, how what keeps the classic one at its target marks the other, whose
// turn it is, what becomes of overload.
#include <cmath>

#include "check.h"
#include "qdisc_server.h"

using namespace netbuf;

namespace {

constexpr double kRate = 12e6;  // a packet of 1500 bytes each millisecond
constexpr uint32_t kClassic = 1, kScalable = 2;

struct Load {
  double classic, scalable;     // parts of the rate
};

// Poisson arrivals of both kinds.
void run(Server& server, Time from, Time to, Load load) {
  double next[] = {static_cast<double>(from), static_cast<double>(from)};
  const double gaps[] = {1500 * 8e9 / (kRate * load.classic), 1500 * 8e9 / (kRate * load.scalable)};
  for (;;) {
    const int kind = next[1] < next[0];
    if (next[kind] >= static_cast<double>(to)) return;
    server.ecn = server.l4s = kind == 1;
    server.arrive(static_cast<Time>(next[kind]), kind ? kScalable : kClassic);
    next[kind] += server.arrivals.exponential(gaps[kind]);
  }
}

struct Marks {
  explicit Marks(Server& server) {
    server.on_sent = [this](const Queued& item) { of[item.owner] += item.marked; };
  }
  std::map<uint32_t, double> of;
};

double sent(Server& server, uint32_t owner) { return static_cast<double>(server.sent_of[owner]); }
double dropped(Server& server, uint32_t owner) {
  const auto drops = static_cast<double>(server.drops_of[owner]);
  return drops / (drops + sent(server, owner));
}

}  // namespace

TEST(dualpi2_alone_brings_classic_traffic_to_its_target) {
  for (const double target_ms : {15.0, 30.0}) {
    for (const double early : {0.0, 1.0}) {
      Server server("dualpi2", {{"target_ms", target_ms}, {"drop_early", early}}, kRate);
      server.load(0, 30 * kSecond, 1.2 * kRate, true);
      server.forget();
      server.load(30 * kSecond, 150 * kSecond, 1.2 * kRate, true);
      CHECK_NEAR(server.mean_sojourn() * 1e3, target_ms, 0.1 * target_ms);
      const double share = static_cast<double>(server.drops) / static_cast<double>(server.drops + server.sent);
      CHECK_NEAR(share, 1 - 1 / 1.2, 0.01);
      CHECK_EQ(server.marks, 0u);
    }
  }
}

TEST(dualpi2_leaves_a_load_below_the_rate_alone) {
  Server server("dualpi2", {}, kRate);
  server.load(0, 20 * kSecond, 0.95 * kRate);
  CHECK_EQ(server.drops, 0u);
}

TEST(dualpi2_marks_l4s_with_k_times_the_root_of_the_classic_probability) {
  for (const double k : {1.0, 2.0, 3.0}) {
    Server server("dualpi2", {{"coupling_factor", k}, {"step_thresh_ms", 1000}}, 10 * kRate);
    run(server, 0, 20 * kSecond, {7.3, 3});
    server.forget();
    Marks marks(server);
    run(server, 20 * kSecond, 80 * kSecond, {7.3, 3});
    const double p_classic = dropped(server, kClassic), p_l4s = marks.of[kScalable] / sent(server, kScalable);
    CHECK_NEAR(p_classic, 0.3 / 7.3, 0.006);  // what is too much
    CHECK_NEAR(p_l4s, k * std::sqrt(p_classic), 0.05 * k * std::sqrt(p_classic));
    CHECK_LT(server.drops_of[kScalable], 20u);
    CHECK_EQ(marks.of[kClassic], 0);
  }
}

TEST(dualpi2_lets_l4s_hardly_wait) {
  Server server("dualpi2", {}, kRate);
  run(server, 0, 100 * kSecond, {0.8, 0.3});
  CHECK_LT(server.sojourn_of[kScalable] / sent(server, kScalable), 0.0025);  // packets take a millisecond each
  CHECK_NEAR(server.sojourn_of[kClassic] / sent(server, kClassic), 0.015, 0.003);
}

TEST(dualpi2_marks_l4s_that_has_waited_too_long) {
  for (const double step_ms : {1.0, 4.0}) {
    Server server("dualpi2", {{"step_thresh_ms", step_ms}}, kRate);
    server.ecn = server.l4s = true;
    for (int i = 0; i < 10; ++i) server.arrive(0);  // one in service, then one a millisecond
    server.run(kSecond);
    CHECK_EQ(server.marks, static_cast<uint64_t>(9 - step_ms));
    server.l4s = false;
    for (int i = 0; i < 10; ++i) server.arrive(kSecond);
    server.run(2 * kSecond);
    CHECK_EQ(server.marks, static_cast<uint64_t>(9 - step_ms));
    CHECK_EQ(server.drops, 0u);
  }
}

TEST(dualpi2_takes_what_is_marked_already_for_l4s) {
  Server server("dualpi2", {{"alpha", 0}, {"beta", 0}}, kRate);
  const auto push = [&](uint32_t segment, bool marked) {
    Queued item{};
    item.packet.segment = segment;
    item.bytes = 1500;
    item.ecn = true;
    item.marked = marked;
    server.queue->enqueue(0, item);
  };
  for (uint32_t i = 0; i < 4; ++i) push(i, i == 3);
  Queued first;
  CHECK(server.queue->dequeue(0, first));
  CHECK_EQ(first.packet.segment, 3u);
  CHECK_EQ(server.marks, 0u);  // it is counted where it was marked
}

// ECT(0) is marked as often as others would be dropped; a load that goes on all the same is overload at last.
TEST(dualpi2_marks_classic_ecn_until_overload) {
  Server server("dualpi2", {}, kRate);
  server.ecn = true;
  Time first_drop = 0;
  for (Time t = 0; t < 20 * kSecond && first_drop == 0; t += 900 * kMicrosecond) {
    server.arrive(t);
    if (server.drops > 0) first_drop = t;
  }
  CHECK_GT(first_drop, kSecond / 2);
  CHECK_GT(server.marks, 20u);
  server.load(20 * kSecond, 60 * kSecond, kRate / 0.9);
  server.forget();
  server.load(60 * kSecond, 160 * kSecond, kRate / 0.9);
  CHECK_GT(static_cast<double>(server.drops) / static_cast<double>(server.drops + server.sent), 0.08);
  Server deaf("dualpi2", {{"ecn", 0}}, kRate);
  deaf.ecn = deaf.l4s = true;
  deaf.load(0, 20 * kSecond, 1.2 * kRate);
  CHECK_EQ(deaf.marks, 0u);
  CHECK_GT(deaf.drops, 1000u);
}

TEST(dualpi2_drops_l4s_in_overload_or_fills_its_queue) {
  for (const bool drop : {true, false}) {
    Server server("dualpi2", {{"drop_overload", drop}}, kRate, 200);
    server.ecn = server.l4s = true;
    server.load(0, 30 * kSecond, 1.5 * kRate, true);
    server.forget();
    Marks marks(server);
    server.load(30 * kSecond, 130 * kSecond, 1.5 * kRate, true);
    CHECK_NEAR(static_cast<double>(server.drops) / static_cast<double>(server.drops + server.sent), 1.0 / 3, 0.01);
    CHECK_GT(marks.of[0] / sent(server, 0), 0.98);
    if (drop) CHECK_NEAR(server.mean_sojourn(), 0.015, 0.0015);
    else CHECK_GT(server.mean_sojourn(), 0.19);
  }
}

TEST(dualpi2_keeps_the_classic_part_of_the_link) {
  for (const double percent : {0.0, 5.0, 10.0, 50.0, 90.0}) {
    // Nothing is chosen, and both kinds wait all the time.
    Server server("dualpi2", {{"classic_protection_percent", percent}, {"alpha", 0}, {"beta", 0}}, kRate, 100'000);
    for (int i = 0; i < 2000; ++i) {
      server.ecn = server.l4s = i % 2 == 0;
      server.arrive(0, server.l4s ? kScalable : kClassic, server.l4s ? 1500 : 500);
    }
    server.run(kSecond / 5);
    const double classic = 500 * sent(server, kClassic), scalable = 1500 * sent(server, kScalable);
    CHECK_NEAR(classic / (classic + scalable), percent / 100, 0.01);
  }
}

TEST(dualpi2_lets_either_kind_have_the_whole_link) {
  for (const bool scalable : {true, false}) {
    Server server("dualpi2", {}, kRate);
    server.ecn = server.l4s = scalable;
    server.load(0, kSecond, 1.1 * kRate);
    const int64_t before = server.sent_bytes;
    server.load(kSecond, 11 * kSecond, 1.1 * kRate);
    CHECK_NEAR(static_cast<double>(server.sent_bytes - before) * 8 / 10, kRate, 0.001 * kRate);
  }
}

TEST(dualpi2_catches_up_as_if_it_had_been_called_all_along) {
  // With calls that change nothing (no packet waits) or without: the same fate for all packets.
  std::vector<Time> drops[2];
  for (int k = 0; k < 2; ++k) {
    Server server("dualpi2", {}, kRate);
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

TEST(dualpi2_forgets_congestion_while_nothing_happens) {
  Server server("dualpi2", {}, kRate);
  server.load(0, 20 * kSecond, 1.5 * kRate);
  server.run(30 * kSecond);
  server.forget();
  const Time later = 1'000'000'000 * kSecond;  // more than 6e10 updates: they are not made one by one
  server.load(later, later + kSecond / 20, 1.1 * kRate);
  CHECK_EQ(server.drops, 0u);
}

TEST(dualpi2_conserves_packets_and_keeps_its_limits) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    CHECK(survives_anything("dualpi2", {}, 50, INT64_MAX, seed));
    CHECK(survives_anything("dualpi2", {{"drop_early", 1}, {"drop_overload", 0}}, INT64_MAX, 30'000, seed));
    CHECK(survives_anything("dualpi2", {{"mtu_bytes", 1}, {"step_thresh_ms", 0}}, 0, INT64_MAX, seed));
  }
}

TEST(dualpi2_steps_only_for_packets_that_find_enough_waiting) {
  // Each packet waits for those before it, a millisecond each.
  for (const uint32_t least : {0u, 2u, 5u}) {
    Server server("dualpi2", {{"min_qlen_step", least}, {"step_thresh_ms", 0.5}}, kRate);
    std::vector<bool> marked;
    server.on_sent = [&](const Queued& item) { marked.push_back(item.marked); };
    server.ecn = server.l4s = true;
    for (int i = 0; i < 8; ++i) server.arrive(0, kScalable);
    server.run(kSecond);
    CHECK_EQ(marked.size(), 8u);
    // The first is sent at once, so that number i finds i - 1 waiting.
    for (uint32_t i = 0; i < marked.size(); ++i) CHECK_EQ(marked[i], i > 0 && i - 1 >= least);
  }
}
