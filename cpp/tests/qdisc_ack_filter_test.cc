// The filter of ACKs: which of those that wait may go.
#include "check.h"
#include "qdisc_server.h"
#include "worlds.h"

using namespace netbuf;

namespace {

// ACKs that wait behind one that nothing serves.
struct Waiting {
  explicit Waiting(std::map<std::string, double> parameters = {}, int64_t limit = 1000)
      : server("ack_filter", std::move(parameters), 1e3, limit) {
    come(0, 0, kAckUntrue);      // in service
  }
  void come(uint32_t ack, uint8_t flags = 0, uint32_t owner = 0) { come(ack, flags, owner, true); }
  void count(uint32_t ack, Time marks) { come(ack, kAckEcho, 0, true, marks); }
  void data() { come(0, 0, 0, false); }
  std::vector<uint32_t> left(uint32_t owner = 0) {
    std::vector<uint32_t> numbers;
    Queued item;
    while (server.queue->dequeue(0, item)) {
      if (item.owner == owner) numbers.push_back(item.is_ack ? item.ack.ack : 0);
    }
    CHECK_EQ(server.queue->bytes(), 0);
    return numbers;
  }
  Server server;

 private:
  void come(uint32_t ack, uint8_t flags, uint32_t owner, bool is_ack, Time marks = -1) {
    Queued item{};
    if (is_ack) {
      item.ack.ack = ack;
      item.ack.flags = flags;
    }
    if (marks >= 0) {
      item.ack.echo_sent = Time{ack} * 1'000'000 * 8 | marks;
      item.counts_marks = true;
    }
    item.owner = owner;
    item.bytes = 52;
    item.is_ack = is_ack;
    server.queue->enqueue(0, item);
    if (first_) CHECK(server.queue->dequeue(0, item));
    first_ = false;
  }
  bool first_ = true;
};

using Numbers = std::vector<uint32_t>;

}  // namespace

TEST(of_plain_acks_that_wait_the_filter_leaves_the_newest_and_one_more) {
  Waiting careful, aggressive({{"aggressive", 1}});
  for (uint32_t ack = 1; ack <= 20; ++ack) careful.come(ack), aggressive.come(ack);
  CHECK_EQ(careful.server.drops, 18u);
  CHECK_EQ(aggressive.server.drops, 19u);
  CHECK(careful.left() == (Numbers{19, 20}));
  CHECK(aggressive.left() == (Numbers{20}));
}

// RFC 9768: of ACKs of one number of marks the newest stays, so that none is lost.
TEST(another_number_of_marks_is_not_filtered) {
  Waiting careful, aggressive({{"aggressive", 1}});
  for (Waiting* queue : {&careful, &aggressive}) {
    for (const auto& [ack, marks] : {std::pair{1, 0}, {2, 0}, {3, 0}, {4, 1}, {5, 3}, {6, 3}, {7, 3}}) {
      queue->count(static_cast<uint32_t>(ack), marks);
    }
  }
  CHECK(aggressive.left() == (Numbers{3, 4, 7}));
  const Numbers left = careful.left();
  for (const uint32_t last : {3u, 4u, 7u}) CHECK_EQ(std::count(left.begin(), left.end(), last), 1);
}

TEST(acks_of_each_connection_are_filtered_by_themselves) {
  Waiting queue({{"aggressive", 1}});
  for (uint32_t ack = 1; ack <= 5; ++ack) queue.come(ack, 0, 1), queue.come(10 * ack, 0, 2);
  CHECK_EQ(queue.server.drops, 8u);
  CHECK_EQ(queue.server.queue->packets(), 2u);
  CHECK(queue.left(1) == (Numbers{5}));
}

