// BBR version 3 against the cases of draft-ietf-ccwg-bbr's appendix that show from outside.
#include "fake_connection.h"
#include "worlds.h"

using namespace netbuf;

namespace {

constexpr double kRtt = 0.04;

WorldConfig path(double mbps, double buffer_bdp, const std::vector<std::string>& senders = {"bbr3"}) {
  const double bdp = mbps * 1e6 * kRtt / 12'000;
  return worlds::dumbbell(mbps, kRtt * 1e3, std::max<int64_t>(static_cast<int64_t>(buffer_bdp * bdp), 1), senders);
}

double mbps(World& world, size_t flow, Time from, Time to) {
  world.run(from);
  const int64_t before = world.flows()[flow].counters().delivered_bytes;
  world.run(to);
  return static_cast<double>(world.flows()[flow].counters().delivered_bytes - before) * 8e-6 / seconds(to - from);
}

double paced_mbps(const Flow& flow) { return flow.sender.tcb.pacing_rate * 8e-6; }

}  // namespace

TEST(startup_ends_where_the_bandwidth_stops_growing) {
  for (const double rate : {1.0, 10.0, 100.0}) {
    World world(path(rate, 20), 1);
    world.run(2 * kSecond);
    const Flow& flow = world.flows()[0];
    CHECK_LT(paced_mbps(flow), 1.3 * rate);          // 2.77 in Startup
    CHECK_GT(paced_mbps(flow), 0.8 * rate);
    CHECK_EQ(flow.counters().queue_drops, 0u);
    CHECK_GT(mbps(world, 0, 3 * kSecond, 13 * kSecond), 0.9 * rate * 1448 / 1500);
    CHECK_LT(flow.sender.tcb.cwnd_packets, 3 * std::max(rate * 1e6 * kRtt / 12'000, 4.0) + 200);
  }
}

TEST(startup_ends_by_losses_where_the_buffer_is_shallow) {
  World world(path(50, 0.25), 1);
  world.run(3 * kSecond);
  const FlowCounters c = world.flows()[0].counters();
  CHECK_GT(c.queue_drops, 0u);
  CHECK_LT(paced_mbps(world.flows()[0]), 1.3 * 50);
  CHECK_GT(mbps(world, 0, 3 * kSecond, 23 * kSecond), 0.8 * 50);
}

TEST(a_shallow_buffer_loses_less_than_with_version_1) {
  const auto lost = [](const char* cc) {
    World world(path(50, 0.25, {cc, cc}), 1);
    world.run(5 * kSecond);
    const uint64_t drops = world.links()[0].stats(world.now()).queue_drops,
                   out = world.links()[0].stats(world.now()).packets_out;
    world.run(35 * kSecond);
    const LinkStats s = world.links()[0].stats(world.now());
    return static_cast<double>(s.queue_drops - drops) / static_cast<double>(s.packets_out - out);
  };
  CHECK_LT(lost("bbr3"), 0.03);
  CHECK_LT(lost("bbr3"), 0.5 * lost("bbr"));
}

TEST(losses_below_the_threshold_do_not_matter) {
  WorldConfig config = path(50, 2);
  config.links[0].loss = 0.002;
  World world(config, 1);
  CHECK_GT(mbps(world, 0, 5 * kSecond, 35 * kSecond), 0.8 * 50);
  World cubic([&] { config.flows[0].cc = "cubic"; return config; }(), 1);
  CHECK_LT(mbps(cubic, 0, 5 * kSecond, 35 * kSecond), 0.5 * 50);
}

TEST(probe_rtt_comes_every_five_seconds_and_halves_what_is_in_flight) {
  World world(path(20, 5), 1);
  world.run(6 * kSecond);
  const double bdp = 20e6 * kRtt / 12'000;
  Time low_since = -1, longest = 0;
  uint32_t episodes = 0;
  worlds::run_until(world, 36 * kSecond, [&](const Flow& flow) {
    const Tcb& tcb = flow.sender.tcb;
    const bool low = tcb.cwnd_packets <= 0.6 * bdp;
    CHECK_GE(tcb.cwnd_packets, 4u);
    if (low && low_since < 0) low_since = tcb.now, ++episodes;
    if (low) longest = std::max(longest, tcb.now - low_since);
    if (!low) low_since = -1;
    return false;
  });
  CHECK(episodes >= 4 && episodes <= 7);
  CHECK_GE(longest, 200 * kMillisecond);
  CHECK_LE(longest, 400 * kMillisecond);
}

TEST(a_rate_ten_times_as_high_is_found_and_one_ten_times_as_low_heeded) {
  for (const auto& [first, second] : {std::pair{5.0, 50.0}, std::pair{50.0, 5.0}}) {
    WorldConfig config = path(5, 20);
    config.links[0].rate_bps = 0;
    config.links[0].schedule_time_ns = {0, 10 * kSecond};
    config.links[0].schedule_rate_bps = {first * 1e6, second * 1e6};
    World world(config, 1);
    CHECK_GT(mbps(world, 0, 5 * kSecond, 10 * kSecond), 0.85 * first);
    CHECK_GT(mbps(world, 0, 25 * kSecond, 35 * kSecond), 0.85 * second);
    CHECK_LT(paced_mbps(world.flows()[0]), 1.4 * second);
  }
}

TEST(senders_of_a_kind_share) {
  World world(path(40, 2, {"bbr3", "bbr3"}), 1);
  const double one = mbps(world, 0, 20 * kSecond, 60 * kSecond);
  World again(path(40, 2, {"bbr3", "bbr3"}), 1);
  const double other = mbps(again, 1, 20 * kSecond, 60 * kSecond);
  CHECK_GT(std::min(one, other), 0.25 * 40);
  CHECK_GT(one + other, 0.9 * 40 * 1448 / 1500);
}

TEST(an_application_without_data_does_not_shrink_the_model) {
  WorldConfig config = path(20, 2);
  config.flows[0].app = "on_off";
  config.flows[0].on_ns = 10 * kSecond;
  config.flows[0].off_ns = 2 * kSecond;
  World world(config, 1);
  CHECK_GT(mbps(world, 0, 13 * kSecond, 21 * kSecond), 0.85 * 20);
}

TEST(a_spurious_time_out_costs_little) {
  fake::Connection c("bbr3", {});
  c.run(c.tcb.now + 5 * kSecond);
  const double rate = c.tcb.pacing_rate;
  c.time_out();
  c.cc->undo_window(c.tcb, c.tcb.cwnd);
  c.run(c.tcb.now + 3 * kSecond);
  CHECK_NEAR(c.tcb.pacing_rate, rate, 0.4 * rate);
}
