// Hosts: the rules by which Linux sizes buffers, against values worked out by hand,
// and what must hold whatever happens.
#include "netbuf/batch.h"
#include "netbuf/socket_buffer.h"
#include "worlds.h"

using namespace netbuf;

namespace {

constexpr int64_t kRatio = 160;                 // of 256: 1448 bytes of payload in a packet of 2304

HostConfig host(int64_t send_most, int64_t receive_most) {
  HostConfig host;
  host.name = "host";
  host.tcp_wmem[2] = send_most;
  host.tcp_rmem[2] = receive_most;
  return host;
}

// One flow from the host to itself over a link.
WorldConfig world_at(const HostConfig& host, double mbps, double rtt_ms, const std::string& cc = "cubic",
                     int64_t queue = 0) {
  WorldConfig world = worlds::dumbbell(mbps, rtt_ms, queue, {cc});
  world.hosts = {host};
  world.flows[0].sender_host = world.flows[0].receiver_host = 0;
  return world;
}

const SendBuffer& sending(World& world, size_t flow = 0) { return *world.flows()[flow].sender.buffer(); }
const ReceiveBuffer& receiving(World& world, size_t flow = 0) { return *world.flows()[flow].receiver.buffer(); }

int64_t pages_of_all(const Host& host) {
  int64_t pages = 0;
  for (const SendBuffer* one : host.senders()) pages += (one->queued() + kPage - 1) / kPage;
  for (const ReceiveBuffer* one : host.receivers()) pages += (one->queued() + kPage - 1) / kPage;
  return pages;
}

// Pages of size bytes, through a proxy to a client that is 100 ms away.
WorldConfig proxy(int64_t size, uint32_t pages, Time apart) {
  WorldConfig world;
  world.links = {worlds::link(1000, 10), worlds::link(0, 10), worlds::link(50, 50, 400), worlds::link(0, 50)};
  world.hosts = {host(4 << 20, 6 << 20)};
  TrafficConfig traffic;
  FlowConfig sender = worlds::flow("cubic", {0}, {1}), relay = worlds::flow("cubic", {2}, {3});
  sender.receiver_host = relay.sender_host = 0;
  relay.relay_buffer_bytes = 65'536;
  sender.relay = {relay};
  traffic.senders = {sender};
  ArrivalsConfig list;
  list.kind = "list";
  for (uint32_t i = 0; i < pages; ++i) {
    list.list_start_ns.push_back(i * apart);
    list.list_sender.push_back(0);
    list.list_priority.push_back(0);
    list.list_size.push_back(size);
  }
  traffic.arrivals = {list};
  world.traffic = {traffic};
  return world;
}

}  // namespace

TEST(packets_take_what_the_kernel_says_they_do) {
  CHECK_EQ(packet_truesize(1448), 2304);        // ss -m of 6.18: a packet of 1500 bytes in a block of 2048
  CHECK_EQ(packet_truesize(100), 576 + 256);
  CHECK_EQ(packet_truesize(3000), 4096 + 256);
  CHECK_EQ(kSendOverhead, 832);                 // ss -m: a byte that is sent takes 833
}

