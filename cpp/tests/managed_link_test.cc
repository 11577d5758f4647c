// Managed links: the same packets at the same times as a plain first-in first-out link
// when the discipline is drop-tail.
#include "worlds.h"

using namespace netbuf;

namespace {

std::vector<uint64_t> flows_only(World& world) {
  std::vector<uint64_t> all;
  for (const Flow& flow : world.flows()) {
    const auto one = worlds::fingerprint(flow);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

WorldConfig crowd(int64_t queue_packets, bool acks_share) {
  WorldConfig world;
  world.links = {worlds::link(20, 12, queue_packets), worlds::link(0, 12), worlds::link(5, 4, 40)};
  const char* senders[] = {"cubic", "newreno", "bbr", "vegas", "westwood"};
  for (uint32_t i = 0; i < 5; ++i) {
    world.flows.push_back(worlds::flow(senders[i], {0}, {acks_share ? 2u : 1u}));
    world.flows.back().start_ns = i * 70 * kMillisecond + i * 1001;
  }
  return world;
}

void expect_same(WorldConfig config) {
  World plain(config, 7);
  config.links[0].discipline = "droptail";
  config.links[2].discipline = "droptail";
  World managed(config, 7);
  for (World* world : {&plain, &managed}) world->run(20 * kSecond);
  CHECK(flows_only(plain) == flows_only(managed));
  for (size_t i = 0; i < config.links.size(); ++i) {
    const LinkStats a = plain.links()[i].stats(plain.now()), b = managed.links()[i].stats(managed.now());
    CHECK_EQ(a.packets_in, b.packets_in);
    CHECK_EQ(a.packets_out, b.packets_out);
    CHECK_EQ(a.bytes_out, b.bytes_out);
    CHECK_EQ(a.queue_drops, b.queue_drops);
    CHECK_EQ(a.random_losses, b.random_losses);
    CHECK_EQ(a.queue_max, b.queue_max);
    CHECK_NEAR(a.sojourn_sum, b.sojourn_sum, 1e-9);
    CHECK_NEAR(a.queue_integral, b.queue_integral, 1e-6);
    CHECK_NEAR(a.busy, b.busy, 1e-9);
  }
}

// A managed link by itself, and how often it has said that its next event is another.
struct Told final : Link::Host {
  explicit Told(LinkConfig config) : link(config, &rng) {
    const auto make = [](const DisciplineSetting& setting) { return make_discipline("droptail", {}, setting); };
    link.manage(make, config, 0, this);
  }
  void sent(const Queued&, Time) override { ++packets; }
  void lost(const Queued&, Link::Fate) override {}
  void rescheduled(uint32_t) override { ++told; }
  void offer(Time now) {
    Queued item{};
    item.bytes = 1250;
    link.offer(now, item);
  }

  Rng rng{1};
  Link link;
  int told = 0, packets = 0;
};

}  // namespace

TEST(a_link_tells_of_another_event_where_nobody_would_ask) {
  for (const int64_t device_packets : {0, 2}) {
    LinkConfig config = worlds::link(10, 1);  // 1 ms a packet
    config.device_packets = device_packets;
    Told one(config);
    one.offer(0);  // leaves at once
    CHECK_EQ(one.packets, 1);
    CHECK_EQ(one.told, 0);
    one.offer(0);
    CHECK_EQ(one.told, 1);
    CHECK_EQ(one.link.next(), kMillisecond);
    one.offer(1);
    CHECK_EQ(one.told, 1);
    for (int i = 1; i <= 2; ++i) {
      CHECK_EQ(one.link.next(), i * kMillisecond);
      one.link.run(i * kMillisecond);
      CHECK_EQ(one.packets, 1 + i);
    }
    CHECK_EQ(one.told, 1);  // whoever runs it asks
    CHECK_EQ(one.link.next(), kNever);
    one.offer(kSecond);
    one.offer(kSecond);
    CHECK_EQ(one.told, 2);
    one.link.stall(kSecond, 2 * kSecond);
    CHECK_EQ(one.told, 3);
    CHECK_EQ(one.link.next(), 2 * kSecond);
  }
}

TEST(droptail_equals_the_plain_link) {
  for (const int64_t queue : {1, 5, 60, 0}) expect_same(crowd(queue, false));
}

TEST(also_for_acks_and_random_loss) {
  WorldConfig config = crowd(40, true);
  expect_same(config);
  config.flows[2].cc = "cubic";  // BBR and the losses draw from one generator, and a managed link draws later
  config.links[0].loss = 0.01;
  expect_same(config);
  config.links[0].loss = 0;  // two links that lose would draw in another order
  config.links[2].loss = 0.05;
  config.links[2].loss_on_acks = true;
  expect_same(config);
}

TEST(also_when_the_rate_varies) {
  WorldConfig config = crowd(30, false);
  config.links[0].schedule_time_ns = {0, 300 * kMillisecond + 17, 900 * kMillisecond};
  config.links[0].schedule_rate_bps = {20e6, 0, 3e6};
  config.links[0].schedule_period_ns = 2 * kSecond;
  expect_same(config);
}

// On a trace a packet waits in the discipline until its delivery opportunity comes.
TEST(also_on_a_delivery_trace) {
  WorldConfig config = crowd(30, false);
  Rng rng(3);
  for (Time t = 0; t < kSecond; t += 1 + static_cast<Time>(rng.exponential(7e5))) config.links[0].trace_ns.push_back(t);
  config.links[0].trace_period_ns = config.links[0].trace_ns.back() + kMillisecond;
  // One packet more or less and the worlds part: they agree on the average.
  double bytes[2] = {}, sojourn[2] = {};
  for (uint64_t seed = 0; seed < 20; ++seed) {
    for (const int managed : {0, 1}) {
      config.links[0].discipline = managed ? "droptail" : "";
      World world(config, seed);
      world.run(20 * kSecond);
      const LinkStats stats = world.links()[0].stats(world.now());
      bytes[managed] += static_cast<double>(stats.bytes_out);
      sojourn[managed] += stats.sojourn_sum;
    }
  }
  CHECK_NEAR(bytes[0], bytes[1], 0.003 * bytes[0]);
  CHECK_NEAR(sojourn[0], sojourn[1], 0.02 * sojourn[0]);
}

// What the device holds is out of the discipline's hands: it delays as much as a longer queue would,
// and is not counted in it.
TEST(a_device_holds_packets_behind_the_discipline) {
  for (const int64_t device : {1, 3}) {
    WorldConfig config = worlds::dumbbell(10, 40, 50, {"cubic"});
    World plain(config, 1);
    config.links[0].queue_limit_packets -= device;
    config.links[0].device_packets = device;
    World managed(config, 1);
    for (World* world : {&plain, &managed}) world->run(20 * kSecond);
    CHECK(flows_only(plain) == flows_only(managed));
    const LinkStats a = plain.links()[0].stats(plain.now()), b = managed.links()[0].stats(managed.now());
    CHECK_EQ(a.queue_drops, b.queue_drops);
    CHECK_LT(b.sojourn_sum, a.sojourn_sum);
    CHECK_EQ(b.queue_max, 50 - device);
  }
}

TEST(bad_disciplines_are_refused) {
  WorldConfig config = worlds::dumbbell(10, 40, 50, {"cubic"});
  config.links[0].discipline = "tail";
  CHECK_THROWS(World(config, 1), std::invalid_argument);
  config.links[0].discipline = "codel";
  config.links[0].discipline_parameters = {{"target", 5}};
  CHECK_THROWS(World(config, 1), std::invalid_argument);
  config.links[0].discipline_parameters = {{"target_ms", -5}};
  CHECK_THROWS(World(config, 1), std::invalid_argument);
  config.links[0].discipline_parameters = {{"target_ms", std::nan("")}};
  CHECK_THROWS(World(config, 1), std::invalid_argument);
  config.links[0].discipline_parameters = {};
  World(config, 1).run(kSecond);
}
