// Random worlds of every shape, and what must hold in each of them at every checkpoint.
#include <algorithm>
#include <cstring>
#include <sstream>

#include "worlds.h"

using namespace netbuf;

namespace {

double log_uniform(Rng& rng, double low, double high) { return low * std::pow(high / low, rng.uniform()); }

LinkConfig random_link(Rng& rng, bool harsh) {
  LinkConfig link = worlds::link(log_uniform(rng, 1, 100), rng.uniform() < 0.2 ? 0 : log_uniform(rng, 0.1, 60));
  const double limit = rng.uniform();
  if (limit < 0.5) link.queue_limit_packets = 1 + rng.below(harsh ? 6 : 200);
  else if (limit < 0.8) link.queue_limit_bytes = 1600 + rng.below(harsh ? 6000 : 300'000);
  if (rng.uniform() < 0.3) link.loss = harsh ? log_uniform(rng, 0.01, 0.15) : log_uniform(rng, 1e-4, 1e-2);
  else if (rng.uniform() < 0.2) link.ge = {0.01, 0.3, 0, harsh ? 0.7 : 0.2};
  link.loss_on_acks = rng.uniform() < 0.3;
  const double kind = rng.uniform();
  if (kind < 0.15) {
    link.schedule_time_ns = {0, 300 * kMillisecond, 900 * kMillisecond};
    link.schedule_rate_bps = {10e6, rng.uniform() < 0.5 ? 0 : 1e6, 3e6};
    link.schedule_period_ns = 2 * kSecond;
  } else if (kind < 0.3) {
    for (Time t = 0; t < kSecond;) {
      link.trace_ns.push_back(t);
      t += static_cast<Time>(rng.exponential(1.5 * kMillisecond)) + (rng.uniform() < 0.005 ? 200 * kMillisecond : 0);
    }
    link.trace_period_ns = link.trace_ns.back() + kMillisecond;
  } else if (kind < 0.4) {
    link.rate_bps = 0;
  }
  const auto& disciplines = Catalogue<DisciplineRecord>::all();
  if (rng.uniform() < 0.3) link.discipline = disciplines[rng.below(static_cast<uint32_t>(disciplines.size()))]->name;
  if (rng.uniform() < 0.1) link.device_packets = 1 + rng.below(3);
  return link;
}

// Paths of one to three links out of a pool that all flows share, in both directions.
WorldConfig random_world(Rng& rng) {
  WorldConfig world;
  world.stack = rng.uniform() < 0.35 ? Stack::ns3 : Stack::linux_kernel;
  world.hystart = rng.uniform() < 0.5;
  const bool harsh = rng.uniform() < 0.3;
  const uint32_t links = 2 + rng.below(5), flows = 1 + rng.below(rng.uniform() < 0.2 ? 20 : 5);
  for (uint32_t i = 0; i < links; ++i) world.links.push_back(random_link(rng, harsh));
  if (world.links[0].rate_bps == 0) world.links[0].rate_bps = 8e6;
  if (rng.uniform() < 0.3) {
    SwitchConfig sw;
    sw.queues = 1 + rng.below(3);
    sw.capacity = 2 + rng.below(100);
    sw.alphas.assign(sw.queues, log_uniform(rng, 0.1, 8));
    if (rng.uniform() < 0.3) sw.admission = "abm";
    if (rng.uniform() < 0.3) sw.scheduler = "strict_priority";
    Rng drops(Rng(rng).next());  // of its own: the worlds are otherwise as they were
    if (drops.uniform() < 0.5) sw.drop = "head";
    if (drops.uniform() < 0.3) sw.protect_syn = true;
    for (uint32_t i = 0; i < links; i += 1 + rng.below(2)) {
      LinkConfig& link = world.links[i];
      link.discipline.clear();
      link.queue_limit_packets = link.queue_limit_bytes = 0;
      sw.ports.push_back(i);
    }
    world.switches.push_back(sw);
  }
  const auto senders = worlds::controls(world.stack);
  for (uint32_t i = 0; i < flows; ++i) {
    const auto path = [&](bool data) {
      std::vector<uint32_t> path;
      for (uint32_t n = 1 + rng.below(3); n > 0; --n) path.push_back(rng.below(links));
      if (data) path[rng.below(static_cast<uint32_t>(path.size()))] = 0;
      return path;
    };
    auto forward = path(true), back = path(false);
    if (rng.uniform() < 0.3) std::swap(forward, back);
    FlowConfig flow = worlds::flow(senders[rng.below(static_cast<uint32_t>(senders.size()))], forward, back);
    flow.start_ns = static_cast<Time>(rng.uniform() * 2e9);
    const double app = rng.uniform();
    if (app < 0.15) flow = worlds::sized(flow, 1 + rng.below(3'000'000));
    else if (app < 0.3) {
      flow.app = "on_off";
      flow.on_ns = 1 + static_cast<Time>(rng.exponential(3e8));
      flow.off_ns = static_cast<Time>(rng.exponential(3e8));
      flow.random_on_off = rng.uniform() < 0.5;
      if (rng.uniform() < 0.5) flow.app_rate_bps = log_uniform(rng, 1e5, 2e7);
    }
    if (rng.uniform() < 0.15) flow.stop_ns = flow.start_ns + 1 + static_cast<Time>(rng.uniform() * 4e9);
    if (rng.uniform() < 0.2) flow.receive_buffer_bytes = 1 + rng.below(400'000);
    if (rng.uniform() < 0.2) flow.send_buffer_bytes = 1 + rng.below(400'000);
    if (flow.receive_buffer_bytes == 0 && flow.send_buffer_bytes == 0) flow.receive_buffer_bytes = 4'000'000;
    if (rng.uniform() < 0.1) flow.window_clamp_bytes = 1 + rng.below(100'000);
    if (i > 0 && flow.app == "bulk" && rng.uniform() < 0.15) {
      flow.relay_from = static_cast<int32_t>(i) - 1;
      flow.relay_buffer_bytes = 1 + rng.below(100'000);
    }
    flow.initial_cwnd_packets = 1 + rng.below(20);
    if (!world.switches.empty()) flow.priority = rng.below(world.switches[0].queues);
    world.flows.push_back(flow);
  }
  return world;
}

void check_world(const WorldConfig& config, World& world) {
  for (size_t i = 0; i < world.flows().size(); ++i) {
    const Flow& flow = world.flows()[i];
    const FlowCounters c = flow.counters();
    const Tcb& t = flow.sender.tcb;
    CHECK_EQ(c.packets_sent, c.packets_received + c.queue_drops + c.random_losses + flow.packets_in_network());
    CHECK_LE(c.packets_retransmitted, c.packets_sent);
    CHECK_LE(c.delivered_bytes, static_cast<int64_t>(c.packets_received) * t.mss);
    CHECK_LE(c.delivered_bytes, static_cast<int64_t>(c.packets_sent - c.packets_retransmitted) * t.mss);
    CHECK_LE(c.acked_bytes, static_cast<int64_t>(c.packets_received) * t.mss);
    CHECK_LE(c.segments_acked, c.packets_received);
    CHECK_GE(t.cwnd, world.flows()[i].sender.tcb.stack == Stack::ns3 ? 0 : int64_t{t.mss});
    CHECK_GE(t.ssthresh, int64_t{t.mss});
    // The scoreboard counts what its segments say.
    uint32_t sacked = 0, lost = 0, retransmitted = 0, waiting = 0;
    CHECK_EQ(flow.sender.board.segments.size(), t.packets_out());
    for (uint32_t s = t.una; s != t.nxt; ++s) {
      const uint8_t flags = flow.sender.board.segments[s].flags;
      sacked += (flags & kSacked) != 0, lost += (flags & kLost) != 0, retransmitted += (flags & kRetransmitted) != 0;
      waiting += (flags & (kLost | kRetransmitted)) == kLost;
      CHECK(!((flags & kSacked) && (flags & kLost)));
      CHECK_EQ((flags & kSacked) != 0, flow.sender.board.sacked.find(s) != nullptr);
    }
    CHECK_EQ(sacked, t.sacked_out);
    CHECK_EQ(lost, t.lost_out);
    CHECK_EQ(retransmitted, t.retrans_out);
    CHECK_EQ(waiting, flow.sender.board.waiting());
    CHECK_LE(t.in_flight(), 2 * t.packets_out());
    if (t.packets_out() > 0) CHECK(flow.sender.timer() < kNever);  // nothing waits for ever
    if (config.flows[i].relay_from >= 0) CHECK_LE(c.delivered_bytes, world.flows()[i - 1].counters().delivered_bytes);
    if (config.flows[i].app == "sized") CHECK_LE(c.delivered_bytes, config.flows[i].size_bytes);
  }
  for (size_t i = 0; i < world.links().size(); ++i) {
    Link& link = world.links()[i];
    const LinkStats s = link.stats(world.now());
    CHECK_EQ(s.packets_in, s.packets_out + s.queue_drops + link.queue_packets());
    if (config.links[i].queue_limit_packets) CHECK_LE(s.queue_max, config.links[i].queue_limit_packets);
    if (config.links[i].queue_limit_bytes) CHECK_LE(link.queue_bytes(), config.links[i].queue_limit_bytes);
    CHECK_GE(s.queue_integral, 0);
    CHECK_LE(s.random_losses, s.packets_in);
  }
  for (const auto& sw : world.switches()) {
    CHECK_LE(sw->occupancy_max(), sw->capacity());
    int64_t stored = 0;
    for (uint32_t q = 0; q < sw->queues(); ++q) {
      const QueueCounters c = sw->totals(q);
      CHECK_EQ(c.arrivals, c.drops + c.departures + sw->packets(q));
      stored += sw->packets(q);
    }
    CHECK_EQ(stored, sw->occupancy());
  }
}

}  // namespace

TEST(random_worlds_conserve_packets_and_keep_their_limits) {
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    Rng rng(seed);
    const WorldConfig config = random_world(rng);
    const int before = check::failures;
    try {
      World world(config, seed);
      for (int step = 1; step <= 40; ++step) {
        world.run(step * 211 * kMillisecond);
        check_world(config, world);
        for (uint32_t i = 0; i < world.flows().size(); ++i) {
          if (world.flows()[i].controlled() && rng.uniform() < 0.5) {
            world.set_window(i, 1448 * log_uniform(rng, 0.3, 300));
          }
        }
        if (check::failures > before) break;
      }
    } catch (const std::exception& error) {
      check::fail(__FILE__, __LINE__, error.what());
    }
    if (check::failures > before) std::printf("  in world of seed %d\n", static_cast<int>(seed));
  }
}

// The short ways of both ends against the long ones, where losses, reordering, small applications, marks and agents'
// decisions lead from one to the other and back.
TEST(shortcuts_of_both_ends_change_nothing) {
  for (uint64_t seed = 2000; seed < 2150; ++seed) {
    Rng rng(seed);
    WorldConfig config = random_world(rng);
    for (LinkConfig& link : config.links) {
      if (link.rate_bps == 0) link.rate_bps = 200e6;
      if (link.discipline.empty() && config.switches.empty() && !link.queue_limit_bytes && !link.queue_limit_packets) {
        link.queue_limit_packets = 300;
      }
      const bool reorders = rng.uniform() < 0.2 && config.stack == Stack::linux_kernel;
      if (reorders) link.jitter = {.distribution = "uniform", .scale_ns = 3e6, .reorder = true};
    }
    for (FlowConfig& flow : config.flows) {
      if (rng.uniform() < 0.8) flow.receive_buffer_bytes = 0;
      if (rng.uniform() < 0.8) flow.send_buffer_bytes = 0;
      flow.ecn = config.stack == Stack::linux_kernel && rng.uniform() < 0.2;
    }
    World plain(config, seed), longer(config, seed);
    for (Flow& flow : longer.flows()) flow.take_no_shortcut();
    const int before = check::failures;
    for (int step = 1; step <= 20 && check::failures == before; ++step) {
      for (World* world : {&plain, &longer}) world->run(step * 211 * kMillisecond);
      for (uint32_t i = 0; i < plain.flows().size(); ++i) {
        const Flow &one = plain.flows()[i], &other = longer.flows()[i];
        const FlowCounters counted = one.counters(), expected = other.counters();
        CHECK(std::memcmp(&counted, &expected, sizeof counted) == 0);
        CHECK_EQ(one.sender.tcb.cwnd, other.sender.tcb.cwnd);
        CHECK_EQ(one.sender.tcb.srtt, other.sender.tcb.srtt);
        CHECK_EQ(one.sender.timer(), other.sender.timer());
        CHECK_EQ(one.receiver.last_event(), other.receiver.last_event());
        CHECK_EQ(one.path.round_trips.average(), other.path.round_trips.average());
        CHECK_EQ(one.cwnd_integral(plain.now()), other.cwnd_integral(longer.now()));
        if (!one.controlled() || rng.uniform() < 0.5) continue;
        const double window = 1448 * log_uniform(rng, 0.3, 300);
        for (World* world : {&plain, &longer}) world->set_window(i, window);
      }
      for (size_t i = 0; i < plain.links().size(); ++i) {
        CHECK_EQ(plain.links()[i].stats(plain.now()).packets_in, longer.links()[i].stats(longer.now()).packets_in);
      }
    }
    if (check::failures > before) std::printf("  in world of seed %d\n", static_cast<int>(seed));
  }
}

// A bulk flow over links that work always gets on, whatever is lost, unless others keep a queue full and lock it out.
TEST(no_world_stalls) {
  for (uint64_t seed = 1000; seed < 1100; ++seed) {
    Rng rng(seed);
    WorldConfig config = random_world(rng);
    for (LinkConfig& link : config.links) {
      if (link.loss > 0.05) link.loss = 0.05;
      if (!link.ge.empty()) link.ge[3] = 0.2;
      link.rate_bps = std::min(link.rate_bps, 4e6);  // packets are work, and minutes what a stall takes
      if (link.queue_limit_packets) link.queue_limit_packets += 20;
      if (link.queue_limit_bytes) link.queue_limit_bytes += 30'000;
    }
    if (config.flows.size() > 2) config.flows.resize(2);
    for (FlowConfig& flow : config.flows) flow.app = "bulk", flow.stop_ns = 0;
    World world(config, seed);
    std::vector<int64_t> delivered(config.flows.size(), 0);
    std::vector<uint64_t> drops(config.flows.size(), 0);
    for (int round = 1; round <= 3; ++round) {
      world.run(round * 120 * kSecond);
      for (size_t i = 0; i < config.flows.size(); ++i) {
        const int64_t now = world.flows()[i].counters().delivered_bytes;
        const bool locked_out = config.flows.size() > 1 && world.flows()[i].counters().queue_drops > drops[i];
        drops[i] = world.flows()[i].counters().queue_drops;
        if (locked_out) continue;
        if (now <= delivered[i]) {
          std::printf("  flow %d in world of seed %d\n", static_cast<int>(i), static_cast<int>(seed));
        }
        CHECK_GT(now, delivered[i]);
        delivered[i] = now;
      }
    }
  }
}
