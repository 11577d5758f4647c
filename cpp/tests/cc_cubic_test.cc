// CUBIC: the curve, fast convergence, the friendly region, HyStart, idle periods.
#include <cmath>

#include "check.h"
#include "fake_connection.h"

using namespace netbuf;

namespace {

// Feeds one ACK a packet at a constant rate of window / rtt, without a network.
struct Curve {
  explicit Curve(Stack stack = Stack::linux_kernel) : cc(make_congestion_control("cubic", stack)) {
    tcb.stack = stack;
    tcb.now = kSecond;
    tcb.srtt = tcb.min_rtt = rtt;
    tcb.hystart = false;
    tcb.set_cwnd_packets(10);
    cc->init(tcb);
  }
  void lose_at(uint32_t packets) {
    tcb.set_cwnd_packets(packets);
    tcb.ssthresh = cc->ssthresh(tcb);
    tcb.set_cwnd(tcb.ssthresh);
    lost_at = tcb.now;
  }
  void run(Time duration) {
    const Time end = tcb.now + duration;
    while (tcb.now < end) {
      tcb.now += rtt / tcb.cwnd_packets;
      ++tcb.una;
      ++tcb.nxt;
      AckEvent ack;
      ack.acked = ack.delivered = 1;
      ack.una_advanced = true;
      ack.rtt = rtt;
      cc->on_ack(tcb, ack);
      cc->increase_window(tcb, ack);
    }
  }
  Tcb tcb;
  Time rtt = 100 * kMillisecond;
  Time lost_at = 0;
  std::unique_ptr<CongestionControl> cc;
};

double closed_form(double t, double w_max, double start) {
  const double k = std::cbrt((w_max - start) / 0.4);
  return 0.4 * std::pow(t - k, 3) + w_max;
}

}  // namespace

TEST(the_window_follows_the_cubic_curve) {
  for (const Stack stack : {Stack::linux_kernel, Stack::ns3}) {
    Curve c(stack);
    c.lose_at(1000);
    CHECK_EQ(c.tcb.cwnd_packets, 700u);
    for (int half_seconds = 1; half_seconds <= 24; ++half_seconds) {
      c.run(kSecond / 2);
      const double t = seconds(c.tcb.now - c.lost_at);
      // The target lies one RTT ahead and is reached one RTT later.
      CHECK_NEAR(c.tcb.cwnd_packets, closed_form(t, 1000, 700), 12);
    }
  }
}

TEST(fast_convergence_remembers_less_when_the_maximum_falls) {
  for (const Stack stack : {Stack::linux_kernel, Stack::ns3}) {
    Curve c(stack);
    c.lose_at(1000);
    c.lose_at(900);          // below 1000: W_max becomes 900 (1 + 0.7) / 2 = 765
    CHECK_NEAR(c.tcb.cwnd_packets, 630, 1);
    c.run(7 * kSecond);      // K = cbrt(135 / 0.4) = 6.96 s: the plateau
    CHECK_NEAR(c.tcb.cwnd_packets, 765, 8);
  }
}

TEST(beta) {
  Curve c;
  c.lose_at(100);
  CHECK_EQ(c.tcb.ssthresh, 70 * 1448);
  c.lose_at(2);
  CHECK_EQ(c.tcb.ssthresh, 2 * 1448);
}

TEST(the_friendly_region_keeps_up_with_reno) {
  Curve c;                    // 100 ms and 30 packets: Reno with beta 0.7 grows faster than the curve
  c.lose_at(30);
  c.run(5 * kSecond);
  const double reno = 21 + 5 / 0.1 * 3 * 0.3 / 1.7;  // alpha = 3 (1 - beta) / (1 + beta) a round trip
  CHECK_NEAR(c.tcb.cwnd_packets, reno, 3);
  CHECK_GT(c.tcb.cwnd_packets, closed_form(5, 30, 21));
}

TEST(at_most_half_a_packet_per_packet) {
  Curve c;
  c.lose_at(100);
  c.run(30 * kSecond);        // far above the plateau
  const uint32_t before_round = c.tcb.cwnd_packets;
  c.run(c.rtt);
  CHECK_LE(c.tcb.cwnd_packets, before_round * 3 / 2 + 1);
}

TEST(an_idle_period_shifts_the_epoch) {
  Curve idle, busy;
  for (Curve* c : {&idle, &busy}) {
    c->lose_at(1000);
    c->run(2 * kSecond);
  }
  idle.tcb.last_departure = idle.tcb.now;
  idle.tcb.now += 60 * kSecond;
  idle.cc->on_idle_restart(idle.tcb);
  idle.run(2 * kSecond);
  busy.run(2 * kSecond);
  CHECK_NEAR(idle.tcb.cwnd_packets, static_cast<double>(busy.tcb.cwnd_packets), 4);
}

TEST(hystart_leaves_slow_start_when_the_delay_rises) {
  fake::Connection c("cubic", {100 * kMillisecond, 1200 * kMicrosecond, 1});
  c.run(2 * kSecond);
  // Bandwidth x delay is 84 packets. Without HyStart the window would double until a loss;
  // the RTT has to rise by an eighth.
  CHECK_LT(c.tcb.ssthresh, kInfiniteWindow);
  CHECK_GE(c.tcb.ssthresh_packets(), 84u);
  CHECK_LE(c.tcb.ssthresh_packets(), 130u);
}

TEST(hystart_leaves_slow_start_on_a_long_ack_train) {
  // 100 us a packet: ACKs come in trains. The round whose train lasts half a round trip,
  // 505 ACKs, began with 640 packets.
  fake::Connection c("cubic", {100 * kMillisecond, 100 * kMicrosecond, 1});
  c.run(2 * kSecond);
  CHECK_NEAR(c.tcb.ssthresh_packets(), 640 + 505, 15);
}

TEST(without_hystart_slow_start_goes_on) {
  fake::Connection c("cubic", {100 * kMillisecond, 1200 * kMicrosecond, 1});
  c.tcb.hystart = false;
  c.run(2 * kSecond);
  CHECK_EQ(c.tcb.ssthresh, kInfiniteWindow);
  CHECK_GT(c.tcb.cwnd_packets, 500u);
}

TEST(ns3_hystart_waits_for_the_smoothed_delay_to_double) {
  fake::Connection c("cubic", {48 * kMillisecond, 1200 * kMicrosecond, 2}, Stack::ns3);
  c.run(2 * kSecond);
  CHECK_GT(c.tcb.ssthresh_packets(), 150u);
  CHECK_LT(c.tcb.ssthresh_packets(), 400u);
}
