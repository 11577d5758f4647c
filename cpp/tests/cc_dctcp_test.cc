// DCTCP by RFC 8257: how the share of marks is tracked (3.3), what the window does about it (3.4), losses (3.5), and a
// receiver that tells exactly what was marked (3.2).
#include "fake_connection.h"
#include "worlds.h"

using namespace netbuf;

namespace {

// A sender without a network: rounds of so many packets, of which some were marked.
struct Rounds {
  explicit Rounds(const Given& parameters = {})
      : cc(make_congestion_control("dctcp", Stack::linux_kernel, parameters)) {
    tcb.established = true;
    tcb.set_cwnd_packets(100);
    tcb.nxt = 100;
    cc->init(tcb);
  }
  void round(uint32_t marked) {
    tcb.una += 100;
    tcb.nxt += 100;
    tcb.delivered += 100;
    AckEvent ack;
    ack.una_advanced = true;
    ack.echo = true;
    ack.delivered = ack.marked = marked;  // an ACK of these, another of the rest
    tcb.una -= 1;
    if (marked > 0) cc->on_ack(tcb, ack);
    tcb.una += 1;
    ack.echo = false;
    ack.delivered = 100 - marked, ack.marked = 0;
    cc->on_ack(tcb, ack);
  }
  double alpha() {  // as the window of a thousand packets tells
    tcb.set_cwnd_packets(100'000);
    const double left = static_cast<double>(cc->ssthresh(tcb) / tcb.mss) / 100'000;
    tcb.set_cwnd_packets(100);
    return 2 * (1 - left);
  }
  Tcb tcb;
  std::unique_ptr<CongestionControl> cc;
};

WorldConfig data_centre(const std::vector<std::string>& senders, double mark) {
  WorldConfig world = worlds::dumbbell(100, 4, 500, senders);
  world.links[0].discipline = "droptail";
  world.links[0].discipline_parameters["mark_packets"] = mark;
  for (FlowConfig& flow : world.flows) flow.ecn = true;
  return world;
}

double queue_mean(World& world) { return world.links()[0].stats(world.now()).queue_integral / seconds(world.now()); }

}  // namespace

TEST(alpha_follows_the_share_of_marks) {
  Rounds rounds;
  double alpha = 1;
  CHECK_NEAR(rounds.alpha(), 1, 1e-3);
  for (const uint32_t marked : {100, 100, 0, 0, 0, 50, 50, 10, 0, 100}) {
    rounds.round(marked);
    alpha += (marked / 100.0 - alpha) / 16;
    CHECK_NEAR(rounds.alpha(), alpha, 0.005);
  }
  for (int i = 0; i < 300; ++i) rounds.round(0);
  CHECK_EQ(rounds.alpha(), 0);
  for (int i = 0; i < 300; ++i) rounds.round(30);
  CHECK_NEAR(rounds.alpha(), 0.3, 0.02);
}

TEST(g_and_the_first_alpha_can_be_given) {
  Rounds rounds({{"dctcp_shift_g", 1}, {"dctcp_alpha_on_init", 0}});
  CHECK_EQ(rounds.alpha(), 0);
  rounds.round(100);
  CHECK_NEAR(rounds.alpha(), 0.5, 1e-3);
}

TEST(within_a_round_alpha_stands) {
  Rounds rounds;
  rounds.tcb.una += 50;
  rounds.tcb.delivered += 50;
  rounds.cc->on_ack(rounds.tcb, {});
  CHECK_NEAR(rounds.alpha(), 1, 1e-3);
}

TEST(the_window_gives_way_by_half_of_alpha_and_losses_halve_it) {
  Rounds rounds;
  for (int i = 0; i < 300; ++i) rounds.round(50);
  CHECK_NEAR(static_cast<double>(rounds.cc->ssthresh(rounds.tcb) / rounds.tcb.mss), 75, 1);
  rounds.tcb.ssthresh = rounds.cc->ssthresh(rounds.tcb);
  rounds.cc->on_state(rounds.tcb, CaState::recovery);
  CHECK_EQ(rounds.tcb.ssthresh, 50 * int64_t{rounds.tcb.mss});
  CHECK_EQ(rounds.cc->undo_window(rounds.tcb, 0), 100 * int64_t{rounds.tcb.mss});
  rounds.tcb.set_cwnd_packets(2);
  CHECK_EQ(rounds.cc->ssthresh(rounds.tcb), 2 * int64_t{rounds.tcb.mss});
}

TEST(the_receiver_tells_exactly_what_was_marked) {
  for (const uint32_t delayed : {1u, 2u, 4u}) {
    WorldConfig config = data_centre({"dctcp"}, 20);
    config.delayed_ack_packets = delayed;
    World world(config, 1);
    world.run(5 * kSecond);
    const Flow& flow = world.flows()[0];
    CHECK_GT(flow.counters().marks, 1000u);
    CHECK_NEAR(static_cast<double>(flow.counters().segments_marked), static_cast<double>(flow.counters().marks),
               60);  // what is on its way back
    World classic(data_centre({"newreno"}, 20), 1);
    classic.run(5 * kSecond);
    CHECK_GT(classic.flows()[0].counters().segments_marked, 3 * classic.flows()[0].counters().marks);
  }
}

TEST(the_queue_stays_at_the_threshold_and_the_link_busy) {
  World world(data_centre({"dctcp", "dctcp"}, 20), 1);
  world.run(10 * kSecond);
  const LinkStats link = world.links()[0].stats(world.now());
  CHECK_EQ(link.queue_drops, 0u);
  CHECK_GT(link.busy, 9.7);
  CHECK_GT(queue_mean(world), 5);
  CHECK_LT(queue_mean(world), 30);
  World reno(data_centre({"newreno", "newreno"}, 20), 1);
  reno.run(10 * kSecond);
  CHECK_GT(link.busy, reno.links()[0].stats(reno.now()).busy);  // which halves its window at each of these marks
}

TEST(it_speaks_ecn_without_being_asked) {
  WorldConfig config = data_centre({"dctcp"}, 20);
  config.flows[0].ecn = false;
  World world(config, 1);
  world.run(2 * kSecond);
  CHECK_GT(world.flows()[0].counters().marks, 100u);
}
