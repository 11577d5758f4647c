// The shared-buffer switch by itself: admission, accounting, scheduling.
#include <cmath>

#include "worlds.h"

using namespace netbuf;

namespace {

struct Dropped final : DropSink {
  void dropped(const Queued& item) override { items.push_back(item.priority); }
  std::vector<uint32_t> items;
};

struct Bench {
  explicit Bench(SwitchConfig config) : buffer(config) {
    for (uint32_t port = 0; port < config.ports.size(); ++port) ports.push_back(buffer.make_port(port, &sink));
  }
  bool offer(uint32_t port, uint32_t priority, uint32_t bytes = 1500) {
    Queued item{};
    item.priority = static_cast<uint8_t>(priority);
    item.bytes = bytes;
    item.arrived = now;
    const size_t before = sink.items.size();
    ports[port]->enqueue(now, item);
    return sink.items.size() == before;
  }
  uint32_t fill(uint32_t port, uint32_t priority, uint32_t bytes = 1500) {
    uint32_t stored = 0;
    while (offer(port, priority, bytes)) ++stored;
    return stored;
  }
  std::string order(uint32_t port, uint32_t count) {
    std::string served;
    Queued item;
    while (count-- > 0 && ports[port]->dequeue(now, item)) served += static_cast<char>('0' + item.priority);
    return served;
  }
  Dropped sink;
  SharedBuffer buffer;
  std::vector<std::unique_ptr<QueueDiscipline>> ports;
  Time now = 0;
};

SwitchConfig config(const std::string& admission, std::vector<double> alphas, int64_t capacity = 100, uint32_t ports = 1) {
  SwitchConfig sw;
  for (uint32_t i = 0; i < ports; ++i) sw.ports.push_back(i);
  sw.queues = 2;
  sw.capacity = capacity;
  sw.admission = admission;
  sw.alphas = std::move(alphas);
  return sw;
}

}  // namespace

// One queue alone settles at alpha / (1 + alpha) of the buffer (Choudhury and Hahne, 1998).
TEST(dynamic_thresholds_leave_room) {
  for (const double alpha : {0.25, 0.5, 1.0, 2.0, 8.0}) {
    Bench bench(config("dynamic", {alpha, 1}, 900));
    CHECK_EQ(bench.fill(0, 0), static_cast<uint32_t>(std::ceil(900 * alpha / (1 + alpha))));
  }
  Bench both(config("dynamic", {1, 1}, 900));  // two queues that grow together: a third each, a third free
  for (int i = 0; i < 900; ++i) both.offer(0, i % 2);
  CHECK_EQ(both.buffer.packets(0), 300u);
  CHECK_EQ(both.buffer.packets(1), 300u);
}

TEST(static_thresholds_and_the_capacity) {
  SwitchConfig sw = config("static", {});
  sw.thresholds = {30, 90};
  Bench bench(sw);
  CHECK_EQ(bench.fill(0, 0), 30u);
  CHECK_EQ(bench.fill(0, 1), 70u);  // the buffer is full
  CHECK_EQ(bench.buffer.occupancy(), 100);
}

TEST(abm_shares_among_backlogged_queues_and_ports) {
  Bench bench(config("abm", {8, 1}, 90, 2));
  CHECK_NEAR(bench.buffer.threshold(0, 1), 90, 1e-9);
  bench.offer(0, 0);
  CHECK_NEAR(bench.buffer.threshold(0, 1), 89.0 / 2, 1e-9);  // two backlogged queues at the port
  CHECK_NEAR(bench.buffer.threshold(0, 0), 8 * 89.0, 1e-9);
  bench.offer(1, 0);
  CHECK_NEAR(bench.buffer.threshold(0, 0), 8 * 88.0 / 2, 1e-9);  // two ports with that queue backlogged
  CHECK_NEAR(bench.buffer.threshold(0, 1), 88.0 / 2, 1e-9);
}

TEST(agent_thresholds_weigh_with_beta_and_follow_the_agent) {
  SwitchConfig sw = config("agent", {1, 1}, 300);
  sw.betas = {1, 0.5};
  Bench bench(sw);
  CHECK_NEAR(bench.buffer.threshold(0, 1), 150, 1e-9);
  CHECK_EQ(bench.fill(0, 1), 100u);
  bench.buffer.set_alpha(1, 0);
  CHECK(!bench.offer(0, 1));
  bench.buffer.set_alpha(0, 1e6);
  CHECK_EQ(bench.fill(0, 0), 200u);
  CHECK_EQ(bench.buffer.occupancy(), 300);
}

