// Loss recovery of the linux stack, one loss pattern at a time. Data packets are numbered from 2: the SYN is number 0
// and the handshake's last ACK number 1.
#include "worlds.h"

using namespace netbuf;

namespace {

constexpr Time kRtt = 50 * kMillisecond;

WorldConfig scripted(std::vector<uint64_t> losses, int64_t segments, const std::string& cc = "newreno") {
  WorldConfig world = worlds::dumbbell(50, 50, 0, {cc});
  world.links[0].loss_list = std::move(losses);
  if (segments > 0) world.flows[0] = worlds::sized(world.flows[0], segments * 1448);
  return world;
}

struct Result {
  Time completed;
  FlowCounters counters;
  int64_t cwnd, ssthresh;
};

Result run(const WorldConfig& config) {
  World world(config, 1);
  world.run(100 * kSecond);
  const Flow& flow = world.flows()[0];
  CHECK_EQ(flow.counters().delivered_bytes, config.flows[0].size_bytes);
  CHECK_EQ(flow.sender.tcb.packets_out(), 0u);
  CHECK_EQ(flow.sender.tcb.in_flight(), 0u);
  return {flow.completed_at(), flow.counters(), flow.sender.tcb.cwnd, flow.sender.tcb.ssthresh};
}

}  // namespace

TEST(one_loss_costs_one_retransmission_and_no_time_out) {
  const Result clean = run(scripted({}, 400)), lossy = run(scripted({100}, 400));
  CHECK_EQ(clean.counters.packets_retransmitted, 0u);
  CHECK_EQ(lossy.counters.packets_retransmitted, 1u);
  CHECK_EQ(lossy.counters.fast_recoveries, 1u);
  CHECK_EQ(lossy.counters.timeouts, 0u);
  CHECK_EQ(lossy.counters.random_losses, 1u);
  CHECK_LT(lossy.completed, clean.completed + 10 * kRtt);
}

TEST(the_lost_segment_is_sent_again_after_a_round_trip) {
  World world(scripted({60}, 400), 1);
  Time lost_at = 0;
  CHECK(worlds::run_until(world, 10 * kSecond, [&](Flow& f) { return f.counters().random_losses == 1; }));
  lost_at = world.now();
  CHECK(worlds::run_until(world, 10 * kSecond, [&](Flow& f) { return f.counters().packets_retransmitted == 1; }));
  CHECK_LT(world.now() - lost_at, kRtt + kRtt / 2);
  CHECK_GE(world.now() - lost_at, kRtt);
  CHECK(world.flows()[0].sender.tcb.state == CaState::recovery);
  CHECK(worlds::run_until(world, 10 * kSecond, [&](Flow& f) { return f.sender.tcb.state == CaState::open; }));
  CHECK_LT(world.now() - lost_at, 3 * kRtt);
}

TEST(a_recovery_halves_the_window_in_proportion) {
  WorldConfig config = scripted({300}, 0);
  World world(config, 1);
  int64_t before = 0;
  CHECK(worlds::run_until(world, 10 * kSecond, [&](Flow& f) {
    if (f.sender.tcb.state != CaState::recovery) before = f.sender.tcb.cwnd;
    return f.sender.tcb.state == CaState::recovery;
  }));
  // Proportional rate reduction: about one packet leaves for two delivered, none of it in a burst.
  uint64_t sent = world.flows()[0].counters().packets_sent, most = 0;
  CHECK(worlds::run_until(world, 10 * kSecond, [&](Flow& f) {
    most = std::max(most, f.counters().packets_sent - sent);
    sent = f.counters().packets_sent;
    return f.sender.tcb.state == CaState::open;
  }));
  CHECK_LE(most, 6u);  // the receiver compresses ACKs up to a millisecond: four packets
  CHECK_NEAR(static_cast<double>(world.flows()[0].sender.tcb.cwnd) / static_cast<double>(before), 0.5, 0.03);
  CHECK_NEAR(static_cast<double>(world.flows()[0].sender.tcb.ssthresh) / static_cast<double>(before), 0.5, 0.03);
}

