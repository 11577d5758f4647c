// A trained sender in integers as a congestion control: what it counts, when it decides, what it sets.
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "../policy/policy.h"
#include "check.h"
#include "netbuf/compiled_agent.h"

using namespace netbuf;

namespace {

constexpr Time kInterval = 100 * kMillisecond;
constexpr uint32_t kMss = 1448;

// One layer of weights that nobody trained.
nb_policy untrained() {
  nb_policy p{};
  p.magic = NB_MAGIC;
  p.version = NB_VERSION;
  p.bytes = sizeof p;
  p.features = NB_DEFAULT_FEATURES;
  p.history = 2;
  p.inputs = p.features * p.history;
  p.actions = 5;
  nb_rules& r = p.rules;
  r.interval = kInterval;
  for (int i = 0; i < 3; ++i) r.decay[i] = 25989000 >> i;
  r.drain = 1;
  r.drain_due = 8'000'000'000;
  r.seen_within = 1 << 14;
  r.started_rtt = 1280;
  r.drain_round_trips = r.least_drain_intervals = 2;
  r.drain_share = 512;
  r.drain_of_product = 768;
  r.least_drained = 64;
  r.lowest = 32;
  r.heavy_loss = 1 << 17;
  r.heavy_rounds = 3;
  r.heavy_counted = 8;
  r.heavy_kept = 1 << 20;
  r.growth_loss = 1 << 20;
  for (int64_t& scale : r.scales) scale = 1 << 26;
  const double factors[] = {0.5, 0.85, 1.02, 1.4, 2};
  for (int i = 0; i < 5; ++i) r.factors[i] = std::lround(factors[i] * (1 << 20));
  for (int i = 0; i <= NB_CELLS; ++i) {
    p.tables.log2[i] = static_cast<int32_t>(std::lround(std::log2(1 + i / 1024.0) * (1 << 24)));
    p.tables.exp2[i] = static_cast<int32_t>(std::lround(std::exp2(-i / 1024.0) * (1 << 30)));
    p.tables.tanh[i] = static_cast<int32_t>(std::lround(std::tanh(i / 128.0) * (1 << 20)));
  }
  uint32_t drawn = 7;
  for (int row = 0; row < 5; ++row) {
    for (uint32_t column = 0; column < p.inputs; ++column) {
      drawn = drawn * 1664525 + 1013904223;
      p.layer[NB_LAYERS].weight[row][column] = static_cast<int16_t>(drawn >> 16);
    }
  }
  return p;
}

// A connection whose ACKs a test writes down, and the same policy on intervals that it writes down, too.
struct Side {
  Side()
      : policy(untrained()),
        cc(make_compiled_agent(std::make_shared<CompiledPolicy>(&policy, sizeof policy), Stack::linux_kernel)) {
    tcb.mss = kMss;
    tcb.now = 40 * kMillisecond;
    tcb.set_cwnd_packets(10);
    cc->init(tcb);
    nb_start(&policy, &state, tcb.cwnd, kMss);
  }
  void acknowledge(Time at, uint32_t packets, Time rtt, uint32_t prior_in_flight, uint32_t lost = 0) {
    tcb.now = at;
    tcb.nxt = tcb.una + prior_in_flight;
    tcb.una += packets;
    tcb.delivered += packets;
    tcb.lost += lost;
    AckEvent ack;
    ack.acked = ack.delivered = packets;
    ack.lost = lost;
    ack.prior_in_flight = prior_in_flight;
    ack.rtt = rtt;
    cc->take_in(tcb, ack);
  }
  int64_t decide(nb_interval v) {
    v.elapsed = kInterval;
    v.mss = kMss;
    if (!v.cwnd) v.cwnd = expected;
    uint32_t action;
    const int64_t window = nb_step(&policy, &state, &v, &action);
    if (window > 0) expected = window;
    return window;
  }
  nb_policy policy;
  Tcb tcb;
  std::unique_ptr<CongestionControl> cc;
  nb_state state{};
  int64_t expected = 10 * kMss;
};

}  // namespace

TEST(a_compiled_agent_decides_on_what_was_counted_before_the_ack_that_ends_an_interval) {
  Side side;
  int64_t before = 0;
  for (int interval = 0; interval < 40; ++interval) {
    const Time start = 40 * kMillisecond + interval * kInterval, rtt = (50 + interval % 7) * kMillisecond;
    const uint32_t packets = 2 + static_cast<uint32_t>(interval) % 5, lost = interval % 9 == 4 ? 3 : 0;
    nb_interval v{};
    for (int i = 0; i < 8; ++i) {
      // The first ACK ends the interval before, with what was in flight before it.
      side.acknowledge(start + (i * 12 + 5) * kMillisecond, packets, rtt, 30, i == 3 ? lost : 0);
      if (i == 0) CHECK_EQ(side.tcb.cwnd, side.expected);
    }
    v.acks = 8;
    v.segments = 8 * packets;
    v.acked_bytes = v.segments * kMss;
    v.span = interval ? 7 * 12 * kMillisecond + 16 * kMillisecond : 7 * 12 * kMillisecond;
    v.rtt_sum = 8 * rtt;
    v.rtt_count = 8;
    v.rtt_min = rtt;
    v.lost = lost;
    v.in_flight = 30 * kMss;
    v.in_flight_sum = 8 * (30 - packets) * kMss;
    CHECK(side.decide(v) > 0);
    before += side.expected != 10 * kMss;
  }
  CHECK(before > 30);
}

TEST(intervals_in_silence_count_and_a_timeout_is_seen) {
  Side side;
  side.acknowledge(60 * kMillisecond, 4, 50 * kMillisecond, 20);
  side.tcb.lost += 16;  // found by the timer
  side.cc->on_state(side.tcb, CaState::loss);
  side.tcb.set_cwnd_fine(kMss);
  side.acknowledge(480 * kMillisecond, 1, 50 * kMillisecond, 1);  // 140, 240, 340 and 440 ms are over
  nb_interval v{};
  v.cwnd = kMss;
  v.acks = 1;
  v.segments = 4;
  v.acked_bytes = 4 * kMss;
  v.rtt_sum = v.rtt_min = 50 * kMillisecond;
  v.rtt_count = 1;
  v.lost = 16;
  v.timeouts = 1;
  v.in_flight = kMss;
  v.in_flight_sum = 16 * kMss;
  CHECK(side.decide(v) > 0);
  for (int i = 0; i < 3; ++i) {
    nb_interval silent{};
    silent.in_flight = kMss;
    CHECK_EQ(side.decide(silent), 0);
  }
  CHECK_EQ(side.tcb.cwnd, side.expected);
}

TEST(what_is_no_policy_is_refused) {
  nb_policy p = untrained();
  CHECK_THROWS(CompiledPolicy(&p, sizeof p - 1), std::invalid_argument);
  p.inputs += 1;
  CHECK_THROWS(CompiledPolicy(&p, sizeof p), std::invalid_argument);
  p = untrained();
  p.width[1] = NB_UNITS + 1;
  CHECK_THROWS(CompiledPolicy(&p, sizeof p), std::invalid_argument);
}
