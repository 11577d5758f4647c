// What may be changed at a switch while packets wait, and tables of flows: orders and drops by hand.
#include <algorithm>
#include <random>

#include "worlds.h"

using namespace netbuf;
using Scheduler = SharedBuffer::Scheduler;

namespace {

struct Dropped final : DropSink {
  void dropped(const Queued& item) override { names.push_back(item.packet.segment); }
  void marked(const Queued& item) override { marks.push_back(item.packet.segment); }
  std::vector<uint32_t> names, marks;
};

struct Bench {
  explicit Bench(const SwitchConfig& config) : buffer(config) {
    for (uint32_t port = 0; port < config.ports.size(); ++port) ports.push_back(buffer.make_port(port, &sink));
  }
  void offer(uint32_t owner, uint32_t name, uint32_t priority = 0, uint32_t bytes = 1500, uint32_t port = 0) {
    Queued item{};
    item.owner = owner;
    item.packet.segment = name;
    item.priority = static_cast<uint8_t>(priority);
    item.bytes = bytes;
    item.ecn = ecn;
    ports[port]->enqueue(0, item);
  }
  std::vector<uint32_t> send(uint32_t count = 1000, uint32_t port = 0) {
    std::vector<uint32_t> names;
    for (Queued item; count-- > 0 && ports[port]->dequeue(0, item);) names.push_back(item.packet.segment);
    return names;
  }
  bool ecn = false;
  Dropped sink;
  SharedBuffer buffer;
  std::vector<std::unique_ptr<QueueDiscipline>> ports;
};

using Names = std::vector<uint32_t>;

// Queue 0 holds four packets, or as many as are spared.
SwitchConfig config(const std::string& service, const std::string& drop, const std::string& victims) {
  SwitchConfig sw;
  sw.ports = {0};
  sw.queues = 2;
  sw.capacity = 100;
  sw.admission = "static";
  sw.thresholds = {4, 100};
  sw.drop = drop;
  sw.flow_slots = 1024;
  sw.flow_service = service;
  sw.flow_quantum = 1500;
  sw.victims = victims;
  return sw;
}

void check_schedulers(const SwitchConfig& sw) {
  Bench bench(sw);
  for (int i = 0; i < 10; ++i) {
    for (uint32_t q = 0; q < 2; ++q) bench.offer(q, q, q);  // packets have their queue's name
  }
  CHECK(bench.send(2) == Names({0, 1}));
  bench.buffer.set_scheduler(Scheduler::strict_priority);
  CHECK(bench.send(2) == Names({0, 0}));
  CHECK_EQ(bench.buffer.share(0), 1.0);
  const double two[] = {3000, 1500}, one[] = {1500, 1500};
  bench.buffer.set_scheduler(Scheduler::drr, two);  // the turn is queue 1's
  CHECK_NEAR(bench.buffer.share(0), 2.0 / 3, 1e-12);
  CHECK(bench.send(2) == Names({1, 0}));
  bench.buffer.set_scheduler(Scheduler::drr, two);  // nothing new: queue 0 has half of its turn left
  CHECK(bench.send(3) == Names({0, 1, 0}));
  bench.buffer.set_scheduler(Scheduler::drr, one);  // turns begin anew, with queue 0, which had one
  CHECK(bench.send(3) == Names({0, 1, 0}));
  bench.buffer.set_scheduler(Scheduler::round_robin);
  CHECK_EQ(bench.buffer.share(1), 0.5);
  CHECK(bench.send(4) == Names({0, 1, 0, 1}));
}

}  // namespace

TEST(schedulers_change_while_packets_wait) {
  SwitchConfig sw = config("fifo", "tail", "any");
  sw.thresholds = {100, 100};
  for (const uint32_t slots : {0, 64}) {
    sw.flow_slots = slots;
    check_schedulers(sw);
  }
}

// Quanta that nobody named are a packet each.
TEST(deficit_round_robin_without_quanta_takes_turns_by_bytes) {
  SwitchConfig sw = config("fifo", "tail", "any");
  sw.flow_slots = 0;
  sw.thresholds = {100, 100};
  Bench bench(sw);
  for (int i = 0; i < 4; ++i) bench.offer(0, 0, 0);
  for (int i = 0; i < 20; ++i) bench.offer(1, 1, 1, 500);
  bench.buffer.set_scheduler(Scheduler::drr);
  CHECK(bench.send(8) == Names({0, 1, 1, 1, 0, 1, 1, 1}));
}