TEST(bytes_are_counted_when_asked_for) {
  SwitchConfig sw = config("dynamic", {1, 1}, 100'000);
  sw.in_bytes = true;
  Bench bench(sw);
  CHECK_EQ(bench.fill(0, 0, 1000), 50u);
  CHECK_EQ(bench.fill(0, 1, 100), 250u);
  CHECK_EQ(bench.buffer.occupancy(), 75'000);
  sw = config("dynamic", {1000, 1}, 10'000);
  sw.in_bytes = true;
  Bench tight(sw);
  CHECK_EQ(tight.fill(0, 0, 1502), 6u);  // a seventh would not fit
  CHECK_LE(tight.buffer.occupancy(), 10'000);
}

TEST(no_queue_passes_its_cap) {
  SwitchConfig sw = config("dynamic", {8, 8}, 100);
  sw.queue_cap = 20;
  Bench bench(sw);
  CHECK_EQ(bench.fill(0, 0), 20u);
  CHECK_EQ(bench.fill(0, 1), 20u);
}

TEST(ports_share_one_buffer) {
  Bench bench(config("dynamic", {1, 1}, 90, 3));
  CHECK_EQ(bench.fill(0, 0), 45u);
  CHECK_EQ(bench.fill(1, 0), 23u);
  CHECK_EQ(bench.fill(2, 0), 11u);
  bench.order(0, 45);
  CHECK_EQ(bench.buffer.occupancy(), 34);
  CHECK_EQ(bench.ports[0]->packets(), 0u);
  CHECK_EQ(bench.buffer.packets(0), 34u);
}

TEST(schedulers) {
  SwitchConfig sw = config("dynamic", {8, 8}, 1000);
  const auto serve = [&](uint32_t bytes0, uint32_t bytes1) {
    Bench bench(sw);
    for (int i = 0; i < 8; ++i) bench.offer(0, 0, bytes0), bench.offer(0, 1, bytes1);
    return bench.order(0, 12);
  };
  CHECK_EQ(serve(1500, 500), std::string("010101010101"));
  sw.scheduler = "strict_priority";
  CHECK_EQ(serve(1500, 500), std::string("000000001111"));
  sw.scheduler = "drr";
  sw.quanta = {1500, 1500};
  CHECK_EQ(serve(1500, 500), std::string("011101110110"));  // as many bytes of each
  sw.quanta = {3000, 1500};
  CHECK_EQ(serve(1500, 1500), std::string("001001001001"));
  sw.quanta = {100, 100};                                   // less than a packet: some rounds pass
  CHECK_EQ(serve(300, 300).substr(0, 6), std::string("010101"));
}

TEST(time_histogram) {
  TimeHistogram h;
  h.set(3, 10);   // 0 for 10
  h.set(7, 100);  // 3 for 90
  CHECK_NEAR(h.mean(200), (3.0 * 90 + 7.0 * 100) / 200, 1e-12);
  CHECK_EQ(h.percentile(0.04, 200), 0u);
  CHECK_EQ(h.percentile(0.5, 200), 3u);
  CHECK_EQ(h.percentile(0.51, 200), 7u);
  CHECK_EQ(h.percentile(0.99, 200), 7u);
  CHECK_EQ(h.max(), 7u);
}

TEST(bad_switches_are_refused) {
  const auto refused = [](auto&& change) {
    WorldConfig world = worlds::dumbbell(10, 40, 0, {"cubic"});
    SwitchConfig sw = config("dynamic", {1, 1});
    change(world, sw);
    world.switches = {sw};
    CHECK_THROWS(World(world, 1), std::invalid_argument);
  };
  refused([](auto&, auto& sw) { sw.ports = {}; });
  refused([](auto&, auto& sw) { sw.ports = {9}; });
  refused([](auto&, auto& sw) { sw.ports = {0, 0}; });
  refused([](auto&, auto& sw) { sw.queues = 0; });
  refused([](auto&, auto& sw) { sw.capacity = 0; });
  refused([](auto&, auto& sw) { sw.alphas = {1}; });
  refused([](auto&, auto& sw) { sw.alphas = {1, std::nan("")}; });
  refused([](auto&, auto& sw) { sw.alphas = {1, -1}; });
  refused([](auto&, auto& sw) { sw.betas = {1}; });
  refused([](auto&, auto& sw) { sw.admission = "first come"; });
  refused([](auto&, auto& sw) { sw.admission = "static"; });
  refused([](auto&, auto& sw) { sw.scheduler = "drr"; });
  refused([](auto&, auto& sw) { sw.scheduler = "lottery"; });
  refused([](auto& world, auto&) { world.links[0].discipline = "codel"; });
  refused([](auto& world, auto&) { world.links[0].queue_limit_packets = 10; });
  refused([](auto& world, auto&) { world.flows[0].priority = 2; });
}
