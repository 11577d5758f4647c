// What benchmarks/instructions.py counts: packets through the core alone, nothing printed but how many.
//
//   instructions one|many|path|codel|datagrams|switch SECONDS
//   instructions worlds|receivers STEPS
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>

#include "netbuf/batch.h"

using namespace netbuf;

namespace {

WorldConfig dumbbell(int flows, double rate_bps, int64_t buffer_packets, const char* cc, const char* receiver = "") {
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
    flow.cc = cc;
    flow.controlled = !std::strcmp(cc, "agent");
    flow.receiver = receiver;
    flow.path = {0};
    flow.return_path = {1};
    flow.start_ns = i * 10 * kMillisecond;
    config.flows.push_back(flow);
  }
  return config;
}

// Sixteen flows, each over three links each way, of which they share the middle ones.
WorldConfig three_links() {
  WorldConfig config = dumbbell(16, 100e6, 400, "cubic");
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
  WorldConfig config = dumbbell(1, 100e6, 400, "cubic");
  config.links[0].discipline = "codel";
  return config;
}

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

// Ten senders, a port of 10 Mbit/s, two queues, small and large flows.
WorldConfig shared_buffer() {
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
  sw.name = "switch", sw.ports = {port}, sw.queues = 2, sw.capacity = 1000, sw.alphas = {1, 1};
  config.switches = {sw};
  config.traffic = {traffic};
  return config;
}

uint64_t sent(World& world) {
  uint64_t packets = world.traffic_totals().packets_sent;
  for (const Flow& flow : world.flows()) packets += flow.counters().packets_sent;
  for (const auto& source : world.udp()) packets += source->counters().sent;
  return packets;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const double length = std::atof(argv[2]);
  uint64_t packets = 0;
  const bool receivers = !std::strcmp(argv[1], "receivers");
  if (receivers || !std::strcmp(argv[1], "worlds")) {
    constexpr uint32_t kWorlds = 16;
    Batch batch(kWorlds, 1, 1, make_agent(receivers ? "receiver" : "sender"));
    const WorldConfig config =
        receivers ? dumbbell(1, 10e6, 150, "receiver_driven", "agent") : dumbbell(1, 10e6, 150, "agent");
    for (uint32_t i = 0; i < kWorlds; ++i) batch.reset(i, config, i);
    const std::span control(batch.control(), kWorlds * batch.controls().size());
    for (int step = 0; step < length; ++step) {
      std::fill(control.begin(), control.end(), std::nan(""));
      if (step == 0 && !receivers) std::fill(control.begin(), control.end(), 80 * 1448.0);
      batch.advance(100 * kMillisecond, nullptr);
    }
    for (uint32_t i = 0; i < kWorlds; ++i) packets += sent(batch.world(i));
  } else {
    const auto is = [&](const char* name) { return !std::strcmp(argv[1], name); };
    World world(is("switch")      ? shared_buffer()
                : is("path")      ? three_links()
                : is("datagrams") ? datagrams()
                : is("codel")     ? managed()
                                  : dumbbell(is("one") ? 1 : 64, 100e6, 400, "cubic"),
                1);
    world.run(from_seconds(length));
    packets = sent(world);
  }
  std::printf("%llu\n", static_cast<unsigned long long>(packets));
}