TEST(a_burst_of_losses_is_repaired_in_one_recovery) {
  std::vector<uint64_t> burst;
  for (uint64_t i = 200; i < 260; i += 2) burst.push_back(i);
  const Result result = run(scripted(burst, 1000));
  CHECK_EQ(result.counters.packets_retransmitted, 30u);
  CHECK_EQ(result.counters.fast_recoveries, 1u);
  CHECK_EQ(result.counters.timeouts, 0u);
}

TEST(a_lost_retransmission_is_found_without_a_time_out) {
  World first(scripted({100}, 800), 1);
  CHECK(worlds::run_until(first, 10 * kSecond, [&](Flow& f) { return f.counters().packets_retransmitted == 1; }));
  // Its number: two packets of the handshake, then all data packets so far, itself the last of the event.
  uint64_t number = 0;
  for (uint64_t guess = first.flows()[0].counters().packets_sent + 1; guess > 100; --guess) {
    World trial(scripted({100, guess}, 800), 1);
    CHECK(worlds::run_until(trial, 10 * kSecond, [&](Flow& f) { return f.counters().random_losses == 2; }));
    const auto& flow = trial.flows()[0];
    if (flow.counters().packets_retransmitted == 1 &&
        (flow.sender.board.segments[flow.sender.tcb.una].flags & kEverRetransmitted) && flow.sender.tcb.una == 98) {
      trial.run(100 * kSecond);
      if (flow.counters().packets_retransmitted == 2 && flow.counters().timeouts == 0) {
        number = guess;
        break;
      }
    }
    if (first.flows()[0].counters().packets_sent + 1 - guess > 5) break;
  }
  CHECK_GT(number, 0u);
  const Result result = run(scripted({100, number}, 800));
  CHECK_EQ(result.counters.random_losses, 2u);
  CHECK_EQ(result.counters.packets_retransmitted, 2u);
  CHECK_EQ(result.counters.timeouts, 0u);
}

TEST(a_tail_loss_is_probed_not_timed_out) {
  for (const uint64_t last : {21u, 20u}) {  // the last segment, and the last but one with it
    std::vector<uint64_t> losses{21};
    if (last == 20) losses = {20, 21};
    const Result clean = run(scripted({}, 20)), result = run(scripted(losses, 20));
    CHECK_EQ(result.counters.timeouts, 0u);
    CHECK_GE(result.counters.packets_retransmitted, losses.size());
    CHECK_LT(result.completed, clean.completed + 8 * kRtt);  // a lone segment gives a delayed ACK 200 ms more
    CHECK_GT(result.completed, clean.completed + 2 * kRtt);
  }
}

TEST(a_loss_of_everything_times_out_and_backs_off) {
  // A single segment and its first retransmissions all get lost.
  const Result clean = run(scripted({}, 1));
  std::vector<uint64_t> losses;
  Time previous = clean.completed, previous_gap = 0;
  for (uint64_t n = 2; n < 9; ++n) {
    losses.push_back(n);
    const Result result = run(scripted(losses, 1));
    CHECK_EQ(result.counters.packets_sent, n);
    const Time gap = result.completed - previous;
    if (n > 4) CHECK_NEAR(static_cast<double>(gap) / static_cast<double>(previous_gap), 2, 0.04);  // slots of the wheel
    previous = result.completed;
    previous_gap = gap;
    CHECK_GE(result.counters.timeouts + 1, n - 2);  // the first retransmission is a tail loss probe
  }
}

TEST(the_time_out_is_never_below_200_ms) {
  WorldConfig config = scripted({2, 3}, 1);
  config.links[0].delay_ns = config.links[1].delay_ns = kMillisecond;
  World world(config, 1);
  CHECK(worlds::run_until(world, 10 * kSecond, [](Flow& f) { return f.counters().timeouts == 1; }));
  CHECK_GE(world.now(), 200 * kMillisecond);
  CHECK_LT(world.now(), 650 * kMillisecond);
}