TEST(a_connection_begins_with_what_the_kernel_begins_with) {
  for (const auto& [cc, limit] : {std::pair<std::string, int64_t>{"cubic", 46'080}, {"bbr", 69'120}}) {
    World world(world_at(host(4 << 20, 6 << 20), 100, 100, cc), 1);
    world.run(149 * kMillisecond);              // the handshake, and half a round trip
    CHECK_EQ(sending(world).limit(), limit);
    CHECK_EQ(receiving(world).limit(), 131'072);
    CHECK_EQ(world.flows()[0].receiver.advertised_bytes(), 65'160);
  }
  World world(world_at(host(4 << 20, 6 << 20), 100, 100), 1);
  world.run(149 * kMillisecond);
  CHECK_EQ(sending(world).unsent() + 14'480, 46'336);  // what a socket of 46080 takes at once, of 6.18, too
}

TEST(explicit_buffers_are_doubled_and_capped_and_stay) {
  for (const auto& [asked, given] : {std::pair<int64_t, int64_t>{100'000, 200'000}, {1'000'000, 425'984}, {1, 4'608}}) {
    WorldConfig config = world_at(host(64 << 20, 64 << 20), 1000, 100);
    config.flows[0].sndbuf_bytes = asked;
    World world(config, 1);
    world.run(10 * kSecond);
    CHECK_EQ(sending(world).limit(), given);
    // A window a round trip, of which headers take a part, and what waits for a third to be free another.
    const double bytes = static_cast<double>(world.flows()[0].counters().acked_bytes) / 99;
    CHECK_LT(bytes, static_cast<double>(given) + 65'536);  // the last packet is filled in any case
    if (given > 5'000) CHECK_GT(bytes, 0.6 * static_cast<double>(given));
  }
  WorldConfig config = world_at(host(64 << 20, 64 << 20), 1000, 100);
  config.flows[0].rcvbuf_bytes = 65'536;
  World world(config, 1);
  world.run(10 * kSecond);
  CHECK_EQ(receiving(world).limit(), 131'072);
  CHECK_EQ(world.flows()[0].receiver.advertised_bytes(), 131'072 * kRatio / 256);  // 1.25 times what was asked for
  CHECK_GT(static_cast<double>(world.flows()[0].counters().delivered_bytes) / 98, 0.9 * 81'920);
  CHECK_GT(seconds(sending(world).spent(SendBuffer::State::window_limited, world.now())), 9.0);
}

// 6.18 over TUN devices: 1 of the time where programs ask for room between writes of 64 KiB, 0 where they only write,
// and 0 of buffers that a few such writes fill; .68 where BBR paces, either way.
TEST(what_a_send_buffer_limits_is_counted_as_the_kernel_counts) {
  struct Case {
    std::string cc;
    bool polls;
    int64_t most;
    double low, high;
  };
  for (const Case& c :
       {Case{"cubic", true, 1 << 20, 9.0, 10.0}, {"cubic", false, 1 << 20, -1.0, 0.0},
        {"cubic", true, 131'072, -1.0, 0.0}, {"bbr", true, 1 << 20, 5.0, 9.0}, {"bbr", false, 1 << 20, 5.0, 9.0}}) {
    WorldConfig config = world_at(host(c.most, 64 << 20), 1000, 100, c.cc);
    config.hosts[0].polls = c.polls;
    World world(config, 1);
    world.run(10 * kSecond);
    const double limited = seconds(sending(world).spent(SendBuffer::State::buffer_limited, world.now()));
    CHECK_GT(limited, c.low);
    CHECK_LE(limited, c.high);
  }
}

// tcp_reinit_congestion_control: window and ssthresh as they are, what BBR paced is paced on, and BBR's ssthresh, infinite
// from its beginning, is what a slow start begins with.
TEST(another_control_takes_over_the_window) {
  WorldConfig config = world_at(host(64 << 20, 64 << 20), 20, 50, "cubic", 60);
  config.hosts[0].agent = true;                 // its senders measure rates
  World world(config, 1);
  world.run(10 * kSecond);
  Sender& sender = world.flows()[0].sender;
  const int64_t window = sender.tcb.cwnd, ssthresh = sender.tcb.ssthresh;
  CHECK_LT(ssthresh, kInfiniteWindow);          // it has lost something
  CHECK_EQ(sender.tcb.pacing_rate, 0.0);
  const CongestionControl* const before = &sender.cc();
  sender.set_congestion_control("cubic", world.now());
  CHECK(&sender.cc() == before);                // the kernel, too, leaves what is asked for again
  sender.set_congestion_control("vegas", world.now());
  CHECK(&sender.cc() != before);
  CHECK_EQ(sender.tcb.cwnd, window);
  CHECK_EQ(sender.tcb.ssthresh, ssthresh);
  CHECK_EQ(sender.tcb.pacing_rate, 0.0);
  sender.set_congestion_control("bbr", world.now());
  CHECK_EQ(sender.tcb.cwnd, window);
  CHECK_EQ(sender.tcb.ssthresh, kInfiniteWindow);
  // high_gain (2885 / 1000 + 1 in 256ths: 739) windows in a smoothed round trip, less the margin of 1 %.
  const double rate = 739.0 / 256 * 0.99 * static_cast<double>(sender.tcb.cwnd_packets) * sender.tcb.mss * 1e9 /
                      static_cast<double>(sender.tcb.srtt);
  CHECK_GT(sender.tcb.pacing_rate, 0.99 * rate);
  CHECK_LT(sender.tcb.pacing_rate, 1.01 * rate);
  sender.set_congestion_control("vegas", world.now());
  CHECK_EQ(sender.tcb.cwnd, window);
  CHECK(sender.tcb.in_slow_start());
  world.run(world.now() + kSecond);
  const Tcb& tcb = sender.tcb;
  const double windows = 2 * tcb.cwnd < tcb.ssthresh ? 2.0 : 1.2;  // tcp_update_pacing_rate
  const double paced = windows * static_cast<double>(std::max(tcb.cwnd_packets, tcb.packets_out())) * tcb.mss * 1e9 /
                       static_cast<double>(tcb.srtt);
  CHECK_GT(tcb.pacing_rate, 0.8 * paced);       // as of what left last
  CHECK_LT(tcb.pacing_rate, 1.25 * paced);
}

TEST(a_send_buffer_grows_with_the_window) {
  World world(world_at(host(64 << 20, 64 << 20), 100, 100, "cubic", 700), 1);
  int64_t before = 0;
  for (int i = 0; i < 100; ++i) {
    world.run(world.now() + 100 * kMillisecond);
    const int64_t limit = sending(world).limit();
    CHECK_GE(limit, before);
    CHECK_EQ(limit % (2 * 2304), 0);            // two windows of packets
    CHECK_LE(sending(world).queued(), limit + 65'536 + kSendOverhead);
    before = limit;
  }
  CHECK_GT(before, 2 * 2304 * 800);             // a bandwidth-delay product is 833 packets
  CHECK_LT(before, int64_t{64} << 20);
}

TEST(the_largest_buffer_decides_the_rate) {
  for (const int64_t most : {int64_t{212'992}, int64_t{1} << 20, int64_t{4} << 20}) {
    World world(world_at(host(most, 64 << 20), 1000, 100), 1);
    world.run(5 * kSecond);
    const int64_t before = world.flows()[0].counters().delivered_bytes;
    world.run(15 * kSecond);
    const double rate =  // bytes a round trip
        static_cast<double>(world.flows()[0].counters().delivered_bytes - before) / 100;
    CHECK_EQ(sending(world).limit(), most);
    CHECK_GT(rate, 0.6 * static_cast<double>(most));
    CHECK_LT(rate, 1.01 * static_cast<double>(most) + 65'536);
    World received(world_at(host(64 << 20, most), 1000, 100), 1);
    received.run(15 * kSecond);
    CHECK_EQ(receiving(received).limit(), most);
    CHECK_LE(received.flows()[0].receiver.advertised_bytes(), most * kRatio / 256 + (1 << 7));
  }
}

TEST(a_receive_buffer_grows_as_the_kernel_of_its_version_lets_it) {
  World world(world_at(host(64 << 20, 64 << 20), 100, 100), 1);
  const Receiver& receiver = world.flows()[0].receiver;
  FlowConfig flow;
  const auto after_rounds = [&](uint32_t kernel) {
    HostConfig config = host(64 << 20, 64 << 20);
    config.kernel = kernel;
    Host own(config);
    ReceiveBuffer buffer(own, receiver, flow, 1448);
    buffer.begin(0);
    // Half of 128 KiB less the packet are less than the window of before, 45 segments.
    CHECK_EQ(buffer.arrived(0, 1448, 1448, 0, 0), kernel >= 6006);
    buffer.round(28'960, 0, 0);                 // twice the 14480 of before
    return buffer.limit();
  };
  // Windows: 2 * 28960 and twice what the doubling adds to that (57920), so 173760; 57920 alone, and less than there
  // is; and with 16 segments beside (81088, 243264). In a buffer of which 160/256 may be payload; with 6.5 half of
  // one, by packets of 2920 bytes.
  CHECK_EQ(after_rounds(6018), 173'760 * 256 / kRatio);
  CHECK_EQ(after_rounds(6017), 131'072);
  CHECK_EQ(after_rounds(6012), 243'264 * 256 / kRatio);
  CHECK_EQ(after_rounds(6005), 243'264 / 1448 * 2920);
}

// As a hole is filled, so that an application reads much at once, a round trip ends with the first packet: what is unread
// then is taken off (tcp_rcv_space_adjust).
TEST(what_waits_behind_the_first_packet_is_not_read_in_the_round_trip) {
  World world(world_at(host(64 << 20, 64 << 20), 100, 100), 1);
  FlowConfig flow;
  for (const auto& [kernel, behind, limit] : {std::tuple<uint32_t, int64_t, int64_t>{6018, 0, 173'760 * 256 / kRatio},
                                              {6018, 14'480, 131'072},
                                              {6012, 14'480, 243'264 * 256 / kRatio}}) {
    HostConfig config = host(64 << 20, 64 << 20);
    config.kernel = kernel;
    Host own(config);
    ReceiveBuffer buffer(own, world.flows()[0].receiver, flow, 1448);
    buffer.begin(0);
    buffer.arrived(0, 1448, 1448 + behind, 0, 0);
    buffer.round(28'960, behind, 0);
    CHECK_EQ(buffer.limit(), limit);
  }
}

TEST(what_is_set_acts_on_what_it_acts_on) {
  WorldConfig config = world_at(host(4 << 20, 4 << 20), 1000, 100);
  config.flows.push_back(config.flows[0]);
  config.flows[1].start_ns = 10 * kSecond;
  World world(config, 1);
  world.run(5 * kSecond);
  HostConfig& settings = world.hosts()[0].settings();
  CHECK_EQ(receiving(world).limit(), 4 << 20);
  settings.tcp_rmem = {4096, 65'536, 65'536};
  world.run(9 * kSecond);
  CHECK_EQ(receiving(world).limit(), 4 << 20);  // established: keeps what it has
  CHECK_GT(world.flows()[0].receiver.advertised_bytes(), 2 << 20);
  world.run(10'250 * kMillisecond);
  CHECK_EQ(receiving(world, 1).limit(), 65'536);  // opened since
  CHECK_LE(world.flows()[1].receiver.advertised_bytes(), 40'960 + 128);
  // It grows when it may, but the scale of its windows is of then: more than 65535 units cannot be said.
  settings.tcp_rmem[2] = 64 << 20;
  world.run(40 * kSecond);
  CHECK_GT(receiving(world, 1).limit(), 400'000);
  CHECK_LE(world.flows()[1].receiver.advertised_bytes(), 65'535 * 4);
}

TEST(a_clamp_of_the_host_limits_all_windows) {
  World world(world_at(host(64 << 20, 64 << 20), 1000, 100), 1);
  world.run(5 * kSecond);
  world.hosts()[0].window_clamp = 100'000;
  world.run(6 * kSecond);
  const int64_t before = world.flows()[0].counters().delivered_bytes;
  world.run(16 * kSecond);
  CHECK_LE(world.flows()[0].counters().delivered_bytes - before, 100 * int64_t{102'400});
}

TEST(unsent_data_keeps_below_its_mark) {
  HostConfig config = host(64 << 20, 64 << 20);
  config.notsent_lowat_bytes = 100'000;
  World world(world_at(config, 10, 100), 1);
  for (int i = 0; i < 50; ++i) {
    world.run(world.now() + 100 * kMillisecond);
    CHECK_LE(sending(world).unsent(), 100'000 + 65'536);
  }
  CHECK_GT(world.flows()[0].counters().delivered_bytes, 5'000'000);
}

TEST(memory_is_what_the_sockets_hold) {
  WorldConfig config = world_at(host(4 << 20, 4 << 20), 50, 50, "cubic", 60);
  for (int i = 0; i < 7; ++i) config.flows.push_back(config.flows[0]);
  config.links[0].loss = 0.01;                  // so that there is something beyond holes
  World world(config, 1);
  for (int i = 0; i < 100; ++i) {
    world.run(world.now() + 37 * kMillisecond);
    CHECK_EQ(world.hosts()[0].memory().value(), pages_of_all(world.hosts()[0]));
  }
  CHECK_GT(world.hosts()[0].memory().most(), 100);
}

TEST(memory_has_a_limit) {
  WorldConfig config = world_at(host(4 << 20, 4 << 20), 100, 100, "cubic", 2000);
  config.hosts[0].tcp_mem = {1 << 19, 3 << 18, 1 << 20};
  for (int i = 0; i < 19; ++i) config.flows.push_back(config.flows[0]);
  WorldConfig free = config;
  free.hosts[0].tcp_mem.clear();
  World world(config, 1), unlimited(free, 1);
  for (int i = 0; i < 200; ++i) {
    world.run(world.now() + 100 * kMillisecond);
    CHECK_EQ(world.hosts()[0].memory().value(), pages_of_all(world.hosts()[0]));
  }
  unlimited.run(world.now());
  CHECK_GT(unlimited.hosts()[0].memory().most() * kPage, 8 << 20);
  CHECK_LT(world.hosts()[0].memory().most() * kPage, 3 << 19);  // what fills a packet is let in
  CHECK_GT(world.hosts()[0].pressure_time(world.now()), kSecond);
  for (const Flow& flow : world.flows()) CHECK_GT(flow.counters().delivered_bytes, 500'000);
}

TEST(a_relay_of_traffic_passes_every_byte) {
  for (const int64_t size : {int64_t{700}, int64_t{20'000}, int64_t{3'000'000}}) {
    WorldConfig config = proxy(size, 40, 100 * kMillisecond);
    config.links[2].loss = 0.005;
    World world(config, 3);
    Host& host = world.hosts()[0];
    for (int i = 0; i < 300; ++i) {
      world.run(world.now() + 200 * kMillisecond);
      CHECK_EQ(host.memory().value(), pages_of_all(host));
    }
    CHECK_EQ(world.completions().size(), 40u);
    CHECK_EQ(world.traffic_totals().delivered_bytes, 40 * size);
    CHECK_EQ(host.totals.received_bytes, 40 * size);
    CHECK_EQ(host.totals.sent.acked_bytes, 40 * size);
    CHECK_EQ(host.totals.opened, 80u);
    CHECK_EQ(host.totals.closed, 80u);
    CHECK_EQ(host.memory().value(), 0);
    CHECK(host.senders().empty());
    CHECK(host.receivers().empty());
  }
}

TEST(a_relayed_page_takes_its_round_trips) {
  World world(proxy(700, 1, 0), 1);
  world.run(5 * kSecond);
  // Twice there and back on either leg, from the client's SYN on, and what the bytes take on the links.
  CHECK_GE(seconds(world.completions().at(0).fct), 0.24);
  CHECK_LT(seconds(world.completions().at(0).fct), 0.2403);
  CHECK_LE(world.completions().at(0).ideal_s, seconds(world.completions().at(0).fct));
}

// From then on nothing passes the link.
void cut(WorldConfig& config, uint32_t link, Time from) {
  config.links[link].loss_time_ns = {0, from};
  config.links[link].loss_step = {0, 1};
  config.links[link].loss_on_acks = true;
}

TEST(a_connection_that_fails_gives_its_memory_back) {
  WorldConfig config = world_at(host(4 << 20, 4 << 20), 10, 40, "cubic", 100);
  config.flows[0].receiver_host = -1;
  config.data_retries = 3;
  config.hosts[0].agent = true;
  cut(config, 0, 3 * kSecond);
  World world(config, 1);
  const Host& at = world.hosts()[0];
  world.run(5 * kSecond);
  CHECK(!world.flows()[0].sender.failed());
  CHECK_GT(at.memory().value(), 0);
  CHECK_EQ(at.totals.closed, 0u);
  world.run(60 * kSecond);
  CHECK(world.flows()[0].sender.failed());
  CHECK(sending(world).closed());
  CHECK_EQ(sending(world).queued(), 0);
  CHECK_EQ(sending(world).unsent(), 0);
  CHECK_EQ(at.memory().value(), 0);
  CHECK_EQ(at.totals.opened, 1u);
  CHECK_EQ(at.totals.closed, 1u);
  CHECK_EQ(at.totals.completed, 0u);
  const Time failed = world.flows()[0].sender.failed_at(), busy = sending(world).whole(world.now()).busy;
  CHECK_GT(busy, failed - kSecond);             // up to then, and no longer
  CHECK_LE(busy, failed);

  Batch batch(1, 1, 1, make_agent("host"));
  batch.reset(0, config, 1);
  const std::vector<std::string> fields = batch.fields();
  const auto field = [&](const char* name) {
    return batch.telemetry()[std::find(fields.begin(), fields.end(), name) - fields.begin()];
  };
  batch.advance(4 * kSecond, nullptr);
  CHECK_EQ(field("connections"), 1.0);
  batch.advance(16 * kSecond, nullptr);         // in which it fails, and nothing is acknowledged
  CHECK_EQ(field("connections"), 0.0);
  CHECK_EQ(field("connections_closed"), 1.0);
  CHECK_GT(field("packets_retransmitted"), 0.0);
  batch.advance(5 * kSecond, nullptr);
  CHECK_EQ(field("connections_closed"), 0.0);
  CHECK_EQ(field("packets_sent"), 0.0);
  CHECK_EQ(field("memory_bytes"), 0.0);

  cut(config, 0, 1);                            // no SYN passes: nothing was ever opened
  config.flows[0].start_ns = kMillisecond;
  World unheard(config, 1);
  unheard.run(300 * kSecond);
  CHECK(unheard.flows()[0].sender.failed());
  CHECK_EQ(unheard.hosts()[0].totals.opened, 0u);
  CHECK_EQ(unheard.hosts()[0].totals.closed, 0u);
}

TEST(a_reset_gives_back_what_a_receiver_held) {
  WorldConfig config = world_at(host(4 << 20, 4 << 20), 20, 40, "cubic", 100);
  config.flows[0].sender_host = -1;
  config.flows[0].read_bps = 1e6;
  World world(config, 1);
  world.run(5 * kSecond);
  const Host& at = world.hosts()[0];
  CHECK_GT(at.memory().value(), 0);
  Packet reset{};
  reset.time = world.now();
  reset.kind = kReset;
  world.flows()[0].receiver.receive(reset);
  world.woken(0);
  CHECK(world.flows()[0].receiver.closed());
  for (int i = 0; i < 20; ++i) {                // the application reads on
    CHECK_EQ(at.memory().value(), 0);
    world.run(world.now() + kSecond);
  }
  CHECK(!receiving(world).open());
  CHECK_EQ(at.totals.opened, 1u);
  CHECK_EQ(at.totals.closed, 1u);
  CHECK_EQ(at.totals.completed, 0u);
}

// So do single flows, in a chain of three, whichever way is dead from 2 s on.
TEST(flows_that_relay_each_other_fail_together) {
  for (uint32_t dead = 0; dead < 3; ++dead) {
    for (const bool at_host : {false, true}) {
      WorldConfig config = worlds::dumbbell(10, 20, 50, {"cubic"});
      for (uint32_t i = 1; i < 3; ++i) {
        config.links.push_back(config.links[0]);
        config.flows.push_back(config.flows[0]);
        config.flows[i].path = {i + 1};
        config.flows[i].relay_from = static_cast<int32_t>(i) - 1;
        config.flows[i].relay_buffer_bytes = 50'000;
      }
      if (at_host) config.hosts.resize(1), config.flows[1].sender_host = config.flows[0].receiver_host = 0;
      config.data_retries = 3;
      cut(config, dead == 0 ? 0 : dead + 1, 2 * kSecond);
      World world(config, 1);
      world.run(30 * kSecond);
      const Time failed = world.flows()[dead].sender.failed_at();
      CHECK_GE(failed, 5 * kSecond);  // 0.2 + 0.4 + 0.8 + 1.6 s
      CHECK_LE(failed, 9 * kSecond);
      for (const Flow& flow : world.flows()) CHECK_EQ(flow.sender.failed_at(), failed);
      const int64_t delivered = world.flows()[0].counters().delivered_bytes;
      world.run(40 * kSecond);
      CHECK_EQ(world.flows()[0].counters().delivered_bytes, delivered);
    }
  }
}

// Upstream the way there or back is dead from 2 s on, downstream, or both.
TEST(a_relayed_flow_fails_as_a_whole) {
  for (const int64_t size : {int64_t{20'000}, int64_t{500'000}}) {
    for (const std::vector<uint32_t>& dead : std::vector<std::vector<uint32_t>>{{0}, {2}, {0, 2}, {1}, {3}}) {
      WorldConfig config = proxy(size, 40, 100 * kMillisecond);
      config.syn_retries = 1;
      config.data_retries = 3;
      for (const uint32_t link : dead) cut(config, link, 2 * kSecond);
      World world(config, 3);
      const Host& at = world.hosts()[0];
      for (int i = 0; i < 600; ++i) {
        world.run(world.now() + kSecond);
        CHECK_EQ(at.memory().value(), pages_of_all(at));
      }
      const uint64_t failed = world.traffic_totals().failed, completed = world.completions().size();
      CHECK_GE(failed, 20u);                    // all that were opened since
      CHECK_LE(failed, 40u);
      CHECK_GT(completed, 0u);
      if (dead[0] % 2 == 0) CHECK_EQ(failed + completed, 40u);
      CHECK_GE(failed + completed, 40u);        // where ACKs are lost a sender may not know that it is done
      for (const OpenedFlow& flow : world.opened()) CHECK_EQ(flow.slot, OpenedFlow::kForgotten);
      CHECK_EQ(at.totals.opened, at.totals.closed);
      CHECK_EQ(at.memory().value(), 0);
      CHECK(at.senders().empty());
      CHECK(at.receivers().empty());
    }
  }
}

TEST(a_resize_of_the_ring_lets_nothing_leave) {
  WorldConfig config = world_at(host(4 << 20, 4 << 20), 20, 40, "cubic");
  config.hosts[0].devices = {0};
  config.hosts[0].ring_packets = 64;
  config.hosts[0].agent = true;
  World world(config, 1);
  world.run(5 * kSecond);
  CHECK_LE(world.links()[0].stats(world.now()).queue_max, 64u);
  world.resize_ring(0, 64);                     // no change, no interruption
  const auto left = [&] { return world.links()[0].stats(world.now()).bytes_sent; };
  CHECK_EQ(world.hosts()[0].interrupted(world.now()), 0);
  world.resize_ring(0, 256);
  world.run(world.now() + kMillisecond);        // what is being sent
  const double before = left();
  world.run(7099 * kMillisecond);
  CHECK_EQ(left(), before);
  world.run(20 * kSecond);
  CHECK_GT(left(), before + 10'000'000);
  CHECK_EQ(world.hosts()[0].interrupted(world.now()), 2100 * kMillisecond);
  CHECK_GT(world.links()[0].stats(world.now()).queue_max, 64u);
  CHECK_LE(world.links()[0].stats(world.now()).queue_max, 256u);
}

TEST(an_agent_of_a_host_measures_what_it_sets) {
  WorldConfig config = world_at(host(1 << 20, 64 << 20), 200, 100);
  config.hosts[0].agent = true;
  Batch batch(1, 1, 1, make_agent("host"));
  batch.reset(0, config, 1);
  const std::vector<std::string> fields = batch.fields();
  const auto field = [&](const char* name) {
    return batch.telemetry()[std::find(fields.begin(), fields.end(), name) - fields.begin()];
  };
  batch.advance(5 * kSecond, nullptr);
  CHECK_EQ(field("connections"), 2.0);
  CHECK_EQ(field("connections_opened"), 2.0);
  CHECK_EQ(field("tcp_wmem_max_bytes"), 1'048'576.0);
  CHECK_GT(field("throughput_bps") * 4.9, field("total_throughput_bps") * 5 * 0.9999);  // there since the handshake
  CHECK_LT(field("throughput_bps") * 4.9, field("total_throughput_bps") * 5 * 1.0001);
  CHECK_GT(field("sndbuf_limited_s"), 4.0);
  CHECK(std::isnan(field("ring_packets")));
  batch.control()[5] = 64 << 20;
  const double before = field("throughput_bps");
  batch.advance(5 * kSecond, nullptr);
  batch.advance(5 * kSecond, nullptr);
  CHECK_EQ(field("tcp_wmem_max_bytes"), 67'108'864.0);
  CHECK_GT(field("throughput_bps"), 1.5 * before);
  CHECK_EQ(field("connections_opened"), 0.0);
}

TEST(hosts_that_cannot_be_are_refused) {
  const auto refused = [](auto&& change) {
    WorldConfig config = world_at(host(4 << 20, 4 << 20), 10, 20);
    change(config);
    try {
      validate(config);
    } catch (const std::invalid_argument&) {
      return true;
    }
    return false;
  };
  CHECK(!refused([](WorldConfig&) {}));
  CHECK(refused([](WorldConfig& c) { c.hosts[0].tcp_rmem[1] = 0; }));
  CHECK(refused([](WorldConfig& c) { c.hosts[0].tcp_mem = {8192, 4096, 16384}; }));
  CHECK(refused([](WorldConfig& c) { c.hosts[0].ring_packets = 64; }));
  CHECK(refused([](WorldConfig& c) { c.hosts[0].devices = {9}; }));
  CHECK(refused([](WorldConfig& c) { c.flows[0].sender_host = 1; }));
  CHECK(refused([](WorldConfig& c) { c.flows[0].receiver_host = -1, c.flows[0].rcvbuf_bytes = 1; }));
  CHECK(refused([](WorldConfig& c) { c.flows[0].send_buffer_bytes = 10'000; }));
  CHECK(refused([](WorldConfig& c) { c.stack = Stack::ns3; }));
}