TEST(a_quantum_that_is_not_named_stays) {
  SwitchConfig sw = config("fifo", "tail", "any");
  sw.thresholds = {100, 100};
  Bench bench(sw);
  for (int i = 0; i < 9; ++i) bench.offer(0, 0, 0);
  for (int i = 0; i < 9; ++i) bench.offer(1, 1, 1);
  const double both[] = {3000, 1500}, second[] = {NAN, 4500};
  bench.buffer.set_scheduler(Scheduler::drr, both);
  bench.buffer.set_scheduler(Scheduler::drr, second);
  CHECK(bench.send(10) == Names({0, 0, 1, 1, 1, 0, 0, 1, 1, 1}));
}

// Over the threshold a flow is spared while it has less than an equal share, with what arrives.
TEST(drops_at_the_tail_hit_large_slots) {
  for (const std::string service : {"fifo", "drr"}) {
    Bench bench(config(service, "tail", "large"));
    for (uint32_t i = 0; i < 5; ++i) bench.offer(1, i);         // 4 stay: of itself it has an equal share
    CHECK(bench.sink.names == Names({4}));
    for (uint32_t i = 10; i < 14; ++i) bench.offer(2, i);       // 3 of 7 bytes' worth: the fourth would have half of 8
    CHECK(bench.sink.names == Names({4, 13}));
    CHECK_EQ(bench.buffer.slots_used(0), 2u);
    CHECK_EQ(bench.buffer.largest_slot(0), 6000);
    const Names order = service == "fifo" ? Names{0, 1, 2, 3, 10, 11, 12} : Names{0, 10, 1, 11, 2, 12, 3};
    CHECK(bench.send() == order);
    CHECK_EQ(bench.buffer.slots_used(0), 0u);
    CHECK_EQ(bench.buffer.largest_slot(0), 0);
  }
}

TEST(drops_at_the_head_hit_the_largest_slot_where_slots_take_turns) {
  Bench bench(config("drr", "head", "large"));
  for (uint32_t i = 0; i < 4; ++i) bench.offer(1, i);
  bench.offer(2, 10);                                           // 0 goes for it
  bench.offer(1, 4);                                            // 1: no longer spared, and still the largest
  bench.offer(2, 11);                                           // 2
  CHECK(bench.sink.names == Names({0, 1, 2}));
  CHECK(bench.send() == Names({3, 10, 4, 11}));
}

// First in, first out, the oldest may be anybody's: who is spared costs nobody a packet.
TEST(drops_at_the_head_of_a_queue_spare_small_slots) {
  Bench bench(config("fifo", "head", "large"));
  for (uint32_t i = 0; i < 4; ++i) bench.offer(1, i);
  bench.offer(2, 10);
  CHECK(bench.sink.names.empty());
  bench.offer(1, 4);
  CHECK(bench.sink.names == Names({0}));
  CHECK(bench.send() == Names({1, 2, 3, 10, 4}));
}

// The oldest of its own slot goes for what arrives, or it goes itself where that has nothing.
TEST(drops_at_the_head_hit_their_own_slot_where_any_may_be) {
  Bench bench(config("drr", "head", "any"));
  for (uint32_t i = 0; i < 3; ++i) bench.offer(1, i);
  bench.offer(2, 10);
  bench.offer(2, 11);
  bench.offer(3, 20);
  CHECK(bench.sink.names == Names({10, 20}));
  bench.buffer.set_victims(true);
  bench.offer(3, 21);
  CHECK(bench.sink.names == Names({10, 20, 0}));
  CHECK(bench.send() == Names({1, 11, 21, 2}));
}

TEST(marks_hit_large_slots) {
  SwitchConfig sw = config("drr", "tail", "large");
  sw.congested = "mark";
  Bench bench(sw);
  bench.ecn = true;
  for (uint32_t i = 0; i < 5; ++i) bench.offer(1, i);
  bench.offer(2, 10);
  CHECK(bench.sink.marks == Names({4}));
  CHECK(bench.sink.names.empty());
  CHECK_EQ(bench.buffer.totals(0).marks, 1u);
}

