// CAKE: the shaper's bytes, shares of hosts and flows, tins, COBALT, sets of queues.
#include <cmath>

#include "check.h"
#include "qdisc/cake_tins.h"
#include "qdisc_server.h"

using namespace netbuf;

namespace {

constexpr double kRate = 12e6;  // a packet of 1500 bytes each millisecond

// Bytes of the line that n packets of a size take, by the time that they need at 1 byte a microsecond (8 Mbit/s).
double line_bytes(std::map<std::string, double> parameters, uint32_t bytes) {
  parameters["rate_mbps"] = 8;
  parameters["memory_bytes"] = 1e9;
  parameters["target_ms"] = 1e6;          // nothing is dropped
  Server server("cake", parameters, 1e9, 100'000);
  std::vector<Time> sent;
  server.on_sent = [&](const Queued&) { sent.push_back(server.now); };
  for (int i = 0; i < 101; ++i) server.arrive(0, 1, bytes);
  server.run(10 * kSecond);
  return static_cast<double>(sent.at(100) - sent.at(0)) / 100e3;
}

void load(Server& server, Time from, Time to, const std::vector<uint32_t>& owners, uint32_t bytes = 1500) {
  for (Time t = from; t < to; t += kMillisecond) {
    for (const uint32_t owner : owners) server.arrive(t, owner, bytes);
  }
}

double sent(Server& server, uint32_t owner) { return static_cast<double>(server.sent_of[owner]); }

}  // namespace

TEST(cake_shapes_to_its_rate_with_the_lines_overhead) {
  CHECK_NEAR(line_bytes({}, 1500), 1500, 0.02);
  CHECK_NEAR(line_bytes({{"overhead_bytes", 44}}, 1500), 1544, 0.02);
  CHECK_NEAR(line_bytes({{"overhead_bytes", -14}}, 1500), 1486, 0.02);
  CHECK_NEAR(line_bytes({{"overhead_bytes", 38}, {"mpu_bytes", 84}}, 40), 84, 0.02);
  CHECK_NEAR(line_bytes({{"framing", 1}}, 1500), 32 * 53, 0.02);                           // 31.25 cells
  CHECK_NEAR(line_bytes({{"framing", 1}, {"overhead_bytes", 36}}, 1500), 32 * 53, 0.02);   // 32 cells exactly
  CHECK_NEAR(line_bytes({{"framing", 1}, {"overhead_bytes", 37}}, 1500), 33 * 53, 0.02);
  CHECK_NEAR(line_bytes({{"framing", 1}, {"overhead_bytes", 10}}, 40), 2 * 53, 0.02);
  CHECK_NEAR(line_bytes({{"framing", 2}, {"overhead_bytes", 30}}, 1500), 1530 + 24, 0.02);  // one for 64 or a part
}

TEST(cake_gives_hosts_equal_shares_and_flows_of_a_host) {
  const std::vector<uint32_t> ten = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  const auto share_of_the_one = [&](double isolation) {
    Server server("cake", {{"isolation", isolation}, {"ecn", 0}}, kRate, 10'000);
    for (uint32_t owner = 0; owner < 10; ++owner) server.host_of[owner] = 1;
    server.host_of[10] = 2;
    load(server, 0, 5 * kSecond, ten);
    server.forget();
    load(server, 5 * kSecond, 15 * kSecond, ten);
    for (uint32_t owner = 1; owner < 10; ++owner) CHECK_NEAR(sent(server, owner), sent(server, 0), 0.08 * sent(server, 0));
    return sent(server, 10) / static_cast<double>(server.sent);
  };
  for (const double by_source : {5.0, 7.0}) CHECK_NEAR(share_of_the_one(by_source), 0.5, 0.02);
  for (const double by_flow : {4.0, 6.0}) CHECK_NEAR(share_of_the_one(by_flow), 1.0 / 11, 0.005);
}

// Triple isolation: what divides a flow's share is the busier of its hosts.
TEST(cake_counts_both_ends) {
  Server server("cake", {{"ecn", 0}}, kRate, 10'000);
  server.host_of = {{1, 1}, {2, 1}, {3, 2}};
  load(server, 0, 10 * kSecond, {1, 2, 3});
  CHECK_NEAR(sent(server, 3) / static_cast<double>(server.sent), 0.5, 0.02);
  CHECK_NEAR(sent(server, 1), sent(server, 2), 0.03 * sent(server, 1));
}

// A connection that takes an old one's number counts for its own hosts, though the old one's queue still decays.
TEST(cake_counts_a_new_connection_for_its_own_hosts) {
  for (const double isolation : {5.0, 7.0}) {
    Server server("cake", {{"isolation", isolation}, {"ecn", 0}}, kRate, 10'000);
    server.host_of = {{1, 1}, {2, 1}, {3, 2}};
    server.load(0, 5 * kSecond, 1.5 * kRate, false, 1);
    server.run(5 * kSecond + 100 * kMillisecond);
    while (!server.idle) server.run(server.now + kMillisecond);
    CHECK_GT(server.drops, 20u);
    server.queue->forget(1);
    server.host_of[1] = 2;
    const Time from = server.now + 1;
    load(server, from, from + kSecond, {1, 2, 3});
    server.forget();
    load(server, from + kSecond, from + 10 * kSecond, {1, 2, 3});
    CHECK_NEAR(sent(server, 2) / static_cast<double>(server.sent), 0.5, 0.02);
    CHECK_NEAR(sent(server, 1), sent(server, 3), 0.05 * sent(server, 3));
  }
}

TEST(cake_by_host_alone_has_a_queue_a_host) {
  Server server("cake", {{"isolation", 1}, {"ecn", 0}}, kRate, 10'000);
  server.host_of = {{1, 1}, {2, 1}, {3, 2}};
  load(server, 0, 10 * kSecond, {1, 2, 3});
  CHECK_NEAR(sent(server, 3) / static_cast<double>(server.sent), 0.5, 0.02);
  Server blind("cake", {{"isolation", 0}, {"ecn", 0}}, kRate, 10'000);
  load(blind, 0, 10 * kSecond, {1, 2, 2, 2});
  CHECK_GT(sent(blind, 2) / sent(blind, 1), 2.5);
}

TEST(cake_isolates_a_sparse_flow) {
  Server server("cake", {{"rate_mbps", 11}}, 1e9, 10'000);
  for (Time t = 0; t < 10 * kSecond; t += kMillisecond) {
    for (uint32_t owner : {1u, 2u}) server.arrive(t, owner);
    if (t % (20 * kMillisecond) == 0) server.arrive(t, 7, 200);
  }
  CHECK_EQ(server.drops_of[7], 0u);
  CHECK_EQ(server.sent_of[7], 500u);
  CHECK_LT(server.sojourn_of[7] / 500, 1.2e-3);  // a packet in service
}

TEST(cake_has_no_two_flows_in_a_queue_while_a_set_has_room) {
  // Of 128 sets of 8 queues with 300 flows hardly any is full; of queues hashed one by one a quarter would be shared.
  Server server("cake", {{"isolation", 4}, {"ecn", 0}}, 120e6, 100'000);
  std::vector<uint32_t> owners;
  for (uint32_t owner = 0; owner < 300; ++owner) owners.push_back(owner);
  for (Time t = 0; t < 4 * kSecond; t += 10 * kMillisecond) {
    for (const uint32_t owner : owners) server.arrive(t, owner);
  }
  uint32_t behind = 0;
  const double fair = static_cast<double>(server.sent) / 300;
  for (const uint32_t owner : owners) behind += sent(server, owner) < 0.75 * fair;
  CHECK_LE(behind, 4u);
}

// In rows of eight DSCPs.
TEST(cake_has_the_kernels_tins) {
  CHECK(kOneTin == TinOf{});
  CHECK(kThreeTins == (TinOf{
      0, 1, 0, 0, 2, 0, 0, 0,  //
      1, 0, 0, 0, 0, 0, 0, 0,  //
      0, 0, 0, 0, 0, 0, 0, 0,  //
      0, 0, 0, 0, 0, 0, 0, 0,  //
      0, 0, 0, 0, 0, 0, 0, 0,  //
      0, 0, 0, 0, 2, 0, 2, 0,  //
      2, 0, 0, 0, 0, 0, 0, 0,  //
      2, 0, 0, 0, 0, 0, 0, 0}));
  CHECK(kFourTins == (TinOf{
      0, 1, 0, 0, 2, 0, 0, 0,  //
      1, 0, 0, 0, 0, 0, 0, 0,  //
      2, 0, 2, 0, 2, 0, 2, 0,  //
      2, 0, 2, 0, 2, 0, 2, 0,  //
      3, 0, 2, 0, 2, 0, 2, 0,  //
      3, 0, 0, 0, 3, 0, 3, 0,  //
      3, 0, 0, 0, 0, 0, 0, 0,  //
      3, 0, 0, 0, 0, 0, 0, 0}));
  CHECK(kEightTins == (TinOf{
      2, 0, 1, 2, 4, 2, 2, 2,  //
      1, 2, 1, 2, 1, 2, 1, 2,  //
      5, 2, 4, 2, 4, 2, 4, 2,  //
      3, 2, 3, 2, 3, 2, 3, 2,  //
      6, 2, 3, 2, 3, 2, 3, 2,  //
      6, 2, 2, 2, 6, 2, 6, 2,  //
      7, 2, 2, 2, 2, 2, 2, 2,  //
      7, 2, 2, 2, 2, 2, 2, 2}));
  CHECK(kTinsOf[0] == &kOneTin && kTinsOf[1] == &kThreeTins && kTinsOf[2] == &kFourTins && kTinsOf[3] == &kEightTins);
}

TEST(cake_serves_tins_by_their_shares) {
  // diffserv4 at 8 Mbit/s: voice, 2 Mbit/s, is served at once within its share; bulk is left a sixteenth.
  Server server("cake", {{"rate_mbps", 8}, {"diffserv", 2}, {"ecn", 0}}, 1e9, 100'000);
  for (Time t = 0; t < 20 * kSecond; t += kMillisecond) {
    for (const auto& [owner, dscp] : {std::pair{1u, 0}, {2u, 8}}) {
      server.priority = static_cast<uint8_t>(dscp);
      server.arrive(t, owner);
    }
    server.priority = 46;
    if (t % (8 * kMillisecond) == 0) server.arrive(t, 3);  // 1.5 Mbit/s
  }
  CHECK_EQ(server.drops_of[3], 0u);
  CHECK_LT(server.sojourn_of[3] / sent(server, 3), 1.6e-3);
  CHECK_NEAR(sent(server, 2) / static_cast<double>(server.sent), 1.0 / 16, 0.01);
}

TEST(cake_besteffort_knows_no_tins) {
  Server server("cake", {{"rate_mbps", 8}, {"diffserv", 0}, {"ecn", 0}}, 1e9, 100'000);
  for (Time t = 0; t < 10 * kSecond; t += kMillisecond) {
    for (const auto& [owner, dscp] : {std::pair{1u, 46}, {2u, 8}}) {
      server.priority = static_cast<uint8_t>(dscp);
      server.arrive(t, owner);
    }
  }
  CHECK_NEAR(sent(server, 1), sent(server, 2), 0.03 * sent(server, 1));
}

// COBALT's drops in a standing queue are CoDel's: interval / sqrt(n) apart.
TEST(cobalt_spaces_drops_by_codels_law) {
  Server server("cake", {{"isolation", 0}, {"ecn", 0}}, kRate, 100'000);
  server.load(0, 6 * kSecond, 1.5 * kRate);
  CHECK_GT(server.drop_times.size(), 60u);
  for (size_t n = 2; n < 60; ++n) {
    const double gap = static_cast<double>(server.drop_times[n] - server.drop_times[n - 1]) * 1e-6;
    // The n-th drop's count was n; each waits for the next departure, a millisecond at most.
    CHECK_NEAR(gap, 100 / std::sqrt(static_cast<double>(n + 1)), 1.1);
  }
  Server codel("codel", {{"ecn", 0}}, kRate, 100'000);
  codel.load(0, 6 * kSecond, 1.5 * kRate);
  CHECK_NEAR(static_cast<double>(server.drop_times.size()), static_cast<double>(codel.drop_times.size()),
             0.04 * static_cast<double>(codel.drop_times.size()) + 2);
}

TEST(cake_marks_where_codel_drops) {
  Server server("cake", {}, kRate, 100'000);
  server.ecn = true;
  server.load(0, 5 * kSecond, 1.2 * kRate);
  CHECK_EQ(server.drops, 0u);
  CHECK_GT(server.marks, 20u);
}

// A flood that fills the memory brings BLUE in: it drops ever more at random, and the queue becomes short.
TEST(blue_ends_an_overflow) {
  Server server("cake", {{"memory_bytes", 300'000}}, kRate, 100'000);
  server.ecn = true;                      // CoDel only marks
  server.load(0, 3 * kSecond, 3 * kRate);
  CHECK_EQ(server.longest, 200u);
  server.load(3 * kSecond, 60 * kSecond, 3 * kRate);
  server.forget();
  server.longest = 0;
  server.load(60 * kSecond, 70 * kSecond, 3 * kRate);
  CHECK_LT(server.longest, 200u);
  CHECK_LT(server.sojourn / static_cast<double>(server.sent), 30e-3);  // a full queue: 200 ms
  CHECK_NEAR(static_cast<double>(server.sent), 10'000, 100);  // and the link stays busy
}

TEST(cake_takes_its_target_from_the_path) {
  // One interval of a standing queue before the first drop.
  const auto first_drop = [](std::map<std::string, double> parameters) {
    parameters["ecn"] = 0;
    Server server("cake", parameters, kRate, 100'000);
    server.load(0, 20 * kSecond, 1.5 * kRate);
    return server.drop_times.empty() ? 1e9 : static_cast<double>(server.drop_times[0]) * 1e-6;
  };
  CHECK_NEAR(first_drop({}), 115, 8);                                 // above 5 ms after 15, and 100
  CHECK_NEAR(first_drop({{"rtt_ms", 200}}), 230, 12);                 // above 10 ms after 30
  CHECK_NEAR(first_drop({{"path", 6}}), 1150, 50);                    // satellite: above 50 ms after 150
  CHECK_NEAR(first_drop({{"rtt_ms", 200}, {"target_ms", 5}}), 215, 8);
}

TEST(cake_conserves_packets_and_keeps_its_limits) {
  for (uint64_t seed = 0; seed < 3; ++seed) {
    CHECK(survives_anything("cake", {}, 50, INT64_MAX, seed));
    CHECK(survives_anything("cake", {{"rate_mbps", 1}, {"framing", 1}, {"diffserv", 3}}, INT64_MAX, 20'000, seed));
    CHECK(survives_anything("cake", {{"memory_bytes", 2000}, {"isolation", 3}}, 1000, INT64_MAX, seed));
    CHECK(survives_anything("cake", {}, 0, INT64_MAX, seed));
  }
}
