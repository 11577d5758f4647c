// The ns3 stack against numbers that ns-3.44 gives too: packets sent, drops, time-outs and the receiver's bytes of
// whole runs are equal to the last one only if every event is.
#include "worlds.h"

using namespace netbuf;

namespace {

struct Expected {
  const char* cc;
  int flows;
  double mbps, rtt_ms;
  int64_t queue_packets;
  Time duration;
  std::vector<uint64_t> losses;  // numbers of the lost packets; 0 is the SYN, 1 the handshake's last ACK
  int64_t delivered_packets;
  uint64_t packets_sent, queue_drops, fast_recoveries, timeouts;
};

// As the reference runs have it: access links of 1 Gbit/s and 1 ms for every flow, ACKs serialised at its rate.
WorldConfig access_dumbbell(const Expected& e) {
  WorldConfig world;
  world.stack = Stack::ns3;
  world.links = {worlds::link(e.mbps, e.rtt_ms / 2 - 2, e.queue_packets), worlds::link(e.mbps, e.rtt_ms / 2 - 2)};
  world.links[0].loss_list = e.losses;
  for (int i = 0; i < e.flows; ++i) {
    const auto first = static_cast<uint32_t>(world.links.size());
    for (int k = 0; k < 4; ++k) world.links.push_back(worlds::link(1000, 1));
    world.flows.push_back(worlds::flow(e.cc, {first, 0, first + 1}, {first + 2, 1, first + 3}));
    world.flows.back().start_ns = i * 100 * kMillisecond;
  }
  return world;
}

void compare(const Expected& e) {
  const int before = check::failures;
  World world(access_dumbbell(e), 1);
  world.run(e.duration);
  int64_t delivered = 0;
  uint64_t sent = 0, recoveries = 0, timeouts = 0;
  for (const Flow& flow : world.flows()) {
    delivered += flow.counters().delivered_bytes;
    sent += flow.counters().packets_sent;
    recoveries += flow.counters().fast_recoveries;
    timeouts += flow.counters().timeouts;
  }
  CHECK_EQ(delivered, e.delivered_packets * 1448);
  CHECK_EQ(sent, e.packets_sent);
  CHECK_EQ(world.links()[0].stats(e.duration).queue_drops, e.queue_drops);
  CHECK_EQ(recoveries, e.fast_recoveries);
  CHECK_EQ(timeouts, e.timeouts);
  if (check::failures > before) {
    const int limit = static_cast<int>(e.queue_packets);
    std::printf("  %d x %s, %g Mbit/s, %g ms, %d packets\n", e.flows, e.cc, e.mbps, e.rtt_ms, limit);
  }
}

const Expected kScripted{"newreno", 1, 10, 48, 150'000, 30 * kSecond, {}, 0, 0, 0, 0, 0};

}  // namespace

TEST(single_flows_are_those_of_ns3) {
  compare({"newreno", 1, 10, 20, 4, 60 * kSecond, {}, 41017, 41124, 100, 96, 0});
  compare({"newreno", 1, 50, 100, 417, 60 * kSecond, {}, 245944, 246911, 418, 1, 0});
  compare({"linuxreno", 1, 10, 20, 17, 60 * kSecond, {}, 46980, 47272, 227, 145, 0});
  compare({"linuxreno", 1, 10, 48, 150, 100 * kSecond, {}, 83103, 83467, 198, 7, 0});
  compare({"cubic", 1, 10, 20, 17, 60 * kSecond, {}, 49350, 49830, 465, 105, 1});
  compare({"cubic", 1, 10, 48, 150, 100 * kSecond, {}, 82903, 83268, 239, 19, 1});
  compare({"westwood", 1, 10, 20, 4, 60 * kSecond, {}, 43523, 44830, 953, 388, 17});
  compare({"westwood", 1, 10, 48, 150, 100 * kSecond, {}, 82381, 82542, 98, 3, 0});
}

TEST(a_queue_of_ties_is_that_of_ns3) {  // faster than the access link's lead: arrivals go first
  compare({"cubic", 1, 50, 100, 208, 60 * kSecond, {}, 242444, 243264, 552, 8, 1});
  compare({"linuxreno", 1, 30, 48, 60, 60 * kSecond, {}, 142156, 142322, 104, 13, 0});
}

TEST(several_flows_are_those_of_ns3) {  // whose own count of time-outs leaves out those that follow another
  compare({"newreno", 8, 10, 20, 67, 60 * kSecond, {}, 49896, 50452, 490, 297, 2});
  compare({"cubic", 8, 10, 20, 17, 60 * kSecond, {}, 49852, 53016, 3108, 2008, 18});
  compare({"linuxreno", 4, 10, 20, 8, 60 * kSecond, {}, 49638, 52918, 3137, 2013, 11});
  compare({"cubic", 8, 20, 40, 33, 60 * kSecond, {}, 99158, 101421, 2139, 1014, 10});
}

TEST(scripted_losses_are_those_of_ns3) {  // what ns-3's generator lost in its run of the same number
  compare({"newreno", 1, 10, 48, 150000, 100 * kSecond,
           {3281, 4781, 55574, 74572}, 82779, 82920, 0, 3, 1});
  compare({"cubic", 1, 10, 48, 150, 100 * kSecond,
           {6541, 28289, 31999, 33113, 33143, 36095, 56590, 82867}, 82785, 83251, 219, 20, 1});
  compare({"cubic", 2, 10, 48, 150000, 100 * kSecond,
           {4576, 8829, 42766, 48565, 51746, 56300, 66649, 66950, 69885, 75457, 86847}, 82660, 86979, 0, 6, 5});
}

// ACKs are lost on the slower way back, so that one may move una and report what was lost beyond it: recovery begins
// and is reduced twice at once, the second time with the retransmission in flight.
TEST(an_ack_that_begins_recovery_and_moves_una_is_that_of_ns3) {
  WorldConfig world_config = access_dumbbell({"cubic", 2, 10, 60, 499, 0, {}, 0, 0, 0, 0, 0});
  world_config.links[1] = worlds::link(1.25, 28, 62);
  FlowConfig& back = world_config.flows[1];
  back.path[1] = 1;
  back.return_path[1] = 0;
  back.start_ns = 50 * kMillisecond;
  World world(world_config, 1);
  world.run(15 * kSecond);
  CHECK_EQ(world.links()[0].stats(15 * kSecond).queue_drops, 83u);
  CHECK_EQ(world.links()[1].stats(15 * kSecond).queue_drops, 1089u);
}

TEST(a_lost_syn_still_gives_a_round_trip_time) {
  Expected e = kScripted;
  e.losses = {0};
  World world(access_dumbbell(e), 1);
  CHECK(worlds::run_until(world, 10 * kSecond, [](const Flow& flow) { return flow.sender.tcb.established; }));
  const Tcb& tcb = world.flows()[0].sender.tcb;
  CHECK_EQ(tcb.now, 3 * kSecond + 48'094'656);  // SYN time-out of 3 s, then the clean handshake's time
  CHECK_EQ(tcb.srtt, 48 * kMillisecond);        // of the copy that was answered, in whole milliseconds
}

TEST(the_first_window_is_an_event_after_the_handshake) {
  World world(access_dumbbell(kScripted), 1);
  CHECK(worlds::run_until(world, 10 * kSecond, [](const Flow& flow) { return flow.counters().packets_sent > 0; }));
  CHECK_EQ(world.flows()[0].sender.first_sent(), 48'094'657);
  CHECK_EQ(world.flows()[0].counters().packets_sent, 10u);
}

TEST(ties_at_a_full_queue_go_by_who_set_out_first) {
  for (const Time lead : {1'100'000, 1'300'000}) {  // a transmission takes 1.2 ms
    Link link(worlds::link(10, 1, 1), nullptr);
    CHECK(link.transmit(0, 1500, true).fate == Link::Fate::delivered);
    CHECK(link.transmit(0, 1500, true).fate == Link::Fate::delivered);
    CHECK(link.transmit(1'199'999, 1500, true).fate == Link::Fate::queue_drop);
    const Link::Fate tie = link.transmit_in_turn(1'200'000 - lead, 1'200'000, 1500, true).fate;
    CHECK(tie == (lead > 1'200'000 ? Link::Fate::queue_drop : Link::Fate::delivered));
    CHECK_EQ(link.queue_packets(), 1u);
  }
}

TEST(what_is_sent_while_the_rate_changes_set_out_at_the_rate_before) {
  for (const auto& [before, begun, ends] : {std::tuple<double, Time, Time>{1e6, 9'000'000, 21'000'000},
                                            {100e6, 9'950'000, 10'070'000}}) {
    LinkConfig config = worlds::link(0, 5);
    config.schedule_time_ns = {0, 10 * kMillisecond};
    config.schedule_rate_bps = {before, 10e6};
    Link link(config, nullptr);
    link.keep_rates();
    for (int i = 0; i < 2; ++i) {
      const Time start = i == 0 ? begun : ends, end = i == 0 ? ends : ends + 1'200'000;
      CHECK_EQ(link.transmit(begun, 1500, true).arrival, end + 5 * kMillisecond);
      CHECK_EQ(link.set_out(end + 5 * kMillisecond, 1500), start);
    }
    CHECK_EQ(link.transmit(60 * kMillisecond, 1500, true).arrival, 66'200'000);  // what has arrived is forgotten
    CHECK_EQ(link.set_out(66'200'000, 1500), 60 * kMillisecond);
  }
}
