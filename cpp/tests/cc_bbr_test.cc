// BBR: its states in order, their gains, what it does to the queue, loss, a policer, idle periods.
#include <cmath>
#include <vector>

#include "check.h"
#include "fake_connection.h"

using namespace netbuf;

namespace {

constexpr double kMargin = 0.99;

struct Pipe : fake::Connection {
  explicit Pipe(fake::Path p, Stack stack = Stack::linux_kernel) : Connection("bbr", p, stack), path(p) {}
  double link_rate() const { return tcb.mss / seconds(path.per_packet); }
  double gain() const { return tcb.pacing_rate / (link_rate() * kMargin); }
  double bdp() const { return seconds(path.rtt + path.per_packet) / seconds(path.per_packet); }
  fake::Path path;
};

const fake::Path kPath{50 * kMillisecond, 1200 * kMicrosecond, 2};

}  // namespace

TEST(the_first_rate_is_high_gain_times_the_initial_window_a_round_trip) {
  Pipe c(kPath);
  CHECK(c.cc->owns_window());
  CHECK(c.cc->wants_rate());
  CHECK_NEAR(c.tcb.pacing_rate, kMargin * 2.89 * 10 * 1448 / 0.05, 0.01 * c.tcb.pacing_rate);
}

TEST(startup_drain_probe) {
  Pipe c(kPath);
  // STARTUP: the rate only rises, until the bandwidth stops growing.
  double highest = 0;
  while (c.tcb.ssthresh == kInfiniteWindow && c.tcb.now < 2 * kSecond) {
    highest = std::max(highest, c.gain());
    c.step();
  }
  CHECK_LT(c.tcb.ssthresh, kInfiniteWindow);  // the pipe is full
  CHECK_NEAR(highest, 2.89, 0.1);
  CHECK_NEAR(c.gain(), 1 / 2.885, 0.02);      // DRAIN
  CHECK_GT(c.queue_delay(), 30 * kMillisecond);
  while (c.gain() < 0.5) c.step();
  CHECK_LT(c.queue_delay(), 20 * kMillisecond);
}

TEST(the_gain_cycle) {
  Pipe c({50 * kMillisecond, 300 * kMicrosecond, 1});
  c.run(3 * kSecond);
  std::vector<double> gains;                  // each phase once
  std::vector<Time> starts;
  while (c.tcb.now < 8 * kSecond) {
    c.step();
    if (gains.empty() || std::fabs(c.gain() - gains.back()) > 0.1) {
      gains.push_back(c.gain());
      starts.push_back(c.tcb.now);
    }
  }
  CHECK_GT(gains.size(), 20u);
  for (size_t i = 1; i + 2 < gains.size(); ++i) {
    if (gains[i] < 1.15) continue;
    CHECK_NEAR(gains[i], 1.25, 0.03);
    CHECK_NEAR(gains[i + 1], 0.75, 0.03);
    CHECK_NEAR(gains[i + 2], 1.0, 0.03);
    const double cycle = i + 3 < gains.size() ? seconds(starts[i + 3] - starts[i]) : 0.4;
    CHECK_GT(cycle, 0.30);                    // eight phases of a round trip, the draining one cut short
    CHECK_LT(cycle, 0.50);
  }
}

TEST(fills_the_link_and_keeps_the_queue_short) {
  Pipe c(kPath);
  c.run(3 * kSecond);
  const uint32_t delivered = c.tcb.delivered;
  double queue = 0;
  int samples = 0;
  while (c.tcb.now < 9 * kSecond) {
    c.step();
    queue += seconds(c.queue_delay());
    ++samples;
    CHECK_LE(c.tcb.cwnd_packets, static_cast<uint32_t>(2 * c.bdp() * 1.05) + 16);
  }
  CHECK_GT((c.tcb.delivered - delivered) * seconds(c.path.per_packet) / 6, 0.97);
  CHECK_LT(queue / samples, 0.012);
}

TEST(probe_rtt_every_ten_seconds_for_200_ms_with_four_packets) {
  Pipe c(kPath);
  Time begin = 0, end = 0;
  uint32_t before_probe = 0, smallest = 1000;
  while (c.tcb.now < 12 * kSecond && !end) {
    const uint32_t cwnd = c.tcb.cwnd_packets;
    c.step();
    if (c.tcb.now < kSecond) continue;
    if (!begin && c.tcb.cwnd_packets <= 4) {
      begin = c.tcb.now;
      before_probe = cwnd;
    }
    if (begin) smallest = std::min(smallest, c.tcb.cwnd_packets);
    if (begin && c.tcb.cwnd_packets > 4) end = c.tcb.now;
  }
  CHECK_GT(begin, 9 * kSecond);
  CHECK_LT(begin, 11 * kSecond);
  CHECK_EQ(smallest, 4u);
  CHECK_GE(end - begin, 200 * kMillisecond);
  CHECK_LT(end - begin, 500 * kMillisecond);
  CHECK_GE(c.tcb.cwnd_packets, before_probe - 8);  // the window from before is back
}

