// What the linux stack makes of reordering: how long RACK waits, and what it takes back.
#include "netbuf/reordering.h"

#include "worlds.h"

using namespace netbuf;

namespace {

Tcb of(Time min_rtt, Time srtt) {
  Tcb tcb;
  tcb.min_rtt = min_rtt;
  tcb.srtt = srtt;
  return tcb;
}

FlowCounters run(const WorldConfig& config) {
  World world(config, 1);
  world.run(30 * kSecond);
  return world.flows()[0].counters();
}

WorldConfig with_jitter(double scale_ms) {
  WorldConfig config = worlds::dumbbell(10, 50, 200, {"cubic"});
  config.links[0].jitter = {"uniform", scale_ms * 1e6, 0, 3, 0, true};
  return config;
}

}  // namespace

TEST(the_degree_is_the_largest_displacement_within_bounds) {
  Reordering one;
  one.note(7, 7);
  CHECK(!one.seen());
  one.note(5, 7);
  CHECK(one.seen());
  CHECK_EQ(one.degree(), 3u);
  CHECK(!one.grows_on_any_delivery());
  one.note(10, 22);
  CHECK_EQ(one.degree(), 12u);
  CHECK(one.grows_on_any_delivery());
  one.doubt(2);
  CHECK_EQ(one.degree(), 12u);
  one.doubt(3);
  CHECK_EQ(one.degree(), 3u);
  one.note(0, 5000);
  CHECK_EQ(one.degree(), 300u);
}

TEST(the_window_grows_by_a_step_a_round_trip_with_duplicates) {
  const Tcb tcb = of(40 * kMillisecond, 100 * kMillisecond);
  Reordering one;
  one.adapt(1, 0, true);                     // no reordering has been seen: the duplicate says nothing
  one.note(1, 5);
  CHECK_EQ(one.window(tcb), 10 * kMillisecond);
  one.adapt(1000, 900, true);
  CHECK_EQ(one.window(tcb), 20 * kMillisecond);
  one.adapt(1100, 950, true);                // of what was sent before the step
  one.adapt(1200, 1000, false);
  CHECK_EQ(one.steps(), 2u);
  one.adapt(1300, 1001, true);
  CHECK_EQ(one.steps(), 3u);
  for (Time now = 2000; now < 40'000; now += 1000) one.adapt(now, now - 1, true);
  CHECK_EQ(one.window(tcb), 100 * kMillisecond);  // a smoothed round trip at most
}

TEST(after_sixteen_quiet_recoveries_the_window_is_small_again) {
  Reordering one;
  one.note(1, 5);
  one.adapt(10, 5, true);
  for (int i = 0; i < 15; ++i) one.recovered(false);
  one.recovered(true);                       // a needless one counts the other way
  one.recovered(false);
  one.adapt(100, 90, false);
  CHECK_EQ(one.steps(), 2u);
  one.recovered(false);
  one.adapt(200, 190, false);
  CHECK_EQ(one.steps(), 1u);
}

TEST(a_reduction_is_needless_when_every_retransmission_was) {
  Tcb tcb;
  tcb.una = 100;
  tcb.cwnd = 40'000;
  tcb.ssthresh = 20'000;
  Undo undo;
  CHECK(!undo.all_needless());
  undo.begin(tcb);
  CHECK(undo.returns_window());
  undo.keep_reduced();                       // a mark was echoed: what is needless is known all the same
  CHECK(undo.marked() && !undo.returns_window());
  undo.begin(tcb);
  CHECK(undo.returns_window());
  CHECK(!undo.all_needless());
  CHECK(undo.late(5 * kMillisecond));        // nothing was retransmitted
  undo.retransmitted(10 * kMillisecond);
  undo.retransmitted(11 * kMillisecond);
  CHECK(undo.late(9 * kMillisecond));
  CHECK(!undo.late(10 * kMillisecond + 999'999));
  CHECK(!undo.late(-1));
  undo.duplicate(99);                        // of a copy before the recovery
  undo.duplicate(100);
  CHECK(!undo.all_needless());
  undo.duplicate(103);
  CHECK(undo.all_needless());
  CHECK_EQ(undo.cwnd(), 40'000);
  CHECK_EQ(undo.ssthresh(), 30'000);
  undo.end();
  CHECK(!undo.all_needless());
}

TEST(reordering_within_a_quarter_of_a_round_trip_costs_next_to_nothing) {
  const FlowCounters plain = run(worlds::dumbbell(10, 50, 200, {"cubic"})), mild = run(with_jitter(5)),
                     wild = run(with_jitter(40));
  CHECK_GE(mild.delivered_bytes * 100, plain.delivered_bytes * 98);
  CHECK_GE(wild.delivered_bytes * 100, plain.delivered_bytes * 80);
  CHECK_LT(mild.packets_retransmitted, 100u + plain.packets_retransmitted);
  CHECK_EQ(mild.timeouts, plain.timeouts);
}
