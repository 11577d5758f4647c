// Vegas: equilibrium between alpha and beta packets in the queue, and the way there.
#include "check.h"
#include "fake_connection.h"

using namespace netbuf;

namespace {
// Other packets in the queue when one arrives, as its RTT shows it.
double queued_packets(const fake::Connection& c, const fake::Path& path) {
  return static_cast<double>(c.tcb.last_rtt - path.rtt) / static_cast<double>(path.per_packet) - 1;
}
}  // namespace

TEST(holds_two_to_four_packets_in_the_queue) {
  for (const uint32_t ack_every : {1u, 2u}) {
    for (const Time rtt : {20 * kMillisecond, 100 * kMillisecond}) {
      const fake::Path path{rtt, 1200 * kMicrosecond, ack_every};
      fake::Connection c("vegas", path);
      c.run(120 * kSecond);  // slow start overshoots; from there it is one packet a round trip
      double sum = 0;
      const int samples = 2000;
      for (int i = 0; i < samples; ++i) {
        c.run_acks(1);
        sum += queued_packets(c, path);
      }
      CHECK_GE(sum / samples, 1.5);
      CHECK_LT(sum / samples, 5.0 + (ack_every - 1) * 2);  // the smallest RTT a pair shows includes its other packet
      const uint32_t before_wait = c.tcb.cwnd_packets;
      c.run(c.tcb.now + 10 * kSecond);
      CHECK_EQ(c.tcb.cwnd_packets, before_wait);  // it stays
    }
  }
}

TEST(fills_the_link) {
  const fake::Path path{100 * kMillisecond, 1200 * kMicrosecond, 2};
  fake::Connection c("vegas", path);
  c.run(10 * kSecond);
  const uint32_t delivered = c.tcb.delivered;
  const Time start = c.tcb.now;
  c.run(start + 10 * kSecond);
  CHECK_NEAR((c.tcb.delivered - delivered) * seconds(path.per_packet) / seconds(c.tcb.now - start), 1.0, 0.01);
}

TEST(leaves_slow_start_once_a_round_trip_shows_a_queue) {
  // 18 packets fill the path. The samples lag by a round trip, in which the window doubles once more.
  fake::Connection c("vegas", {20 * kMillisecond, 1200 * kMicrosecond, 1});
  while (c.tcb.in_slow_start() && c.tcb.now < 5 * kSecond) c.step();
  CHECK_GE(c.tcb.cwnd_packets, 18u);
  CHECK_LE(c.tcb.cwnd_packets, 40u);
  const uint32_t at_exit = c.tcb.cwnd_packets;
  c.run(c.tcb.now + 200 * kMillisecond);
  CHECK_LT(c.tcb.cwnd_packets, at_exit);
  CHECK_GE(c.tcb.cwnd_packets, at_exit - 8);  // one packet a round trip
}

TEST(gives_way_when_the_queue_grows) {
  const fake::Path path{100 * kMillisecond, 1200 * kMicrosecond, 1};
  fake::Connection c("vegas", path);
  c.run(120 * kSecond);
  const uint32_t settled = c.tcb.cwnd_packets;
  c.extra_delay = 20 * kMillisecond;  // looks like seventeen more packets of queue
  c.run(c.tcb.now + 3 * kSecond);
  CHECK_LT(c.tcb.cwnd_packets, settled - 5);
}

TEST(is_reno_while_in_trouble) {
  fake::Connection c("vegas", {100 * kMillisecond, 1200 * kMicrosecond, 1});
  c.run(5 * kSecond);
  CHECK_EQ(c.cc->ssthresh(c.tcb), static_cast<int64_t>(c.tcb.cwnd_packets / 2) * c.tcb.mss);
}
