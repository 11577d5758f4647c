// NewReno and LinuxReno: growth a round trip, and the reduction.
#include "check.h"
#include "fake_connection.h"

using namespace netbuf;

namespace {
const fake::Path kFast{100 * kMillisecond, kMicrosecond, 1};   // no queue to speak of: rounds are visible
const fake::Path kDelayed{100 * kMillisecond, kMicrosecond, 2};

// Acknowledges exactly the packets in flight now.
void round_trip(fake::Connection& c) {
  const uint32_t end = c.tcb.nxt;
  while (before(c.tcb.una, end)) c.step();
}
}  // namespace

TEST(slow_start_doubles_a_round_trip_whatever_the_acks) {
  for (const fake::Path& path : {kFast, kDelayed}) {
    fake::Connection c("newreno", path);
    for (uint32_t window = 10; window < 1000; window *= 2) {
      CHECK_EQ(c.tcb.cwnd_packets, window);
      round_trip(c);
    }
  }
}

TEST(ns3_slow_start_counts_acks) {
  fake::Connection c("newreno", kDelayed, Stack::ns3);
  round_trip(c);
  CHECK_EQ(c.tcb.cwnd_packets, 15u);
}

TEST(congestion_avoidance_adds_a_packet_a_round_trip) {
  for (const Stack stack : {Stack::linux_kernel, Stack::ns3}) {
    fake::Connection c(stack == Stack::ns3 ? "linuxreno" : "newreno", kDelayed, stack);
    c.run_acks(40);
    c.lose();
    const uint32_t start = c.tcb.cwnd_packets;
    CHECK_EQ(c.tcb.cwnd, c.tcb.ssthresh);
    while (c.tcb.in_flight() > c.tcb.cwnd_packets) c.step();
    for (int i = 0; i < 30; ++i) round_trip(c);
    CHECK_NEAR(c.tcb.cwnd_packets, start + 30.0, 2.0);
  }
}

TEST(ns3_newreno_adds_half_a_segment_a_round_trip_with_delayed_acks) {
  fake::Connection c("newreno", kDelayed, Stack::ns3);
  for (int i = 0; i < 4; ++i) round_trip(c);
  c.lose();
  const double start = static_cast<double>(c.tcb.cwnd) / c.tcb.mss;
  for (int i = 0; i < 40; ++i) round_trip(c);
  CHECK_NEAR(static_cast<double>(c.tcb.cwnd) / c.tcb.mss, start + 20, 1.5);
}

TEST(slow_start_stops_at_ssthresh_and_hands_the_rest_on) {
  fake::Connection c("newreno", kFast);
  c.tcb.ssthresh = 12 * int64_t{c.tcb.mss};
  AckEvent ack;
  ack.acked = ack.delivered = 2 + 12;  // two to reach ssthresh, twelve are a round trip's worth
  c.cc->increase_window(c.tcb, ack);
  CHECK_EQ(c.tcb.cwnd_packets, 13u);
}

TEST(ns3_linuxreno_drops_what_is_left_at_ssthresh) {
  fake::Connection c("linuxreno", kFast, Stack::ns3);
  c.tcb.ssthresh = 12 * int64_t{c.tcb.mss};
  AckEvent ack;
  ack.acked = ack.delivered = 14;
  c.cc->increase_window(c.tcb, ack);
  CHECK_EQ(c.tcb.cwnd_packets, 12u);
}

TEST(reductions) {
  fake::Connection linux("newreno", kFast), ns3("newreno", kFast, Stack::ns3), bytes("linuxreno", kFast, Stack::ns3);
  for (fake::Connection* c : {&linux, &ns3, &bytes}) c->tcb.set_cwnd_packets(41);
  CHECK_EQ(linux.cc->ssthresh(linux.tcb), 20 * 1448);          // half the window, whole packets
  CHECK_EQ(ns3.cc->ssthresh(ns3.tcb), 10 * 1448 / 2);          // half of what is in flight
  CHECK_EQ(bytes.cc->ssthresh(bytes.tcb), 41 * 1448 / 2);      // half the window, bytes
  linux.tcb.set_cwnd_packets(1);
  CHECK_EQ(linux.cc->ssthresh(linux.tcb), 2 * 1448);
}
