// Copa: beside its authors' code on the same ACKs, its equilibrium, fairness,
// and what it does about competitors and losses.
#include "check.h"
#include "fake_connection.h"
#include "references/copa_acks.h"
#include "references/copa_reference.h"
#include "worlds.h"

using namespace netbuf;

namespace {

const fake::Path kPath{40 * kMillisecond, 1200 * kMicrosecond, 1};

// Other packets in the queue when one arrives, as its RTT shows it, over so many ACKs.
double mean_queue(fake::Connection& c, const fake::Path& path, int acks) {
  double sum = 0;
  for (int i = 0; i < acks; ++i) {
    c.run_acks(1);
    sum += static_cast<double>(c.tcb.last_rtt - path.rtt) / static_cast<double>(path.per_packet) - 1;
  }
  return sum / acks;
}

double mbps(World& world, uint32_t flow, double seconds) {
  return static_cast<double>(world.flows()[flow].counters().delivered_bytes) * 8 / seconds / 1e6;
}

}  // namespace

TEST(windows_and_gaps_are_the_reference_codes) {
  Tcb tcb;
  tcb.set_cwnd_packets(10);
  const auto copa = make_congestion_control("copa", Stack::linux_kernel);
  copa->init(tcb);
  CopaAcks acks;
  for (int i = 0; i < CopaAcks::kCount; ++i) {
    const CopaAck given = acks.next();
    AckEvent ack;
    ack.acked = ack.delivered = 1;
    ack.rtt = given.rtt_us * kMicrosecond;
    ack.lost = given.lost;
    ack.prior_in_flight = 1000;
    tcb.now = given.now_us * kMicrosecond;
    copa->control(tcb, ack);
    if (i % CopaAcks::kEvery != CopaAcks::kEvery - 1) continue;
    const CopaRecord& expected = kCopaRecords[i / CopaAcks::kEvery];
    CHECK_EQ(tcb.cwnd_packets, static_cast<uint32_t>(expected.window_packets));
    if (i >= 40) CHECK_NEAR(tcb.mss / tcb.pacing_rate * 1e3, expected.gap_ms, 2e-6);
  }
}

TEST(keeps_about_two_packets_in_the_queue_for_the_default_delta_and_more_for_smaller_ones) {
  double last = 0;
  for (const double delta : {0.5, 0.2, 0.1}) {
    fake::Connection c("copa", kPath, Stack::linux_kernel, {{"delta", delta}, {"competitive_mode", 0}});
    c.run(30 * kSecond);
    const double queue = mean_queue(c, kPath, 4000);
    CHECK_GE(queue, 0.4 / delta);
    CHECK_LE(queue, 2.5 / delta);
    CHECK_GT(queue, last);
    last = queue;
  }
}

TEST(fills_the_link) {
  fake::Connection c("copa", kPath);
  c.run(10 * kSecond);
  const uint32_t delivered = c.tcb.delivered;
  c.run(20 * kSecond);
  CHECK_GE((c.tcb.delivered - delivered) * seconds(kPath.per_packet) / 10, 0.95);
}

TEST(of_a_delayed_ack_every_packet_counts) {
  const fake::Path delayed{40 * kMillisecond, 1200 * kMicrosecond, 2};
  fake::Connection one("copa", kPath), two("copa", delayed);
  while (one.tcb.cwnd_packets < 60) one.step();  // slow start doubles the window in a round trip
  while (two.tcb.cwnd_packets < 60) two.step();
  CHECK_NEAR(seconds(one.tcb.now), seconds(two.tcb.now), 0.08);
}

TEST(two_share_a_link_and_a_cubic_flow_does_not_take_it_from_it) {
  WorldConfig world = worlds::dumbbell(20, 40, 130, {"copa", "copa"});
  world.flows[1].start_ns = 5 * kSecond;
  World two(world, 1);
  two.run(15 * kSecond);
  const double before = mbps(two, 0, 1), before_second = mbps(two, 1, 1);
  two.run(60 * kSecond);
  const double first = mbps(two, 0, 1) - before, second = mbps(two, 1, 1) - before_second;
  CHECK_GE((first + second) * (first + second) / (2 * (first * first + second * second)), 0.95);
  CHECK_GE((first + second) / 45, 0.9 * 20 * 1448 / 1500);

  for (const double competes : {0.0, 1.0}) {
    WorldConfig mixed = worlds::dumbbell(20, 40, 130, {"copa", "cubic"});
    mixed.flows[0].cc_parameters = {{"competitive_mode", competes}};
    World beside(mixed, 1);
    beside.run(60 * kSecond);
    if (competes > 0) CHECK_GE(mbps(beside, 0, 60), 5);
    else CHECK_LE(mbps(beside, 0, 60), 3);
  }
}

TEST(few_losses_do_not_move_it_and_a_time_out_leaves_two_packets) {
  fake::Connection c("copa", kPath);
  c.run(10 * kSecond);
  const uint32_t settled = c.tcb.cwnd_packets;
  c.lose();
  c.run_acks(1);
  CHECK_GE(c.tcb.cwnd_packets + 2, settled);
  c.time_out();
  c.run_acks(1);
  CHECK_LE(c.tcb.cwnd_packets, 3u);
  c.run(c.tcb.now + kSecond);  // it doubles
  CHECK_GE(c.tcb.cwnd_packets, settled / 2);
}
