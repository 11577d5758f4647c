#include <set>

#include "check.h"
#include "qdisc_server.h"

using namespace netbuf;

namespace {
constexpr double kRate = 12e6;  // a packet of 1500 bytes each millisecond
}

TEST(fq_codel_isolates_a_sparse_flow) {
  Server server("fq_codel", {}, kRate, 10'240);
  // Two floods, and a packet of 200 bytes each 20 ms.
  for (Time t = 0; t < 10 * kSecond; t += kMillisecond) {
    for (uint32_t owner : {1u, 2u}) server.arrive(t, owner);
    if (t % (20 * kMillisecond) == 0) server.arrive(t, 7, 200);
  }
  CHECK_EQ(server.drops_of[7], 0u);
  CHECK_EQ(server.sent_of[7], 500u);
  // It waits for the packet in service and no more.
  CHECK_LT(server.sojourn_of[7] / 500, 1.1e-3);
  CHECK_GT(server.sojourn_of[1] / static_cast<double>(server.sent_of[1]), 20e-3);
}

TEST(fq_codel_divides_the_link_by_bytes) {
  // A limit that the floods fill, so that neither CoDel nor the batch of drops from the fattest leaves a queue empty.
  Server server("fq_codel", {}, kRate, 10'000);
  for (Time t = 0; t < 5 * kSecond; t += kMillisecond) {
    server.arrive(t, 1, 1500);
    for (int i = 0; i < 3; ++i) server.arrive(t, 2, 500);
    server.arrive(t, 3, 1000);
    server.arrive(t, 3, 500);
  }
  const double share = static_cast<double>(server.sent_bytes) / 3;
  CHECK_NEAR(static_cast<double>(server.sent_of[1]) * 1500, share, 0.01 * share);
  CHECK_NEAR(static_cast<double>(server.sent_of[2]) * 500, share, 0.01 * share);
}

TEST(fq_codel_gives_a_new_flow_one_quantum_ahead_of_the_old_ones) {
  Server server("fq_codel", {}, kRate);
  std::vector<uint32_t> order;
  server.on_sent = [&](const Queued& item) { order.push_back(item.owner); };
  for (int i = 0; i < 8; ++i) server.arrive(0, 1);
  server.run(3 * kMillisecond + 1);  // 1 is old by now
  for (int i = 0; i < 4; ++i) server.arrive(3 * kMillisecond + 1, 2);
  order.clear();
  server.run(kSecond);
  // The quantum covers a packet and 14 bytes: two packets of the new flow. Then it takes turns with the old one, whose
  // deficit has to be made up first.
  CHECK(order == (std::vector<uint32_t>{2, 2, 2, 1, 2, 1, 1, 1}));
}

TEST(fq_codel_drops_from_the_head_of_the_fattest_when_full) {
  Server server("fq_codel", {{"drop_batch", 64}}, 1e3, 200);  // hardly ever serves
  std::vector<uint32_t> left;
  server.arrive(0, 9);  // into service
  for (int i = 0; i < 50; ++i) server.arrive(1, 1);
  for (int i = 0; i < 150; ++i) server.arrive(2, 2);
  CHECK_EQ(server.drops, 0u);
  server.arrive(3, 1);  // one too many: 64 packets, less than half of the fattest
  CHECK_EQ(server.drops_of[2], 64u);
  CHECK_EQ(server.drops_of[1], 0u);
  CHECK_EQ(server.queue->packets(), 137u);

  Server small("fq_codel", {}, 1e3, 20);
  small.arrive(0, 9);
  for (int i = 0; i < 15; ++i) small.arrive(1, 2);
  for (int i = 0; i < 6; ++i) small.arrive(2, 1);
  CHECK_EQ(small.drops_of[2], 8u);  // half of its bytes, rounded up to packets
  CHECK_EQ(small.drops_of[1], 0u);
}

TEST(fq_codel_hashes_flows_by_a_perturbation) {
  // As many queues as flows: with one seed some flows share a queue, with another, others do.
  std::set<std::vector<uint64_t>> patterns;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    Server server("fq_codel", {{"flows", 8}}, kRate, 10'000, INT64_MAX, seed);
    for (Time t = 0; t < kSecond; t += kMillisecond) {
      for (uint32_t owner = 0; owner < 8; ++owner) server.arrive(t, owner);
    }
    std::vector<uint64_t> sent;
    for (uint32_t owner = 0; owner < 8; ++owner) sent.push_back(server.sent_of[owner] / 20);
    patterns.insert(sent);
  }
  CHECK_GE(patterns.size(), 4u);
  // A perturbation that is given leaves nothing to the seed.
  std::map<uint32_t, uint64_t> first;
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    Server server("fq_codel", {{"flows", 8}, {"perturbation", 12}}, kRate, 10'000, INT64_MAX, seed);
    for (Time t = 0; t < kSecond; t += kMillisecond) {
      for (uint32_t owner = 0; owner < 8; ++owner) server.arrive(t, owner);
    }
    if (seed == 1) first = server.sent_of;
    CHECK(first == server.sent_of);
  }
}

TEST(fq_codel_with_one_queue_is_codel) {
  Server one("fq_codel", {{"flows", 1}}, kRate), codel("codel", {}, kRate);
  one.load(0, 10 * kSecond, 1.05 * kRate);
  codel.load(0, 10 * kSecond, 1.05 * kRate);
  CHECK(one.drop_times == codel.drop_times);
  CHECK_GT(one.drops, 10u);
}

TEST(fq_codel_conserves_packets_and_keeps_its_limits) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    CHECK(survives_anything("fq_codel", {}, 50, INT64_MAX, seed));
    CHECK(survives_anything("fq_codel", {{"flows", 3}, {"quantum_bytes", 100}, {"drop_batch", 1}}, INT64_MAX, 20'000,
                            seed));
    CHECK(survives_anything("fq_codel", {}, 0, INT64_MAX, seed));
    CHECK(survives_anything("fq_codel", {}, 10, 700, seed));
  }
}