TEST(recovery_conserves_packets_and_then_restores_the_window) {
  Pipe c(kPath);
  c.run(4 * kSecond);
  const uint32_t before_loss = c.tcb.cwnd_packets;
  const double rate = c.tcb.pacing_rate;
  CHECK_EQ(c.cc->ssthresh(c.tcb), c.tcb.ssthresh);  // not a cut
  c.cc->on_state(c.tcb, CaState::recovery);
  c.tcb.state = CaState::recovery;
  const uint32_t in_flight = c.tcb.in_flight();
  c.run_acks(1);
  CHECK_LE(c.tcb.cwnd_packets, in_flight + 2);
  CHECK_NEAR(c.tcb.pacing_rate, rate, 0.35 * rate);
  c.run_acks(20);
  c.cc->on_state(c.tcb, CaState::open);
  c.tcb.state = CaState::open;
  c.run_acks(1);
  CHECK_GE(c.tcb.cwnd_packets, before_loss - 4);
}

TEST(a_policer_is_recognised) {
  Pipe c(kPath);
  c.run(3 * kSecond);
  // A quarter of what is delivered is reported lost, steadily:
  // BBR takes the measured average as the rate and stops probing.
  bool steady = false;
  double last = 0;
  Time since = 0;
  while (c.tcb.now < 9 * kSecond && !steady) {
    c.tcb.lost += 1;
    AckEvent ack;
    ack.delivered = ack.acked = 2;
    ack.lost = 1;
    ack.rtt = c.path.rtt;
    ack.prior_in_flight = 10;
    ack.rate = {40, c.tcb.delivered - 40, 80 * kMillisecond, false, false};
    c.tcb.now += 4 * kMillisecond;
    c.tcb.delivered += 2;
    c.tcb.delivered_time = c.tcb.now;
    c.cc->control(c.tcb, ack);
    if (std::fabs(c.tcb.pacing_rate - last) > 1) since = c.tcb.now;
    last = c.tcb.pacing_rate;
    steady = c.tcb.now - since > kSecond;  // no gain cycle any more
  }
  CHECK(steady);
  CHECK_NEAR(c.tcb.pacing_rate, kMargin * 500 * c.tcb.mss, 0.03 * c.tcb.pacing_rate);
}

TEST(restart_from_idle_paces_at_the_bandwidth) {
  Pipe c(kPath);
  c.run(4 * kSecond);
  c.tcb.app_limited = c.tcb.delivered + 1;
  c.cc->on_idle_restart(c.tcb);
  CHECK_NEAR(c.gain(), 1.0, 0.03);
}

TEST(bursts_grow_with_the_rate) {
  Pipe c(kPath);
  c.tcb.pacing_rate = 100'000;                    // 0.8 Mbit/s
  CHECK_EQ(c.cc->burst_packets(c.tcb), 1u);
  c.tcb.pacing_rate = 1.25e6;
  CHECK_EQ(c.cc->burst_packets(c.tcb), 2u);
  c.tcb.pacing_rate = 12.5e6;                     // a millisecond's worth
  CHECK_EQ(c.cc->burst_packets(c.tcb), 8u);
}

// In windows beyond 2**31 bytes ns-3's target wraps at 2**32, and what is lost is still taken from the window.
TEST(ns3_windows_beyond_the_range_of_32_bits) {
  Pipe c({kSecond, 1200, 1}, Stack::ns3);
  c.tcb.set_cwnd(int64_t{1} << 31);
  c.cc->init(c.tcb);                          // 2**31 bytes a second: 2.89 times as much is beyond 2**32
  c.tcb.delivered = 1'000'000;
  AckEvent ack;
  ack.delivered = 1;
  ack.rtt = kSecond;
  c.cc->control(c.tcb, ack);
  CHECK_EQ(c.tcb.cwnd, int64_t{1} << 31);     // above the wrapped target, below the true one
  c.tcb.state = CaState::recovery;
  c.tcb.set_cwnd(3'000'000'000);
  ack.lost = 2;
  c.cc->control(c.tcb, ack);
  CHECK_GT(c.tcb.cwnd, 2'000'000'000);        // not one segment
}
