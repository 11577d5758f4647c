// FQ: turns, limits and rates of flows; what it makes of the senders of its host.
#include "check.h"
#include "qdisc_server.h"
#include "worlds.h"

using namespace netbuf;

namespace {
constexpr double kRate = 12e6;  // a packet of 1500 bytes each millisecond
}

TEST(fq_divides_the_link_by_bytes) {
  Server server("fq", {{"flow_limit", 1000}}, kRate, 10'000);
  for (Time t = 0; t < 5 * kSecond; t += kMillisecond) {
    server.arrive(t, 1, 1500);
    for (int i = 0; i < 3; ++i) server.arrive(t, 2, 500);
    server.arrive(t, 3, 1000);
  }
  const double share = static_cast<double>(server.sent_bytes) / 3;
  CHECK_NEAR(static_cast<double>(server.sent_of[1]) * 1500, share, 0.01 * share);
  CHECK_NEAR(static_cast<double>(server.sent_of[2]) * 500, share, 0.01 * share);
  CHECK_NEAR(static_cast<double>(server.sent_of[3]) * 1000, share, 0.01 * share);
}

TEST(fq_gives_a_new_flow_its_first_quantum_ahead) {
  Server server("fq", {}, kRate);
  std::vector<uint32_t> order;
  server.on_sent = [&](const Queued& item) { order.push_back(item.owner); };
  for (int i = 0; i < 40; ++i) server.arrive(0, 1);
  server.run(15 * kMillisecond);  // its first quantum, 15140 bytes, and some of the next
  order.clear();
  for (int i = 0; i < 20; ++i) server.arrive(15 * kMillisecond, 2);
  server.run(25 * kMillisecond);
  // 11 packets: the last begins with 140 bytes left.
  CHECK_EQ(std::count(order.begin(), order.begin() + 10, 2), 10);
  server.run(kSecond);
  // Then two packets each in turn.
  const std::vector<uint32_t> turns(order.begin() + 12, order.begin() + 24);
  CHECK_EQ(std::count(turns.begin(), turns.end(), 1), 6);
}

// A connection that takes an old one's number is new: of the old one's turns and rate it knows nothing.
TEST(fq_forgets_connections_that_are_over) {
  for (const Time pause : {Time{0}, kSecond}) {  // the old one is in line still, or has left it
    Server server("fq", {}, kRate);
    std::vector<uint32_t> order;
    server.on_sent = [&](const Queued& item) { order.push_back(item.owner); };
    for (int connection = 0; connection < 3; ++connection) {
      const Time from = server.now + kMillisecond;
      for (int i = 0; i < 100; ++i) server.arrive(from, 1);
      server.run(from + 50 * kMillisecond);  // 1 has spent its first quantum
      order.clear();
      for (int i = 0; i < 10; ++i) server.arrive(from + 50 * kMillisecond, 2);
      server.run(from + 61 * kMillisecond);
      CHECK_EQ(std::count(order.begin(), order.begin() + 10, 2), 10);
      server.run(server.now + pause);
      server.queue->forget(2);
    }
    server.run(server.now + kSecond);
    CHECK(server.conserved() && server.idle);
  }
  const size_t memory = [] {
    Server server("fq", {}, kRate);
    for (uint32_t owner = 0; owner < 1000; ++owner) {
      server.arrive(owner * kSecond, owner);
      server.run(owner * kSecond + 10 * kMillisecond);
      server.queue->forget(owner);
    }
    return server.queue->memory_bytes();
  }();
  CHECK_LT(memory, 2000u);

  Server limited("fq", {{"max_rate_mbps", 0.1}}, kRate);  // 120 ms between packets
  std::vector<Time> sent;
  limited.on_sent = [&](const Queued&) { sent.push_back(limited.now); };
  for (const Time at : {Time{0}, 5 * kMillisecond, 10 * kMillisecond}) {
    limited.arrive(at, 1);
    limited.run(at + 2 * kMillisecond);
    limited.queue->forget(1);
  }
  CHECK(sent == (std::vector<Time>{0, 5 * kMillisecond, 10 * kMillisecond}));
}

TEST(fq_drops_what_exceeds_a_flows_limit) {
  Server server("fq", {{"flow_limit", 10}}, kRate);
  for (int i = 0; i < 20; ++i) server.arrive(0, 1);
  for (int i = 0; i < 5; ++i) server.arrive(0, 2);
  CHECK_EQ(server.drops_of[1], 9u);  // one is in service
  CHECK_EQ(server.drops_of[2], 0u);
}

TEST(fq_holds_each_flow_to_its_rate) {
  // 3 Mbit/s: a packet each 4 ms. Two flows use half the link, and one that sends less keeps its own rate.
  Server server("fq", {{"max_rate_mbps", 3}, {"flow_limit", 10'000}}, kRate, 10'000);
  std::map<uint32_t, std::vector<Time>> departures;
  server.on_sent = [&](const Queued& item) { departures[item.owner].push_back(server.now); };
  for (Time t = 0; t < 4 * kSecond; t += kMillisecond) {
    server.arrive(t, 1);
    server.arrive(t, 2);
    if (t % (10 * kMillisecond) == 0) server.arrive(t, 3, 300);
  }
  CHECK_NEAR(departures[1].size(), 1000.0, 2);
  CHECK_NEAR(departures[2].size(), 1000.0, 2);
  CHECK_NEAR(departures[3].size(), 400.0, 1);
  for (size_t i = 100; i < 900; ++i) {
    CHECK_NEAR(static_cast<double>(departures[1][i] - departures[1][i - 1]), 4e6, 1.1e6);  // another's packet in between
  }
}

TEST(fq_marks_what_has_waited_too_long) {
  Server server("fq", {{"ce_threshold_ms", 5}}, kRate);
  server.ecn = true;
  for (int i = 0; i < 20; ++i) server.arrive(0);
  server.run(kSecond);
  CHECK_EQ(server.marks, 14u);  // those that begin after 6 ms or later
  // The wait for a flow's own rate does not count, but what it waits for others after that.
  Server limited("fq", {{"ce_threshold_ms", 5}, {"max_rate_mbps", 3}, {"flow_limit", 10'000}}, kRate, 10'000);
  limited.ecn = true;
  for (int i = 0; i < 100; ++i) limited.arrive(0, 1);
  limited.run(kSecond);
  CHECK_EQ(limited.sent, 100u);
  CHECK_GT(limited.longest_sojourn, 0.39);
  CHECK_EQ(limited.marks, 0u);
  for (uint32_t owner = 1; owner <= 8; ++owner) {  // twice what the link carries
    for (int i = 0; i < 100; ++i) limited.arrive(kSecond, owner);
  }
  limited.run(3 * kSecond);
  CHECK_GT(limited.marks, 700u);
}

TEST(fq_conserves_packets_and_keeps_its_limits) {
  for (uint64_t seed = 0; seed < 3; ++seed) {
    CHECK(survives_anything("fq", {}, 50, INT64_MAX, seed));
    CHECK(survives_anything("fq", {{"max_rate_mbps", 0.5}, {"quantum_bytes", 64}}, INT64_MAX, 20'000, seed));
    CHECK(survives_anything("fq", {}, 0, INT64_MAX, seed));
  }
}

namespace {

WorldConfig sender(const char* first, bool pacing, double fq_paces = 1) {
  WorldConfig world = worlds::dumbbell(10, 40, 1000, {"cubic"});
  LinkConfig device = world.links[0];
  device.name = "device";
  device.rate_bps = 1e9;
  device.delay_ns = 0;
  device.discipline = first;
  if (device.discipline == "fq") device.discipline_parameters = {{"pacing", fq_paces}};
  world.links.push_back(device);
  world.flows[0].path = {static_cast<uint32_t>(world.links.size() - 1), 0};
  world.pacing = pacing;
  return world;
}

std::pair<int64_t, uint32_t> outcome(const WorldConfig& config) {
  World world(config, 1);
  world.run(10 * kSecond);
  return {world.flows()[0].counters().delivered_bytes, world.links()[0].stats(world.now()).queue_max};
}

}  // namespace

TEST(fq_at_a_host_paces_its_senders) {
  const auto paced = outcome(sender("droptail", true)), plain = outcome(sender("droptail", false));
  CHECK(paced != plain);
  CHECK(outcome(sender("fq", false)) == paced);
  CHECK(outcome(sender("fq", false, 0)) == plain);
}

// Nothing of it at a router: the flow's path begins before.
TEST(fq_behind_the_first_link_paces_nobody) {
  WorldConfig world = sender("droptail", false);
  world.links[0].discipline = "fq";
  world.links[0].discipline_parameters = {{"flow_limit", 10'000}};
  CHECK(outcome(world) == outcome(sender("droptail", false)));
}
