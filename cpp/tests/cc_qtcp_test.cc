// QTCP: when it acts and how, what it learns, and that chance is the world's.
#include "check.h"
#include "fake_connection.h"
#include "worlds.h"

using namespace netbuf;

namespace {

const fake::Path kPath{48 * kMillisecond, 1200 * kMicrosecond, 1};
const Given kChance = {{"exploration", 1}, {"exploration_decay", 1}};  // acts at random

// Ends slow start.
fake::Connection started(const Given& parameters, fake::Path path = kPath) {
  fake::Connection c("qtcp", path, Stack::linux_kernel, parameters);
  while (c.tcb.in_slow_start() && c.tcb.now < 10 * kSecond) c.step();
  return c;
}

double mean_rtt_ms(fake::Connection& c, Time until) {
  double sum = 0;
  int count = 0;
  while (c.tcb.now < until) {
    if (!c.step()) continue;
    sum += seconds(c.tcb.last_rtt) * 1e3;
    ++count;
  }
  return sum / count;
}

}  // namespace

TEST(adds_ten_packets_or_none_or_takes_one_every_interval) {
  for (const double interval : {0.1, 0.23}) {
    fake::Connection c = started({{"update_interval_s", interval}});
    int seen[3] = {0, 0, 0}, changes = 0;
    Time last = c.tcb.now;
    while (c.tcb.now < 60 * kSecond) {
      const int before = static_cast<int>(c.tcb.cwnd_packets);
      c.step();
      const int step = static_cast<int>(c.tcb.cwnd_packets) - before;
      if (step == 0) continue;
      CHECK(step == 10 || step == -1);
      ++seen[step > 0 ? 0 : 2];
      if (changes++ > 0) CHECK_GE(seconds(c.tcb.now - last), interval);
      last = c.tcb.now;
    }
    CHECK_GT(seen[0], 3);
    CHECK_GT(seen[2], 3);
    CHECK_LT(changes, static_cast<int>(60 / interval));  // there is a third action
  }
}

TEST(slow_start_ends_with_half_a_round_trip_of_queue) {
  fake::Connection c("qtcp", kPath);
  while (c.tcb.in_slow_start() && c.tcb.now < 10 * kSecond) c.step();
  CHECK_GE(2 * c.tcb.srtt, 3 * c.tcb.min_rtt);
  CHECK_LE(c.tcb.cwnd_packets, 4 * 41u);  // 41 fill the path; the queue is seen a round trip late
}

TEST(a_loss_halves_the_window) {
  fake::Connection c = started({});
  c.run(5 * kSecond);
  CHECK_EQ(c.cc->ssthresh(c.tcb), static_cast<int64_t>(c.tcb.cwnd_packets / 2) * c.tcb.mss);
}

TEST(what_is_learnt_keeps_the_round_trips_shorter_than_chance_does) {
  double learnt = 0, random = 0;
  int shorter = 0;
  for (const Time per_packet : {600 * kMicrosecond, 1200 * kMicrosecond, 2400 * kMicrosecond}) {
    for (const Time rtt : {20 * kMillisecond, 48 * kMillisecond, 100 * kMillisecond}) {
      fake::Connection a = started({}, {rtt, per_packet, 1}), b = started(kChance, {rtt, per_packet, 1});
      const double one = mean_rtt_ms(a, 100 * kSecond), other = mean_rtt_ms(b, 100 * kSecond);
      learnt += one;
      random += other;
      shorter += one < other;
    }
  }
  CHECK_LT(learnt, 0.5 * random);
  CHECK_GE(shorter, 7);
}

TEST(fills_the_link_while_it_learns) {
  fake::Connection c("qtcp", kPath);
  c.run(60 * kSecond);
  CHECK_GE(c.tcb.delivered * seconds(kPath.per_packet) / 60, 0.9);
}

TEST(with_the_seed_everything_comes_back_and_with_another_it_does_not) {
  const WorldConfig config = worlds::dumbbell(10, 48, 150, {"qtcp", "qtcp"});
  World a(config, 5), same(config, 5), other(config, 6);
  for (World* world : {&a, &same, &other}) world->run(30 * kSecond);
  CHECK(worlds::fingerprint(a) == worlds::fingerprint(same));
  CHECK(worlds::fingerprint(a) != worlds::fingerprint(other));
}
