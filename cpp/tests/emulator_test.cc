// The emulator over socket pairs, which keep packets apart as TUN devices do, so that it takes no privileges.
#include "netbuf/emulator.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>

#include "worlds.h"

namespace {

using namespace netbuf;

constexpr Time kPatience = 10 * kSecond;  // on a machine that is busy

struct Sent {
  uint32_t from = 0, to = 1, route = 0;
  uint8_t priority = 0;
  uint32_t bytes = 1500;
  uint8_t mark = 0;
};

uint16_t checksum(const std::vector<uint8_t>& p) {
  uint32_t sum = 0;
  for (size_t at = 0; at < 20; at += 2) sum += uint32_t{p[at]} << 8 | p[at + 1];
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

std::vector<uint8_t> packet(const Sent& sent) {
  std::vector<uint8_t> p(sent.bytes);
  const auto address = [&](size_t at, uint32_t node) {
    p[at] = 10;
    p[at + 1] = static_cast<uint8_t>(node);
    p[at + 2] = static_cast<uint8_t>(sent.route >> 8);
    p[at + 3] = static_cast<uint8_t>(sent.route);
  };
  p[0] = 0x45;
  p[1] = static_cast<uint8_t>(sent.priority << 2);
  p[2] = static_cast<uint8_t>(sent.bytes >> 8), p[3] = static_cast<uint8_t>(sent.bytes);
  p[9] = 17;
  address(12, sent.from);
  address(16, sent.to);
  p[sent.bytes - 1] = sent.mark;
  return p;
}

// Nodes with the far ends of their pairs in hand.
class Bench {
 public:
  explicit Bench(Emulator::Setting setting, uint32_t nodes = 2) {
    for (uint32_t i = 0; i < nodes; ++i) {
      std::array<int, 2> pair;
      CHECK_EQ(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair.data()), 0);
      const int bytes = 8 << 20;
      for (const int fd : pair) setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
      ours_.push_back(pair[0]);
      setting.nodes.push_back(pair[1]);
    }
    theirs_ = setting.nodes;
    if (setting.routes.empty()) setting.routes.push_back({0, 1, {0}, {1}});
    emulator = std::make_unique<Emulator>(setting);
  }
  ~Bench() {
    emulator.reset();
    for (const auto* ends : {&ours_, &theirs_}) {
      for (const int fd : *ends) close(fd);
    }
  }

  void send(const Sent& sent) { send(sent.from, packet(sent)); }
  void send(uint32_t node, const std::vector<uint8_t>& bytes) {
    // A pair holds ten datagrams or so.
    while (write(ours_[node], bytes.data(), bytes.size()) < 0) std::this_thread::yield();
  }
  bool try_send(uint32_t node, const std::vector<uint8_t>& bytes) {
    return write(ours_[node], bytes.data(), bytes.size()) > 0;
  }
  std::vector<uint8_t> received(uint32_t node) {
    std::vector<uint8_t> bytes(2000);
    const ssize_t length = read(ours_[node], bytes.data(), bytes.size());
    bytes.resize(length > 0 ? static_cast<size_t>(length) : 0);
    return bytes;
  }
  // Until nothing is on its way any more.
  std::vector<std::vector<uint8_t>> all(uint32_t node, uint64_t read) {
    std::vector<std::vector<uint8_t>> packets;
    for (const Time end = monotonic() + kPatience; monotonic() < end;) {
      for (auto one = received(node); !one.empty(); one = received(node)) packets.push_back(std::move(one));
      const auto guard = emulator->hold();
      if (emulator->counters().packets_read >= read && emulator->in_network() == 0) break;
    }
    for (auto one = received(node); !one.empty(); one = received(node)) packets.push_back(std::move(one));
    return packets;
  }
  LinkStats link(uint32_t index) {
    const auto guard = emulator->hold();
    return emulator->links()[index].stats(emulator->advance());
  }

  std::unique_ptr<Emulator> emulator;

 private:
  std::vector<int> ours_, theirs_;
};

Emulator::Setting setting(double mbps, double rtt_ms, int64_t queue_packets = 0) {
  Emulator::Setting setting;
  setting.world = worlds::dumbbell(mbps, rtt_ms, queue_packets, {"cubic"});
  return setting;
}

// A thread that sends as fast as it can, as long as it lives.
class Flood {
 public:
  Flood(Bench& bench, const Sent& sent)
      : thread_([this, &bench, from = sent.from, bytes = packet(sent)] {
          while (!over_) {
            if (!bench.try_send(from, bytes)) std::this_thread::yield();
          }
        }) {}
  ~Flood() {
    over_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

// Data of TCP, as far as the emulator looks at them.
std::vector<uint8_t> segment(const Sent& sent) {
  std::vector<uint8_t> p = packet(sent);
  p[9] = 6;
  p[32] = 5 << 4;
  return p;
}

// Of what speaks ECN (ECT(0), ECT(1)) what finds others waiting is marked, and headers
// keep their checksums; of others nothing is. What was marked before stays so.
TEST(queues_mark_what_speaks_ecn) {
  for (const uint8_t ecn : {0, 1, 2, 3}) {
    Emulator::Setting marking = setting(0.6, 20);
    marking.world.links[0].discipline = "droptail";
    marking.world.links[0].discipline_parameters["mark_packets"] = 0;
    Bench bench(marking);
    bench.emulator->start(monotonic());
    for (uint8_t i = 0; i < 5; ++i) {
      std::vector<uint8_t> p = segment({.priority = 10, .mark = i});
      p[1] |= ecn;
      p[4] = static_cast<uint8_t>(250 + i), p[5] = static_cast<uint8_t>(37 * i), p[8] = 64;
      const uint16_t sum = checksum(p);
      p[10] = static_cast<uint8_t>(sum >> 8), p[11] = static_cast<uint8_t>(sum);
      bench.send(0, p);
    }
    const auto packets = bench.all(1, 5);
    CHECK_EQ(packets.size(), 5u);
    uint64_t marked = 0;
    for (const auto& p : packets) {
      CHECK_EQ(checksum(p), 0);
      CHECK_EQ(p[1] >> 2, 10);
      CHECK((p[1] & 3) == 3 || (p[1] & 3) == ecn);
      marked += (p[1] & 3) == 3;
    }
    CHECK_EQ(bench.emulator->taps()[0].counters().marks, marked);
    const uint64_t here = bench.link(0).marks;
    if (ecn == 0) CHECK_EQ(marked, 0u);
    if (ecn == 3) CHECK_EQ(marked, 5u);
    if (ecn == 1 || ecn == 2) CHECK(marked == here && marked > 0);
  }
}

TEST(packets_take_their_time_in_order) {
  Bench bench(setting(12, 20));
  bench.emulator->start(monotonic());
  const Time begun = bench.emulator->now();
  for (uint8_t i = 0; i < 8; ++i) bench.send({.mark = i});
  const auto packets = bench.all(1, 8);
  const Time ended = bench.emulator->now();
  CHECK_EQ(packets.size(), 8u);
  for (uint8_t i = 0; i < packets.size(); ++i) CHECK(packets[i] == packet({.mark = i}));
  CHECK_GE(ended - begun, 10 * kMillisecond + 8 * kMillisecond);  // half the RTT, and 1 ms a packet
  CHECK_EQ(bench.link(0).packets_out, 8u);
  CHECK_EQ(bench.emulator->lateness().count(), 8u);
  CHECK_EQ(bench.emulator->counters().strays, 0u);
  CHECK_EQ(bench.emulator->failure(), "");
}

TEST(what_finds_the_queue_full_is_dropped) {
  Bench bench(setting(0.2, 2, 10));
  bench.emulator->start(monotonic());
  for (int i = 0; i < 40; ++i) bench.send({});    // 60 ms each
  const auto packets = bench.all(1, 40);
  const LinkStats stats = bench.link(0);
  CHECK_EQ(packets.size(), stats.packets_out);
  CHECK_EQ(stats.packets_out + stats.queue_drops, 40u);
  CHECK_GT(stats.queue_drops, 15u);               // all but 11, unless the machine is very busy
  CHECK_EQ(stats.queue_max, 10u);
}

TEST(the_way_back_is_another) {
  Bench bench(setting(10, 2));
  bench.emulator->start(monotonic());
  bench.send({.from = 1, .to = 0, .bytes = 60});
  CHECK_EQ(bench.all(0, 1).size(), 1u);
  CHECK_EQ(bench.link(0).packets_out, 0u);
  CHECK_EQ(bench.link(1).packets_out, 1u);
}

// An ACK of TCP without data; port: of the end that acknowledges.
std::vector<uint8_t> answer(uint16_t port, uint32_t ack, bool fin = false) {
  std::vector<uint8_t> p = segment({.from = 1, .to = 0, .bytes = 40});
  p[20] = static_cast<uint8_t>(port >> 8), p[21] = static_cast<uint8_t>(port), p[23] = 80;
  for (size_t i = 0; i < 4; ++i) p[28 + i] = static_cast<uint8_t>(ack >> (24 - 8 * i));
  p[33] = static_cast<uint8_t>(16 + fin);
  return p;
}

// Connections of one route are told apart by their ports, and none is taken for a source of the emulator's own.
TEST(queues_know_connections_by_their_ports) {
  Emulator::Setting thin = setting(10, 0);
  thin.world.links[1] = worlds::link(0.01, 0);  // an ACK in 32 ms
  thin.world.links[1].discipline = "ack_filter";
  thin.world.links[1].discipline_parameters["aggressive"] = 1;
  Bench bench(thin);
  bench.emulator->start(monotonic());
  bench.send(1, answer(7, 1));                   // leaves at once
  for (const uint16_t port : {8, 9}) bench.send(1, answer(port, 1000));
  bench.send(1, answer(8, 2000));                // in place of 1000
  bench.send(1, answer(8, 3000, true));          // in place of 2000
  bench.send(1, answer(8, 4000));                // not of a FIN
  std::vector<std::array<uint32_t, 2>> left;
  for (const auto& p : bench.all(0, 6)) left.push_back({p[21], uint32_t{p[30]} << 8 | p[31]});
  CHECK(left == (std::vector<std::array<uint32_t, 2>>{{7, 1}, {9, 1000}, {8, 3000}, {8, 4000}}));

  Emulator::Setting many = setting(100, 0);
  many.world.links[1] = worlds::link(100, 0);
  many.world.links[1].discipline = "droptail";
  many.world.links[1].discipline_parameters["mark_packets"] = 1000;
  Bench others(many);
  others.emulator->start(monotonic());
  for (uint16_t port = 1; port <= 200; ++port) others.send(1, answer(port, 1));
  CHECK_EQ(others.all(0, 200).size(), 200u);
}

TEST(random_loss_spares_pure_acks) {
  for (const bool on_acks : {false, true}) {
    Emulator::Setting lossy = setting(100, 0);
    for (LinkConfig& link : lossy.world.links) link.loss_list = {0, 1, 2}, link.loss_on_acks = on_acks;
    Bench bench(lossy);
    bench.emulator->start(monotonic());
    for (int i = 0; i < 3; ++i) bench.send({.from = 1, .to = 0, .bytes = 52});
    CHECK_EQ(bench.all(0, 3).size(), on_acks ? 0u : 3u);
    for (int i = 0; i < 3; ++i) bench.send({});
    CHECK_EQ(bench.all(1, 6).size(), 0u);  // what senders send is data
  }
}

TEST(strays_go_nowhere) {
  Bench bench(setting(10, 0));
  bench.emulator->start(monotonic());
  std::vector<uint8_t> v6 = packet({});
  v6[0] = 0x60;
  bench.send(0, v6);
  bench.send(0, {0x45, 0, 0});
  bench.send({.route = 1});                       // there is none
  bench.send({.from = 0, .to = 2});               // no such node
  std::vector<uint8_t> forged = packet({.from = 1, .to = 0});
  bench.send(0, forged);                          // from another node than it says
  std::vector<uint8_t> foreign = packet({});
  foreign[12] = 192;
  bench.send(0, foreign);
  std::vector<uint8_t> small = packet({});
  small[0] = 0x44;                                // a header of 16 bytes
  bench.send(0, small);
  CHECK_EQ(bench.all(1, 7).size(), 0u);
  CHECK_EQ(bench.emulator->counters().strays, 7u);
  bench.send({});
  CHECK_EQ(bench.all(1, 8).size(), 1u);
}

TEST(priorities_are_code_points) {
  Emulator::Setting shared = setting(0.1, 0);
  SwitchConfig sw;
  sw.ports = {0};
  sw.queues = 2;
  sw.capacity = 6;
  sw.admission = "agent";
  sw.alphas = {8, 8};
  sw.scheduler = "strict_priority";
  shared.world.switches = {sw};
  Bench bench(shared);
  bench.emulator->start(monotonic());
  for (uint8_t i = 0; i < 3; ++i) bench.send({.priority = 1, .mark = i});  // 120 ms each
  bench.send({.priority = 0, .mark = 9});
  const auto packets = bench.all(1, 4);
  CHECK_EQ(packets.size(), 4u);
  CHECK_EQ(packets[1].back(), 9);                 // overtakes those that wait
  const auto guard = bench.emulator->hold();
  CHECK_EQ(bench.emulator->switches()[0]->totals(0).arrivals, 1u);
  CHECK_EQ(bench.emulator->switches()[0]->totals(1).arrivals, 3u);
}

TEST(links_follow_each_other) {
  Emulator::Setting two = setting(12, 4);
  two.world.links.push_back(worlds::link(6, 3));
  two.world.flows[0].path = {0, 2};
  two.routes = {{0, 1, {0, 2}, {1}}};
  Bench bench(two);
  bench.emulator->start(monotonic());
  const Time begun = bench.emulator->now();
  for (int i = 0; i < 4; ++i) bench.send({});
  CHECK_EQ(bench.all(1, 4).size(), 4u);
  CHECK_GE(bench.emulator->now() - begun, 2 * kMillisecond + 3 * kMillisecond + kMillisecond + 8 * kMillisecond);
  CHECK_EQ(bench.link(2).packets_out, 4u);
  CHECK_GT(bench.link(2).sojourn_sum, 0);
}

TEST(probes_and_datagrams_need_no_sockets) {
  Emulator::Setting busy = setting(10, 2);
  busy.world.probes.push_back({{0}, 0, kMillisecond, 0, 64});
  UdpConfig udp;
  udp.path = {0};
  udp.rate_bps = 1e6;
  udp.bytes = 125;
  busy.world.udp.push_back(udp);
  Bench bench(busy);
  bench.emulator->start(monotonic());
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const auto guard = bench.emulator->hold();
  const Time now = bench.emulator->advance();
  CHECK_GE(bench.emulator->probe(0).sent, 50u);
  CHECK_NEAR(static_cast<double>(bench.emulator->probe(0).sent), static_cast<double>(now) * 1e-6, 1.0);
  CHECK_NEAR(static_cast<double>(bench.emulator->udp()[0]->counters().sent), static_cast<double>(now) * 1e-6, 1.0);
  CHECK_GT(bench.emulator->probe(0).delays.at(0), 0.001);
  CHECK_EQ(bench.emulator->counters().packets_written, 0u);
}

TEST(limits_change_while_it_runs) {
  Bench bench(setting(1, 0, 100));
  bench.emulator->start(monotonic());
  {
    const auto guard = bench.emulator->hold();
    bench.emulator->advance();
    bench.emulator->links()[0].resize_queue(2);
  }
  for (int i = 0; i < 10; ++i) bench.send({});
  CHECK_LE(bench.all(1, 10).size(), 5u);
  CHECK_EQ(bench.link(0).queue_max, 2u);
}

TEST(it_stops_at_once_and_once_only) {
  Bench bench(setting(0.1, 1000, 1000));
  bench.emulator->start(monotonic());
  CHECK_THROWS(bench.emulator->start(monotonic()), std::logic_error);
  for (int i = 0; i < 20; ++i) bench.send({});
  const Time begun = monotonic();
  bench.emulator->stop();
  bench.emulator->stop();
  CHECK_LT(monotonic() - begun, kSecond);
}

TEST(a_flood_keeps_nobody_waiting) {
  Bench bench(setting(1, 1, 10));
  bench.emulator->start(monotonic());
  Flood one(bench, {}), other(bench, {.from = 1, .to = 0});
  while (bench.emulator->now() < 50 * kMillisecond) std::this_thread::yield();
  for (int i = 0; i < 20; ++i) {
    const Time begun = monotonic();
    const auto guard = bench.emulator->hold();
    CHECK_LT(monotonic() - begun, kSecond);
  }
  const Time begun = monotonic();
  bench.emulator->stop();
  CHECK_LT(monotonic() - begun, kSecond);
  CHECK_GT(bench.emulator->counters().packets_read, 100u);
}

TEST(nothing_is_written_once_it_has_stopped) {
  Bench bench(setting(12, 20));
  bench.emulator->start(monotonic());
  for (int i = 0; i < 3; ++i) bench.send({});
  while (bench.emulator->counters().packets_read < 3) std::this_thread::yield();
  bench.emulator->stop();
  const uint64_t before = bench.emulator->counters().packets_written;
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  bench.emulator->advance();
  CHECK_EQ(bench.emulator->counters().packets_written, before);
}

// The emulator is not started: all arrives at time 0.
TEST(nodes_take_turns_at_a_full_queue) {
  Emulator::Setting shared = setting(1, 0, 12);   // 13 of 20 packets find room
  shared.routes = {{0, 2, {0}, {1}}, {1, 2, {0}, {1}}};
  Bench bench(shared, 3);
  for (uint32_t node = 0; node < 2; ++node) {
    for (int i = 0; i < 10; ++i) bench.send(node, segment({.from = node, .to = 2, .route = node}));
  }
  bench.emulator->poll();
  const uint64_t first = bench.emulator->taps()[0].counters().queue_drops,
                 second = bench.emulator->taps()[1].counters().queue_drops;
  CHECK_EQ(first + second, 7u);
  CHECK_GE(std::min(first, second), 2u);
}

TEST(every_node_is_first_at_times) {
  Emulator::Setting shared = setting(1, 0, 1);    // two of three packets find room
  const uint32_t waves = 4;
  for (uint32_t wave = 0; wave < waves; ++wave) {
    shared.world.links.push_back(worlds::link(1, 0));
    shared.world.links.back().queue_limit_packets = 1;
    for (uint32_t node = 0; node < 3; ++node) shared.routes.push_back({node, 3, {2 + wave}, {1}});
  }
  Bench bench(shared, 4);
  std::array<uint64_t, 3> drops{};
  for (uint32_t wave = 0; wave < waves; ++wave) {
    for (uint32_t node = 0; node < 3; ++node) {
      bench.send(node, segment({.from = node, .to = 3, .route = 3 * wave + node}));
    }
    bench.emulator->poll();
    for (uint32_t node = 0; node < 3; ++node) {
      drops[node] += bench.emulator->taps()[3 * wave + node].counters().queue_drops;
    }
  }
  CHECK_EQ(drops[0] + drops[1] + drops[2], waves);
  for (const uint64_t one : drops) CHECK_GE(one, 1u);
}

struct Run {
  RateKept kept;
  double late_s;  // most that the emulator came late to an event
};

// What a saturated link has carried, while the emulator is kept from running for 0.2 of 0.8 s or not at all.
Run run_saturated(Emulator::Setting setting, bool stalled) {
  Bench bench(std::move(setting));
  bench.emulator->start(monotonic());
  const Flood flood(bench, {});
  while (bench.emulator->now() < 300 * kMillisecond) std::this_thread::yield();
  if (stalled) {
    const auto guard = bench.emulator->hold();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  while (bench.emulator->now() < 800 * kMillisecond) std::this_thread::yield();
  const auto guard = bench.emulator->hold();
  return {bench.emulator->rate_kept(), bench.emulator->reading().max_s()};
}

TEST(a_link_that_idles_for_want_of_the_processor_is_not_true_to_its_rate) {
  Emulator::Setting steady = setting(12, 2, 5);   // a queue of 5 ms
  Emulator::Setting traced = steady, managed = steady;
  traced.world.links[0].trace_ns = {kMillisecond};
  traced.world.links[0].trace_period_ns = kMillisecond;
  managed.world.links[0].discipline = "fq_codel";
  for (const Emulator::Setting& one : {steady, traced, managed}) {
    const Run stalled = run_saturated(one, true);
    CHECK_GE(stalled.late_s, 0.15);
    CHECK_GT(stalled.kept.busy_s, 0.2);
    Run free = run_saturated(one, false);
    for (int again = 0; again < 4 && free.late_s > 0.01; ++again) free = run_saturated(one, false);
    if (free.late_s > 0.01) continue;             // a busy machine stalls it, too: there is nothing to compare with
    CHECK_GT(free.kept.busy_s, 0.1);
    CHECK_NEAR(free.kept.error(), 0, 0.1);        // 0.001 on a machine that is not busy
    CHECK_LT(stalled.kept.error(), free.kept.error() - 0.1);
  }
}

TEST(no_rate_is_measured_of_links_that_are_seldom_busy) {
  Bench bench(setting(100, 2));
  bench.emulator->start(monotonic());
  for (int i = 0; i < 20; ++i) {
    bench.send({});
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  CHECK_EQ(bench.all(1, 20).size(), 20u);
  CHECK_EQ(bench.emulator->rate_kept().busy_s, 0.0);
  CHECK(std::isnan(bench.emulator->rate_kept().error()));
  CHECK_EQ(bench.emulator->reading().count(), 20u);
}

TEST(a_lock_is_not_taken_twice) {
  PriorityLock lock;
  const std::unique_lock<PriorityLock> guard(lock);
  CHECK_THROWS(lock.lock(), std::system_error);
}

TEST(a_closed_descriptor_is_told) {
  Emulator::Setting broken = setting(10, 0);
  std::array<int, 2> pipes;
  CHECK_EQ(pipe(pipes.data()), 0);
  broken.nodes = {pipes[1], pipes[1]};            // cannot be read
  broken.routes = {{0, 1, {0}, {1}}};
  Emulator emulator(broken);
  emulator.start(monotonic());
  for (const Time end = monotonic() + kPatience; emulator.failure().empty() && monotonic() < end;) {
    std::this_thread::yield();
  }
  CHECK(emulator.failure().find("reading from node 0") != std::string::npos);
  close(pipes[0]), close(pipes[1]);
}

TEST(what_cannot_be_is_refused) {
  const auto with = [](auto change) {
    Emulator::Setting bad = setting(10, 2);
    bad.nodes = {0, 1};
    bad.routes = {{0, 1, {0}, {1}}};
    change(bad);
    return bad;
  };
  CHECK_THROWS(Emulator(with([](auto& s) { s.nodes = {0}; })), std::invalid_argument);
  CHECK_THROWS(Emulator(with([](auto& s) { s.routes[0].path = {7}; })), std::invalid_argument);
  CHECK_THROWS(Emulator(with([](auto& s) { s.routes[0].return_path = {}; })), std::invalid_argument);
  CHECK_THROWS(Emulator(with([](auto& s) { s.routes[0].receiver_node = 0; })), std::invalid_argument);
  CHECK_THROWS(Emulator(with([](auto& s) { s.routes[0].sender_node = 2; })), std::invalid_argument);
  CHECK_THROWS(Emulator(with([](auto& s) { s.mtu = 20; })), std::invalid_argument);
  CHECK_THROWS(Emulator(with([](auto& s) { s.world.links[0].rate_bps = -1; })), std::invalid_argument);
}

}  // namespace
