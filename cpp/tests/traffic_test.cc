// Traffic: when flows are opened, of what size, and what becomes of them.
#include <cmath>
#include <set>

#include "netbuf/batch.h"
#include "worlds.h"

using namespace netbuf;

namespace {

TrafficConfig traffic(uint32_t senders, ArrivalsConfig arrivals) {
  TrafficConfig traffic;
  for (uint32_t i = 0; i < senders; ++i) traffic.senders.push_back(worlds::flow("cubic", {i + 2, 0}, {1}));
  traffic.arrivals = {std::move(arrivals)};
  traffic.priority_below = {100'000};
  return traffic;
}

ArrivalsConfig poisson(double rate) {
  ArrivalsConfig arrivals;
  arrivals.rate_per_s = rate;
  arrivals.size_bytes = {1000, 10'000, 200'000, 1'000'000};
  arrivals.cumulative = {0.1, 0.5, 0.9, 1};
  return arrivals;
}

WorldConfig shared(double mbps, int64_t capacity, TrafficConfig traffic, const std::string& admission = "dynamic") {
  WorldConfig world;
  world.links = {worlds::link(mbps, 10), worlds::link(0, 10)};
  for (size_t i = 0; i < traffic.senders.size(); ++i) world.links.push_back(worlds::link(100, 0.1));
  SwitchConfig sw;
  sw.ports = {0};
  sw.queues = 2;
  sw.capacity = capacity;
  sw.admission = admission;
  sw.alphas = {1, 1};
  world.switches = {sw};
  world.traffic = {std::move(traffic)};
  return world;
}

}  // namespace

TEST(poisson_arrivals_have_their_rate_and_sizes) {
  Traffic t(traffic(4, poisson(200)), 1);
  double bytes = 0, gaps2 = 0;
  Time last = 0;
  int n = 0, small = 0, by_sender[4] = {};
  for (; t.next() < 100 * kSecond; ++n) {
    const FlowArrival flow = t.pop();
    CHECK_GE(flow.start, last);
    gaps2 += seconds(flow.start - last) * seconds(flow.start - last);
    last = flow.start;
    bytes += static_cast<double>(flow.size_bytes);
    small += flow.size_bytes <= 10'000;
    CHECK_GE(flow.size_bytes, 1000);
    CHECK_LE(flow.size_bytes, 1'000'000);
    CHECK_EQ(flow.priority, flow.size_bytes < 100'000 ? 0u : 1u);
    ++by_sender[flow.sender];
  }
  const double mean = 0.1 * 1000 + 0.4 * 5500 + 0.4 * 105'000 + 0.1 * 600'000;
  CHECK_NEAR(n, 20'000, 500);
  CHECK_NEAR(gaps2 / n, 2.0 / (200 * 200), 0.1 * 2.0 / (200 * 200));
  CHECK_NEAR(bytes / n, mean, 0.03 * mean);
  CHECK_NEAR(small / double(n), 0.5, 0.015);
  for (const int count : by_sender) CHECK_NEAR(count, n / 4, 300);
}

TEST(incast_starts_distinct_senders_at_once) {
  ArrivalsConfig arrivals;
  arrivals.kind = "incast";
  arrivals.interval_ns = 100 * kMillisecond;
  arrivals.fan_in = 5;
  arrivals.size_bytes = {20'000};
  arrivals.start_ns = kSecond;
  arrivals.stop_ns = 2 * kSecond;
  Traffic t(traffic(8, arrivals), 1);
  for (int burst = 0; burst < 10; ++burst) {
    std::set<uint32_t> senders;
    for (int i = 0; i < 5; ++i) {
      CHECK_EQ(t.next(), kSecond + burst * 100 * kMillisecond);
      senders.insert(t.pop().sender);
    }
    CHECK_EQ(senders.size(), 5u);
  }
  CHECK_EQ(t.next(), kNever);
}

TEST(flow_lists_are_played_as_they_are) {
  ArrivalsConfig arrivals;
  arrivals.kind = "list";
  arrivals.list_start_ns = {5, 5, kSecond};
  arrivals.list_sender = {1, 0, 1};
  arrivals.list_size = {1, 50'000, 7};
  arrivals.list_priority = {1, 0, 1};
  World world(shared(10, 100, traffic(2, arrivals)), 3);
  world.run(10 * kSecond);
  CHECK_EQ(world.completions().size(), 3u);
  for (const Completion& done : world.completions()) {
    CHECK_EQ(world.received_bytes(world.opened()[done.flow]), arrivals.list_size[done.flow]);
    CHECK_EQ(world.opened()[done.flow].start, arrivals.list_start_ns[done.flow]);
    CHECK_GT(seconds(done.fct), done.ideal_s);
  }
  CHECK_NEAR(world.ideal_s(1, 50'000, 0), 2 * 10e-3 + 0.1e-3 + 50'000 * 8 / 10e6, 1e-12);
}

TEST(one_seed_is_one_traffic_whatever_the_scheme) {
  const auto run = [](int64_t capacity, const char* discipline, uint64_t seed) {
    WorldConfig config = shared(10, capacity, traffic(4, poisson(30)));
    if (*discipline) {
      config.switches.clear(), config.links[0].discipline = discipline, config.links[0].queue_limit_packets = capacity;
    }
    World world(config, seed);
    world.run(10 * kSecond);
    std::vector<int64_t> all;
    for (const OpenedFlow& flow : world.opened()) {
      all.insert(all.end(), {flow.start, flow.sender, flow.size_bytes, flow.priority});
    }
    return all;
  };
  const auto reference = run(100, "", 5);
  CHECK(reference == run(5, "", 5));
  for (const char* discipline : {"red", "codel", "fq_codel", "pie", "droptail"}) {
    CHECK(reference == run(30, discipline, 5));
  }
  CHECK(reference != run(100, "", 6));
}

TEST(overload_conserves_packets_and_bounds_the_buffer) {
  Rng rng(9), drops(10);
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const uint32_t senders = 1 + rng.below(6);
    const int64_t capacity = 2 + rng.below(300);
    WorldConfig config = shared(1 + rng.below(30), capacity, traffic(senders, poisson(1 + rng.below(100))), "agent");
    config.stack = rng.uniform() < 0.5 ? Stack::ns3 : Stack::linux_kernel;
    config.links[0].loss = rng.uniform() < 0.3 ? 0.02 : 0;
    config.links[0].device_packets = rng.below(3);
    config.switches[0].scheduler = rng.uniform() < 0.5 ? "round_robin" : "strict_priority";
    if (drops.uniform() < 0.5) config.switches[0].drop = "head";
    if (drops.uniform() < 0.5) config.switches[0].protect_syn = true;
    if (rng.uniform() < 0.4) config.switches[0].in_bytes = true, config.switches[0].capacity *= 1000;
    if (rng.uniform() < 0.5) config.mss = 1000, config.min_rto_ns = 10 * kMillisecond;
    config.probes.push_back({{2, 0}, 0, 100 * kMillisecond, 0, 94});
    if (rng.uniform() < 0.3) config.flows.push_back(worlds::flow("bbr", {0}, {1}));
    World world(config, seed);
    for (int step = 1; step <= 60; ++step) {
      for (uint32_t q = 0; q < 2; ++q) {
        world.switches()[0]->set_alpha(q, rng.uniform() < 0.1 ? 0 : std::exp2(-8 + 12 * rng.uniform()));
      }
      world.run(step * 100 * kMillisecond);
      const SharedBuffer& sw = *world.switches()[0];
      CHECK_LE(sw.occupancy_max(), sw.capacity());
      uint64_t stored = 0;
      for (uint32_t q = 0; q < 2; ++q) {
        const QueueCounters c = sw.totals(q);
        CHECK_EQ(c.arrivals, c.drops + c.departures + sw.packets(q));
        stored += sw.packets(q);
      }
      CHECK_EQ(stored, world.links()[0].queue_packets());
      const TrafficTotals t = world.traffic_totals();
      CHECK_EQ(t.packets_sent, t.packets_received + t.queue_drops + t.random_losses + world.data_packets_in_network());
      int64_t received = 0;
      for (const OpenedFlow& flow : world.opened()) {
        received += world.received_bytes(flow);
        CHECK_LE(world.received_bytes(flow), flow.size_bytes);
      }
      CHECK_EQ(received, t.delivered_bytes);
      for (const Completion& done : world.completions()) {
        CHECK_EQ(world.received_bytes(world.opened()[done.flow]), world.opened()[done.flow].size_bytes);
      }
    }
    CHECK_EQ(world.probe(0).sent, 61u);
    CHECK_LE(world.probe(0).delays.size(), 61u);
  }
}

// A switch that takes nothing: of a SYN sent at 0 the time runs out after 1, 2, 3, 4, 5, 7, 11 and 19 s.
// Protected, it passes, and the data does not.
TEST(time_outs_of_syns_are_counted) {
  ArrivalsConfig arrivals;
  arrivals.kind = "list";
  arrivals.list_start_ns = {0};
  arrivals.list_sender = {0};
  arrivals.list_size = {1000};
  arrivals.list_priority = {0};
  WorldConfig config = shared(10, 100, traffic(1, arrivals), "static");
  config.switches[0].thresholds = {0, 0};
  World world(config, 1);
  const auto counted = [&](World& at, Time until) {
    at.run(until);
    return at.traffic_totals();
  };
  CHECK_EQ(counted(world, kSecond - 1).syn_timeouts, 0u);
  CHECK_EQ(counted(world, 2 * kSecond).syn_timeouts, 1u);
  CHECK_EQ(counted(world, 10 * kSecond).syn_timeouts, 6u);
  const TrafficTotals last = counted(world, 20 * kSecond);
  CHECK_EQ(last.syn_timeouts, 8u);
  CHECK_EQ(last.failed, 0u);
  CHECK_EQ(last.timeouts, 0u);
  CHECK_EQ(last.connected, 0u);
  const TrafficTotals given_up = counted(world, 140 * kSecond);
  CHECK_EQ(given_up.syn_timeouts, 11u);
  CHECK_EQ(given_up.failed, 1u);
  CHECK_EQ(world.opened()[0].slot, OpenedFlow::kForgotten);
  config.switches[0].protect_syn = true;
  World spared(config, 1);
  const TrafficTotals after = counted(spared, 20 * kSecond);
  CHECK_EQ(after.syn_timeouts, 0u);
  CHECK_EQ(after.connected, 1u);
  CHECK_GT(after.timeouts, 0u);
}

// In steps of any length; and flows that are done with are forgotten, wherever their last packets were dropped.
TEST(head_drop_is_deterministic_and_forgets_flows) {
  WorldConfig config = shared(10, 60, traffic(4, poisson(40)));
  config.switches[0].drop = "head";
  World one(config, 5), two(config, 5);
  one.run(20 * kSecond);
  for (Time until = 0; until < 20 * kSecond;) two.run(until += 10 * kMillisecond);
  CHECK(worlds::fingerprint(one) == worlds::fingerprint(two));
  CHECK_EQ(one.traffic_totals().packets_received, two.traffic_totals().packets_received);
  CHECK_EQ(one.completions().size(), two.completions().size());
  CHECK_GT(one.switches()[0]->totals(0).drops, 0u);
  size_t forgotten = 0;
  for (const Completion& completion : one.completions()) {
    forgotten += one.opened()[completion.flow].slot == OpenedFlow::kForgotten;
  }
  CHECK_GT(forgotten + 10, one.completions().size());
}

TEST(slots_are_used_again) {
  World world(shared(100, 500, traffic(4, poisson(100))), 1);
  world.run(5 * kSecond);
  const size_t early = world.memory_bytes();
  const size_t flows = world.opened().size();
  world.run(60 * kSecond);
  CHECK_GT(world.opened().size(), 8 * flows);
  CHECK_LT(world.memory_bytes(), 2 * early + 128 * world.opened().size());  // what is kept of a flow
  CHECK_GT(world.completions().size() + 100, world.opened().size());
}

TEST(steps_of_any_length_give_the_same_bits) {
  const auto fingerprint = [](World& world) {
    std::vector<uint64_t> all = worlds::fingerprint(world);
    for (const Completion& done : world.completions()) {
      all.push_back(done.flow), all.push_back(static_cast<uint64_t>(done.fct));
    }
    return all;
  };
  World whole(shared(10, 60, traffic(4, poisson(40))), 5), cut(shared(10, 60, traffic(4, poisson(40))), 5);
  whole.run(20 * kSecond);
  Rng rng(1);
  while (cut.now() < 20 * kSecond) {
    cut.run(std::min(20 * kSecond, cut.now() + 1 + static_cast<Time>(rng.exponential(3e7))));
  }
  CHECK(fingerprint(whole) == fingerprint(cut));
}

TEST(batches_of_switches) {
  const WorldConfig config = shared(10, 60, traffic(4, poisson(40)), "agent");
  Batch one(6, 1, 1, make_agent("switch", {{"queues", 2}})), three(6, 1, 3, make_agent("switch", {{"queues", 2}}));
  for (Batch* batch : {&one, &three}) {
    for (uint32_t w = 0; w < 6; ++w) batch->reset(w, config, w);
    Rng rng(4);
    for (int step = 0; step < 100; ++step) {
      for (size_t w = 0; w < 6; ++w) {           // two alphas, two of the pulse, its time, the drop place, marks
        double *control = batch->control() + 7 * w;
        for (size_t i = 0; i < 4; ++i) control[i] = std::exp2(-8 + 11 * rng.uniform());
        control[4] = 0.05 * rng.uniform();
        control[5] = rng.uniform() < 0.5;
        control[6] = rng.uniform() < 0.5;
      }
      batch->advance(100 * kMillisecond, nullptr);
    }
  }
  const size_t fields = one.fields().size();
  for (size_t i = 0; i < 6 * fields; ++i) {
    CHECK_EQ(std::bit_cast<uint64_t>(one.telemetry()[i]), std::bit_cast<uint64_t>(three.telemetry()[i]));
  }
  CHECK_NEAR(one.telemetry()[0], 0.1, 1e-12);
  one.control()[0] = -1;
  CHECK_THROWS(one.advance(kSecond, nullptr), std::invalid_argument);
  one.control()[0] = std::nan("");
  one.advance(kSecond, nullptr);
  one.advance_to_event(100 * kMillisecond, 50, nullptr);
  for (uint32_t w = 0; w < 6; ++w) {
    const double elapsed = one.telemetry()[w * fields], completed = one.telemetry()[w * fields + 7];
    CHECK_NEAR(elapsed * 10, std::round(elapsed * 10), 1e-9);
    if (elapsed < 4.99) CHECK_GE(completed, 1);
  }
  CHECK_THROWS(one.reset(0, worlds::dumbbell(10, 40, 50, {"agent"}), 1), std::invalid_argument);
}

TEST(bad_traffic_is_refused) {
  const auto refused = [](auto&& change) {
    WorldConfig world = shared(10, 100, traffic(2, poisson(10)));
    change(world.traffic[0], world.traffic[0].arrivals[0]);
    CHECK_THROWS(World(world, 1), std::invalid_argument);
  };
  refused([](auto& t, auto&) { t.senders.clear(); });
  refused([](auto& t, auto&) { t.senders[0].path = {99}; });
  refused([](auto& t, auto&) { t.priority_below = {5, 5}; });
  refused([](auto& t, auto&) { t.priority_below = {5, 6}; });  // three priorities, two queues
  refused([](auto&, auto& a) { a.kind = "uniform"; });
  refused([](auto&, auto& a) { a.rate_per_s = 0; });
  refused([](auto&, auto& a) { a.cumulative.back() = 0.99; });
  refused([](auto&, auto& a) { a.cumulative[1] = 0.95; });
  refused([](auto&, auto& a) { a.size_bytes[0] = 0; });
  refused([](auto&, auto& a) { a.size_bytes[1] = std::nan(""); });
  refused([](auto&, auto& a) { a.kind = "incast", a.interval_ns = 1, a.fan_in = 3, a.size_bytes = {1}; });
  refused([](auto&, auto& a) {
    a.kind = "list", a.list_start_ns = {5, 4}, a.list_sender = {0, 0}, a.list_size = {1, 1}, a.list_priority = {0, 0};
  });
  refused([](auto&, auto& a) {
    a.kind = "list", a.list_start_ns = {5}, a.list_sender = {2}, a.list_size = {1}, a.list_priority = {0};
  });
  refused([](auto&, auto& a) {
    a.kind = "list", a.list_start_ns = {5}, a.list_sender = {0}, a.list_size = {0}, a.list_priority = {0};
  });
}

TEST(rare_flows_come_late_and_not_at_once) {
  Traffic t(traffic(2, poisson(1e-9)), 1);
  CHECK_GT(t.next(), 1000 * kSecond);
  ArrivalsConfig renewal;
  renewal.kind = "renewal";
  renewal.laws.resize(2);
  renewal.laws[0].kind = "exponential";
  renewal.laws[0].scale = 1e9;               // seconds
  renewal.laws[1].scale = 1;
  Traffic gaps(traffic(2, renewal), 1);
  CHECK_GT(gaps.next(), 1000 * kSecond);
  ArrivalsConfig arrivals;
  arrivals.kind = "incast";
  arrivals.random = true;
  arrivals.interval_ns = 10'000'000 * kSecond;
  arrivals.fan_in = 1;
  arrivals.size_bytes = {1};
  Traffic bursts(traffic(2, arrivals), 1);
  Time last = 0;
  for (int i = 0; i < 1000 && bursts.next() < kNever; ++i) {
    const Time at = bursts.pop().start;
    CHECK_GE(at, last);
    last = at;
  }
}

// A switch hears of the flows that cross it, not of all flows.
TEST(completions_are_told_to_the_switches_crossed) {
  WorldConfig config = shared(50, 500, traffic(4, poisson(50)), "agent");
  config.links.push_back(worlds::link(50, 1));
  SwitchConfig other = config.switches[0];
  other.ports = {static_cast<uint32_t>(config.links.size()) - 1};
  config.switches.push_back(other);
  Batch batch(1, 2, 1, make_agent("switch", {{"queues", 2}}));
  batch.reset(0, config, 1);
  batch.advance(10 * kSecond, nullptr);
  CHECK_GT(batch.telemetry()[7], 100);
  CHECK_EQ(batch.telemetry()[batch.fields().size() + 7], 0);
}

TEST(many_probes_are_cheap) {
  WorldConfig config = shared(100, 500, traffic(2, poisson(1)));
  config.probes.push_back({{2, 0}, 0, 5 * kMicrosecond, 0, 1});
  config.links[0].delay_ns = 500 * kMillisecond;  // a hundred thousand on their way
  World world(config, 1);
  world.run(2 * kSecond);
  CHECK_EQ(world.probe(0).sent, 400'001u);
  CHECK_GT(world.probe(0).delays.size(), 290'000u);
  for (size_t i = 0; i < world.probe(0).delays.size(); i += 10'000) CHECK_GE(world.probe(0).delays[i], 0.5);
}

TEST(senders_need_a_path_that_takes_time) {
  WorldConfig config = shared(0, 500, traffic(2, poisson(1)));
  for (LinkConfig& link : config.links) link.rate_bps = 0, link.delay_ns = 0;
  CHECK_THROWS(World(config, 1), std::invalid_argument);
}
