// LEDBAT by RFC 6817 and LEDBAT++ by its draft.
#include <cmath>

#include "cc/delay_history.h"
#include "fake_connection.h"
#include "worlds.h"

using namespace netbuf;

namespace {

WorldConfig alone(const std::string& cc, double mbps = 10, double rtt_ms = 40) {
  return worlds::dumbbell(mbps, rtt_ms, 2000, {cc});
}

double mean_queueing_ms(World& world, Time from, Time to) {
  world.run(from);
  const LinkStats a = world.links()[0].stats(world.now());
  world.run(to);
  const LinkStats b = world.links()[0].stats(world.now());
  return (b.sojourn_sum - a.sojourn_sum) * 1e3 / static_cast<double>(b.packets_out - a.packets_out);
}
double delivered(World& world, size_t flow) {
  return static_cast<double>(world.flows()[flow].counters().delivered_bytes);
}

}  // namespace

TEST(the_base_delay_is_forgotten_after_its_minutes) {
  DelayHistory delays(2, 1);
  CHECK(!delays.known());
  delays.add(0, 10 * kMillisecond);
  delays.add(70 * kSecond, 30 * kMillisecond);
  CHECK_EQ(delays.base(), 10 * kMillisecond);
  CHECK_EQ(delays.queueing(), 20 * kMillisecond);
  delays.add(130 * kSecond, 40 * kMillisecond);
  CHECK_EQ(delays.base(), 30 * kMillisecond);
  delays.add(1000 * kSecond, 50 * kMillisecond);
  CHECK_EQ(delays.base(), 50 * kMillisecond);
}

TEST(the_present_delay_is_the_least_of_the_last_samples) {
  DelayHistory delays(10, 3);
  for (const Time ms : {10, 50, 30, 40}) delays.add(0, ms * kMillisecond);
  CHECK_EQ(delays.queueing(), 20 * kMillisecond);
}

TEST(ledbat_keeps_its_queue_at_the_target) {
  for (const double mbps : {10.0, 60.0}) {  // at 60 segments leave in groups, and less is in flight than the window
    for (const double target : {25.0, 100.0}) {
      WorldConfig config = alone("ledbat", mbps);
      config.flows[0].cc_parameters["target_ms"] = target;
      World world(config, 1);
      CHECK_NEAR(mean_queueing_ms(world, 300 * kSecond, 400 * kSecond), target, 0.1 * target);
      CHECK_GT(delivered(world, 0) * 8e-6 / 400, 0.9 * mbps);
    }
  }
}

TEST(ledbat_grows_by_its_gain_at_an_empty_queue) {
  for (const double gain : {1.0, 0.25}) {
    fake::Connection c("ledbat", {.rtt = 100 * kMillisecond, .per_packet = kMicrosecond}, Stack::linux_kernel,
                       {{"slow_start", 0}, {"gain", gain}});
    c.run(c.tcb.now + 4 * kSecond);
    CHECK_NEAR(c.tcb.cwnd_packets, 2 + 40 * gain, 8 * gain + 1);  // less what whole packets leave unused
  }
}

TEST(both_give_way_to_standard_tcp) {
  for (const char* cc : {"ledbat", "ledbatpp"}) {
    WorldConfig config = worlds::dumbbell(10, 40, 200, {cc, "cubic"});
    config.flows[1].start_ns = 5 * kSecond;
    World world(config, 1);
    world.run(20 * kSecond);
    const double before = delivered(world, 0), other = delivered(world, 1);
    world.run(80 * kSecond);
    CHECK_LT(delivered(world, 0) - before, 0.2 * (delivered(world, 1) - other));
  }
}

TEST(ledbatpp_stays_below_its_target_and_uses_the_link) {
  World world(alone("ledbatpp"), 1);
  const double queueing = mean_queueing_ms(world, 30 * kSecond, 120 * kSecond);
  CHECK_LT(queueing, 62);
  CHECK_GT(queueing, 30);
  CHECK_GT(delivered(world, 0) * 8e-6 / 120, 8);  // a tenth of the time it slows down
}

TEST(ledbatpp_grows_slowly_on_short_paths) {
  // Gain 1 / min(16, ceil(2 target / base)): 1/16 at 5 ms, 1/2 at 100 ms.
  for (const auto& [rtt_ms, divisor] : {std::pair{5, 16}, std::pair{100, 2}}) {
    fake::Connection c("ledbatpp", {.rtt = rtt_ms * kMillisecond, .per_packet = kMicrosecond});
    c.tcb.ssthresh = 4 * int64_t{c.tcb.mss};
    while (c.tcb.cwnd_packets < 6) c.step();
    const Time at = c.tcb.now;
    while (c.tcb.cwnd_packets < 7 && c.tcb.now < at + 100 * kSecond) c.step();
    const double rounds = static_cast<double>(c.tcb.now - at) / static_cast<double>(rtt_ms * kMillisecond);
    CHECK_GE(rounds, divisor - 2);
  }
}

TEST(ledbatpp_slows_down_for_a_tenth_of_the_time) {
  World world(alone("ledbatpp"), 1);
  uint32_t slowdowns = 0;
  bool low = true;
  worlds::run_until(world, 120 * kSecond, [&](const Flow& flow) {
    const bool now_low = flow.sender.tcb.cwnd_packets <= 2;
    slowdowns += now_low && !low;
    low = now_low;
    return false;
  });
  CHECK(slowdowns >= 3 && slowdowns <= 100);
}

TEST(ledbatpp_latecomers_get_their_share) {
  const auto share = [](const char* cc) {
    WorldConfig config = worlds::dumbbell(10, 40, 2000, {cc, cc});
    config.flows[1].start_ns = 30 * kSecond;
    World world(config, 1);
    world.run(60 * kSecond);
    const double first = delivered(world, 0), second = delivered(world, 1);
    world.run(180 * kSecond);
    const double a = delivered(world, 0) - first, b = delivered(world, 1) - second;
    return b / (a + b);
  };
  const double ledbat = share("ledbat"), plus = share("ledbatpp");
  CHECK_GT(ledbat, 0.6);          // takes the queue of the first for the path's own delay
  CHECK_NEAR(plus, 0.5, 0.15);
}
