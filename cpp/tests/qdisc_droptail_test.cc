#include <stdexcept>

#include "check.h"
#include "qdisc_server.h"

using namespace netbuf;

TEST(droptail_is_first_in_first_out_and_drops_what_finds_it_full) {
  Server server("droptail", {}, 12e6, 10);
  std::vector<uint32_t> order;
  server.on_sent = [&](const Queued& item) { order.push_back(item.packet.segment); };
  for (int i = 0; i < 20; ++i) server.arrive(0);  // one in service, ten in the queue
  CHECK_EQ(server.drops, 9u);
  CHECK_EQ(server.queue->packets(), 10u);
  CHECK_EQ(server.queue->bytes(), 15'000);
  server.run(kSecond);
  CHECK_EQ(order.size(), 11u);
  for (uint32_t i = 0; i < order.size(); ++i) CHECK_EQ(order[i], i);
  CHECK_NEAR(server.longest_sojourn, 10e-3, 1e-9);
}

TEST(droptail_keeps_a_limit_in_bytes) {
  Server server("droptail", {}, 12e6, INT64_MAX, 4000);
  server.arrive(0);
  server.arrive(0);
  server.arrive(0);
  server.arrive(0);          // would be 4500
  CHECK_EQ(server.drops, 1u);
  server.arrive(0, 0, 1000);  // exactly full
  CHECK_EQ(server.drops, 1u);
  server.arrive(0, 0, 1);
  CHECK_EQ(server.drops, 2u);
}

TEST(droptail_conserves_packets_and_keeps_its_limits) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    CHECK(survives_anything("droptail", {}, 50, INT64_MAX, seed));
    CHECK(survives_anything("droptail", {}, INT64_MAX, 30'000, seed));
    CHECK(survives_anything("droptail", {}, 0, INT64_MAX, seed));
  }
}
