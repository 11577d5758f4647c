// TCP Prague by its draft: how the share of marks is tracked, what the window does about it and about losses, how it
// grows on short round trips; and its flows behind DualPI2, alone and beside classic ones.
#include "fake_connection.h"
#include "worlds.h"

using namespace netbuf;

namespace {

// A sender without a network: rounds of so many packets, of which some are marked.
struct Rounds {
  explicit Rounds(Time rtt = 50 * kMillisecond, const Given& parameters = {})
      : cc(make_congestion_control("prague", Stack::linux_kernel, parameters)), rtt_(rtt) {
    tcb.established = true;
    tcb.srtt = tcb.min_rtt = rtt;
    tcb.set_cwnd_packets(100);
    tcb.nxt = 100;
    cc->init(tcb);
  }
  // A window a round trip, the first packet marked if any is; the stack tells of marks as it does: once a round trip.
  void round(double marked) {
    const uint32_t packets = tcb.cwnd_packets;
    double due = marked > 0 ? 1 - marked + 1e-9 : 0;
    bool told = false;
    for (uint32_t i = 0; i < packets; ++i) {
      tcb.now += rtt_ / packets;
      AckEvent ack;
      ack.una_advanced = true;
      ack.acked = ack.delivered = 1;
      ack.prior_in_flight = tcb.in_flight();
      due += marked;
      ack.marked = due >= 1;
      due -= ack.marked;
      ++tcb.una;
      ++tcb.delivered;
      if (ack.marked && !told) enter(CaState::cwr), told = true;
      cc->control(tcb, ack);
      while (tcb.packets_out() < tcb.cwnd_packets) ++tcb.nxt;
    }
    enter(CaState::open);
  }
  void enter(CaState state) {
    if (state >= CaState::cwr) tcb.ssthresh = cc->ssthresh(tcb);
    cc->on_state(tcb, state);
    tcb.state = state;
  }
  double rate_window() const {  // the window as the pacing rate has it
    return tcb.pacing_rate * 1e-9 * static_cast<double>(rtt_) / tcb.mss;
  }
  Tcb tcb;
  std::unique_ptr<CongestionControl> cc;

 private:
  Time rtt_;
};

WorldConfig behind_dualpi2(double mbps, double rtt_ms, const std::vector<std::string>& senders) {
  WorldConfig world = worlds::dumbbell(mbps, rtt_ms, 2000, senders);
  world.links[0].discipline = "dualpi2";
  return world;
}

double goodput_mbps(const Flow& flow, double seconds) {
  return static_cast<double>(flow.counters().delivered_bytes) * 8e-6 / seconds;
}

double queue_delay_ms(const LinkStats& link) { return link.sojourn_sum / static_cast<double>(link.packets_out) * 1e3; }

}  // namespace

TEST(prague_halves_at_the_first_mark_and_leaves_slow_start) {
  Rounds rounds;
  rounds.round(0);
  CHECK_EQ(rounds.tcb.cwnd_packets, 200u);  // slow start
  rounds.round(0.01);
  CHECK_NEAR(rounds.tcb.cwnd_packets, 101, 2);
  CHECK(!rounds.tcb.in_slow_start());
  const uint32_t window = rounds.tcb.cwnd_packets;
  rounds.round(0);
  CHECK_NEAR(rounds.tcb.cwnd_packets, window + 1, 1);  // a packet a round trip
}

TEST(prague_gives_way_by_half_the_share_of_marks) {
  for (const double share : {0.1, 0.3, 0.6}) {
    Rounds rounds;
    rounds.round(share);
    for (int i = 0; i < 200; ++i) {  // alpha settles; the window is held up
      rounds.tcb.set_cwnd_packets(200);
      rounds.round(share);
    }
    const double before = rounds.rate_window();
    rounds.enter(CaState::cwr);
    rounds.cc->control(rounds.tcb, {});
    CHECK_NEAR(rounds.rate_window() / before, 1 - share / 2, 0.07);
  }
}

// Also while it gives way: the sender stays in that state for a round trip.
TEST(prague_grows_for_what_is_not_marked) {
  for (const uint32_t marked : {0u, 3u, 10u}) {  // of ten
    Rounds rounds;
    rounds.enter(CaState::cwr);
    CHECK_EQ(rounds.tcb.ssthresh_packets(), 50u);
    rounds.tcb.set_cwnd_packets(50);
    AckEvent ack;
    ack.acked = ack.delivered = 10;
    ack.marked = marked;
    ack.prior_in_flight = 50;
    for (int i = 0; i < 5; ++i) rounds.cc->control(rounds.tcb, ack);
    rounds.tcb.now += from_seconds(0.001);
    const double expected = 50 + 0.1 * (10 - marked);  // of a packet a round trip
    const double offset = 1 + 4.0 / 128;               // of the pacing rate
    CHECK_NEAR(rounds.rate_window() / offset, expected, 0.02);
  }
}

TEST(prague_answers_losses_as_reno) {
  Rounds rounds;
  rounds.enter(CaState::recovery);
  CHECK_EQ(rounds.tcb.ssthresh, 50 * int64_t{rounds.tcb.mss});
  const uint32_t before = rounds.tcb.cwnd_packets;
  AckEvent ack;
  ack.delivered = 2;
  ack.prior_in_flight = 100;
  for (int i = 0; i < 100; ++i) rounds.cc->control(rounds.tcb, ack);  // a packet less an ACK, and no growth
  CHECK_EQ(before, 100u);
  CHECK_EQ(rounds.tcb.cwnd_packets, 50u);
  rounds.enter(CaState::loss);  // of the same trouble
  CHECK_EQ(rounds.tcb.ssthresh, 50 * int64_t{rounds.tcb.mss});
  rounds.enter(CaState::open);
  rounds.enter(CaState::loss);
  CHECK_EQ(rounds.tcb.ssthresh, 25 * int64_t{rounds.tcb.mss});
}

