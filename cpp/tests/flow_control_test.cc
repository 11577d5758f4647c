// Receive windows: clamps, applications that do not read, window probes, and relays between two connections.
#include "worlds.h"

using namespace netbuf;

namespace {

// Reads nothing until told, then at most so much.
class LazySink final : public Sink {
 public:
  int64_t read(Time, int64_t arrived) override { return got = std::min(arrived, allowed); }
  int64_t allowed = 0, got = 0;
};

// Flow 0 over links 0 and 1, flow 1 over 2 and 3, which sends on what flow 0 delivers.
WorldConfig proxy(double first_mbps, double second_mbps, double first_rtt_ms, double second_rtt_ms) {
  WorldConfig world;
  world.links = {worlds::link(first_mbps, first_rtt_ms / 2, 100), worlds::link(0, first_rtt_ms / 2),
                 worlds::link(second_mbps, second_rtt_ms / 2, 100), worlds::link(0, second_rtt_ms / 2)};
  world.flows = {worlds::flow("cubic", {0}, {1}), worlds::flow("cubic", {2}, {3})};
  world.flows[0].receive_buffer_bytes = 100'000;
  world.flows[1].relay_from = 0;
  world.flows[1].relay_buffer_bytes = 50'000;
  return world;
}

}  // namespace

TEST(a_clamp_limits_the_window) {
  for (const Stack stack : {Stack::linux_kernel, Stack::ns3}) {
    for (const int64_t clamp : {1000, 14'480, 50'000}) {
      WorldConfig config = worlds::dumbbell(1000, 50, 0, {"cubic"}, stack);
      config.flows[0].window_clamp_bytes = clamp;
      World world(config, 1);
      int64_t most = 0;
      for (int i = 0; i < 400; ++i) {
        world.run(world.now() + 25 * kMillisecond);
        const Tcb& tcb = world.flows()[0].sender.tcb;
        int64_t out = 0;
        for (uint32_t s = tcb.una; s != tcb.nxt; ++s) out += world.flows()[0].sender.board.segments[s].bytes;
        most = std::max(most, out);
        CHECK_LE(out, clamp);
      }
      CHECK_GT(most, clamp / 2);
      CHECK_GT(world.flows()[0].counters().delivered_bytes, 20 * clamp);
    }
  }
}

