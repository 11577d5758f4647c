// Routes: running flows whose paths are replaced.
#include "worlds.h"

using namespace netbuf;

namespace {

// Links 0 and 1 as in a dumbbell, 2 and 3 another way of another rate and delay.
WorldConfig two_ways(const std::string& cc, Time at, double mbps, double rtt_ms) {
  WorldConfig world = worlds::dumbbell(10, 40, 100, {cc});
  world.links.push_back(worlds::link(mbps, rtt_ms / 2, 100));
  world.links.push_back(worlds::link(0, rtt_ms / 2));
  world.flows[0].routes = {{at, {2}, {3}}};
  return world;
}

double goodput_mbps(World& world, Time until) {
  const int64_t before = world.flows()[0].counters().delivered_bytes;
  const Time from = world.now();
  world.run(until);
  return static_cast<double>(world.flows()[0].counters().delivered_bytes - before) * 8e3 /
         static_cast<double>(until - from);
}

}  // namespace

TEST(a_flow_goes_on_by_its_new_route) {
  for (const double rtt_ms : {10.0, 40.0, 200.0}) {
    WorldConfig config = two_ways("cubic", 10 * kSecond, 5, rtt_ms);
    World world(config, 1);
    world.run(5 * kSecond);
    CHECK_NEAR(goodput_mbps(world, 9 * kSecond), 9.65, 0.1);
    CHECK_EQ(world.links()[2].stats(world.now()).packets_in, 0u);
    world.run(25 * kSecond);
    const uint64_t old = world.links()[0].stats(world.now()).packets_out;
    CHECK_NEAR(goodput_mbps(world, 40 * kSecond), 4.8, 0.3);
    CHECK_EQ(world.links()[0].stats(world.now()).packets_out, old);
  }
}

TEST(what_is_on_its_way_goes_on_where_it_is) {
  WorldConfig config = two_ways("cubic", 10 * kSecond, 10, 40);
  World world(config, 1);
  world.run(10 * kSecond);
  const uint64_t sent = world.links()[0].stats(world.now()).packets_in;
  world.run(60 * kSecond);
  const LinkStats stats = world.links()[0].stats(world.now());
  CHECK_EQ(stats.packets_in, sent);
  CHECK_EQ(stats.packets_out + stats.queue_drops, sent);
}

TEST(a_route_that_changes_nothing_changes_nothing_much) {
  WorldConfig plain = worlds::dumbbell(10, 40, 100, {"cubic"}), again = plain;
  again.flows[0].routes = {{5 * kSecond, {0}, {1}}};
  World one(plain, 1), other(again, 1);
  one.run(20 * kSecond), other.run(20 * kSecond);
  CHECK(worlds::fingerprint(one.flows()[0]) == worlds::fingerprint(other.flows()[0]));
}

TEST(routes_of_several_links_there_and_back_again) {
  for (const std::string& cc : worlds::controls(Stack::linux_kernel, false)) {
    WorldConfig config = two_ways(cc, 3 * kSecond, 20, 20);
    config.links.push_back(worlds::link(15, 3, 50));
    config.links.push_back(worlds::link(0, 4));
    config.links[4].discipline = "codel";
    config.flows[0].routes = {{3 * kSecond, {4, 2}, {3, 5}},
                              {6 * kSecond, {0}, {1}},
                              {6100 * kMillisecond, {2, 4}, {5, 3}},
                              {9 * kSecond, {0}, {1}}};
    config.flows.push_back(worlds::flow("cubic", {4}, {5}));
    World world(config, 1);
    world.run(15 * kSecond);
    CHECK_GT(world.flows()[0].counters().delivered_bytes, 1'000'000);
  }
}

TEST(a_log_changes_nothing_and_has_what_sets_out_on_every_route) {
  for (const bool several : {false, true}) {
    for (const bool changes : {false, true}) {
      WorldConfig config;
      config.links = {worlds::link(10, 10, 30), worlds::link(10, 10), worlds::link(20, 5), worlds::link(20, 5)};
      config.flows = {several ? worlds::flow("cubic", {0, 2}, {1, 3}) : worlds::flow("cubic", {0}, {1})};
      if (changes) config.flows[0].routes = {{2 * kSecond, {2}, {3}}, {3 * kSecond, {0}, {1, 3}}};
      World plain(config, 1);
      config.log_packets = true;
      World logged(config, 1);
      for (World* world : {&plain, &logged}) world->run(4 * kSecond);
      CHECK(worlds::fingerprint(plain) == worlds::fingerprint(logged));
      CHECK(!plain.log());
      uint64_t sent = 0, received = 0, dropped = 0;
      for (const PacketRow& row : logged.log()->rows()) {
        if (row.is_ack || !is_data(static_cast<PacketKind>(row.kind))) continue;
        sent += row.event == PacketEvent::sent;
        received += row.event == PacketEvent::received;
        dropped += row.event == PacketEvent::queue_drop;
        if (row.event == PacketEvent::queue_drop) CHECK_EQ(row.link, 0u);  // the others have endless queues
      }
      const Flow& flow = logged.flows()[0];
      CHECK_EQ(sent, flow.counters().packets_sent);
      CHECK_EQ(received, flow.counters().packets_received);
      CHECK_EQ(dropped, flow.counters().queue_drops);
      CHECK_GT(dropped, 0u);
    }
  }
}

TEST(routes_that_are_none_are_refused) {
  WorldConfig config = two_ways("cubic", kSecond, 10, 40);
  config.flows[0].routes.push_back({kSecond, {0}, {1}});
  CHECK(worlds::refusal(config).starts_with("flows[0].routes[1].from_ns = 1000000000: must be above the one before"));
  config.flows[0].routes[1] = {2 * kSecond, {9}, {1}};
  CHECK(worlds::refusal(config).starts_with("flows[0].routes[1].path"));
  config.flows[0].routes[1] = {2 * kSecond, {1}, {1}};
  CHECK(worlds::refusal(config).starts_with("flows[0].routes[1].path = infinitely fast links"));
}
