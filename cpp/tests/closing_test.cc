// How connections of finite flows end, and what happens when the small packets of their beginning and end are lost.
#include "worlds.h"

using namespace netbuf;

namespace {

// One flow of so many bytes over 10 Mbit/s and 50 ms; lost: numbers of packets towards the receiver
// (0: SYN, 1: handshake ACK).
WorldConfig transfer(Stack stack, int64_t bytes, std::vector<uint64_t> lost = {}) {
  WorldConfig config = worlds::dumbbell(10, 50, 0, {"newreno"}, stack);
  config.flows[0] = worlds::sized(config.flows[0], bytes);
  config.links[0].loss_list = std::move(lost);
  return config;
}

uint64_t there(World& world) { return world.links()[0].stats(world.now()).packets_in; }
uint64_t back(World& world) { return world.links()[1].stats(world.now()).packets_in; }

}  // namespace

TEST(fin_goes_with_the_last_segment) {
  for (const Stack stack : {Stack::linux_kernel, Stack::ns3}) {
    for (const int64_t segments : {1, 2, 3, 7}) {
      World world(transfer(stack, 1448 * segments - 100), 1);
      world.run(kSecond);
      // SYN, handshake ACK, the segments, the last ACK.
      CHECK_EQ(there(world), static_cast<uint64_t>(2 + segments + 1));
      CHECK(world.flows()[0].finished());
      CHECK_EQ(world.flows()[0].counters().packets_sent, static_cast<uint64_t>(segments));
      // ns-3 acknowledges the first segment, pairs, and the last; then FIN and an ACK of its own.
      if (stack == Stack::ns3) CHECK_EQ(back(world), static_cast<uint64_t>(1 + 1 + segments / 2 + 2));
    }
  }
}

TEST(in_linux_fin_is_the_acknowledgement) {
  World world(transfer(Stack::linux_kernel, 1448), 1);
  world.run(kSecond);
  CHECK_EQ(back(world), 2u);  // SYN/ACK, FIN/ACK
  CHECK_EQ(world.flows()[0].counters().acks, 1u);
}

TEST(a_filled_hole_that_ends_the_stream_is_answered_by_fin) {
  // The last but one: the last one's ACK is no third duplicate.
  World world(transfer(Stack::ns3, 1448 * 10, {2 + 8}), 1);
  world.run(10 * kSecond);
  const Flow& flow = world.flows()[0];
  CHECK_EQ(flow.counters().timeouts, 1u);
  CHECK_EQ(flow.counters().packets_retransmitted, 1u);
  CHECK(flow.finished());
  // SYN/ACK; the first segment; three pairs; the last one beyond the hole; FIN, ACK.
  CHECK_EQ(back(world), 1u + 1 + 3 + 1 + 2);
}

TEST(a_lost_last_segment_waits_for_the_time_out_in_ns3_and_is_probed_in_linux) {
  for (const Stack stack : {Stack::linux_kernel, Stack::ns3}) {
    World world(transfer(stack, 1448 * 10, {2 + 9}), 1);
    world.run(10 * kSecond);
    const Flow& flow = world.flows()[0];
    CHECK(flow.finished());
    CHECK_EQ(flow.counters().packets_retransmitted, 1u);
    CHECK_EQ(flow.counters().timeouts, stack == Stack::ns3 ? 1u : 0u);
    CHECK_EQ(flow.completed_at() > kSecond, stack == Stack::ns3);
  }
}

TEST(fin_is_repeated_until_the_last_ack_has_come) {
  // Packets towards the receiver: SYN, ACK, segment, last ACK (lost).
  World linux_world(transfer(Stack::linux_kernel, 1000, {3}), 1);
  linux_world.run(10 * kSecond);
  CHECK_EQ(there(linux_world), 5u);  // the sender acknowledges the repeated FIN
  CHECK(linux_world.flows()[0].finished());

  // ns-3: FIN every three round trips of 50 ms and after a second; the sender keeps silent for a second, then resets.
  World world(transfer(Stack::ns3, 1000, {3}), 1);
  world.run(10 * kSecond);
  CHECK_EQ(there(world), 6u);
  CHECK(world.flows()[0].finished());
  CHECK_EQ(back(world), 1u + 3 + 8);  // seven times after 150 ms, and once after 1 s: two came for a reset
}

TEST(data_makes_up_for_a_lost_handshake_ack) {
  for (const Stack stack : {Stack::linux_kernel, Stack::ns3}) {
    for (const int64_t segments : {1, 2, 5}) {
      World world(transfer(stack, 1448 * segments, {1}), 1);
      world.run(kSecond);
      CHECK(world.flows()[0].finished());
      CHECK_LT(world.flows()[0].completed_at(), 200 * kMillisecond);
    }
  }
}

TEST(ns3_ignores_fin_beyond_a_hole_while_it_waits_for_the_handshake) {
  World world(transfer(Stack::ns3, 1448 * 2, {1, 2}), 1);
  world.run(10 * kSecond);
  CHECK_EQ(world.flows()[0].counters().packets_retransmitted, 2u);
  CHECK(world.flows()[0].finished());
}

TEST(syn_is_tried_six_times_in_ns3_and_without_end_in_linux) {
  std::vector<uint64_t> lost;
  for (uint64_t i = 0; i < 10; ++i) lost.push_back(i);
  World world(transfer(Stack::ns3, 1000, lost), 1);
  for (const auto& [seconds, sent] :
       std::vector<std::pair<int, uint64_t>>{{2, 1}, {4, 2}, {10, 3}, {22, 4}, {46, 5}, {94, 6}, {2000, 6}}) {
    world.run(seconds * kSecond);
    CHECK_EQ(there(world), sent);
  }
  CHECK(!world.flows()[0].sender.tcb.established);
  World linux_world(transfer(Stack::linux_kernel, 1000, lost), 1);
  linux_world.run(2000 * kSecond);
  CHECK(linux_world.flows()[0].finished());
}

TEST(an_answer_to_syn_that_comes_again_lets_an_ns3_sender_start_anew) {
  std::vector<uint64_t> lost;
  for (uint64_t i = 1; i < 15; ++i) lost.push_back(i);  // the handshake ACK, ten segments, time-outs at 1, 3 and 7 s
  World world(transfer(Stack::ns3, 1448 * 20, lost), 1);
  world.run(2 * kSecond);
  CHECK_EQ(world.flows()[0].sender.tcb.cwnd, 1448);
  CHECK_EQ(back(world), 1u);
  CHECK(worlds::run_until(world, 4 * kSecond, [](Flow& f) { return f.sender.tcb.cwnd == 14'480; }));
  CHECK_GT(world.now(), 3 * kSecond);  // after which the answer is repeated
  CHECK_EQ(back(world), 2u);
  CHECK_EQ(world.flows()[0].sender.tcb.ssthresh, kInfiniteWindow);
  world.run(100 * kSecond);
  CHECK(world.flows()[0].finished());
}
