// The shared-buffer switch by itself: admission, accounting, scheduling.
#include <cmath>

#include "worlds.h"

using namespace netbuf;

namespace {

struct Dropped final : DropSink {
  void dropped(const Queued& item) override {
    items.push_back(item.priority);
    names.push_back(item.packet.segment);
  }
  std::vector<uint32_t> items, names;  // priority; which one, where packets have names
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
  // Packets with names, of queue 0 unless said.
  void offer_named(uint32_t name, uint32_t bytes = 1500, PacketKind kind = kData, uint32_t priority = 0) {
    Queued item{};
    item.priority = static_cast<uint8_t>(priority);
    item.bytes = bytes;
    item.arrived = now;
    item.packet.segment = name;
    item.packet.kind = kind;
    item.ecn = ecn;
    ports[0]->enqueue(now, item);
  }
  std::vector<uint32_t> drain() {
    std::vector<uint32_t> names;
    for (Queued item; ports[0]->dequeue(now, item);) names.push_back(item.packet.segment);
    return names;
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
  bool ecn = false;              // of packets with names
  Dropped sink;
  SharedBuffer buffer;
  std::vector<std::unique_ptr<QueueDiscipline>> ports;
  Time now = 0;
};

SwitchConfig config(const std::string& admission, std::vector<double> alphas, int64_t capacity = 100,
                    uint32_t ports = 1) {
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

using Names = std::vector<uint32_t>;

TEST(tail_drop_refuses_what_arrives_and_head_drop_the_oldest) {
  SwitchConfig sw = config("static", {});
  sw.thresholds = {3, 3};
  Bench tail(sw);
  sw.drop = "head";
  Bench head(sw);
  for (uint32_t name = 1; name <= 5; ++name) tail.offer_named(name), head.offer_named(name);
  CHECK(tail.sink.names == (Names{4, 5}));
  CHECK(head.sink.names == (Names{1, 2}));
  for (Bench* bench : {&tail, &head}) {  // as many stand, and as many were dropped
    const QueueCounters c = bench->buffer.totals(0);
    CHECK_EQ(c.arrivals, 5u);
    CHECK_EQ(c.drops, 2u);
    CHECK_EQ(bench->buffer.packets(0), 3u);
    CHECK_EQ(bench->buffer.bytes(0), 4500);
    CHECK_EQ(bench->buffer.occupancy(), 3);
    CHECK_EQ(bench->ports[0]->packets(), 3u);
    CHECK_EQ(bench->ports[0]->bytes(), 4500);
  }
  CHECK(tail.drain() == (Names{1, 2, 3}));
  CHECK(head.drain() == (Names{3, 4, 5}));
}

// What stood when the threshold fell stays; each packet that arrives then takes the place of one.
TEST(head_drop_does_not_cut_a_queue_whose_threshold_fell) {
  SwitchConfig sw = config("agent", {1, 1}, 100);
  sw.drop = "head";
  Bench bench(sw);
  for (uint32_t name = 1; name <= 10; ++name) bench.offer_named(name);
  bench.buffer.set_alpha(0, 0.05);  // 4.5 packets
  CHECK_EQ(bench.buffer.packets(0), 10u);
  bench.offer_named(11);
  CHECK(bench.sink.names == (Names{1}));
  CHECK_EQ(bench.buffer.packets(0), 10u);
  bench.order(0, 6);                // 8 to 11 are left
  bench.offer_named(12);            // four, below the limit of 4.8
  CHECK_EQ(bench.buffer.packets(0), 5u);
  bench.buffer.set_alpha(0, 0);     // closed: it drains, and takes nothing once it is empty
  bench.offer_named(13);
  CHECK(bench.drain() == (Names{9, 10, 11, 12, 13}));
  bench.offer_named(14);
  CHECK(bench.sink.names == (Names{1, 8, 14}));
}

TEST(a_cut_holds_for_its_time_and_the_drop_place_can_be_changed) {
  Bench bench(config("agent", {1, 1}, 100));
  for (uint32_t name = 1; name <= 4; ++name) bench.offer_named(name);
  const double cut[] = {0.02, std::nan("")};   // 1.9 packets, and none of queue 1
  const Time now = bench.now;
  bench.buffer.set_cut(now + kMillisecond, cut);
  bench.now = now + kMillisecond - 1;
  bench.offer_named(5);
  CHECK(bench.sink.names == (Names{5}));
  CHECK_EQ(bench.buffer.alpha(0), 1.0);        // but for the cut
  bench.offer_named(6, 1500, kData, 1);
  bench.buffer.set_drop_head(true);
  bench.offer_named(7);
  CHECK(bench.sink.names == (Names{5, 1}));
  CHECK(bench.buffer.drops_head());
  bench.now = now + kMillisecond;
  bench.offer_named(8);
  CHECK(bench.sink.names == (Names{5, 1}));
  CHECK_EQ(bench.buffer.packets(0), 5u);
}

TEST(a_congested_queue_marks_what_speaks_ecn_up_to_the_end_of_the_buffer) {
  SwitchConfig sw = config("agent", {0.1, 0.1}, 20);  // two packets
  sw.congested = "mark";
  sw.queue_cap = 15;
  Bench bench(sw);
  for (uint32_t name = 1; name <= 4; ++name) bench.offer_named(name);
  CHECK(bench.sink.names == (Names{3, 4}));
  bench.ecn = true;
  for (uint32_t name = 5; name <= 20; ++name) bench.offer_named(name);
  CHECK_EQ(bench.buffer.totals(0).marks, 13u);
  CHECK(bench.sink.names == (Names{3, 4, 18, 19, 20}));
  bench.buffer.set_congested(false);
  bench.drain();
  for (uint32_t name = 21; name <= 24; ++name) bench.offer_named(name);
  CHECK_EQ(bench.buffer.totals(0).marks, 13u);
  CHECK(bench.sink.names == (Names{3, 4, 18, 19, 20, 23, 24}));
}

TEST(flow_starts_and_ends_are_counted_and_the_least_queue_is_known) {
  Bench bench(config("agent", {1, 1}, 100));
  bench.buffer.begin_interval(0);
  for (uint32_t name = 1; name <= 3; ++name) bench.offer_named(name, 1000);
  bench.offer_named(4, 60, kSyn);
  bench.buffer.set_alpha(0, 0);
  bench.offer_named(5, 60, kSyn);              // refused, and seen
  const QueueCounters before = bench.buffer.totals(0);
  CHECK_EQ(before.syns, 2u);
  CHECK_EQ(before.opened, 0u);
  CHECK_EQ(bench.buffer.state(0).interval_min, 0);
  bench.buffer.begin_interval(1);
  CHECK_EQ(bench.buffer.state(0).interval_min, 3060);
  bench.drain();
  CHECK_EQ(bench.buffer.totals(0).opened, 1u);
  CHECK_EQ(bench.buffer.totals(0).closed, 0u);
  CHECK_EQ(bench.buffer.state(0).interval_min, 0);
}

TEST(head_drop_at_a_full_buffer_takes_from_its_own_queue) {
  SwitchConfig sw = config("static", {}, 5);
  sw.thresholds = {100, 100};
  sw.drop = "head";
  Bench bench(sw);
  for (uint32_t name = 1; name <= 5; ++name) bench.offer_named(name);
  bench.offer_named(6);                        // of queue 0, whose oldest goes
  CHECK(bench.sink.names == (Names{1}));
  bench.offer_named(7, 1500, kData, 1);        // queue 1 has nothing to give up
  CHECK(bench.sink.names == (Names{1, 7}));
  CHECK_EQ(bench.buffer.totals(1).drops, 1u);
  CHECK_EQ(bench.buffer.occupancy_max(), 5);
}

TEST(head_drop_in_bytes_gives_up_as_much_as_arrives) {
  SwitchConfig sw = config("static", {}, 4000);
  sw.thresholds = {3000, 3000};
  sw.in_bytes = true;
  sw.drop = "head";
  Bench bench(sw);
  for (uint32_t name = 1; name <= 4; ++name) bench.offer_named(name, 900);  // 3600
  bench.offer_named(5, 1000);                  // one goes: 2700 are below the limit, and 1300 free
  CHECK(bench.sink.names == (Names{1}));
  CHECK_EQ(bench.buffer.occupancy(), 3700);
  bench.offer_named(6, 1900);                  // 2800 are below the limit, but only 1200 free; 1900, and 2100
  CHECK(bench.sink.names == (Names{1, 2, 3}));
  CHECK_EQ(bench.buffer.occupancy(), 3800);
  bench.offer_named(7, 4100);                  // larger than the buffer: nothing goes for it
  CHECK(bench.sink.names == (Names{1, 2, 3, 7}));
  CHECK(bench.drain() == (Names{4, 5, 6}));
}

TEST(head_drop_keeps_to_the_cap) {
  SwitchConfig sw = config("dynamic", {8, 8}, 100);
  sw.queue_cap = 2;
  sw.drop = "head";
  Bench bench(sw);
  for (uint32_t name = 1; name <= 4; ++name) bench.offer_named(name);
  CHECK(bench.drain() == (Names{3, 4}));
}

TEST(protected_syns_meet_the_buffer_only) {
  SwitchConfig sw = config("static", {}, 4);
  sw.thresholds = {2, 0};
  for (const char* drop : {"tail", "head"}) {
    sw.drop = drop;
    sw.protect_syn = false;
    Bench plain(sw);
    plain.offer_named(1, 60, kSyn, 1);
    CHECK(plain.sink.names == (Names{1}));     // queue 1 is closed
    sw.protect_syn = true;
    Bench bench(sw);
    bench.offer_named(1, 60, kSyn, 1);
    bench.offer_named(2);
    bench.offer_named(3);
    bench.offer_named(4, 60, kSyn);            // beyond the threshold, nothing goes for it
    CHECK(bench.sink.names.empty());
    bench.offer_named(5, 60, kSyn);            // the buffer is full: as any other packet
    CHECK(bench.sink.names == (std::string(drop) == "head" ? Names{2} : Names{5}));
    CHECK_EQ(bench.buffer.occupancy(), 4);
  }
  sw.thresholds = {1, 1};
  Bench bench(sw);                             // from the head
  bench.offer_named(1, 60, kSyn);
  bench.offer_named(2);                        // the oldest is a SYN, which stays
  CHECK(bench.sink.names == (Names{2}));
  CHECK(bench.drain() == (Names{1}));
}

// Whatever arrives, leaves and is set: nothing is lost but by drops, limits hold, order is kept,
// and drops are the right ones.
TEST(switches_under_random_operation_conserve_packets) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Rng rng(seed);
    SwitchConfig sw = config("agent", {1, 1}, 1 + rng.below(40));
    sw.in_bytes = rng.uniform() < 0.5;
    if (sw.in_bytes) sw.capacity *= 500;
    if (rng.uniform() < 0.3) sw.queue_cap = 1 + sw.capacity / 2;
    sw.drop = rng.uniform() < 0.7 ? "head" : "tail";
    sw.protect_syn = rng.uniform() < 0.5;
    Bench bench(sw);
    SharedBuffer& buffer = bench.buffer;
    std::vector<uint32_t> stands[2];
    uint32_t dropped[2] = {0, 0};
    for (uint32_t name = 1; name <= 400; ++name) {
      bench.now += 1000;
      if (rng.uniform() < 0.1) {
        buffer.set_alpha(rng.below(2), rng.uniform() < 0.2 ? 0 : std::exp2(-5 + 8 * rng.uniform()));
      }
      const uint32_t q = rng.below(2), bytes = 60 + rng.below(1441);
      const int64_t size = sw.in_bytes ? bytes : 1;
      const bool syn = rng.uniform() < 0.1, room = buffer.occupancy() + size <= buffer.capacity();
      const int64_t length = sw.in_bytes ? buffer.bytes(q) : buffer.packets(q);
      const bool admitted = room && static_cast<double>(length) < buffer.threshold(0, q) &&
                            (sw.queue_cap == 0 || length + size <= sw.queue_cap);
      bench.sink.names.clear();
      bench.offer_named(name, bytes, syn ? kSyn : kData, q);
      stands[q].push_back(name);
      if (admitted || (syn && room && sw.protect_syn)) CHECK(bench.sink.names.empty());
      else CHECK(!bench.sink.names.empty());
      for (const uint32_t gone : bench.sink.names) {  // what arrived, and nothing else, or the oldest
        const bool newest = gone == name, oldest = gone == stands[q].front();
        CHECK(newest || (oldest && sw.drop == "head"));
        CHECK(!newest || bench.sink.names.size() == 1);
        if (newest) stands[q].pop_back();
        else stands[q].erase(stands[q].begin());
        ++dropped[q];
      }
      const int64_t now_long = sw.in_bytes ? buffer.bytes(q) : buffer.packets(q);
      // What was dropped made room below the threshold.
      if (!admitted && !(syn && sw.protect_syn) && now_long > length) {
        CHECK(sw.in_bytes);
        const auto free = static_cast<double>(buffer.capacity() - buffer.occupancy() + bytes);
        CHECK_LT(static_cast<double>(now_long - bytes), buffer.alpha(q) * free);
      }
      if (sw.queue_cap > 0 && !sw.protect_syn) CHECK_LE(now_long, sw.queue_cap);
      CHECK_LE(buffer.occupancy(), buffer.capacity());
      Queued item;
      if (rng.uniform() < 0.3 && bench.ports[0]->dequeue(bench.now, item)) {
        CHECK_EQ(item.packet.segment, stands[item.priority].front());
        stands[item.priority].erase(stands[item.priority].begin());
      }
      int64_t bytes_stored = 0, stored = 0;
      for (uint32_t at = 0; at < 2; ++at) {
        const QueueCounters c = buffer.totals(at);
        CHECK_EQ(c.arrivals, c.drops + c.departures + buffer.packets(at));
        CHECK_EQ(c.drops, dropped[at]);
        CHECK_EQ(buffer.packets(at), stands[at].size());
        stored += buffer.packets(at), bytes_stored += buffer.bytes(at);
      }
      CHECK_EQ(buffer.occupancy(), sw.in_bytes ? bytes_stored : stored);
      CHECK_EQ(bench.ports[0]->packets(), stored);
      CHECK_EQ(bench.ports[0]->bytes(), bytes_stored);
    }
  }
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
  h.rise(3, 10);   // 0 for 10
  h.rise(7, 100);  // 3 for 90
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
  refused([](auto&, auto& sw) { sw.drop = "middle"; });
  refused([](auto& world, auto&) { world.links[0].discipline = "codel"; });
  refused([](auto& world, auto&) { world.links[0].queue_limit_packets = 10; });
  refused([](auto& world, auto&) { world.flows[0].priority = 2; });
}
