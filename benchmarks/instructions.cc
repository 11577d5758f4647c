// What benchmarks/instructions.py counts: packets through the core alone.
//
//   instructions CASE SETTLE LENGTH
//
// Runs a case for SETTLE, and from then on for LENGTH, which alone is counted: simulated seconds, of batches steps. Prints
// how many units that were (data packets sent; decisions of switches; flows), and how many bytes the program then had
// allocated. Also built with the core of earlier commits: before agents had a catalogue, `datagrams` and `receivers` are unknown.
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "netbuf/batch.h"

#if __has_include("netbuf/agent.h")
#define NETBUF_AGENTS 1
#endif

extern "C" void start_counting();
extern "C" void stop_counting();

using namespace netbuf;

namespace {

size_t allocated = 0;                                    // by what `memory` holds

WorldConfig dumbbell(int flows, double rate_bps, int64_t buffer_packets, Time stagger = 0) {
  WorldConfig config;
  for (const bool forward : {true, false}) {
    LinkConfig link;
    link.name = forward ? "bottleneck" : "return";
    link.rate_bps = forward ? rate_bps : 0;
    link.delay_ns = 24 * kMillisecond;
    link.queue_limit_packets = forward ? buffer_packets : 0;
    config.links.push_back(link);
  }
  for (int i = 0; i < flows; ++i) {
    FlowConfig flow;
    flow.path = {0};
    flow.return_path = {1};
    flow.start_ns = i * stagger;
    config.flows.push_back(flow);
  }
  return config;
}

// Sixteen flows, each over three links each way, of which they share the middle ones.
WorldConfig three_links() {
  WorldConfig config = dumbbell(16, 100e6, 400, 10 * kMillisecond);
  const auto access = [&](double rate_bps) {
    LinkConfig link;
    link.name = std::to_string(config.links.size());
    link.rate_bps = rate_bps;
    link.delay_ns = kMillisecond;
    config.links.push_back(link);
    return static_cast<uint32_t>(config.links.size() - 1);
  };
  for (FlowConfig& flow : config.flows) {
    flow.path = {access(1e9), 0, access(1e9)};
    flow.return_path = {access(1e9), 1, access(1e9)};
  }
  return config;
}

WorldConfig managed() {
  WorldConfig config = dumbbell(1, 100e6, 400);
  config.links[0].discipline = "codel";
  return config;
}

// A flow whose window an agent sets, or its receiver's.
WorldConfig driven([[maybe_unused]] bool receiver) {
  WorldConfig config = dumbbell(1, 10e6, 150);
  config.flows[0].controlled = true;
  config.flows[0].cc = "agent";
#ifdef NETBUF_AGENTS
  if (receiver) config.flows[0].cc = "receiver_driven", config.flows[0].receiver = "agent", config.flows[0].controlled = false;
#endif
  return config;
}

#ifdef NETBUF_AGENTS
// No flow begins before the end.
WorldConfig datagrams() {
  WorldConfig config = three_links();
  UdpConfig source;
  source.rate_bps = 90e6;
  source.path = config.flows.front().path;
  config.flows.resize(1);
  config.flows.front().start_ns = 1000 * kSecond;
  config.udp = {source};
  return config;
}
#endif

// Ten senders, a port of 10 Mbit/s, two queues, small and large flows.
WorldConfig shared_buffer(const char* admission) {
  WorldConfig config;
  const auto link = [&](double rate_bps, Time delay_ns) {
    LinkConfig one;
    one.name = std::to_string(config.links.size());
    one.rate_bps = rate_bps;
    one.delay_ns = delay_ns;
    config.links.push_back(one);
    return static_cast<uint32_t>(config.links.size() - 1);
  };
  const uint32_t port = link(10e6, 10 * kMillisecond), back = link(10e6, 10 * kMillisecond);
  TrafficConfig traffic;
  for (int i = 0; i < 10; ++i) {
    FlowConfig sender;
    sender.path = {link(100e6, 100 * kMicrosecond), port};
    sender.return_path = {back, link(100e6, 100 * kMicrosecond)};
    traffic.senders.push_back(sender);
  }
  ArrivalsConfig large, small;
  large.rate_per_s = 0.6, large.size_bytes = {1e4, 1e5, 1e6, 1e7}, large.cumulative = {0.5, 0.6, 0.7, 1};
  small.rate_per_s = 20, small.size_bytes = {1e3, 2e4}, small.cumulative = {0.2, 1};
  traffic.arrivals = {large, small};
  traffic.priority_below = {2'000'000};
  SwitchConfig sw;
  sw.name = "switch", sw.ports = {port}, sw.queues = 2, sw.capacity = 1000, sw.alphas = {1, 1}, sw.admission = admission;
  config.switches = {sw};
  config.traffic = {traffic};
  return config;
}

uint64_t sent(World& world) {
  uint64_t packets = world.traffic_totals().packets_sent;
#ifdef NETBUF_AGENTS
  for (const Flow& flow : world.flows()) packets += flow.counters().packets_sent;
  for (const auto& source : world.udp()) packets += source->counters().sent;
#else
  for (const Flow& flow : world.flows()) packets += flow.counters.packets_sent;
#endif
  return packets;
}

// Agents of a kind, one a world.
std::unique_ptr<Batch> make_batch(uint32_t worlds, const std::string& kind) {
#ifdef NETBUF_AGENTS
  return std::make_unique<Batch>(worlds, 1, 1, kind == "switch" ? make_agent(kind, {{"queues", 2}}) : make_agent(kind));
#else
  return std::make_unique<Batch>(worlds, 1, 1, kind == "switch" ? Batch::Kind::shared_buffer : Batch::Kind::flow, 2);
#endif
}

// One world for so many seconds.
uint64_t run_world(const WorldConfig& config, double settle_s, double length_s) {
  World world(config, 1);
  world.run(from_seconds(settle_s));
  const uint64_t before = sent(world);
  start_counting();
  world.run(from_seconds(settle_s + length_s));
  stop_counting();
  return sent(world) - before;
}

// Worlds of one agent each, for so many steps. window_bytes: set at the first of them.
uint64_t run_batch(uint32_t worlds, const std::string& kind, const WorldConfig& config, Time interval, double window_bytes,
                   int settle, int length) {
  const std::unique_ptr<Batch> batch = make_batch(worlds, kind);
  for (uint32_t i = 0; i < worlds; ++i) batch->reset(i, config, i);
#ifdef NETBUF_AGENTS
  const size_t controls = batch->controls().size();
#else
  const size_t controls = batch->controls();
#endif
  const auto count = [&] {
    uint64_t packets = 0;
    for (uint32_t i = 0; i < worlds; ++i) packets += sent(batch->world(i));
    return packets;
  };
  uint64_t before = 0;
  for (int step = 0; step < settle + length; ++step) {
    std::fill_n(batch->control(), worlds * controls, step == 0 ? window_bytes : std::nan(""));
    if (step == settle) before = count(), start_counting();
    batch->advance(interval, nullptr);
  }
  stop_counting();
  return kind == "switch" ? uint64_t{worlds} * static_cast<uint64_t>(length) : count() - before;
}

// Many flows, for what they hold in memory.
uint64_t hold_flows(double length_s) {
  const WorldConfig config = dumbbell(20'000, 100e6, 400);
  const size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
  World world(config, 1);
  world.run(from_seconds(length_s));
  allocated = mallinfo2().uordblks + mallinfo2().hblkhd - before;
  return config.flows.size();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::string name = argv[1];
  const double settle = std::atof(argv[2]), length = std::atof(argv[3]);
  constexpr double kWindow = 80 * 1448;
  constexpr Time kStep = 100 * kMillisecond;
  const auto drive = [&](uint32_t worlds) {
    return run_batch(worlds, "sender", driven(false), kStep, kWindow, int(settle), int(length));
  };
  const auto run = [&](const WorldConfig& config) { return run_world(config, settle, length); };
  const std::map<std::string, std::function<uint64_t()>> cases = {
      {"one", [&] { return run(dumbbell(1, 100e6, 400)); }},
      {"many", [&] { return run(dumbbell(64, 100e6, 400, 10 * kMillisecond)); }},
      {"flows4096", [&] { return run(dumbbell(4096, 100e6, 400)); }},
      {"path", [&] { return run(three_links()); }},
      {"codel", [&] { return run(managed()); }},
      {"world", [&] { return drive(1); }},
      {"worlds", [&] { return drive(16); }},
      {"worlds1024", [&] { return drive(1024); }},
      {"switch", [&] { return run(shared_buffer("dynamic")); }},
      {"switches",
       [&] {
         return run_batch(256, "switch", shared_buffer("agent"), 10 * kMillisecond, std::nan(""), int(settle), int(length));
       }},
      {"memory", [&] { return hold_flows(length); }},
#ifdef NETBUF_AGENTS
      {"datagrams", [&] { return run(datagrams()); }},
      {"receivers",
       [&] { return run_batch(16, "receiver", driven(true), kStep, std::nan(""), int(settle), int(length)); }},
#endif
  };
  const auto found = cases.find(name);
  if (found == cases.end()) {
    std::fprintf(stderr, "case = %s is unknown to this commit\n", argv[1]);
    return 2;
  }
  const uint64_t units = found->second();
  std::printf("%llu %llu\n", static_cast<unsigned long long>(units), static_cast<unsigned long long>(allocated));
}
