// Applications, socket buffers and the agent's window.
#include "worlds.h"

using namespace netbuf;

namespace {

constexpr double kMss = 1448;

WorldConfig with_app(FlowConfig flow, double mbps = 10, double rtt_ms = 40, int64_t queue = 0) {
  WorldConfig world = worlds::dumbbell(mbps, rtt_ms, queue, {});
  world.flows.push_back(std::move(flow));
  return world;
}

double goodput_mbps(World& world, Time from, Time to) {
  world.run(from);
  const int64_t before = world.flows()[0].counters().delivered_bytes;
  world.run(to);
  return static_cast<double>(world.flows()[0].counters().delivered_bytes - before) * 8e3 /
         static_cast<double>(to - from);
}

}  // namespace

TEST(sized_flows_deliver_every_byte_once) {
  for (const Stack stack : {Stack::linux_kernel, Stack::ns3}) {
    for (const int64_t size : {1, 1447, 1448, 1449, 2896, 14'480, 14'481, 100'000, 1'234'567}) {
      for (const double loss : {0.0, 0.03}) {
        WorldConfig config = with_app(worlds::sized(worlds::flow("cubic", {0}, {1}), size));
        config.stack = stack;
        config.links[0].loss = loss;
        World world(config, static_cast<uint64_t>(size));
        world.run(100 * kSecond);
        const Flow& flow = world.flows()[0];
        CHECK_EQ(flow.counters().delivered_bytes, size);
        CHECK_EQ(flow.counters().acked_bytes, size);
        CHECK_EQ(flow.counters().packets_sent - flow.counters().packets_retransmitted,
                 static_cast<uint64_t>((size + 1447) / 1448));
        CHECK(flow.completed_at() < 100 * kSecond);
        CHECK_EQ(flow.sender.tcb.packets_out(), 0u);
      }
    }
  }
}

TEST(a_short_flow_takes_two_round_trips_and_its_transmission) {
  // SYN, SYN/ACK, then ten segments back to back behind the handshake's ACK.
  World world(with_app(worlds::sized(worlds::flow("newreno", {0}, {1}), 14'480)), 1);
  world.run(kSecond);
  const Time syn = 60 * 800, handshake = 52 * 800, data = 10 * 1'200'000;
  CHECK_EQ(world.flows()[0].completed_at(), syn + 40 * kMillisecond + handshake + data + 20 * kMillisecond);
}

TEST(wire_sizes_are_those_of_the_stack) {
  for (const bool linux_stack : {true, false}) {
    WorldConfig config = with_app(worlds::sized(worlds::flow("newreno", {0}, {1}), 1448 * 3 + 100));
    if (!linux_stack) config.stack = Stack::ns3;
    World world(config, 1);
    world.run(10 * kSecond);
    const int64_t header = linux_stack ? 52 : 54, syn = linux_stack ? 60 : 58;
    CHECK_EQ(world.links()[0].stats(world.now()).bytes_out,
             syn + header + 4 * header + 1448 * 3 + 100 + header);  // the last: of FIN's ACK
    const LinkStats back = world.links()[1].stats(world.now());
    CHECK_EQ(back.bytes_out, syn + header * static_cast<int64_t>(back.packets_out - 1));
  }
}

TEST(on_off_sources_write_at_their_rate) {
  FlowConfig flow = worlds::flow("cubic", {0}, {1});
  flow.app = "on_off";
  flow.on_ns = 2 * kSecond;
  flow.off_ns = 3 * kSecond;
  flow.app_rate_bps = 2e6;
  World world(with_app(flow), 1);
  const double on = 2e6 * 2 / 8;
  world.run(52 * kSecond + kSecond);  // eleven on periods, the last one over
  CHECK_NEAR(static_cast<double>(world.flows()[0].counters().delivered_bytes), 11 * on, 11 * kMss);
  world.run(55 * kSecond);
  CHECK_NEAR(static_cast<double>(world.flows()[0].counters().delivered_bytes), 11 * on, 11 * kMss);
}

TEST(on_off_sources_may_fill_the_link_while_on) {
  FlowConfig flow = worlds::flow("newreno", {0}, {1});
  flow.app = "on_off";
  flow.on_ns = 5 * kSecond;
  flow.off_ns = 5 * kSecond;
  World world(with_app(flow, 10, 20, 60), 1);
  world.run(4 * kSecond);
  const int64_t on = world.flows()[0].counters().delivered_bytes;
  CHECK_NEAR(static_cast<double>(on), 4 * 10e6 / 8 * 1448 / 1500, 150'000);
  world.run(6 * kSecond);
  const int64_t off = world.flows()[0].counters().delivered_bytes;
  world.run(10 * kSecond);
  CHECK_EQ(world.flows()[0].counters().delivered_bytes, off);
  world.run(12 * kSecond);
  CHECK_GT(world.flows()[0].counters().delivered_bytes, off + 1'000'000);
}

// Linux: a program fills packets of 45 segments until 128 KiB wait to leave, and is woken when less than half of them do:
// three packets besides the ten segments that leave at once, then two at a time. All of it leaves in the off period;
// ns-3's stack stops at once.
TEST(what_is_written_while_on_leaves_while_off) {
  for (const double mbps : {2.0, 10.0, 47.0}) {
    for (const Time rtt_ms : {5, 80}) {
      for (const Time on : {200 * kMillisecond, kSecond, 3 * kSecond}) {
        FlowConfig flow = worlds::flow("cubic", {0}, {1});
        flow.app = "on_off";
        flow.on_ns = on;
        flow.off_ns = 100 * kSecond;
        WorldConfig config = with_app(flow, mbps, static_cast<double>(rtt_ms), 1000);
        World world(config, 1);
        const Flow& linux_flow = world.flows()[0];
        const Time handshake = rtt_ms * kMillisecond + static_cast<Time>((60 + 52) * 8e3 / mbps);
        world.run(handshake + on);
        const auto& c = linux_flow.counters();
        const auto sent = static_cast<int64_t>(c.packets_sent - c.packets_retransmitted) * 1448;
        world.run(100 * kSecond);
        const int64_t packet = 45 * 1448, written = linux_flow.counters().delivered_bytes;
        CHECK_EQ((written - 10 * 1448 - 3 * packet) % (2 * packet), 0);
        CHECK(written - sent > 64 * 1024 - 2 * 1448 && written - sent < 128 * 1024 + packet);
        config.stack = Stack::ns3;
        World other(config, 1);
        other.run(on + (2 * rtt_ms + 5) * kMillisecond);
        const uint64_t before = other.flows()[0].counters().packets_sent;
        other.run(100 * kSecond);
        CHECK_EQ(other.flows()[0].counters().packets_sent - other.flows()[0].counters().packets_retransmitted, before);
      }
    }
  }
}

// A send buffer that binds holds what is in flight and what waits.
TEST(what_is_written_while_on_fits_in_the_send_buffer) {
  FlowConfig flow = worlds::flow("newreno", {0}, {1});
  flow.app = "on_off";
  flow.on_ns = 2 * kSecond;
  flow.off_ns = 100 * kSecond;
  flow.send_buffer_bytes = 30 * 1448;
  World world(with_app(flow, 10, 40), 1);
  world.run(2 * kSecond + 40 * kMillisecond);
  const Flow& sent = world.flows()[0];
  const auto waits = sent.counters().acked_bytes + flow.send_buffer_bytes;
  world.run(50 * kSecond);
  CHECK(sent.counters().delivered_bytes <= waits);
}

TEST(random_on_off_periods_have_their_means) {
  FlowConfig flow = worlds::flow("cubic", {0}, {1});
  flow.app = "on_off";
  flow.on_ns = 100 * kMillisecond;
  flow.off_ns = 300 * kMillisecond;
  flow.random_on_off = true;
  flow.app_rate_bps = 4e6;
  World world(with_app(flow, 50, 10), 7);
  CHECK_NEAR(goodput_mbps(world, 0, 2000 * kSecond), 1, 0.06);
}

TEST(stop_ends_the_stream) {
  for (const char* app : {"bulk", "on_off"}) {
    FlowConfig flow = worlds::flow("cubic", {0}, {1});
    flow.app = app;
    flow.on_ns = 10 * kSecond;
    flow.start_ns = kSecond;
    flow.stop_ns = 3 * kSecond;
    World world(with_app(flow, 10, 40, 50), 1);
    world.run(kSecond - 1);
    CHECK_EQ(world.links()[0].stats(world.now()).packets_in, 0u);
    world.run(20 * kSecond);
    const Flow& f = world.flows()[0];
    CHECK(f.completed_at() >= 3 * kSecond && f.completed_at() < 4 * kSecond);
    CHECK_NEAR(static_cast<double>(f.counters().delivered_bytes), 2 * 1.25e6 * 1448 / 1500, 3e5);
    CHECK_EQ(f.sender.tcb.packets_out(), 0u);
  }
}

TEST(buffers_limit_throughput_to_one_buffer_a_round_trip) {
  for (const bool send : {true, false}) {
    for (const int64_t packets : {2, 4, 20}) {
      FlowConfig flow = worlds::flow("cubic", {0}, {1});
      (send ? flow.send_buffer_bytes : flow.receive_buffer_bytes) = packets * 1448;
      World world(with_app(flow, 1000, 100), 1);
      const double expected = static_cast<double>(packets) * kMss * 8e-6 / 0.1;
      const double delayed_acks = packets == 20 ? 0.02 : 0.01;  // ACKs of pairs: the window is whole packets
      CHECK_NEAR(goodput_mbps(world, 5 * kSecond, 25 * kSecond), expected, delayed_acks * expected);
    }
  }
}

TEST(buffers_smaller_than_a_segment_still_pass_data) {
  for (const Stack stack : {Stack::linux_kernel, Stack::ns3}) {
    for (const bool send : {true, false}) {
      for (const int64_t bytes : {1, 100, 1000, 1447, 2000}) {
        FlowConfig flow = worlds::sized(worlds::flow("cubic", {0}, {1}), 20 * bytes);
        (send ? flow.send_buffer_bytes : flow.receive_buffer_bytes) = bytes;
        WorldConfig config = with_app(flow, 10, 10);
        config.stack = stack;
        World world(config, 1);
        world.run(200 * kSecond);
        CHECK_EQ(world.flows()[0].counters().delivered_bytes, 20 * bytes);
      }
    }
  }
}

TEST(the_agents_window_stands_still) {
  for (const Stack stack : {Stack::linux_kernel, Stack::ns3}) {
    WorldConfig config = worlds::dumbbell(10, 40, 20, {"agent"}, stack);
    config.links[0].loss = 0.002;
    World world(config, 3);
    const Flow& flow = world.flows()[0];
    for (const int packets : {10, 33, 80, 5}) {  // 80 overflow the queue
      world.set_window(0, packets * kMss);
      uint64_t timeouts = flow.counters().timeouts;
      for (int i = 0; i < 1000; ++i) {
        world.run(world.now() + 10 * kMillisecond);
        if (flow.counters().timeouts > timeouts) {
          timeouts = flow.counters().timeouts;
          world.set_window(0, packets * kMss);
        }
        CHECK_EQ(flow.sender.tcb.cwnd, packets * 1448);
        CHECK_LE(flow.sender.tcb.in_flight(), 80u);
      }
    }
    CHECK_GT(flow.counters().fast_recoveries, 3u);
    CHECK_LT(flow.sender.tcb.ssthresh, kInfiniteWindow);
  }
}

TEST(the_agents_window_sets_the_rate) {
  World world(worlds::dumbbell(100, 100, 0, {"agent"}), 1);
  world.set_window(0, 50 * kMss);
  CHECK_NEAR(goodput_mbps(world, kSecond, 11 * kSecond), 50 * kMss * 8e-6 / 0.1, 0.1);
  world.set_window(0, 10 * kMss);
  CHECK_NEAR(goodput_mbps(world, 12 * kSecond, 22 * kSecond), 10 * kMss * 8e-6 / 0.1, 0.03);
}

TEST(a_time_out_leaves_the_agent_one_segment_until_it_speaks) {
  WorldConfig config = worlds::dumbbell(0, 40, 0, {"agent"});
  config.links[0].schedule_time_ns = {0, 2 * kSecond, 3 * kSecond};
  config.links[0].schedule_rate_bps = {10e6, 0, 10e6};
  World world(config, 1);
  world.set_window(0, 30 * kMss);
  world.run(2 * kSecond + 900 * kMillisecond);
  const Flow& flow = world.flows()[0];
  CHECK_GE(flow.counters().timeouts, 1u);
  CHECK_EQ(flow.sender.tcb.cwnd, 1448);
  world.set_window(0, 20 * kMss);
  CHECK_EQ(flow.sender.tcb.cwnd, 20 * 1448);
}

TEST(a_window_below_one_segment_is_one_segment) {
  World world(worlds::dumbbell(10, 40, 0, {"agent"}), 1);
  world.set_window(0, 1);
  world.run(5 * kSecond);
  CHECK_EQ(world.flows()[0].sender.tcb.cwnd, 1448);
  CHECK_GT(world.flows()[0].counters().delivered_bytes, 50 * 1448);
}

TEST(a_window_set_before_the_start_counts_from_the_start) {
  WorldConfig config = worlds::dumbbell(10, 40, 0, {"agent"});
  config.flows[0].start_ns = 10 * kSecond;
  World world(config, 1);
  world.set_window(0, 20 * kMss);
  world.run(5 * kSecond);
  world.set_window(0, 40 * kMss);
  world.run(12 * kSecond);
  CHECK_NEAR(world.flows()[0].cwnd_integral(12 * kSecond), 40 * kMss * 2, 1);
}

TEST(a_paused_application_rests_when_it_is_told_to) {
  WorldConfig config = worlds::dumbbell(10, 20, 50, {"cubic"});
  config.flows[0].app = "paused";
  config.flows[0].rest_ns = {2 * kSecond, 4 * kSecond, 5 * kSecond, 9 * kSecond};
  World world(config, 1);
  std::vector<double> mbps;
  for (int second = 1; second <= 12; ++second) {
    const int64_t before = world.flows()[0].counters().delivered_bytes;
    world.run(second * kSecond);
    mbps.push_back(static_cast<double>(world.flows()[0].counters().delivered_bytes - before) * 8e-6);
  }
  for (const size_t second : {1, 10, 11}) CHECK_NEAR(mbps[second], 9.65, 0.3);
  CHECK_LE(mbps[2], 1.0 + 3 * 45 * kMss * 8e-6);  // what was in the queue, and in the socket
  for (const size_t second : {3, 6, 7, 8}) CHECK_LE(mbps[second], 1e-9);
  CHECK_GT(mbps[4], 5.0);
  config.flows[0].app_rate_bps = 2e6;
  World slow(config, 1);
  slow.run(12 * kSecond);
  CHECK_NEAR(static_cast<double>(slow.flows()[0].counters().delivered_bytes) * 8e-6, 2.0 * 6, 0.1);
  config.flows[0].start_ns = 3 * kSecond;  // in a rest
  World late(config, 1);
  late.run(12 * kSecond);
  CHECK_NEAR(static_cast<double>(late.flows()[0].counters().delivered_bytes) * 8e-6, 2.0 * 4, 0.1);
  config.flows[0].rest_ns = {2 * kSecond, kSecond};
  CHECK(worlds::refusal(config).starts_with("flows[0].rest_ns"));
}
