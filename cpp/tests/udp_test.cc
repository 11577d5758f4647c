// Sources of datagrams: when they send, what becomes of it, and that nothing else changes their times.
#include "check.h"
#include "worlds.h"

using namespace netbuf;
using namespace worlds;

namespace {

UdpConfig source(double mbps, std::vector<uint32_t> path, uint32_t bytes = 1500) {
  UdpConfig udp;
  udp.path = std::move(path);
  udp.rate_bps = mbps * 1e6;
  udp.bytes = bytes;
  return udp;
}

WorldConfig with(const UdpConfig& udp, double mbps = 10, int64_t queue = 50) {
  WorldConfig world = dumbbell(mbps, 20, queue, {"newreno"});
  world.flows[0].start_ns = 1000 * kSecond;
  world.udp = {udp};
  return world;
}

// The times at which a source sends, until then.
std::vector<Time> departures(World& world, Time until, size_t index = 0) {
  std::vector<Time> times;
  for (uint64_t sent = 0; world.next_event() <= until;) {
    world.run(world.next_event());
    for (; sent < world.udp()[index]->counters().sent; ++sent) times.push_back(world.now());
  }
  return times;
}

}  // namespace

TEST(udp_sends_to_the_nanosecond) {
  World world(with(source(7, {0})), 1);
  const std::vector<Time> times = departures(world, kSecond);
  CHECK_EQ(times.size(), size_t{584});  // 7e6 / 12000 = 583.3, and the one at 0
  // 12000 bits at 7 Mbit/s.
  for (size_t n = 0; n < times.size(); ++n) CHECK_EQ(times[n], static_cast<Time>(n * 1'714'286));
  const UdpCounters& c = world.udp()[0]->counters();
  CHECK_EQ(c.delay_min, from_seconds(0.0112));  // 1.2 ms of transmission, 10 ms of propagation
  CHECK_EQ(c.delay_max, c.delay_min);
  CHECK_EQ(c.received, uint64_t{577});
}

TEST(udp_start_and_stop) {
  UdpConfig udp = source(12, {0});
  udp.start_ns = 5 * kMillisecond;
  udp.stop_ns = 8 * kMillisecond;
  World world(with(udp, 100), 1);
  CHECK(departures(world, kSecond) == std::vector<Time>({5'000'000, 6'000'000, 7'000'000}));
}

TEST(udp_on_time_carries_over_off_periods) {
  UdpConfig udp = source(12, {0});  // a packet a millisecond of on time
  udp.on_ns = 1500 * kMicrosecond;
  udp.off_ns = 10 * kMillisecond;
  World world(with(udp, 100), 1);
  // On from 0 to 1.5, 11.5 to 13, 23 to 24.5, 34.5 to 36: on times 1; 2 (3 is when the period is over); 3 and 4; 5.
  CHECK(departures(world, 36 * kMillisecond) ==
        std::vector<Time>({1'000'000, 12'000'000, 23'000'000, 24'000'000, 35'000'000}));
}

TEST(udp_of_ns3_carries_whole_bits_of_payload) {
  UdpConfig udp = source(1.03, {0}, 1030);  // 8000 bits of payload at 1 Mbit/s: 8 ms of on time
  udp.on_ns = 5'000'500;
  udp.off_ns = 10 * kMillisecond;
  WorldConfig config = with(udp, 100);
  World time(config, 1);
  CHECK(departures(time, 50 * kMillisecond) == std::vector<Time>({18'000'000, 46'000'000}));
  config.stack = Stack::ns3;
  World bits(config, 1);  // 5000 of the first 5000.5 count; then 2000 of 2000.5, and 5000 more
  CHECK(departures(bits, 50 * kMillisecond) == std::vector<Time>({18'000'500, 46'001'500}));
  config.udp[0].bytes = 30;  // nothing but headers: time counts
  config.udp[0].rate_bps = 30'000;
  World empty(config, 1);
  CHECK(departures(empty, 50 * kMillisecond) == std::vector<Time>({18'000'000, 46'000'000}));
}

TEST(udp_random_periods_have_their_mean_rate_and_a_stream_of_their_own) {
  UdpConfig udp = source(12, {0}, 150);
  udp.on_ns = 20 * kMillisecond;
  udp.off_ns = 30 * kMillisecond;
  udp.random_on_off = true;
  WorldConfig config = with(udp, 100);
  World world(config, 1), other(config, 2);
  config.flows[0].start_ns = 0;
  config.links[0].loss = 0.01;
  config.udp.push_back(udp);
  World busy(config, 1);
  const std::vector<Time> times = departures(world, 100 * kSecond);
  CHECK_NEAR(static_cast<double>(times.size()), 0.4 * 10'000 * 100, 0.05 * 0.4 * 10'000 * 100);
  CHECK(departures(other, kSecond) != std::vector<Time>(times.begin(), times.begin() + 100));
  const std::vector<Time> again = departures(busy, kSecond);
  CHECK(again == std::vector<Time>(times.begin(), times.begin() + static_cast<long>(again.size())));
  CHECK(busy.udp()[0]->counters().sent != busy.udp()[1]->counters().sent);
}

TEST(udp_overload_fills_the_queue_and_loses_the_rest) {
  World world(with(source(20, {0}), 10, 50), 1);
  world.run(10 * kSecond);
  const UdpCounters& c = world.udp()[0]->counters();
  const LinkStats link = world.links()[0].stats(world.now());
  CHECK_EQ(c.sent, uint64_t{16'667});
  CHECK_EQ(c.queue_drops, link.queue_drops);
  CHECK_NEAR(static_cast<double>(c.received), 10e6 * 10 / 12'000, 12);
  CHECK_EQ(c.sent, c.received + c.queue_drops + c.random_losses + world.udp()[0]->packets_in_network());
  CHECK_NEAR(seconds(c.delay_max), 0.01 + 51 * 0.0012, 0.0012);
}

TEST(udp_is_conserved_over_links_of_all_kinds) {
  for (const char* discipline : {"", "droptail", "codel", "fq_codel", "pie", "red"}) {
    WorldConfig config;
    config.links = {link(50, 1, 20), link(10, 5, 30), link(0, 5), link(2, 5, 10)};
    config.links[1].discipline = discipline;
    config.links[1].loss = 0.02;
    config.flows = {flow("cubic", {0, 1}, {2}), flow("newreno", {3}, {1})};
    config.udp = {source(6, {0, 1}), source(1, {3, 1}, 200), source(3, {1, 2, 3, 0}, 777)};
    World world(config, 7);
    world.run(20 * kSecond);
    for (const auto& udp : world.udp()) {
      const UdpCounters& c = udp->counters();
      CHECK(c.received > 0 && c.random_losses > 0);
      CHECK_EQ(c.sent, c.received + c.queue_drops + c.random_losses + udp->packets_in_network());
      CHECK(c.delay_min > 0 && c.delay_min <= c.delay_max);
    }
  }
}

TEST(udp_takes_from_the_flow_beside_it) {
  WorldConfig config = dumbbell(10, 40, 100, {"cubic"});
  config.udp = {source(6, {0})};
  World world(config, 1);
  world.run(30 * kSecond);
  const double flow = static_cast<double>(world.flows()[0].counters().delivered_bytes) * 8e-6 / 30;
  CHECK_NEAR(flow, 4.0, 0.4);
  CHECK_NEAR(static_cast<double>(world.udp()[0]->counters().received) * 12e-3 / 30, 6.0, 0.3);
}
