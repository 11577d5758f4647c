// Receivers that acknowledge what they should not (Savage et al., 1999; RFC 5681, section 5), and what comes of it.
#include "worlds.h"

using namespace netbuf;

namespace {

WorldConfig pair(const std::string& misbehaviour, const std::string& cc, Stack stack, double loss = 0) {
  WorldConfig world = worlds::dumbbell(20, 40, 60, {cc, cc}, stack);
  world.links[0].loss = loss;
  world.flows[0].misbehaviour = misbehaviour;
  if (misbehaviour == "optimistic") world.flows[0].send_buffer_bytes = 250'000;
  return world;
}

struct Shares {
  double first, second;          // Mbit/s
  uint64_t retransmitted;
};

Shares shares(const WorldConfig& config) {
  World world(config, 1);
  world.run(20 * kSecond);
  const auto mbps = [&](size_t i) {
    return static_cast<double>(world.flows()[i].counters().delivered_bytes) * 8e-6 / 20;
  };
  return {mbps(0), mbps(1), world.flows()[0].counters().packets_retransmitted};
}

}  // namespace

TEST(an_optimistic_receiver_takes_what_others_leave) {
  for (const Stack stack : {Stack::linux_kernel, Stack::ns3}) {
    const Shares honest = shares(pair("", "newreno", stack)), greedy = shares(pair("optimistic", "newreno", stack));
    CHECK_GT(greedy.first, 2 * greedy.second);
    CHECK_GT(greedy.first, 1.3 * honest.first);
    CHECK_LE(greedy.retransmitted, honest.retransmitted);
  }
}

TEST(holes_that_an_optimistic_receiver_hides_are_never_filled) {
  WorldConfig config = worlds::dumbbell(10, 40, 1000, {"newreno"});
  config.links[0].loss = 0.01;
  config.flows[0].misbehaviour = "optimistic";
  config.flows[0].send_buffer_bytes = 250'000;
  World world(config, 1);
  world.run(30 * kSecond);
  const FlowCounters counters = world.flows()[0].counters();
  // What Reno never has at such a loss.
  CHECK_NEAR(static_cast<double>(counters.delivered_bytes) * 8e-6 / 30, 9.65, 0.3);
  CHECK_GT(counters.random_losses, 100u);
  CHECK_LE(counters.packets_retransmitted, counters.random_losses / 10);
}

TEST(parts_and_duplicates_of_acks_gain_nothing) {
  for (const Stack stack : {Stack::linux_kernel, Stack::ns3}) {
    for (const char* what : {"split", "spoofed"}) {
      for (const std::string cc : {"newreno", "cubic", "westwood"}) {
        const Shares honest = shares(pair("", cc, stack)), other = shares(pair(what, cc, stack));
        if (cc == "westwood" && stack == Stack::ns3 && what == std::string("spoofed")) {
          // ns-3's takes every duplicate for a delivery, and so for bandwidth.
          CHECK_GT(other.first, 1.1 * honest.first);
        } else {
          CHECK_EQ(other.first, honest.first);
          CHECK_EQ(other.second, honest.second);
        }
      }
    }
  }
}

TEST(misbehaviour_is_of_endless_bulk_flows) {
  WorldConfig config = pair("greedy", "cubic", Stack::linux_kernel);
  CHECK(worlds::refusal(config).starts_with("flows[0].misbehaviour = greedy: must be one of optimistic split spoofed"));
  config.flows[0].misbehaviour = "optimistic";
  for (const int64_t bytes : {int64_t{0}, int64_t{1} << 40}) {
    config.flows[0].send_buffer_bytes = bytes;
    CHECK(worlds::refusal(config).starts_with("flows[0].send_buffer_bytes = " + std::to_string(bytes) +
                                              ": must be 1 to 2147483647 beside an optimistic receiver"));
  }
  config.flows[0].misbehaviour = "split";
  config.flows[0].receive_buffer_bytes = 100'000;
  CHECK(worlds::refusal(config).starts_with(
      "flows[0].misbehaviour = split: must be empty for all but endless bulk flows"));
}
