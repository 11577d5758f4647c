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

TEST(disciplines_are_found_by_name_and_checked) {
  std::map<std::string, double> none;
  const std::vector<std::string> names = queue_discipline_names();
  CHECK(names == (std::vector<std::string>{"droptail", "red", "codel", "fq_codel", "pie"}));
  CHECK_THROWS(check_discipline("sfq", none, "discipline"), std::invalid_argument);
  std::map<std::string, double> unknown{{"target_ms", 5}};
  CHECK_THROWS(check_discipline("droptail", unknown, "discipline"), std::invalid_argument);
  for (const DisciplineRecord* record : queue_disciplines()) {
    for (const DisciplineParameter& parameter : record->parameters) {
      CHECK(parameter.low <= parameter.initial && parameter.initial <= parameter.high);
      const std::string key(parameter.name);
      for (const double bad : {parameter.low - 1, parameter.high * 2, std::nan("")}) {
        std::map<std::string, double> wrong{{key, bad}};
        CHECK_THROWS(check_discipline(record->name, wrong, "discipline"), std::invalid_argument);
      }
      std::map<std::string, double> good{{key, parameter.high}};
      check_discipline(record->name, good, "discipline");
      CHECK_EQ(good.size(), record->parameters.size());
      CHECK_EQ(good.at(key), parameter.high);
    }
  }
}