TEST(timers_go_off_at_ticks_of_the_wheel) {
  const Time tick = 4 * kMillisecond;
  CHECK_EQ(goes_off(0, 7, 0), 7);                                      // exact
  CHECK_EQ(goes_off(0, kNever, tick), kNever);
  CHECK_EQ(goes_off(0, 1, tick), 2 * tick);                            // a tick, and the one that has begun
  CHECK_EQ(goes_off(tick - 1, tick, tick), 2 * tick);
  CHECK_EQ(goes_off(tick, 2 * tick, tick), 3 * tick);
  CHECK_EQ(goes_off(0, 62 * tick, tick), 63 * tick);
  CHECK_EQ(goes_off(0, 63 * tick, tick), 64 * tick);                   // slots of 8 ticks
  CHECK_EQ(goes_off(0, 64 * tick, tick), 72 * tick);
  CHECK_EQ(goes_off(0, 504 * tick, tick), 512 * tick);                 // of 64
  CHECK_EQ(goes_off(0, 512 * tick, tick), 576 * tick);
}

TEST(a_lost_syn_is_repeated_after_one_second) {
  const Result clean = run(scripted({}, 5)), one = run(scripted({0}, 5)), two = run(scripted({0, 1}, 5));
  const Time slot = 32 * kMillisecond;  // of the timer wheel, for a second and for two
  CHECK_GE(one.completed - clean.completed, kSecond);
  CHECK_LE(one.completed - clean.completed, kSecond + slot);
  const Time rounds = 3 * 50 * kMillisecond;           // the window begins with one segment then
  CHECK_GE(two.completed - clean.completed, 2 * kSecond);
  CHECK_LE(two.completed - clean.completed, 2 * kSecond + 2 * slot + rounds);
  CHECK_EQ(one.counters.packets_sent, 5u);
}

TEST(a_lost_syn_ack_is_repeated_too) {
  WorldConfig config = scripted({}, 5);
  config.links[1].loss_list = {0};
  config.links[1].loss_on_acks = true;
  const Time later = run(config).completed - run(scripted({}, 5)).completed;
  CHECK_GE(later, kSecond);
  CHECK_LE(later, kSecond + 32 * kMillisecond);
}

TEST(lost_acks_cost_nothing_while_others_come) {
  WorldConfig config = scripted({}, 600);
  for (uint64_t i = 30; i < 200; i += 2) config.links[1].loss_list.push_back(i);
  config.links[1].loss_on_acks = true;
  const Result result = run(config);
  CHECK_EQ(result.counters.packets_retransmitted, 0u);
  CHECK_EQ(result.counters.timeouts, 0u);
}

TEST(a_spurious_time_out_is_undone) {
  // The link stands still for 600 ms in the middle of the transfer: nothing is lost, all is late.
  WorldConfig config = worlds::dumbbell(0, 50, 0, {"newreno"});
  config.links[0].schedule_time_ns = {0, 500 * kMillisecond, 1100 * kMillisecond};
  config.links[0].schedule_rate_bps = {20e6, 0, 20e6};
  config.flows[0].receive_buffer_bytes = 60 * 1448;
  World world(config, 1);
  world.run(499 * kMillisecond);
  const Flow& flow = world.flows()[0];
  const int64_t cwnd = flow.sender.tcb.cwnd;
  world.run(1090 * kMillisecond);
  CHECK_GE(flow.counters().timeouts, 1u);
  CHECK(flow.sender.tcb.state == CaState::loss);
  CHECK_LE(flow.sender.tcb.cwnd_packets, 3u);
  world.run(1500 * kMillisecond);
  CHECK(flow.sender.tcb.state == CaState::open);
  CHECK_GE(flow.sender.tcb.cwnd, cwnd);
  CHECK_LE(flow.counters().packets_retransmitted, 5u);
  CHECK_EQ(flow.counters().random_losses + flow.counters().queue_drops, 0u);
}

TEST(where_another_control_has_come_a_spurious_time_out_is_not_undone) {
  // As above; tcp_init_congestion_control forgets what the window was (prior_ssthresh = 0).
  for (const bool changes : {false, true}) {
    WorldConfig config = worlds::dumbbell(0, 50, 0, {"newreno"});
    config.links[0].schedule_time_ns = {0, 500 * kMillisecond, 1100 * kMillisecond};
    config.links[0].schedule_rate_bps = {20e6, 0, 20e6};
    config.flows[0].receive_buffer_bytes = 60 * 1448;
    World world(config, 1);
    world.run(499 * kMillisecond);
    const int64_t cwnd = world.flows()[0].sender.tcb.cwnd;
    world.run(1090 * kMillisecond);
    if (changes) world.flows()[0].sender.set_congestion_control("vegas", world.now());
    CHECK(worlds::run_until(world, 5 * kSecond, [](const Flow& f) { return f.sender.tcb.state == CaState::open; }));
    if (changes) {
      CHECK_LT(world.flows()[0].sender.tcb.cwnd, cwnd / 2);
    } else {
      CHECK_GE(world.flows()[0].sender.tcb.cwnd, cwnd);
    }
  }
}

