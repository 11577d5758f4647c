// Token buckets: what a policer drops, what a shaper holds back.
#include "qdisc_server.h"
#include "worlds.h"

using namespace netbuf;

namespace {

WorldConfig world(const char* name, double rate_mbps, double burst_bytes, const std::string& cc = "cubic") {
  WorldConfig world = worlds::dumbbell(100, 40, 1000, {cc});
  world.links[0].discipline = name;
  world.links[0].discipline_parameters = {{"rate_mbps", rate_mbps}, {"burst_bytes", burst_bytes}};
  return world;
}

struct Datagrams {
  uint64_t received, dropped;
  double mean_delay_ms;
};

// Constant bit rate through the bucket.
Datagrams datagrams(const char* name, double offered_mbps, double rate_mbps, double burst_bytes, int64_t limit = 1000) {
  WorldConfig config = worlds::dumbbell(1000, 2, limit, {"cubic"});
  config.flows[0].start_ns = 100 * kSecond;  // never
  config.links[0].discipline = name;
  config.links[0].discipline_parameters = {{"rate_mbps", rate_mbps}, {"burst_bytes", burst_bytes}};
  config.udp.push_back({});
  config.udp[0].path = {0};
  config.udp[0].rate_bps = offered_mbps * 1e6;
  World world(config, 1);
  world.run(10 * kSecond);
  const LinkStats stats = world.links()[0].stats(world.now());
  return {stats.packets_out, stats.queue_drops, 1e3 * stats.sojourn_sum / static_cast<double>(stats.packets_out)};
}

}  // namespace

TEST(a_policer_passes_the_burst_and_then_its_rate) {
  Server server("policer", {{"rate_mbps", 10}, {"burst_bytes", 15000}}, 1e9);
  for (int i = 0; i < 30; ++i) server.arrive(0);
  server.run(kSecond);
  CHECK_EQ(server.total_sent, 10u);
  CHECK_EQ(server.drops, 20u);
  const Datagrams over = datagrams("policer", 20, 10, 15000);
  CHECK_NEAR(static_cast<double>(over.received), 10 * 10e6 / 12000 + 10, 5);  // its rate, and the burst once
  CHECK_LE(over.mean_delay_ms, 0.02);
  const Datagrams within = datagrams("policer", 9, 10, 15000);
  CHECK_EQ(within.dropped, 0u);
}

TEST(a_shaper_sends_the_burst_and_then_at_its_rate) {
  const Datagrams over = datagrams("tbf", 20, 10, 15000, 100);
  CHECK_NEAR(static_cast<double>(over.received), 10 * 10e6 / 12000 + 10, 5);
  CHECK_NEAR(over.mean_delay_ms, 100 * 1.2, 5);  // a full queue of 100
  const Datagrams within = datagrams("tbf", 9, 10, 15000);
  CHECK_EQ(within.dropped, 0u);
  CHECK_LE(within.mean_delay_ms, 0.02);
}

// Datagrams of 20 Mbit/s at 10 Mbit/s fill a queue of 100; the link is down for 50 ms and loses it. What is dropped
// takes no tokens: in the 100 ms after it the burst leaves, and the rate.
TEST(a_shaper_whose_link_was_down_has_its_burst_again) {
  WorldConfig config = worlds::dumbbell(1000, 2, 100, {"cubic"});
  config.flows[0].start_ns = 100 * kSecond;  // never
  config.links[0].discipline = "tbf";
  config.links[0].discipline_parameters = {{"rate_mbps", 10}, {"burst_bytes", 15000}};
  config.links[0].schedule_time_ns = {0, 2 * kSecond, 2 * kSecond + 50 * kMillisecond};
  config.links[0].schedule_rate_bps = {1e9, 0, 1e9};
  config.links[0].rate_bps = 0;
  config.links[0].outage_ns = 50 * kMillisecond;
  config.udp.push_back({});
  config.udp[0].path = {0};
  config.udp[0].rate_bps = 20e6;
  World world(config, 1);
  world.run(2 * kSecond + 50 * kMillisecond);
  const uint64_t before = world.links()[0].stats(world.now()).packets_out;
  world.run(2 * kSecond + 150 * kMillisecond);
  CHECK_NEAR(static_cast<double>(world.links()[0].stats(world.now()).packets_out - before), 10 + 0.1 * 10e6 / 12000, 5);
}

TEST(a_packet_beyond_the_burst_never_passes_a_shaper) {
  const Datagrams none = datagrams("tbf", 5, 10, 1000);
  CHECK_EQ(none.received, 0u);
  CHECK_GT(none.dropped, 1000u);
}

TEST(a_flow_gets_the_rate_of_a_shaper_and_less_of_a_policer) {
  const auto goodput = [](const WorldConfig& config) {
    World world(config, 1);
    world.run(20 * kSecond);
    return static_cast<double>(world.flows()[0].counters().delivered_bytes) * 8e-6 / 20;
  };
  CHECK_NEAR(goodput(world("tbf", 20, 30000)), 20 * 1448.0 / 1500, 1);
  const double policed = goodput(world("policer", 20, 30000));
  CHECK(policed > 3 && policed < 18);
}

TEST(a_shaper_holds_back_before_a_device_too) {
  WorldConfig config = world("tbf", 20, 30000);
  config.links[0].device_packets = 2;
  World world(config, 1);
  world.run(20 * kSecond);
  CHECK_NEAR(static_cast<double>(world.flows()[0].counters().delivered_bytes) * 8e-6 / 20, 20 * 1448.0 / 1500, 1);
}