TEST(prague_grows_on_short_round_trips_as_if_they_took_the_target) {
  for (const double rtt_ms : {5.0, 12.5, 25.0, 80.0}) {
    for (const double transition : {4.0, 1e6}) {
      const Time rtt = from_seconds(rtt_ms * 1e-3);
      Rounds rounds(rtt, {{"prague_rtt_transition", transition}});
      rounds.enter(CaState::recovery);
      for (int i = 0; i < 60; ++i) rounds.round(0);  // more than four targets
      const double before = rounds.tcb.cwnd_packets;
      const int count = static_cast<int>(2000 / rtt_ms);
      for (int i = 0; i < count; ++i) rounds.round(0);
      const double part = transition > 4 ? 1 : std::min(rtt_ms / 25, 1.0);
      const double expected = count * part * part;
      CHECK_NEAR(rounds.tcb.cwnd_packets - before, expected, 1.5 + 0.02 * expected);
    }
  }
}

TEST(prague_gives_way_once_a_target_on_short_round_trips) {
  Rounds rounds(5 * kMillisecond);
  for (int i = 0; i < 100; ++i) rounds.round(0.5);  // alpha is about a half, and rounds are targets
  int fell = 0;
  for (int i = 0; i < 50; ++i) {
    const int64_t before = rounds.tcb.ssthresh;
    rounds.round(0.5);
    fell += rounds.tcb.ssthresh < before;
    rounds.tcb.ssthresh = std::max(rounds.tcb.ssthresh, before);
  }
  CHECK_LE(fell, 10);  // of 50 round trips, ten targets
}

TEST(prague_sends_ect1_and_counts_marks) {
  WorldConfig config = behind_dualpi2(40, 20, {"prague"});
  CHECK(!config.flows[0].ecn);
  config.links[1].loss = 0.02;
  config.links[1].loss_on_acks = true;
  World world(config, 1);
  world.run(20 * kSecond);
  const FlowCounters c = world.flows()[0].counters();
  CHECK_GT(c.marks, 1000u);
  CHECK_LE(c.segments_marked, c.marks);
  CHECK_LE(c.marks - c.segments_marked, 8u);  // on their way
  // Where no discipline knows L4S it is an ECN flow like others.
  config.links[0].discipline = "codel";
  World classic(config, 1);
  classic.run(20 * kSecond);
  CHECK_GT(classic.flows()[0].counters().marks, 10u);
  CHECK_EQ(classic.links()[0].stats(classic.now()).queue_drops, 0u);
}

TEST(prague_alone_keeps_the_link_busy_and_the_queue_short) {
  for (const size_t flows : {1, 4}) {
    for (const double mbps : {20.0, 40.0, 100.0}) {
      World world(behind_dualpi2(mbps, 20, std::vector<std::string>(flows, "prague")), 1);
      world.run(30 * kSecond);
      const LinkStats link = world.links()[0].stats(world.now());
      CHECK_GT(link.busy, 0.9 * 30);
      CHECK_LT(queue_delay_ms(link), 1);
      CHECK_EQ(link.queue_drops, 0u);
      for (const Flow& flow : world.flows()) {
        CHECK_NEAR(goodput_mbps(flow, 30), 0.93 * mbps / static_cast<double>(flows), 0.12 * mbps);
      }
    }
  }
}

TEST(prague_shares_with_classic_senders_behind_dualpi2) {
  for (const char* classic : {"cubic", "newreno"}) {
    for (const bool ecn : {false, true}) {
      WorldConfig config = behind_dualpi2(40, 20, {"prague", classic});
      config.flows[1].ecn = ecn;
      World world(config, 1);
      world.run(60 * kSecond);
      const double mine = goodput_mbps(world.flows()[0], 60), other = goodput_mbps(world.flows()[1], 60);
      CHECK_GT(mine + other, 35.0);
      CHECK_GT(mine / (mine + other), 0.3);
      CHECK_LT(mine / (mine + other), 0.7);
      const FlowCounters c = world.flows()[0].counters(), d = world.flows()[1].counters();
      CHECK_EQ(c.queue_drops, 0u);
      // What speaks no ECN is dropped; what does, in overload alone: as slow start overshoots.
      if (ecn) CHECK_LT(4 * d.queue_drops, d.marks);
      else CHECK(d.queue_drops > 20 && d.marks == 0);
    }
  }
}

TEST(classic_senders_behind_dualpi2_are_behind_pi2) {
  for (const char* classic : {"cubic", "newreno"}) {
    World world(behind_dualpi2(40, 20, {classic, classic}), 1);
    world.run(60 * kSecond);
    const LinkStats link = world.links()[0].stats(world.now());
    CHECK_NEAR(queue_delay_ms(link), 15, 3);
    CHECK_EQ(link.marks, 0u);
    CHECK_GT(link.queue_drops, 10u);
    CHECK_GT(link.busy, 0.95 * 60);
  }
}

TEST(prague_is_a_reno_where_nothing_marks) {
  World world(worlds::dumbbell(40, 20, 100, {"prague", "newreno"}), 1);
  world.run(60 * kSecond);
  CHECK_EQ(world.flows()[0].counters().marks, 0u);
  for (const Flow& flow : world.flows()) CHECK_GT(goodput_mbps(flow, 60), 10);
  WorldConfig lossy = worlds::dumbbell(40, 20, 100, {"prague"});
  lossy.links[0].loss = 0.01;
  World random(lossy, 1);
  random.run(30 * kSecond);
  CHECK_GT(goodput_mbps(random.flows()[0], 30), 3);
}
