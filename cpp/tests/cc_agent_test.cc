// The agent's congestion control: a window that nothing moves but the agent,
// and the slow start before its first decision.
#include "netbuf/agent.h"

#include <cmath>
#include <limits>

#include "fake_connection.h"
#include "worlds.h"

using namespace netbuf;

namespace {

constexpr double kMss = 1448;

// A sender that is paced and starts slowly, if asked to, until then; nobody decides on anything.
struct Started {
  uint32_t packets;                          // its window
  bool known;                                // whether ssthresh is
  double delivered_mbit;
};

Started started(double mbps, double rtt_ms, int64_t queue_packets, Time until, bool slow_start = true,
                Stack stack = Stack::linux_kernel) {
  World world(worlds::dumbbell(mbps, rtt_ms, queue_packets, {"agent"}, stack), 1);
  CHECK_EQ(make_agent("sender", {{"paced", 1}, {"slow_start", slow_start}})->find(world).size(), 1u);
  world.run(until);
  const Tcb& tcb = world.flows()[0].sender.tcb;
  return {tcb.cwnd_packets, tcb.ssthresh < kInfiniteWindow,
          static_cast<double>(world.flows()[0].counters().delivered_bytes) * 8e-6};
}

double product(double mbps, double rtt_ms) { return mbps * rtt_ms * 1e3 / 8 / 1500; }

}  // namespace

TEST(a_window_stays_where_no_slow_start_is_asked_for) {
  const Started one = started(100, 40, 0, 5 * kSecond, false);
  CHECK_EQ(one.packets, 10u);
  CHECK(!one.known);
}

TEST(a_slow_start_ends_at_what_the_path_holds) {
  for (const auto& [mbps, rtt_ms] :
       {std::pair{1000., 50.}, {1000., 5.}, {100., 5.}, {100., 40.}, {10., 20.}, {20., 300.}}) {
    for (const double buffer : {0.25, 1., 4., 1000.}) {              // bandwidth-delay products
      const auto queue = static_cast<int64_t>(std::max(4., buffer * product(mbps, rtt_ms)));
      const Started paced = started(mbps, rtt_ms, queue, 5 * kSecond);
      CHECK(paced.known);
      CHECK_GE(paced.packets, (queue > 10 ? 0.7 : 0.25) * product(mbps, rtt_ms));  // the first ten leave in one burst
      CHECK_LE(paced.packets, 1.5 * product(mbps, rtt_ms) + 4);
      // What leaves in one burst waits in the queue, and is noticed sooner;
      // of a short queue most of it is lost, and it times out.
      const Started plain = started(mbps, rtt_ms, queue, 5 * kSecond, true, Stack::ns3);
      CHECK(plain.known);
      if (buffer >= 1) CHECK_GE(plain.packets, 0.1 * product(mbps, rtt_ms));
      CHECK_LE(plain.packets, 1.5 * product(mbps, rtt_ms) + 4);
    }
  }
}

TEST(a_slow_start_fills_a_fast_link_within_a_second) {
  CHECK_GE(started(1000, 50, 4000, 2 * kSecond).delivered_mbit, started(1000, 50, 4000, kSecond).delivered_mbit + 900);
}

TEST(a_slow_start_doubles_in_a_round_trip) {
  uint32_t before = started(1000, 100, 0, 150 * kMillisecond).packets;
  CHECK_EQ(before, 10u);                       // the handshake takes one
  for (const Time until : {350, 450, 550, 650}) {
    const uint32_t now = started(1000, 100, 0, until * kMillisecond).packets;
    CHECK_GE(now, 1.6 * before);
    CHECK_LE(now, 2.6 * before);
    before = now;
  }
}

TEST(the_first_decision_ends_a_slow_start) {
  World world(worlds::dumbbell(1000, 50, 0, {"agent"}), 1);
  make_agent("sender", {{"slow_start", 1}})->find(world);
  world.run(200 * kMillisecond);
  CHECK_GT(world.flows()[0].sender.tcb.cwnd_packets, 20u);
  world.set_window(0, 25 * kMss);
  world.run(5 * kSecond);
  CHECK_EQ(world.flows()[0].sender.tcb.cwnd_packets, 25u);
  CHECK_EQ(world.flows()[0].sender.tcb.ssthresh, kInfiniteWindow);
}

TEST(a_window_that_is_not_used_does_not_grow) {
  fake::Connection c("agent", {});
  c.cc->on_agent(true);
  AckEvent one;
  one.acked = one.delivered = 1;
  one.rtt = 50 * kMillisecond;
  c.tcb.una = 0;
  c.tcb.nxt = 4;                               // 4 and the one acknowledged are half of 10
  c.cc->control(c.tcb, one);
  CHECK_EQ(c.tcb.cwnd_packets, 10u);
  c.tcb.nxt = 5;
  c.cc->control(c.tcb, one);
  CHECK_EQ(c.tcb.cwnd_packets, 11u);
}

