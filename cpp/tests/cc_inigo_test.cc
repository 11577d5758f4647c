// TCP Inigo: beside the kernel module over the same path, the queue that it stands, fairness, losses.
#include "check.h"
#include "fake_connection.h"
#include "references/beside_kernel.h"
#include "references/inigo_reference.h"
#include "worlds.h"

using namespace netbuf;

namespace {
const fake::Path kPath{40 * kMillisecond, 1200 * kMicrosecond, 1};
}  // namespace

TEST(windows_are_the_modules) {
  BesideKernel beside("inigo", {});
  int tick = 0;
  for (const InigoRecord& expected : kInigoRecords) {
    for (const int end = tick + 50; tick < end; ++tick) beside.tick();
    CHECK_EQ(beside.tcb.cwnd_packets, expected.window);
    if (beside.tcb.ssthresh < kInfiniteWindow) CHECK_EQ(beside.tcb.ssthresh_packets(), expected.ssthresh);
  }
  CHECK_LT(beside.tcb.ssthresh, kInfiniteWindow);
}

TEST(fills_the_link_with_a_queue_about_its_threshold) {
  fake::Connection c("inigo", kPath);
  c.run(10 * kSecond);
  const uint32_t delivered = c.tcb.delivered;
  double delay = 0;
  int count = 0;
  while (c.tcb.now < 60 * kSecond) {
    c.step();
    delay += seconds(c.queue_delay());
    ++count;
  }
  CHECK_GE((c.tcb.delivered - delivered) * seconds(kPath.per_packet) / 50, 0.9);
  CHECK_LE(delay / count, 3 * 174.0 / 1024 * 0.04);
}

TEST(a_higher_threshold_stands_a_longer_queue) {
  uint32_t last = 0;
  for (const double threshold : {100, 400, 1000}) {
    fake::Connection c("inigo", kPath, Stack::linux_kernel, {{"markthresh", threshold}});
    c.run(30 * kSecond);
    CHECK_GT(c.tcb.cwnd_packets, last);
    last = c.tcb.cwnd_packets;
  }
}

TEST(a_loss_takes_alphas_share_only) {
  fake::Connection calm("inigo", {40 * kMillisecond, kMicrosecond, 1});  // no queue, no marks
  calm.run(50 * kMillisecond);
  CHECK_EQ(calm.cc->ssthresh(calm.tcb), int64_t{calm.tcb.cwnd_packets} * calm.tcb.mss);
  for (const double fairness : {0.0, 10.0}) {
    fake::Connection c("inigo", kPath, Stack::linux_kernel, {{"rtt_fairness", fairness}});
    c.run(20 * kSecond);
    const int64_t window = c.tcb.cwnd_packets, left = c.cc->ssthresh(c.tcb) / c.tcb.mss;
    CHECK_GE(left, window - (fairness > 0 ? 5 : window / 2));
  }
}

TEST(two_share_a_link) {
  WorldConfig config = worlds::dumbbell(20, 40, 130, {"inigo", "inigo"});
  World world(config, 1);
  world.run(60 * kSecond);
  const auto a = static_cast<double>(world.flows()[0].counters().delivered_bytes);
  const auto b = static_cast<double>(world.flows()[1].counters().delivered_bytes);
  CHECK_GE((a + b) * (a + b) / (2 * (a * a + b * b)), 0.95);
  CHECK_GE((a + b) * 8 / 60 / 1e6, 0.9 * 20 * 1448 / 1500);
}
