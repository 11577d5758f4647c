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

TEST(copies_of_a_syn_have_one_answer_beside_the_first) {
  // Two links that copy every packet make four of the SYN (tcp_invalid_ratelimit: half a second).
  WorldConfig config = transfer(Stack::linux_kernel, 1448);
  config.links.push_back(config.links[0]);
  config.links[0].duplicate = config.links[2].duplicate = 1;
  config.flows[0].path = {0, 2};
  World world(config, 1);
  world.run(60 * kMillisecond);
  CHECK_EQ(back(world), 2u);
  world.run(10 * kSecond);
  CHECK(world.flows()[0].finished());
}

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

// What this takes in the kernel, from the first SYN on (seconds), is no less than its constants say, and what the slots of
// its timer wheel add: an eighth at most.
Time latest(Time time) { return time + time / 16 + 40 * kMillisecond; }

// Nothing arrives in a direction (0: the receiver's, 1: the sender's) from some packet on, or some packets do not.
std::vector<uint64_t> all_from(uint64_t first) {
  std::vector<uint64_t> lost;
  for (uint64_t i = first; i < first + 3000; ++i) lost.push_back(i);
  return lost;
}
void lose(WorldConfig& config, uint32_t link, std::vector<uint64_t> lost) {
  config.links[link].loss_list = std::move(lost);
  config.links[link].loss_on_acks = true;
}

TEST(syn_is_tried_six_times_in_ns3_and_eleven_times_in_linux) {
  World world(transfer(Stack::ns3, 1000, all_from(0)), 1);
  for (const auto& [seconds, sent] :
       std::vector<std::pair<int, uint64_t>>{{2, 1}, {4, 2}, {10, 3}, {22, 4}, {46, 5}, {94, 6}, {2000, 6}}) {
    world.run(seconds * kSecond);
    CHECK_EQ(there(world), sent);
  }
  CHECK(!world.flows()[0].sender.tcb.established);
  World linux_world(transfer(Stack::linux_kernel, 1000, all_from(0)), 1);
  uint64_t sent = 0;
  for (const int seconds : {0, 1, 2, 3, 4, 5, 7, 11, 19, 35, 67}) {
    if (seconds > 0) linux_world.run(seconds * kSecond - 1);
    CHECK_EQ(there(linux_world), sent);
    linux_world.run(latest(seconds * kSecond));
    CHECK_EQ(there(linux_world), ++sent);
  }
  linux_world.run(2000 * kSecond);
  const Flow& flow = linux_world.flows()[0];
  CHECK(flow.sender.failed() && flow.finished());
  CHECK_GE(flow.sender.failed_at(), 131 * kSecond);   // Linux 6.18: 134.4 to 135.3
  CHECK_LE(flow.sender.failed_at(), 136 * kSecond);
  CHECK_EQ(there(linux_world), 11u);
  CHECK_EQ(flow.counters().syn_timeouts, 11u);
}

TEST(syn_retries_come_beyond_the_linear_ones) {
  for (const uint32_t retries : {1u, 3u}) {
    WorldConfig config = transfer(Stack::linux_kernel, 1000, all_from(0));
    config.syn_retries = retries;
    World world(config, 1);
    world.run(1000 * kSecond);
    CHECK_EQ(there(world), 5 + retries);
    const Time last = (4 + ((Time{2} << retries) - 1)) * kSecond;
    CHECK_GE(world.flows()[0].sender.failed_at(), last);
    CHECK_LE(world.flows()[0].sender.failed_at(), latest(last));
  }
}

TEST(in_linux_two_lost_syns_begin_with_one_segment) {
  for (const bool stamps : {true, false}) {
    for (uint64_t lost = 0; lost < 9; ++lost) {
      WorldConfig config = transfer(Stack::linux_kernel, 1448 * 100);
      for (uint64_t i = 0; i < lost; ++i) config.links[0].loss_list.push_back(i);
      config.timestamps = stamps;
      World world(config, 1);
      CHECK(worlds::run_until(world, 100 * kSecond, [](Flow& f) { return f.sender.tcb.established; }));
      const Sender& sender = world.flows()[0].sender;
      CHECK_EQ(sender.tcb.cwnd_packets, lost > 1 ? 1u : 10u);
      CHECK_EQ(sender.counters.packets_sent, lost > 1 ? 1u : 10u);
      CHECK_EQ(sender.tcb.ssthresh, kInfiniteWindow);
      // RTO: of the answered SYN's round trip where the time stamp tells it, else 3 s (RFC 6298, 5.7).
      if (stamps || lost == 0) CHECK_NEAR(static_cast<double>(sender.rto()), 250e6, 1e6);
      else CHECK_EQ(sender.rto(), 3 * kSecond);
      world.run(200 * kSecond);
      CHECK(world.flows()[0].finished() && !world.flows()[0].sender.failed());
    }
  }
}

TEST(in_linux_lost_answers_to_a_syn_that_came_cost_no_window) {
  for (const bool stamps : {true, false}) {
    for (uint64_t lost = 0; lost < 8; ++lost) {
      WorldConfig config = transfer(Stack::linux_kernel, 1448 * 100);
      std::vector<uint64_t> first;
      for (uint64_t i = 0; i < lost; ++i) first.push_back(i);
      lose(config, 1, first);
      config.timestamps = stamps;
      World world(config, 1);
      CHECK(worlds::run_until(world, 100 * kSecond, [](Flow& f) { return f.sender.tcb.established; }));
      const Sender& sender = world.flows()[0].sender;
      // The answer echoes the first SYN, whose time-outs were needless then: Linux 6.18 has RTOs of 3.2 to 21.7 s.
      const bool reduced = !stamps && sender.counters.syn_timeouts > 1;
      CHECK_EQ(sender.tcb.cwnd_packets, reduced ? 1u : 10u);
      if (stamps && lost > 0) CHECK_EQ(sender.rto(), 3 * world.now());
      if (!stamps && lost > 0) CHECK_EQ(sender.rto(), 3 * kSecond);
    }
  }
}