// The window after ten round trips of so many packets, each of which lost so many of them;
// 0 where the slow start went on.
uint32_t ended_at(uint32_t packets, uint32_t lost) {
  fake::Connection c("agent", {});
  c.cc->on_agent(true);
  c.tcb.set_cwnd_packets(packets);
  c.tcb.nxt = c.tcb.una + packets;
  AckEvent ack;
  for (int round = 0; round < 10; ++round) {
    for (uint32_t i = 0; i < packets; ++i) {
      ack.lost = i * lost / packets != (i + 1) * lost / packets;
      ack.delivered = !ack.lost;
      c.tcb.delivered += ack.delivered;
      c.cc->control(c.tcb, ack);
    }
  }
  return c.tcb.ssthresh < kInfiniteWindow ? c.tcb.cwnd_packets : 0;
}

TEST(a_slow_start_ends_when_more_than_a_fiftieth_of_a_round_and_eight_packets_are_lost) {
  CHECK_EQ(ended_at(1000, 0), 0u);
  CHECK_EQ(ended_at(1000, 15), 0u);
  CHECK_GT(ended_at(1000, 30), 400u);
  CHECK_LT(ended_at(1000, 30), 2000u);
  CHECK_EQ(ended_at(20, 3), 0u);  // too few to tell
  CHECK_GT(ended_at(20, 9), 0u);
}

TEST(a_recovery_alone_does_not_end_a_slow_start) {
  fake::Connection c("agent", {});             // 10 Mbit/s
  c.cc->on_agent(true);
  c.run_acks(10);
  const uint32_t before = c.tcb.cwnd_packets;
  c.lose();
  CHECK_EQ(c.tcb.cwnd_packets, before);
  CHECK_EQ(c.tcb.ssthresh, kInfiniteWindow);
  c.run_acks(10);
  CHECK_GT(c.tcb.cwnd_packets, before);
}

TEST(a_time_out_ends_a_slow_start) {
  fake::Connection c("agent", {});
  c.cc->on_agent(true);
  c.run_acks(20);
  const int64_t before = c.tcb.cwnd;
  c.time_out();
  CHECK_GE(c.tcb.ssthresh, before / 4);
  CHECK_LE(c.tcb.ssthresh, before / 2);
  CHECK_EQ(c.tcb.cwnd_packets, 1u);
  c.run_acks(100);
  CHECK_EQ(c.tcb.cwnd_packets, 1u);            // until it is decided on
}

// Packets that have left in 20 s by a window of so many segments, for each smoothed round trip.
double paced_by(double segments, bool fine, uint32_t* in_flight = nullptr) {
  World world(worlds::dumbbell(10, 48, 0, {"agent"}), 1);
  make_agent("sender", {{"paced", 1}, {"fine", fine}})->find(world);
  world.run(kSecond);
  world.set_window(0, segments * kMss);
  world.run(11 * kSecond);
  const Sender& sender = world.flows()[0].sender;
  const uint64_t before = sender.counters.packets_sent;
  uint32_t most = 0;
  for (int step = 0; step < 20'000; ++step) {
    world.run(11 * kSecond + step * kMillisecond);
    most = std::max(most, sender.tcb.in_flight());
  }
  if (in_flight) *in_flight = most;
  return static_cast<double>(sender.counters.packets_sent - before) * seconds(sender.tcb.srtt) / 20;
}

TEST(a_window_below_two_segments_is_kept_by_its_pace) {
  for (const double segments : {0.0625, 0.25, 0.5, 0.8, 1.25}) {
    uint32_t most = 0;
    CHECK_NEAR(paced_by(segments, true, &most), segments, 0.1 * segments);
    CHECK_EQ(most, segments > 1 ? 2u : 1u);
  }
  CHECK_NEAR(paced_by(0.01, true), 1. / 16, 0.01);      // the least
  CHECK_NEAR(paced_by(0.25, false), 1, 0.1);            // whole segments
  CHECK_NEAR(paced_by(5, true), paced_by(5, false), 0); // from two on nothing is another
}

TEST(a_time_out_leaves_a_fine_window_as_it_is_and_a_large_one_a_segment) {
  for (const bool sack : {true, false}) {
    for (const double segments : {0.25, 8.}) {
      auto config = worlds::dumbbell(10, 48, 0, {"agent"});
      config.links[0].loss = 0.5;
      config.sack = sack;
      World world(config, 1);
      make_agent("sender", {{"paced", 1}, {"fine", 1}})->find(world);
      world.run(kSecond);
      world.set_window(0, segments * kMss);
      world.run(60 * kSecond);
      CHECK_GT(world.flows()[0].counters().timeouts, 0u);
      const Tcb& tcb = world.flows()[0].sender.tcb;
      CHECK_EQ(tcb.cwnd, segments < 1 ? 362 : 1448);
      CHECK_EQ(tcb.cwnd_packets, 1u);
    }
  }
}
