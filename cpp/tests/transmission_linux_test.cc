// How the Linux stack groups what it sends, and paces it when asked to.
#include <map>

#include "worlds.h"

using namespace netbuf;

namespace {

// How often each number of new segments left at one instant, from one time to another.
std::map<uint32_t, int> bursts(World& world, Time from, Time to) {
  std::map<uint32_t, int> count;
  world.run(from);
  const Flow& flow = world.flows()[0];
  while (world.next_event() <= to) {
    const uint32_t nxt = flow.sender.tcb.nxt;
    world.run(world.next_event());
    if (flow.sender.tcb.nxt != nxt) ++count[flow.sender.tcb.nxt - nxt];
  }
  return count;
}

int total(const std::map<uint32_t, int>& count) {
  int sum = 0;
  for (const auto& [size, times] : count) sum += times;
  return sum;
}

}  // namespace

TEST(pairs_at_low_rates) {
  World world(worlds::dumbbell(10, 48, 80, {"cubic"}), 1);
  const auto count = bursts(world, 10 * kSecond, 12 * kSecond);
  CHECK_LE(count.rbegin()->first, 3u);  // a pair, and one more when the window has grown
  CHECK_GT(count.at(2), total(count) / 2);
}

TEST(a_millisecond_at_higher_rates) {
  World world(worlds::dumbbell(50, 100, 417, {"cubic"}), 1);
  auto count = bursts(world, 10 * kSecond, 11 * kSecond);  // 1.2 x 50 Mbit/s x 2^-10 s are 4.9 segments
  CHECK_GT(count[4], total(count) * 9 / 10);
  // A socket buffer of 45 segments is eleven bursts and one segment, which takes one more along;
  // the next is eleven bursts.
  CHECK_GT(count[2], 48.27e6 / 8 / 1448 / 90 / 2);
  CHECK_LT(count[2], 48.27e6 / 8 / 1448 / 90 + 5);
}

TEST(larger_still_on_short_paths) {
  World world(worlds::dumbbell(100, 2, 100, {"newreno"}), 1);
  auto count = bursts(world, 3 * kSecond, 4 * kSecond);
  int large = 0;
  for (const auto& [size, times] : count) large += size >= 8 ? times : 0;
  CHECK_GT(large, total(count) / 2);
}

TEST(nothing_waits_in_vain) {
  // One window, one ACK: a burst that waited for more would leave with the retransmission timer.
  for (const int64_t segments : {1, 2, 3, 5, 11, 14, 45, 46, 91, 400}) {
    for (const double rtt_ms : {1.0, 40.0}) {
      WorldConfig config = worlds::dumbbell(100, rtt_ms, 0, {"newreno"});
      config.flows[0] = worlds::sized(config.flows[0], segments * 1448 - 700);
      World world(config, 1);
      CHECK(worlds::run_until(world, kSecond, [](Flow& f) { return f.completed_at() != kNever; }));
      CHECK_EQ(world.flows()[0].counters().timeouts, 0u);
      CHECK_EQ(world.flows()[0].counters().packets_sent, static_cast<uint64_t>(segments));
    }
  }
}

TEST(pacing_spreads_slow_start) {
  WorldConfig config = worlds::dumbbell(50, 100, 0, {"newreno"});
  World bursty(config, 1);
  config.pacing = true;
  World paced(config, 1);
  // 160 packets, less than half of what fills the path.
  for (World* world : {&bursty, &paced}) world->run(550 * kMillisecond);
  CHECK_GT(bursty.links()[0].stats(bursty.now()).queue_max, 60u);
  CHECK_LT(paced.links()[0].stats(paced.now()).queue_max, 12u);  // the initial window is not paced
  CHECK_NEAR(paced.flows()[0].sender.tcb.cwnd_packets, bursty.flows()[0].sender.tcb.cwnd_packets, 40);
}

TEST(the_paced_rate_is_a_window_and_a_fifth_a_round_trip) {
  WorldConfig config = worlds::dumbbell(50, 100, 208, {"newreno"});
  config.pacing = true;
  World world(config, 1);
  world.run(10 * kSecond);
  const Tcb& tcb = world.flows()[0].sender.tcb;
  CHECK_NEAR(tcb.pacing_rate, 1.2 * static_cast<double>(tcb.cwnd) / seconds(tcb.srtt), 0.02 * tcb.pacing_rate);
}

TEST(only_windows_of_the_linux_stack_are_paced) {
  for (const char* cc : {"agent", "newreno"}) {
    WorldConfig config = worlds::dumbbell(10, 40, 50, {cc}, cc[0] == 'a' ? Stack::linux_kernel : Stack::ns3);
    config.pacing = true;
    World world(config, 1);
    world.run(2 * kSecond);
    CHECK_EQ(world.flows()[0].sender.tcb.pacing_rate, 0);
  }
}