TEST(repeated_time_outs_for_the_same_segment_can_be_spurious) {
  // As above, for long enough for several time-outs, without time stamps: F-RTO alone tells (RFC 5682, 3.2).
  WorldConfig config = worlds::dumbbell(0, 50, 0, {"newreno"});
  config.links[0].schedule_time_ns = {0, 500 * kMillisecond, 2500 * kMillisecond};
  config.links[0].schedule_rate_bps = {20e6, 0, 20e6};
  config.timestamps = false;
  World world(config, 1);
  world.run(499 * kMillisecond);
  const Flow& flow = world.flows()[0];
  const int64_t cwnd = flow.sender.tcb.cwnd;
  world.run(2490 * kMillisecond);
  CHECK_GE(flow.counters().timeouts, 2u);
  const uint32_t una = flow.sender.tcb.una, nxt = flow.sender.tcb.nxt;
  const uint64_t again = flow.counters().packets_retransmitted;
  CHECK(worlds::run_until(world, 5 * kSecond, [una](const Flow& f) { return f.sender.tcb.una != una; }));
  CHECK(after(flow.sender.tcb.nxt, nxt));  // new data before what may be lost
  CHECK_EQ(flow.counters().packets_retransmitted, again);
  CHECK(worlds::run_until(world, 5 * kSecond, [](const Flow& f) { return f.sender.tcb.state == CaState::open; }));
  CHECK_GE(flow.sender.tcb.cwnd, cwnd);
  CHECK_LE(flow.counters().packets_retransmitted, flow.counters().timeouts + 2);
}

TEST(a_real_time_out_is_not_undone) {
  std::vector<uint64_t> losses;
  for (uint64_t i = 100; i < 202; ++i) losses.push_back(i);  // a whole window and more
  WorldConfig config = scripted(losses, 2000);
  config.flows[0].receive_buffer_bytes = 100 * 1448;
  const Result result = run(config);
  CHECK_GE(result.counters.timeouts, 1u);
  CHECK_LT(result.ssthresh, 100 * 1448);
}

TEST(every_congestion_control_survives_every_pattern) {
  Rng rng(1);
  for (const std::string& cc : worlds::controls(Stack::linux_kernel)) {
    for (int trial = 0; trial < 60; ++trial) {
      std::vector<uint64_t> losses;
      const double p = trial % 3 == 0 ? 0.3 : 0.05;
      for (uint64_t i = 0; i < 400; ++i) {
        if (rng.uniform() < p) losses.push_back(i);
      }
      WorldConfig config = scripted(losses, 150, cc);
      config.links[1].loss_on_acks = true;
      if (trial % 2 && p < 0.1) config.links[1].loss_list = losses;
      World world(config, 1);
      world.run(1500 * kSecond);
      if (trial % 2 == 0) CHECK_LT(world.flows()[0].sender.tcb.srtt, 2 * kRtt);  // nothing was late, only lost
      CHECK_EQ(world.flows()[0].counters().delivered_bytes, 150 * 1448);
      CHECK_EQ(world.flows()[0].counters().acked_bytes, 150 * 1448);
    }
  }
}

TEST(the_time_stamp_times_an_ack_that_covers_a_retransmission) {
  // The first of three segments is lost, and so are all ACKs until the time-out has repaired it. The second segment,
  // sent once, arrived long before the ACK that tells.
  WorldConfig config = scripted({2}, 3);
  config.links[1].loss_on_acks = true;
  config.links[1].loss_list = {1, 2, 3};
  World world(config, 1);
  CHECK(worlds::run_until(world, 10 * kSecond, [](Flow& f) { return f.sender.tcb.una == 3; }));
  CHECK_GE(world.flows()[0].counters().timeouts, 1u);
  CHECK_NEAR(static_cast<double>(world.flows()[0].sender.tcb.last_rtt), 50e6, 1e6);
}