TEST(a_control_is_asked_for_every_packet_and_obeyed) {
  struct Halving final : ReceiverControl {
    explicit Halving(int& calls) : calls(calls) {}
    int64_t initial_window() const override { return 100'000; }
    int64_t window(const Arrival& arrival) override {
      ++calls;
      CHECK_EQ(arrival.bytes, 1448u);
      CHECK_GE(arrival.now - arrival.stamp * arrival.unit, 25 * kMillisecond);
      CHECK_LT(arrival.now - arrival.stamp * arrival.unit, 40 * kMillisecond);
      CHECK_LE(arrival.window_bytes, 100'000);
      CHECK_EQ(arrival.buffered_bytes, 0);
      return arrival.now < 2 * kSecond ? 100'000 : 10'000;
    }
    int& calls;
  };
  int calls = 0;
  World world(worlds::dumbbell(1000, 50, 0, {"cubic"}), 1);
  world.flows()[0].attach(std::make_unique<Halving>(calls));
  world.run(2 * kSecond);
  CHECK_EQ(static_cast<uint64_t>(calls), world.flows()[0].counters().packets_received);
  CHECK_GT(world.flows()[0].sender.tcb.packets_out(), 60u);
  world.run(2200 * kMillisecond);
  CHECK_LE(world.flows()[0].sender.tcb.packets_out(), 6u);  // within a few round trips, without taking anything back
}

TEST(what_is_left_unread_closes_the_window) {
  for (const Stack stack : {Stack::linux_kernel, Stack::ns3}) {
    WorldConfig config = worlds::dumbbell(10, 40, 0, {"cubic"}, stack);
    config.flows[0].receive_buffer_bytes = 30'000;
    World world(config, 1);
    Flow& flow = world.flows()[0];
    auto owned = std::make_unique<LazySink>();
    LazySink& sink = *owned;
    flow.attach(std::unique_ptr<Sink>(std::move(owned)));
    world.run(10 * kSecond);
    CHECK_LE(flow.counters().delivered_bytes, 30'000);
    CHECK_GT(flow.counters().delivered_bytes, 30'000 - 2 * 1448);
    CHECK_EQ(flow.sender.tcb.packets_out(), 0u);
    // It is probed at growing intervals, without an end.
    const uint64_t packets = world.links()[0].stats(world.now()).packets_in;
    world.run(1000 * kSecond);
    const uint64_t probes = world.links()[0].stats(world.now()).packets_in - packets;
    CHECK_GE(probes, 5u);
    CHECK_LE(probes, 25u);
    CHECK_EQ(flow.counters().timeouts, 0u);
    // Reading opens it at once.
    sink.allowed = kEndless;
    const int64_t before = flow.counters().delivered_bytes;
    flow.receiver.wake_sink(world.now());
  world.woken(0);
    world.run(world.now() + 100 * kMillisecond);
    CHECK_GT(flow.counters().delivered_bytes, before + 1448);
    world.run(world.now() + 10 * kSecond);
    CHECK_GT(flow.counters().delivered_bytes, before + 4'000'000);
  }
}

TEST(in_linux_probes_that_nobody_answers_end_the_connection) {
  for (const uint32_t retries : {3u, 5u, 15u}) {
    WorldConfig config = worlds::dumbbell(10, 40, 0, {"cubic"});
    config.flows[0].receive_buffer_bytes = 30'000;
    config.data_retries = retries;
    config.links[0].loss_time_ns = {0, 10 * kSecond};
    config.links[0].loss_step = {0, 1};
    World world(config, 1);
    Flow& flow = world.flows()[0];
    flow.attach(std::unique_ptr<Sink>(std::make_unique<LazySink>()));
    world.run(10 * kSecond);
    const uint64_t before = world.links()[0].stats(world.now()).packets_in;
    world.run(5000 * kSecond);
    CHECK(flow.sender.failed());
    CHECK_EQ(world.links()[0].stats(world.now()).packets_in - before, retries);
  }
}

TEST(a_lost_window_update_is_made_good_by_a_probe) {
  WorldConfig config = worlds::dumbbell(10, 40, 0, {"cubic"});
  config.flows[0].receive_buffer_bytes = 30'000;
  config.links[1].loss_on_acks = true;
  World scout(config, 1);
  scout.flows()[0].attach(std::unique_ptr<Sink>(std::make_unique<LazySink>()));
  scout.run(5 * kSecond);
  config.links[1].loss_list = {scout.links()[1].stats(scout.now()).packets_in};  // the next packet back: the update
  World world(config, 1);
  Flow& flow = world.flows()[0];
  auto owned = std::make_unique<LazySink>();
  LazySink& sink = *owned;
  flow.attach(std::unique_ptr<Sink>(std::move(owned)));
  world.run(5 * kSecond);
  const int64_t before = flow.counters().delivered_bytes;
  sink.allowed = kEndless;
  flow.receiver.wake_sink(world.now());
  world.woken(0);
  world.run(world.now() + 60 * kMillisecond);
  CHECK_EQ(flow.counters().delivered_bytes, before);
  CHECK_EQ(world.links()[1].stats(world.now()).random_losses, 1u);
  world.run(world.now() + 30 * kSecond);
  CHECK_GT(flow.counters().delivered_bytes, before + 1'000'000);
}

TEST(a_relay_passes_every_byte_and_no_more) {
  for (const Stack stack : {Stack::linux_kernel, Stack::ns3}) {
    for (const int64_t size : {1, 100, 1448, 200'001, 3'000'000}) {
      WorldConfig config = proxy(20, 10, 30, 50);
      config.stack = stack;
      config.flows[0] = worlds::sized(config.flows[0], size);
      config.links[0].loss = config.links[2].loss = 0.01;
      World world(config, static_cast<uint64_t>(size));
      Flow &first = world.flows()[0], &second = world.flows()[1];
      for (int i = 0; i < 3000; ++i) {
        world.run(world.now() + 50 * kMillisecond);
        CHECK_LE(second.counters().delivered_bytes, first.counters().delivered_bytes);
        CHECK_LE(first.counters().delivered_bytes - second.counters().acked_bytes,
                 100'000 + 50'000 + static_cast<int64_t>(second.sender.tcb.packets_out()) * 1448);
      }
      CHECK_EQ(second.counters().delivered_bytes, size);
      CHECK(first.completed_at() <= second.completed_at());
      CHECK(second.completed_at() < world.now());
    }
  }
}

TEST(a_slow_second_hop_slows_the_first_through_its_window) {
  World world(proxy(100, 5, 20, 60), 1);
  world.run(10 * kSecond);
  const int64_t first = world.flows()[0].counters().delivered_bytes,
                second = world.flows()[1].counters().delivered_bytes;
  world.run(40 * kSecond);
  const double seconds = 30;
  CHECK_NEAR(static_cast<double>(world.flows()[0].counters().delivered_bytes - first) * 8e-6 / seconds,
             5 * 1448 / 1500., 0.1);
  CHECK_NEAR(static_cast<double>(world.flows()[1].counters().delivered_bytes - second) * 8e-6 / seconds,
             5 * 1448 / 1500., 0.1);
  CHECK_EQ(world.flows()[0].counters().queue_drops, 0u);
}

TEST(a_fast_second_hop_takes_all_that_comes) {
  World world(proxy(5, 100, 20, 60), 1);
  world.run(30 * kSecond);
  CHECK_GT(world.flows()[1].counters().delivered_bytes, 30 * 5e6 / 8 * 0.9);
  CHECK_LT(world.flows()[0].counters().delivered_bytes - world.flows()[1].counters().delivered_bytes, 100'000);
}

TEST(the_second_hop_may_start_later_or_stop) {
  WorldConfig config = proxy(20, 20, 30, 30);
  config.flows[1].start_ns = 5 * kSecond;
  config.flows[1].stop_ns = 10 * kSecond;
  World world(config, 1);
  world.run(5 * kSecond);
  CHECK_LE(world.flows()[0].counters().delivered_bytes, 150'000);
  world.run(10 * kSecond);
  const int64_t passed = world.flows()[1].counters().delivered_bytes;
  CHECK_GT(passed, 8'000'000);
  world.run(20 * kSecond);
  CHECK(world.flows()[1].completed_at() < 11 * kSecond);
  CHECK_LE(world.flows()[0].counters().delivered_bytes, world.flows()[1].counters().delivered_bytes + 150'000);
}

TEST(relays_chain_and_leave_the_scheduler_in_order) {
  // Three hops whose flows stand in reverse order, among others.
  WorldConfig config;
  for (int i = 0; i < 3; ++i) {
    config.links.push_back(worlds::link(30 - 5 * i, 10, 60));
    config.links.push_back(worlds::link(0, 10));
  }
  config.flows = {worlds::flow("cubic", {4}, {5}), worlds::flow("newreno", {2}, {3}),
                  worlds::sized(worlds::flow("bbr", {0}, {1}), 5'000'000), worlds::flow("vegas", {2}, {1})};
  for (FlowConfig& flow : config.flows) flow.receive_buffer_bytes = 80'000;
  config.flows[0].relay_from = 1, config.flows[1].relay_from = 2;
  config.flows[0].relay_buffer_bytes = config.flows[1].relay_buffer_bytes = 20'000;
  World whole(config, 1), cut(config, 1);
  whole.run(60 * kSecond);
  CHECK_EQ(whole.flows()[0].counters().delivered_bytes, 5'000'000);
  while (cut.now() < 60 * kSecond) {
    cut.run(cut.now() + 10 * kMillisecond);
    CHECK(cut.next_event() > cut.now());  // nothing was left behind
  }
  CHECK(worlds::fingerprint(whole) == worlds::fingerprint(cut));
}

TEST(relays_that_cannot_be_are_refused) {
  const auto refused = [](int32_t a, int32_t b, int64_t buffer, const char* app) {
    WorldConfig config = proxy(10, 10, 10, 10);
    config.flows[0].relay_from = a;
    config.flows[1].relay_from = b;
    for (FlowConfig& flow : config.flows) flow.relay_buffer_bytes = buffer;
    config.flows[1].app = app;
    config.flows[1].size_bytes = config.flows[1].on_ns = 1;
    CHECK_THROWS(World(config, 1), std::invalid_argument);
  };
  refused(-1, 1, 1000, "bulk");
  refused(1, 0, 1000, "bulk");
  refused(-1, 2, 1000, "bulk");
  refused(-2, 0, 1000, "bulk");
  refused(-1, 0, 0, "bulk");
  refused(-1, 0, 1000, "sized");
}

TEST(small_pieces_wait_for_each_other) {
  // Nagle: while anything is on its way, less than a segment waits for more.
  WorldConfig config = proxy(100, 100, 2, 200);
  config.flows[0].window_clamp_bytes = 200;
  World world(config, 1);
  world.run(10 * kSecond);
  CHECK_GT(world.flows()[0].counters().packets_sent, 200u);
  CHECK_LT(world.flows()[1].counters().packets_sent, world.flows()[0].counters().packets_sent / 5);
  CHECK_GT(world.flows()[1].counters().delivered_bytes, world.flows()[0].counters().delivered_bytes * 3 / 4);
}
