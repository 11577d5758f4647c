// BBRPlus: beside the kernel module over the same path, and what tells it from BBR.
#include "check.h"
#include "fake_connection.h"
#include "references/bbrplus_reference.h"
#include "references/beside_kernel.h"

using namespace netbuf;

namespace {
const fake::Path kPath{40 * kMillisecond, 1200 * kMicrosecond, 1};

// The share of time from 5 to 60 s in which it paces faster than the link serves, and the mean queueing delay in ms.
struct Probing {
  double share, delay_ms;
};
Probing probing(std::string_view name) {
  fake::Connection c(name, kPath);
  c.run(5 * kSecond);
  const double capacity = c.tcb.mss / seconds(kPath.per_packet);
  Time fast = 0, last = c.tcb.now;
  double delay = 0;
  int count = 0;
  while (c.tcb.now < 60 * kSecond) {
    c.step();
    if (c.tcb.pacing_rate > 1.1 * capacity) fast += c.tcb.now - last;
    last = c.tcb.now;
    delay += seconds(c.queue_delay()) * 1e3;
    ++count;
  }
  return {seconds(fast) / 55, delay / count};
}
}  // namespace

TEST(rates_and_windows_are_the_modules) {
  BesideKernel beside("bbrplus", {{"pacing_margin_percent", 0}});
  int tick = 0;
  for (const BbrPlusRecord& expected : kBbrPlusRecords) {
    for (const int end = tick + 50; tick < end; ++tick) beside.tick();
    CHECK_EQ(beside.tcb.pacing_rate, expected.rate);
    CHECK_EQ(beside.tcb.cwnd_packets, expected.window);
  }
  CHECK_GT(beside.path.lost, 50u);
}

TEST(fills_the_link_with_a_short_queue) {
  fake::Connection c("bbrplus", kPath);
  c.run(60 * kSecond);
  CHECK_GE(c.tcb.delivered * seconds(kPath.per_packet) / 60, 0.95);
  CHECK_LE(probing("bbrplus").delay_ms, 15);
}

TEST(probes_more_often_than_bbr_since_its_cycles_are_shorter) {
  const Probing plus = probing("bbrplus"), bbr = probing("bbr");
  CHECK_GT(plus.share, bbr.share);  // a cycle of 2 to 8 round trips against one of 8
  CHECK_LT(plus.share, 0.5);
}
