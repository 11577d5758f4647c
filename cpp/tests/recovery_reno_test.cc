// Loss recovery without SACK, one loss pattern at a time, and who has which settings. Data packets are numbered from 2, as in
// recovery_linux_test.cc.
#include "worlds.h"

using namespace netbuf;

namespace {

constexpr Time kRtt = 50 * kMillisecond;

WorldConfig scripted(std::vector<uint64_t> losses, int64_t segments, bool sack = false) {
  WorldConfig world = worlds::dumbbell(50, 50, 0, {"newreno"});
  world.links[0].loss_list = std::move(losses);
  world.flows[0] = worlds::sized(world.flows[0], segments * 1448);
  world.sack = sack;
  return world;
}

struct Result {
  FlowCounters counters;
  std::vector<Time> again;       // when something was sent again
  Time completed;
};

Result run(const WorldConfig& config) {
  World world(config, 1);
  Result result{};
  worlds::run_until(world, 100 * kSecond, [&](Flow& flow) {
    while (result.again.size() < flow.counters().packets_retransmitted) result.again.push_back(world.now());
    return false;
  });
  const Flow& flow = world.flows()[0];
  CHECK_EQ(flow.counters().delivered_bytes, config.flows[0].size_bytes);
  CHECK_EQ(flow.sender.tcb.packets_out(), 0u);
  CHECK_EQ(flow.sender.tcb.in_flight(), 0u);
  result.counters = flow.counters();
  result.completed = flow.completed_at();
  return result;
}

}  // namespace

TEST(without_sack_one_loss_costs_one_retransmission_after_three_duplicates) {
  for (const bool sack : {false, true}) {
    const Result result = run(scripted({100}, 400, sack));
    CHECK_EQ(result.counters.packets_retransmitted, 1u);
    CHECK_EQ(result.counters.fast_recoveries, 1u);
    CHECK_EQ(result.counters.timeouts, 0u);
  }
}

TEST(without_sack_each_loss_of_a_window_costs_a_round_trip) {
  const std::vector<uint64_t> burst{200, 202, 204, 206, 208, 210};
  const Result plain = run(scripted(burst, 1000)), selective = run(scripted(burst, 1000, true));
  CHECK_EQ(plain.counters.packets_retransmitted, burst.size());
  CHECK_EQ(plain.counters.fast_recoveries, 1u);
  CHECK_EQ(plain.counters.timeouts, 0u);
  for (size_t i = 1; i < plain.again.size(); ++i) {
    CHECK_GE(plain.again[i] - plain.again[i - 1], kRtt);
    CHECK_LT(plain.again[i] - plain.again[i - 1], kRtt + kRtt / 2);
  }
  CHECK_LT(selective.again.back() - selective.again.front(), kRtt);
  CHECK_GT(plain.completed, selective.completed);
}

TEST(without_sack_tails_are_not_probed) {
  // Of 20 segments (numbers 2 to 21) the last, and the last but two: two duplicates are not enough.
  for (const uint64_t lost : {21u, 19u}) {
    const Result result = run(scripted({lost}, 20));
    CHECK_EQ(result.counters.timeouts, 1u);
    CHECK_EQ(result.counters.fast_recoveries, 0u);
  }
  const Result result = run(scripted({18}, 20));
  CHECK_EQ(result.counters.timeouts, 0u);
  CHECK_EQ(result.counters.packets_retransmitted, 1u);
}

TEST(without_sack_a_lost_retransmission_waits_for_the_time_out) {
  World first(scripted({100}, 800), 1);
  CHECK(worlds::run_until(first, 10 * kSecond, [&](Flow& f) { return f.counters().packets_retransmitted == 1; }));
  const uint64_t number = first.flows()[0].counters().packets_sent + 1;  // two of the handshake, and the last of all so far
  const Result result = run(scripted({100, number}, 800));
  CHECK_EQ(result.counters.random_losses, 2u);
  CHECK_EQ(result.counters.timeouts, 1u);
  CHECK_GE(result.again[1] - result.again[0], 200 * kMillisecond);
}

