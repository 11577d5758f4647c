// Westwood+: after a loss the window is bandwidth x smallest RTT.
#include "check.h"
#include "fake_connection.h"

using namespace netbuf;

TEST(the_reduction_is_bandwidth_times_min_rtt) {
  for (const Stack stack : {Stack::linux_kernel, Stack::ns3}) {
    const fake::Path path{100 * kMillisecond, 1200 * kMicrosecond, 2};
    fake::Connection c("westwood", path, stack);
    c.tcb.ssthresh = 120 * int64_t{c.tcb.mss};
    c.run(20 * kSecond);
    // A standing queue: half the window would be too little or too much by accident only.
    CHECK_GT(c.tcb.cwnd_packets, 120u);
    c.lose();
    const double bdp = seconds(path.rtt + path.per_packet) / seconds(path.per_packet);
    CHECK_NEAR(static_cast<double>(c.tcb.ssthresh) / c.tcb.mss, bdp, 0.06 * bdp);
    CHECK_EQ(c.tcb.cwnd, c.tcb.ssthresh);
  }
}

TEST(the_linux_estimate_also_follows_a_time_out) {
  const fake::Path path{100 * kMillisecond, 1200 * kMicrosecond, 1};
  fake::Connection c("westwood", path);
  c.tcb.ssthresh = 100 * int64_t{c.tcb.mss};
  c.run(10 * kSecond);
  c.time_out();
  CHECK_NEAR(static_cast<double>(c.tcb.ssthresh) / c.tcb.mss, 84, 5);
  CHECK_EQ(c.tcb.cwnd_packets, 1u);
}

TEST(never_below_two_packets) {
  for (const Stack stack : {Stack::linux_kernel, Stack::ns3}) {
    fake::Connection c("westwood", {}, stack);
    c.lose();
    CHECK_GE(c.tcb.ssthresh, 2 * int64_t{c.tcb.mss});
  }
}
