// PCC Vivace: beside its authors' kernel module over the same path, its utility's optimum, fairness,
// and what differs by intent.
#include "check.h"
#include "fake_connection.h"
#include "references/beside_kernel.h"
#include "references/vivace_reference.h"
#include "worlds.h"

using namespace netbuf;

namespace {

const Given kAsModule = {{"initial_rate", 524'288}, {"moves_late", 1}, {"timeout_rate_percent", 100}};
const fake::Path kPath{40 * kMillisecond, 1200 * kMicrosecond, 1};

double goodput_mbps(World& world, uint32_t flow, Time from, Time until) {
  world.run(from);
  const int64_t before = world.flows()[flow].counters().delivered_bytes;
  world.run(until);
  return static_cast<double>(world.flows()[flow].counters().delivered_bytes - before) * 8 / seconds(until - from) / 1e6;
}

}  // namespace

TEST(rates_and_windows_are_the_modules) {
  BesideKernel beside("vivace", kAsModule);
  int tick = 0;
  for (const VivaceRecord& expected : kVivaceRecords) {
    for (const int end = tick + 50; tick < end; ++tick) beside.tick();
    CHECK_EQ(beside.tcb.pacing_rate, expected.rate);
    CHECK_EQ(beside.tcb.cwnd_packets, expected.window);
  }
  CHECK_GT(beside.path.lost, 100u);
}

TEST(fills_the_link_with_a_queue_that_stays_short_of_two_windows) {
  fake::Connection c("vivace", kPath);
  c.run(10 * kSecond);
  const uint32_t delivered = c.tcb.delivered;
  c.run(40 * kSecond);
  CHECK_GE((c.tcb.delivered - delivered) * seconds(kPath.per_packet) / 30, 0.9);
  CHECK_LE(c.tcb.last_rtt, 120 * kMillisecond);
}

TEST(random_losses_below_a_tenth_do_not_hold_it_back) {
  // 11 lost / sent: the utility falls with the rate from a loss of one packet in eleven on.
  WorldConfig world = worlds::dumbbell(10, 40, 150, {"vivace"});
  world.links[0].loss = 0.02;
  World lossy(world, 1);
  CHECK_GE(goodput_mbps(lossy, 0, 10 * kSecond, 60 * kSecond), 6.5);
  WorldConfig reno = worlds::dumbbell(10, 40, 150, {"newreno"});
  reno.links[0].loss = 0.02;
  World halved(reno, 1);
  CHECK_LE(goodput_mbps(halved, 0, 10 * kSecond, 60 * kSecond), 3.5);
}

TEST(two_converge_to_equal_shares) {
  WorldConfig config = worlds::dumbbell(20, 40, 130, {"vivace", "vivace"});
  config.flows[1].start_ns = 10 * kSecond;
  World first(config, 1), second(config, 1);
  const double a = goodput_mbps(first, 0, 40 * kSecond, 120 * kSecond),
               b = goodput_mbps(second, 1, 40 * kSecond, 120 * kSecond);
  CHECK_GE((a + b) * (a + b) / (2 * (a * a + b * b)), 0.95);
  CHECK_GE(a + b, 0.85 * 20);
}

TEST(begins_with_the_initial_window_in_a_round_trip) {
  Tcb tcb;
  tcb.srtt = 40 * kMillisecond;
  make_congestion_control("vivace", Stack::linux_kernel)->init(tcb);
  const double expected = 10 * 1448 / 0.04;  // no coin: the first of the pair is the higher
  CHECK_NEAR(tcb.pacing_rate, 1.05 * expected, 1);
}

TEST(a_time_out_halves_the_rate_but_not_in_the_module) {
  for (const bool module : {false, true}) {
    fake::Connection c("vivace", kPath, Stack::linux_kernel, module ? kAsModule : Given{});
    c.run(10 * kSecond);
    const double rate = c.tcb.pacing_rate;
    c.time_out();
    CHECK_NEAR(c.tcb.pacing_rate / rate, module ? 1.0 : 0.5, 0.12);  // and the probe's five percent before and after
  }
}