// Whatever is lost: everything arrives, and what is in flight is counted right (run).
TEST(without_sack_everything_arrives_whatever_is_lost) {
  Rng rng(7);
  for (const std::string& cc : worlds::controls(Stack::linux_kernel, false)) {
    for (int trial = 0; trial < 6; ++trial) {
      std::vector<uint64_t> losses;
      for (uint64_t i = 0; i < 300; ++i) {
        if (rng.uniform() < 0.02 * trial) losses.push_back(i);
      }
      WorldConfig config = scripted(losses, 250);
      config.flows[0].cc = cc;
      config.timestamps = trial % 2 == 0;
      if (!config.timestamps) config.flows[0].size_bytes = 250 * 1460;
      run(config);
    }
  }
}

TEST(without_sack_senders_keep_count_where_packets_overtake_each_other) {
  for (const bool stamps : {true, false}) {
    WorldConfig config = scripted({}, 4000);
    config.links[0].jitter.distribution = "exponential";
    config.links[0].jitter.scale_ns = 2e6;
    config.links[0].jitter.reorder = true;
    config.links[0].loss = 0.002;
    config.timestamps = stamps;
    const Result result = run(config);
    CHECK_GT(result.counters.packets_retransmitted, 0u);
  }
}

TEST(an_option_of_the_handshake_is_used_where_nobody_is_without_it) {
  WorldConfig config = scripted({}, 10, true);
  config.hosts.resize(2);
  config.hosts[0].name = "here", config.hosts[1].name = "there";
  config.flows[0].sender_host = 0, config.flows[0].receiver_host = 1;
  const auto options = [&] { return Profiles(config).sender(config.flows[0]); };
  CHECK_EQ(int{options().options}, kOffersSack | kOffersTimeStamps | kOffersScaling);
  CHECK_EQ(options().syn_bytes, 60u);
  config.hosts[1].sack = false, config.hosts[1].timestamps = false;
  CHECK_EQ(int{options().syn_options}, kOffersSack | kOffersTimeStamps | kOffersScaling);
  CHECK_EQ(int{options().options}, int{kOffersScaling});
  CHECK_EQ(options().syn_bytes, 60u);
  CHECK_EQ(options().syn_ack_bytes, 48u);    // 40, the largest segment's option and the window scale's
  CHECK_EQ(options().mss, 1460u);
  config.hosts[1].sack.reset(), config.hosts[1].timestamps.reset();
  config.flows[0].window_scaling = false;
  CHECK_EQ(int{options().syn_options}, kOffersSack | kOffersTimeStamps);
  CHECK_EQ(options().syn_bytes, 56u);
  config.sack = false;
  CHECK_EQ(int{options().options}, int{kOffersTimeStamps});
  CHECK_EQ(options().syn_bytes, 56u);        // SACK goes into the room that the time stamp leaves
  config.flows[0].sack = true;
  CHECK_EQ(int{options().options}, kOffersSack | kOffersTimeStamps);
  config.hosts[0].sack = false;
  CHECK_EQ(int{options().options}, int{kOffersTimeStamps});
}

TEST(time_outs_and_idle_windows_are_the_senders_own) {
  WorldConfig config = scripted({}, 10, true);
  config.hosts.resize(2);
  config.hosts[0].name = "here", config.hosts[1].name = "there";
  config.flows[0].sender_host = 0;
  config.hosts[0].max_rto_ns = 2 * kSecond, config.hosts[0].slow_start_after_idle = false;
  config.hosts[1].max_rto_ns = 3 * kSecond;
  Profiles profiles(config);
  CHECK_EQ(profiles.sender(config.flows[0]).max_rto, 2 * kSecond);
  CHECK(!profiles.sender(config.flows[0]).restarts_after_idle);
  CHECK_EQ(profiles.receiver(config.flows[0]).max_rto, 120 * kSecond);
  config.flows[0].receiver_host = 1;
  CHECK_EQ(profiles.receiver(config.flows[0]).max_rto, 3 * kSecond);
  config.flows[0].max_rto_ns = 5 * kSecond, config.flows[0].slow_start_after_idle = true;
  CHECK_EQ(profiles.sender(config.flows[0]).max_rto, 5 * kSecond);
  CHECK(profiles.sender(config.flows[0]).restarts_after_idle);
  config.flows[0].max_rto_ns = 1;
  CHECK_EQ(worlds::refusal(config), "flows[0].max_rto_ns = 1: must be in [1000000000, 120000000000], or 0 for not set");
}