// Whoever is spared is so within the buffer and the cap only.
TEST(nobody_is_spared_beyond_the_buffer) {
  SwitchConfig sw = config("drr", "tail", "large");
  sw.queue_cap = 5;
  Bench capped(sw);
  for (uint32_t i = 0; i < 4; ++i) capped.offer(1, i);
  capped.offer(2, 10);
  capped.offer(3, 20);
  CHECK(capped.sink.names == Names({20}));
  sw.queue_cap = 0;
  sw.capacity = 4;
  Bench full(sw);
  for (uint32_t i = 0; i < 4; ++i) full.offer(1, i);
  full.offer(2, 10);
  CHECK(full.sink.names == Names({10}));
}

// With one flow a queue, first in, first out, a table changes nothing.
TEST(a_table_that_nobody_uses_changes_nothing) {
  for (const std::string drop : {"tail", "head"}) {
    for (const Scheduler scheduler : {Scheduler::round_robin, Scheduler::strict_priority}) {
      SwitchConfig sw = config("fifo", drop, "any");
      sw.thresholds = {7, 12};
      sw.capacity = 15;
      Bench with(sw);
      sw.flow_slots = 0;
      Bench without(sw);
      std::minstd_rand draw(5);
      for (uint32_t i = 0; i < 2000; ++i) {
        const uint32_t what = draw() % 5, q = draw() % 2, bytes = 60 + draw() % 1400;
        for (Bench* bench : {&with, &without}) {
          bench->buffer.set_scheduler(scheduler);
          if (what < 3) bench->offer(q, i, q, bytes);
        }
        if (what >= 3) CHECK(with.send(1) == without.send(1));
      }
      CHECK(!with.sink.names.empty());
      CHECK(with.sink.names == without.sink.names);
      CHECK(with.send() == without.send());
    }
  }
}

// Whatever is changed meanwhile, each packet is sent or dropped once, and nothing is left in the books.
TEST(packets_are_conserved_whatever_is_changed) {
  for (const std::string service : {"fifo", "drr"}) {
    SwitchConfig sw = config(service, "tail", "any");
    sw.ports = {0, 1};
    sw.admission = "agent";
    sw.alphas = {0.5, 0.25};
    sw.capacity = 60'000;
    sw.in_bytes = true;
    sw.flow_slots = 16;
    Bench bench(sw);
    std::minstd_rand draw(7);
    Names sent;
    for (uint32_t i = 0; i < 20'000; ++i) {
      const uint32_t what = draw() % 16, port = draw() % 2;
      bench.ecn = draw() % 2 == 0;
      if (what < 8) bench.offer(draw() % 40, i, draw() % 2, 60 + draw() % 1441, port);
      if (what >= 8 && what < 14) for (const uint32_t name : bench.send(1, port)) sent.push_back(name);
      if (what == 14) bench.buffer.set_scheduler(static_cast<Scheduler>(draw() % 3));
      if (what == 15) {
        bench.buffer.set_victims(draw() % 2 == 0);
        bench.buffer.set_drop_head(draw() % 2 == 0);
        bench.buffer.set_congested(draw() % 2 == 0);
        bench.buffer.set_alpha(draw() % 2, 0.25 * (draw() % 5));
      }
    }
    for (uint32_t port = 0; port < 2; ++port) for (const uint32_t name : bench.send(1000, port)) sent.push_back(name);
    const uint64_t offered = bench.buffer.totals(0).arrivals + bench.buffer.totals(1).arrivals;
    CHECK(bench.sink.names.size() > 100);
    CHECK_EQ(sent.size() + bench.sink.names.size(), offered);
    sent.insert(sent.end(), bench.sink.names.begin(), bench.sink.names.end());
    std::sort(sent.begin(), sent.end());
    CHECK(std::adjacent_find(sent.begin(), sent.end()) == sent.end());
    CHECK_EQ(bench.buffer.occupancy(), 0);
    for (uint32_t q = 0; q < 2; ++q) {
      CHECK_EQ(bench.buffer.slots_used(q), 0u);
      CHECK_EQ(bench.buffer.largest_slot(q), 0);
      CHECK_EQ(bench.buffer.bytes(q), 0);
    }
  }
}