TEST(in_linux_an_answer_to_a_syn_is_tried_six_times_and_then_forgotten) {
  WorldConfig config = transfer(Stack::linux_kernel, 1000, all_from(1));  // the sender says nothing more that arrives
  config.data_retries = 8;
  World world(config, 1);
  uint64_t answers = 0;
  for (const int seconds : {0, 1, 3, 7, 15, 31}) {
    world.run(seconds * kSecond);
    CHECK_EQ(back(world), answers);
    world.run(latest(seconds * kSecond));
    CHECK_EQ(back(world), ++answers);
  }
  world.run(200 * kSecond);
  CHECK_EQ(back(world), 6u);

  // What comes later meets no connection.
  config = transfer(Stack::linux_kernel, 1000);
  config.links[0].loss_time_ns = {0, 40 * kMillisecond, 70 * kSecond};
  config.links[0].loss_step = {0, 1, 0};
  World late(config, 1);
  late.run(300 * kSecond);
  CHECK(late.flows()[0].sender.failed() && late.flows()[0].finished());
  CHECK_GE(late.flows()[0].sender.failed_at(), 70 * kSecond);
  CHECK_EQ(late.flows()[0].counters().delivered_bytes, 0);
}

// From 1 s on nothing passes any more.
WorldConfig cut_off(WorldConfig config, std::vector<uint32_t> links = {0, 1}) {
  for (const uint32_t link : links) {
    config.links[link].loss_time_ns = {0, kSecond};
    config.links[link].loss_step = {0, 1};
    config.links[link].loss_on_acks = true;
  }
  return config;
}

TEST(in_linux_data_is_given_up_after_fifteen_time_outs_of_the_least_kind) {
  // tcp_model_timeout. The time-out that finds so much gone by ends it.
  for (const auto& [retries, least] : std::vector<std::pair<uint32_t, double>>{
           {1, 0.6}, {3, 3}, {5, 12.6}, {8, 102.2}, {9, 204.6}, {10, 324.6}, {15, 924.6}}) {
    for (const double rtt_ms : {20.0, 200.0, 600.0}) {
      WorldConfig config = cut_off(worlds::dumbbell(5, rtt_ms, 100, {"cubic"}));
      config.sack = rtt_ms != 200;
      config.data_retries = retries == 15 ? 0 : retries;
      World world(config, 1);
      world.run(5000 * kSecond);
      const Sender& sender = world.flows()[0].sender;
      CHECK(sender.failed() && world.flows()[0].finished());
      CHECK_GE(seconds(sender.failed_at()), 1 + least);
      CHECK_LE(seconds(sender.failed_at()), 1 + std::min(2.2 * least + 8, least + 130));
      CHECK_EQ(sender.timer(), kNever);
    }
  }
  World ns3(cut_off(worlds::dumbbell(5, 50, 100, {"cubic"}, Stack::ns3)), 1);
  ns3.run(5000 * kSecond);
  CHECK(!ns3.flows()[0].sender.failed());
}

TEST(an_outage_that_ends_in_time_ends_no_connection) {
  for (const Time outage : {10 * kSecond, 100 * kSecond, 700 * kSecond}) {
    WorldConfig config = worlds::dumbbell(5, 50, 100, {"cubic"});
    config.links[0].loss_time_ns = {0, kSecond, kSecond + outage};
    config.links[0].loss_step = {0, 1, 0};
    World world(config, 1);
    world.run(kSecond + outage);
    const int64_t before = world.flows()[0].counters().delivered_bytes;
    world.run(2 * outage + 130 * kSecond);
    CHECK(!world.flows()[0].sender.failed());
    CHECK_GT(world.flows()[0].counters().delivered_bytes, before + 1'000'000);
  }
}

TEST(in_linux_a_stream_that_its_application_has_closed_is_given_up_sooner) {
  // FIN-WAIT-1: eight time-outs of the least kind, 102.2 s; Linux 6.18.
  WorldConfig config = transfer(Stack::linux_kernel, 20 * 1448);
  config.links[0].loss_time_ns = {0, 80 * kMillisecond};
  config.links[0].loss_step = {0, 1};
  World world(config, 1);
  world.run(1000 * kSecond);
  CHECK(world.flows()[0].sender.failed());
  CHECK_GE(world.flows()[0].sender.failed_at(), from_seconds(102.2));
  CHECK_LE(world.flows()[0].sender.failed_at(), 240 * kSecond);

  // LAST-ACK: the sender's last ACK never comes.
  config = transfer(Stack::linux_kernel, 1448, all_from(3));
  World last(config, 1);
  last.run(102 * kSecond);
  CHECK(!last.flows()[0].receiver.closed());
  last.run(240 * kSecond);
  CHECK(last.flows()[0].receiver.closed() && last.flows()[0].finished());
  CHECK_GE(back(last), 8u);
  CHECK_LE(back(last), 11u);
}

TEST(a_reset_closes_what_the_receiver_still_held_open) {
  WorldConfig config = transfer(Stack::linux_kernel, 1448 * 1000);
  config.data_retries = 2;
  config.links[1].loss_time_ns = {0, 300 * kMillisecond, 10 * kSecond};  // ACKs alone are lost
  config.links[1].loss_step = {0, 1, 0};
  config.links[1].loss_on_acks = true;
  World world(config, 1);
  world.run(100 * kSecond);
  CHECK(world.flows()[0].sender.failed() && world.flows()[0].finished());
  CHECK_LE(world.flows()[0].sender.failed_at(), 10 * kSecond);
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
