// Worlds for tests: short builders, a fingerprint of everything that a run computed, and what must hold in every world.
#pragma once
#include <bit>
#include <string>
#include <vector>

#include "check.h"
#include "netbuf/report.h"

namespace worlds {

using namespace netbuf;

inline LinkConfig link(double mbps, double delay_ms, int64_t queue_packets = 0) {
  LinkConfig link;
  link.name = "link";
  link.rate_bps = mbps * 1e6;
  link.delay_ns = from_seconds(delay_ms * 1e-3);
  link.queue_limit_packets = queue_packets;
  return link;
}

inline FlowConfig flow(const std::string& cc, std::vector<uint32_t> path, std::vector<uint32_t> return_path) {
  FlowConfig flow;
  flow.cc = cc;
  flow.controlled = cc == "agent";
  flow.path = std::move(path);
  flow.return_path = std::move(return_path);
  return flow;
}

// The congestion controls of a stack.
inline std::vector<std::string> controls(Stack stack, bool agents = true) {
  std::vector<std::string> names;
  for (const CongestionControlRecord* record : Catalogue<CongestionControlRecord>::all()) {
    if (record->in(stack) && (agents || !record->agent)) names.emplace_back(record->name);
  }
  return names;
}

// Link 0 is the bottleneck with half the delay, link 1 the way back.
inline WorldConfig dumbbell(double mbps, double rtt_ms, int64_t queue_packets, const std::vector<std::string>& senders,
                            Stack stack = Stack::linux_kernel) {
  WorldConfig world;
  world.links = {link(mbps, rtt_ms / 2, queue_packets), link(0, rtt_ms / 2)};
  for (const std::string& cc : senders) world.flows.push_back(flow(cc, {0}, {1}));
  world.stack = stack;
  return world;
}

inline FlowConfig sized(FlowConfig flow, int64_t bytes) {
  flow.app = "sized";
  flow.size_bytes = bytes;
  return flow;
}

// What is said against a world; empty: nothing.
inline std::string refusal(const WorldConfig& config) {
  try {
    validate(config);
    return "";
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

// The bits of all counters and of the state of flow number index.
inline std::vector<uint64_t> fingerprint(const Flow& flow) {
  const FlowCounters c = flow.counters();
  const Tcb& t = flow.sender.tcb;
  return {c.packets_sent, c.packets_retransmitted, c.queue_drops, c.random_losses, c.acks, c.segments_acked,
          c.timeouts, c.fast_recoveries, static_cast<uint64_t>(c.delivered_bytes),
          static_cast<uint64_t>(c.acked_bytes), c.in_flight_sum, c.rtt_count, static_cast<uint64_t>(c.rtt_sum),
          static_cast<uint64_t>(c.last_sent), static_cast<uint64_t>(c.last_ack), static_cast<uint64_t>(t.cwnd),
          static_cast<uint64_t>(t.ssthresh), t.una, t.nxt, t.sacked_out, t.lost_out, t.retrans_out,
          static_cast<uint64_t>(t.srtt), static_cast<uint64_t>(t.rttvar), static_cast<uint64_t>(t.min_rtt),
          static_cast<uint64_t>(t.last_rtt), std::bit_cast<uint64_t>(t.pacing_rate), static_cast<uint64_t>(t.state),
          static_cast<uint64_t>(flow.completed_at())};
}

inline std::vector<uint64_t> fingerprint(const LinkStats& s) {
  return {s.packets_in, s.packets_out, static_cast<uint64_t>(s.bytes_out), s.queue_drops, s.random_losses,
          std::bit_cast<uint64_t>(s.sojourn_sum), std::bit_cast<uint64_t>(s.queue_integral), uint64_t{s.queue_max},
          std::bit_cast<uint64_t>(s.busy)};
}

inline std::vector<uint64_t> fingerprint(World& world) {
  std::vector<uint64_t> all;
  const auto add = [&](const std::vector<uint64_t>& one) { all.insert(all.end(), one.begin(), one.end()); };
  for (const Flow& flow : world.flows()) add(fingerprint(flow));
  for (Link& link : world.links()) add(fingerprint(link.stats(world.now())));
  return all;
}

// Runs one flow's events one by one until done(flow), at most to until. Only for worlds with one flow.
template <class Done>
bool run_until(World& world, Time until, Done&& done) {
  Flow& flow = world.flows()[0];
  while (!done(flow)) {
    if (world.next_event() > until) return false;
    world.run(world.next_event());
  }
  return true;
}

}  // namespace worlds
