// Explicit congestion notification (RFC 3168): disciplines that mark, receivers that echo,
// senders that give way once a window.
#include "qdisc_server.h"
#include "worlds.h"

using namespace netbuf;

namespace {

struct Marking {
  const char* name;
  std::map<std::string, double> parameters;
};
const Marking kMarking[] = {{"red", {{"min_packets", 20}, {"max_packets", 60}, {"hard_drop", 0}}},
                            {"codel", {}},
                            {"fq_codel", {}},
                            {"pie", {{"mark_ecnth", 1}}}};

WorldConfig managed(const std::string& discipline, const std::string& cc, bool ecn, Given parameters = {}) {
  WorldConfig world = worlds::dumbbell(10, 40, 1000, {cc});
  world.links[0].discipline = discipline;
  world.links[0].discipline_parameters = parameters;
  world.flows[0].ecn = ecn;
  return world;
}

double goodput_mbps(const Flow& flow, double seconds) {
  return static_cast<double>(flow.counters().delivered_bytes) * 8e-6 / seconds;
}

}  // namespace

TEST(disciplines_mark_what_can_be_marked_and_drop_the_rest) {
  for (const auto& [name, parameters] : kMarking) {
    for (const bool capable : {false, true}) {
      for (const bool enabled : {false, true}) {
        std::map<std::string, double> given = parameters;
        given["ecn"] = enabled;
        Server server(name, given, 10e6, 100'000);
        server.ecn = capable;
        uint64_t sent = 0;
        server.on_sent = [&](const Queued& item) { sent += item.marked; };
        server.load(0, 10 * kSecond, 12e6);
        server.run(100 * kSecond);
        CHECK(server.conserved());
        CHECK_EQ(server.marks > 5, capable && enabled);
        CHECK_EQ(server.drops == 0, capable && enabled);
        CHECK_EQ(sent, server.marks);
      }
    }
  }
}

TEST(what_is_beyond_marking_is_dropped) {
  Server red("red", {{"min_packets", 5}, {"max_packets", 10}, {"weight", 1}}, 10e6, 100'000);
  red.ecn = true;
  red.load(0, kSecond, 20e6);
  CHECK(red.marks > 0 && red.drops > 0);
  CHECK_LE(red.longest, 21u);
  Server pie("pie", {{"mark_ecnth", 0.3}}, 10e6, 100'000);
  pie.ecn = true;
  pie.load(0, 20 * kSecond, 20e6);
  CHECK_GT(pie.marks, 0u);
  CHECK_GT(pie.drops, 1000u);
}

TEST(drop_tail_marks_beyond_its_threshold_only) {
  Server server("droptail", {{"mark_packets", 10}}, 10e6, 20);
  server.ecn = true;
  for (int i = 0; i < 30; ++i) server.arrive(0);  // one in service, then 20 that wait
  CHECK_EQ(server.drops, 9u);
  CHECK_EQ(server.marks, 9u);                     // those that found 11 to 19 waiting
  Server never("droptail", {}, 10e6, 20);
  never.ecn = true;
  for (int i = 0; i < 30; ++i) never.arrive(0);
  CHECK_EQ(never.marks, 0u);
}

TEST(codel_marks_beyond_its_second_threshold_at_once) {
  Server server("codel", {{"ce_threshold_ms", 2}}, 10e6);
  server.ecn = true;
  for (int i = 0; i < 10; ++i) server.arrive(0);  // 1.2 ms each
  server.run(kSecond);
  CHECK_EQ(server.marks, 8u);
  CHECK_EQ(server.drops, 0u);
}

TEST(marks_keep_the_queue_short_without_losses) {
  for (const auto& [name, parameters] : kMarking) {
    for (const char* cc : {"newreno", "cubic", "vegas", "westwood"}) {
      World world(managed(name, cc, true, parameters), 1);
      world.run(20 * kSecond);
      const FlowCounters c = world.flows()[0].counters();
      const LinkStats link = world.links()[0].stats(world.now());
      CHECK_EQ(link.queue_drops, 0u);
      CHECK_EQ(c.packets_retransmitted, 0u);
      CHECK_EQ(c.timeouts, 0u);
      CHECK_LE(c.marks, link.marks);
      CHECK_LE(link.marks, c.marks + 200);
      CHECK_LE(c.mark_responses, c.marks);
      CHECK_GT(goodput_mbps(world.flows()[0], 20), 7.5);
      if (std::string(cc) != "vegas") CHECK(c.mark_responses > 2);
    }
    World without(managed(name, "cubic", false, parameters), 1);
    without.run(20 * kSecond);
    CHECK(without.links()[0].stats(without.now()).queue_drops > 0);
    CHECK_EQ(without.links()[0].stats(without.now()).marks, 0u);
  }
}

TEST(a_sender_gives_way_once_a_window_by_half) {
  World world(managed("droptail", "newreno", true, {{"mark_packets", 20}}), 1);
  Flow& flow = world.flows()[0];
  uint64_t responses = 0;
  uint32_t before = 0, recovery = 0;
  worlds::run_until(world, 30 * kSecond, [&](const Flow&) {
    const Tcb& tcb = flow.sender.tcb;
    if (flow.counters().mark_responses > responses) {
      CHECK_EQ(++responses, flow.counters().mark_responses);
      CHECK(tcb.state == CaState::cwr);
      const uint32_t half = std::max(before / 2, 2u);
      CHECK_EQ(tcb.ssthresh_packets(), half);
      if (responses > 1) CHECK(after(tcb.una, recovery));
      before = tcb.ssthresh_packets();  // that is the window when the next response follows at once
      recovery = tcb.high_seq;
    }
    if (tcb.state == CaState::open) {
      before = tcb.cwnd_packets;
      if (responses > 0) CHECK(after(tcb.una, recovery));
    }
    return false;
  });
  CHECK_GT(responses, 10u);
  CHECK_LE(flow.counters().queue_drops, 0u);
}

TEST(marks_pass_further_links_on_their_way) {
  WorldConfig world = managed("codel", "cubic", true);
  world.links.push_back(worlds::link(100, 5));
  world.links.push_back(worlds::link(0, 5));
  world.flows[0].path = {2, 0, 3};
  World run(world, 1);
  run.run(20 * kSecond);
  CHECK_GT(run.flows()[0].counters().marks, 5u);
  CHECK_EQ(run.flows()[0].counters().packets_retransmitted, 0u);
}

TEST(shared_buffers_mark) {
  WorldConfig world = worlds::dumbbell(10, 20, 0, {"cubic", "newreno"});
  SwitchConfig sw;
  sw.name = "switch";
  sw.ports = {0};
  sw.capacity = 500;
  sw.alphas = {8};
  sw.mark = 30;
  world.switches = {sw};
  world.flows[0].ecn = world.flows[1].ecn = true;
  World run(world, 1);
  run.run(20 * kSecond);
  const SharedBuffer::Queue& queue = run.switches()[0]->queue(0, 0);
  CHECK_GT(queue.state.counters.marks, 20u);
  CHECK_EQ(queue.state.counters.marks, run.links()[0].stats(run.now()).marks);
  CHECK_EQ(queue.state.counters.drops, 0u);
  CHECK_LT(queue.packets.max(), 200u);
}

TEST(losses_beside_marks_are_repaired) {
  for (const std::string& cc : worlds::controls(Stack::linux_kernel, false)) {
    for (const char* discipline : {"codel", "red", "pie"}) {
      WorldConfig config = managed(discipline, cc, true);
      config.links[0].loss = config.links[1].loss = 5e-3;
      config.links[1].loss_on_acks = true;
      config.links[0].queue_limit_packets = 30;
      World world(config, 3);
      world.run(30 * kSecond);
      const FlowCounters c = world.flows()[0].counters();
      CHECK_GT(c.delivered_bytes, 2'000'000);
      CHECK_GT(c.packets_retransmitted, 5u);
      const LinkStats link = world.links()[0].stats(world.now());
      CHECK_EQ(link.packets_in, link.packets_out + link.queue_drops + world.links()[0].queue_packets());
    }
  }
}

TEST(who_does_not_speak_ecn_is_as_before) {
  WorldConfig plain = managed("codel", "cubic", false), deaf = plain;
  deaf.links[0].discipline_parameters["ecn"] = 0;
  World a(plain, 5), b(deaf, 5);
  a.run(20 * kSecond);
  b.run(20 * kSecond);
  CHECK(worlds::fingerprint(a) == worlds::fingerprint(b));
}

TEST(the_ns3_stack_says_that_it_does_not_speak_it) {
  WorldConfig world = worlds::dumbbell(10, 40, 100, {"newreno"}, Stack::ns3);
  world.flows[0].ecn = true;
  CHECK_THROWS(validate(world), std::invalid_argument);
}

// Accurate ECN (RFC 9768): the sender knows how many packets were marked, whatever ACKs are delayed or lost.
TEST(accurate_ecn_counts_every_mark) {
  for (const char* cc : {"cubic", "dctcp", "bbr3"}) {
    for (const double loss : {0.0, 0.02}) {
      WorldConfig world = managed("codel", cc, true);
      world.links[1].loss = loss;
      world.links[1].loss_on_acks = true;
      world.flows[0].ecn_counts = true;
      World run(world, 1);
      run.run(30 * kSecond);
      const uint64_t marked = run.flows()[0].receiver.counters().marks,
                     known = run.flows()[0].sender.counters.segments_marked;
      CHECK_GT(marked, 5u);
      CHECK_LE(known, marked);
      CHECK_LE(marked - known, 8u);  // the last are on their way
      CHECK_GT(run.flows()[0].sender.counters.mark_responses, 3u);
      CHECK_GT(goodput_mbps(run.flows()[0], 30), 8.0);
    }
  }
}

TEST(accurate_ecn_needs_ecn) {
  WorldConfig world = managed("codel", "cubic", false);
  world.flows[0].ecn_counts = true;
  CHECK(worlds::refusal(world).starts_with("flows[0].ecn_counts = 1: must be 0 for a flow that does not speak ECN"));
}
