// HyStart++ by the steps of RFC 9406, 4.2, and what it is worth.
#include "cc/hystart_plus_plus.h"

#include "check.h"
#include "fake_connection.h"
#include "worlds.h"

using namespace netbuf;

namespace {

constexpr Time kMs = kMillisecond;

// Rounds of n ACKs for a packet each, of one RTT.
struct Rounds {
  explicit Rounds(Given given = {{"hystart_plus_plus", 1}})
      : start(Parameters({kHyStartPlusPlusParameter}, given, "parameters")) {
    tcb.nxt = 11;
    start.start(tcb);
  }
  void ack(Time rtt) {
    ++tcb.una;
    tcb.nxt = tcb.una + 10;
    start.observe(tcb, rtt);
  }
  void round(Time rtt, int acks = 11) {
    for (int i = 0; i < acks; ++i) ack(rtt);
  }
  Tcb tcb;
  HyStartPlusPlus start;
};

}  // namespace

TEST(a_rise_of_the_round_trip_slows_slow_start_down) {
  // RttThresh = clamp(RTT / 8, 4 ms, 16 ms).
  for (const auto& [rtt, rise] : {std::pair{20 * kMs, 4 * kMs}, {80 * kMs, 10 * kMs}, {400 * kMs, 16 * kMs}}) {
    Rounds below, at;
    for (Rounds* one : {&below, &at}) one->round(rtt);
    below.round(rtt + rise - 1);
    at.round(rtt + rise);
    CHECK(!below.start.conservative());
    CHECK(at.start.conservative());
  }
}

TEST(a_round_is_judged_by_eight_samples) {
  Rounds rounds;
  rounds.round(50 * kMs);
  rounds.round(60 * kMs, 7);  // the first begins the round
  CHECK(!rounds.start.conservative());
  rounds.ack(60 * kMs);
  CHECK(rounds.start.conservative());
}

TEST(one_short_sample_saves_a_round) {
  Rounds rounds;
  rounds.round(50 * kMs);
  rounds.ack(51 * kMs);
  rounds.round(90 * kMs, 10);
  CHECK(!rounds.start.conservative());
}

TEST(conservative_slow_start_grows_by_a_quarter) {
  Rounds rounds;
  CHECK_EQ(rounds.start.growth(rounds.tcb, 8), 8u);
  CHECK_EQ(rounds.start.growth(rounds.tcb, 20), 8u);  // L, without pacing
  rounds.tcb.pacing_rate = 1;
  CHECK_EQ(rounds.start.growth(rounds.tcb, 20), 20u);
  rounds.tcb.pacing_rate = 0;
  rounds.round(50 * kMs);
  rounds.round(60 * kMs);
  uint32_t grown = 0;
  for (int i = 0; i < 100; ++i) grown += rounds.start.growth(rounds.tcb, 1);
  CHECK_EQ(grown, 25u);
}

TEST(five_conservative_rounds_end_slow_start) {
  Rounds rounds;
  rounds.round(50 * kMs);
  rounds.round(60 * kMs);  // entered: the first
  rounds.tcb.set_cwnd_packets(100);
  for (int i = 0; i < 4; ++i) {
    rounds.round(60 * kMs);
    CHECK_EQ(rounds.tcb.ssthresh, kInfiniteWindow);
  }
  rounds.ack(60 * kMs);
  CHECK_EQ(rounds.tcb.ssthresh, rounds.tcb.cwnd);
}

TEST(a_round_trip_that_falls_again_resumes_slow_start) {
  Rounds rounds;
  rounds.round(50 * kMs);
  rounds.round(60 * kMs);
  CHECK(rounds.start.conservative());
  rounds.round(60 * kMs);  // not below the baseline
  CHECK(rounds.start.conservative());
  rounds.round(60 * kMs - 1);
  CHECK(!rounds.start.conservative());
  CHECK_EQ(rounds.tcb.ssthresh, kInfiniteWindow);
  for (int i = 0; i < 10; ++i) rounds.round(60 * kMs - 1);
  CHECK(!rounds.start.conservative());
}

TEST(it_is_for_the_first_slow_start_alone) {
  Rounds rounds;
  rounds.tcb.ssthresh = 1000 * rounds.tcb.mss;
  CHECK(!rounds.start.rules(rounds.tcb));
  Rounds none{{}};
  CHECK(!none.start.rules(none.tcb));  // unless the world has it
  none.tcb.hystart_plus_plus = true;
  none.start.start(none.tcb);
  CHECK(none.start.rules(none.tcb));
}

TEST(slow_start_leaves_the_queue_shorter) {
  // Bandwidth times delay is 83 packets; the queue holds 300.
  for (const char* cc : {"cubic", "newreno"}) {
    const auto drops = [&](bool with) {
      WorldConfig config = worlds::dumbbell(10, 100, 300, {cc});
      config.hystart = false;
      config.hystart_plus_plus = with;
      World world(config, 1);
      world.run(5 * kSecond);
      return world.links()[0].stats(world.now()).queue_drops;
    };
    CHECK_GT(drops(false), 300u);
    CHECK_LT(drops(true), drops(false) / 3);
  }
}