TEST(the_filter_keeps_duplicates_holes_and_what_is_no_plain_ack) {
  Waiting duplicates({{"aggressive", 1}});
  for (int i = 0; i < 4; ++i) duplicates.come(7);
  CHECK(duplicates.left() == (Numbers{7, 7, 7, 7}));
  Waiting holes({{"aggressive", 1}});
  holes.come(7);                 // whose successor says as much, and of a hole besides
  for (int i = 0; i < 3; ++i) holes.come(7, kAckHasSack);
  holes.come(12);
  CHECK(holes.left() == (Numbers{7, 7, 7, 12}));
  Waiting others({{"aggressive", 1}});
  for (const uint8_t flags : {kAckSynAck, kAckWindow, kAckFin, kAckRequest, kAckDuplicate}) others.come(7, flags);
  others.data();
  others.come(8);
  CHECK_EQ(others.server.drops, 0u);
}

TEST(the_filter_keeps_what_was_said_of_marks) {
  Waiting queue({{"aggressive", 1}});
  for (const uint8_t flags : {uint8_t{0}, uint8_t{kAckEcho}, uint8_t{kAckEcho}, uint8_t{0}, uint8_t{0}}) {
    static uint32_t ack = 0;
    queue.come(++ack, flags);
  }
  CHECK(queue.left() == (Numbers{1, 3, 5}));
}

TEST(thinning_leaves_one_ack_of_so_many) {
  for (const uint32_t n : {2u, 3u, 8u}) {
    Waiting queue({{"aggressive", 1}, {"keep_one_of", n}});
    for (uint32_t ack = 1; ack <= 10 * n; ++ack) queue.come(ack);
    const Numbers left = queue.left();
    CHECK_EQ(left.size(), 10u);
    for (uint32_t i = 0; i < left.size(); ++i) CHECK_EQ(left[i], (i + 1) * n);
  }
}

TEST(the_filter_makes_room_before_it_drops_for_want_of_it) {
  Waiting queue({{"aggressive", 1}}, 3);
  for (uint32_t ack = 1; ack <= 5; ++ack) queue.come(ack);
  queue.data(), queue.data();
  queue.come(6);                 // the fifth goes for it
  CHECK_EQ(queue.server.queue->packets(), 3u);
  CHECK(queue.left() == (Numbers{0, 0, 6}));
}

TEST(the_filter_drops_nothing_for_what_does_not_fit_then) {
  Server server("ack_filter", {{"aggressive", 1}}, 1e3, INT64_MAX, 100);
  Queued item{};
  item.is_ack = true;
  for (const uint32_t bytes : {52u, 120u}) {
    ++item.ack.ack;
    item.bytes = bytes;
    server.queue->enqueue(0, item);
  }
  CHECK_EQ(server.drops, 1u);
  CHECK_EQ(server.queue->bytes(), 52);
}

TEST(the_filter_conserves_packets_and_keeps_its_limits) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    CHECK(survives_anything("ack_filter", {}, 50, INT64_MAX, seed));
    CHECK(survives_anything("ack_filter", {}, INT64_MAX, 30'000, seed));
  }
}

// 100 kbit/s carry 240 ACKs a second: a flow of 10 Mbit/s, which has 417, fills whatever queue there is for them.
TEST(a_filtered_way_back_has_no_queue_and_the_flow_its_rate) {
  const auto run = [](const char* discipline, double aggressive) {
    WorldConfig config = worlds::dumbbell(10, 60, 150, {"newreno"});
    config.links[1] = worlds::link(0.1, 30, 1000);
    config.links[1].discipline = discipline;
    if (aggressive >= 0) config.links[1].discipline_parameters = {{"aggressive", aggressive}};
    World world(config, 1);
    world.run(20 * kSecond);
    const LinkStats back = world.links()[1].stats(world.now());
    CHECK(back.packets_in == back.packets_out + back.queue_drops + world.links()[1].queue_packets());
    return std::pair{static_cast<double>(world.flows()[0].counters().delivered_bytes) * 8 / 20e6, back.queue_max};
  };
  const auto plain = run("droptail", -1), careful = run("ack_filter", 0), aggressive = run("ack_filter", 1);
  CHECK_GE(careful.first, 8);
  CHECK_GE(aggressive.first, 8);
  CHECK_GE(careful.first, plain.first + 2);
  CHECK_GE(plain.second, 900u);
  CHECK_LE(aggressive.second, 200u);  // at worst those of a hole
}
