#include "netbuf/config.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "netbuf/app.h"
#include "netbuf/config_fields.h"
#include "netbuf/host.h"
#include "netbuf/law.h"
#include "netbuf/medium.h"
#include "netbuf/packet.h"
#include "netbuf/queue_discipline.h"
#include "netbuf/receiver_control.h"
#include "netbuf/reject.h"
#include "netbuf/stack.h"
#include "netbuf/traffic.h"
#include "netbuf/wire.h"

namespace netbuf {

namespace {

// Steps that hold from time to time, from 0 on.
void check_steps(const std::vector<Time>& times, size_t values, Time period, const std::string& at,
                 const char* of_values) {
  if (times.size() != values) {
    reject(at + of_values, values, "as long as " + at + "_time_ns, " + std::to_string(times.size()));
  }
  if (times.empty()) return;
  if (times.front() != 0) reject(at + "_time_ns[0]", times.front(), "0");
  for (size_t i = 1; i < times.size(); ++i) {
    if (times[i] <= times[i - 1] || times[i] > kLongest) {
      reject(at + "_time_ns", times[i], "strictly increasing, at most 1e16");
    }
  }
  if (period != 0 && (period <= times.back() || period > kLongest)) {
    reject(at + "_period_ns", period, "0, or beyond the last step and at most 1e16");
  }
}

void check_wire(const LinkConfig& link, const std::string& at) {
  check_steps(link.delay_time_ns, link.delay_step_ns.size(), link.delay_period_ns, at + ".delay", "_step_ns");
  for (const Time delay : link.delay_step_ns) {
    if (delay < link.delay_ns || delay > kLongestDelay) reject(at + ".delay_step_ns", delay, "in [delay_ns, 3.6e12]");
  }
  check_steps(link.loss_time_ns, link.loss_step.size(), link.loss_period_ns, at + ".loss", "_step");
  if (!link.loss_step.empty() && (link.loss > 0 || !link.ge.empty())) {
    reject(at + ".loss_step", link.loss_step.size(), "empty beside loss or ge");
  }
  const JitterConfig& jitter = link.jitter;
  const std::string of = at + ".jitter";
  if (!known_jitter(jitter.distribution)) {
    reject(of + ".distribution", jitter.distribution, "uniform, exponential, normal, pareto, or empty for none");
  }
  check_fields(jitter, of);
  if (link.delay_reorders && !jitter.distribution.empty() && !jitter.reorder) {
    reject(of + ".reorder", jitter.reorder, "true where delay_reorders is");
  }
  if (link.outage_ns > 0 && link.trace_ns.empty() && link.schedule_time_ns.empty()) {
    reject(at + ".outage_ns", link.outage_ns, "0 for a link whose rate does not vary");
  }
}

void check_medium(const LinkConfig& link, const std::string& at) {
  if (link.medium.empty()) {
    if (!link.medium_parameters.empty()) {
      reject(at + ".medium_parameters", link.medium_parameters.begin()->first, "empty without a medium");
    }
    if (link.uplink) reject(at + ".uplink", 1, "0 without a medium");
    if (link.gain_db != 0) reject(at + ".gain_db", link.gain_db, "0 without a medium");
    return;
  }
  medium_parameters(link.medium, link.medium_parameters, at + ".medium");
  if (link.gain_db != 0 && !Catalogue<MediumRecord>::find(link.medium)->has_gains) {
    reject(at + ".gain_db", link.gain_db, "0 on a medium whose channels are alike");
  }
  if (link.rate_bps > 0) reject(at + ".rate_bps", link.rate_bps, "0 beside a medium, which transmits");
  if (!link.schedule_time_ns.empty() || !link.trace_ns.empty()) {
    reject(at + ".medium", link.medium, "empty beside a rate that varies");
  }
  if (link.device_packets > 0) reject(at + ".device_packets", link.device_packets, "0 beside a medium");
}

void check(const LinkConfig& link, const std::string& at) {
  check_fields(link, at);
  if (!link.ge.empty() && link.ge.size() != 4) reject(at + ".ge", link.ge.size(), "four probabilities");
  for (size_t i = 1; i < link.loss_list.size(); ++i) {
    if (link.loss_list[i] <= link.loss_list[i - 1]) reject(at + ".loss_list", link.loss_list[i], "strictly increasing");
  }
  const std::vector<double>& rates = link.schedule_rate_bps;
  check_steps(link.schedule_time_ns, rates.size(), link.schedule_period_ns, at + ".schedule", "_rate_bps");
  if (!rates.empty() && *std::max_element(rates.begin(), rates.end()) <= 0) {
    reject(at + ".schedule_rate_bps", 0, "positive at least once");
  }
  if (!link.trace_ns.empty()) {
    if (!std::is_sorted(link.trace_ns.begin(), link.trace_ns.end()) || link.trace_ns.front() < 0) {
      reject(at + ".trace_ns", link.trace_ns.front(), "sorted and >= 0");
    }
    if (link.trace_period_ns < link.trace_ns.back() || link.trace_period_ns <= 0 || link.trace_period_ns > kLongest) {
      reject(at + ".trace_period_ns", link.trace_period_ns,
             "positive, not before the last opportunity and at most 1e16");
    }
  }
  check_wire(link, at);
  check_medium(link, at);
  if (!link.discipline.empty()) {
    discipline_parameters(link.discipline, link.discipline_parameters, at + ".discipline");
  } else if (!link.discipline_parameters.empty()) {
    reject(at + ".discipline_parameters", link.discipline_parameters.begin()->first, "empty without a discipline");
  }
}

void check_path(const std::vector<uint32_t>& path, const std::string& field, size_t links) {
  if (path.empty()) reject(field, "[]", "at least one link");
  if (path.size() > kMaxHops) reject(field, path.size(), "at most " + std::to_string(kMaxHops) + " links a direction");
  for (const uint32_t link : path) {
    if (link >= links) reject(field, link, "indices of links below " + std::to_string(links));
  }
}

// The ns3 stack always has all options of the handshake.
void check_options(const TcpSettings& settings, const std::string& at, Stack stack) {
  if (stack_profile(stack).takes_settings) return;
  const std::pair<const char*, std::optional<bool>> options[] = {
      {"window_scaling", settings.window_scaling}, {"timestamps", settings.timestamps}, {"sack", settings.sack}};
  for (const auto& [name, used] : options) {
    if (used == false) reject(at + name, "false", "true in the ns3 stack");
  }
}

void check(const FlowConfig& flow, const std::string& at, size_t links, Stack stack) {
  check_fields(flow, at);
  check_options(flow, at + ".", stack);
  if (!flow.own_control) check_congestion_control(flow.cc, stack, flow.cc_parameters, at + ".cc");
  if (flow.controlled && (flow.own_control || !Catalogue<CongestionControlRecord>::find(flow.cc)->agent)) {
    reject(at + ".cc", flow.cc, "an agent's when the flow is controlled");
  }
  if (flow.ecn && !stack_profile(stack).speaks_ecn) {
    reject(at + ".ecn", flow.ecn, "false in the ns3 stack, which does not speak it here");
  }
  check_path(flow.path, at + ".path", links);
  check_path(flow.return_path, at + ".return_path", links);
  Time from = 0;
  size_t hops = flow.path.size(), return_hops = flow.return_path.size();
  for (size_t i = 0; i < flow.routes.size(); ++i) {
    const RouteConfig& route = flow.routes[i];
    const std::string which = at + ".routes[" + std::to_string(i) + "]";
    check_path(route.path, which + ".path", links);
    check_path(route.return_path, which + ".return_path", links);
    if (route.from_ns <= from || route.from_ns > kLongest) {
      reject(which + ".from_ns", route.from_ns, "above the one before, at most 1e16");
    }
    from = route.from_ns;
    hops += route.path.size(), return_hops += route.return_path.size();
  }
  if (std::max(hops, return_hops) > kMaxHops) {
    reject(at + ".routes", std::max(hops, return_hops),
           "at most " + std::to_string(kMaxHops) + " links a direction in all");
  }
  if (!flow.routes.empty() && (flow.sender_host >= 0 || flow.receiver_host >= 0)) {
    reject(at + ".routes", flow.routes.size(), "none for a socket at a host");
  }
  if (flow.ecn_counts && !flow.ecn) reject(at + ".ecn_counts", 1, "0 for a flow that does not speak ECN");
  if (!flow.misbehaviour.empty()) {
    if (flow.misbehaviour != "optimistic" && flow.misbehaviour != "split" && flow.misbehaviour != "spoofed") {
      reject(at + ".misbehaviour", flow.misbehaviour, "one of optimistic split spoofed, or empty");
    }
    if (flow.app != "bulk" || flow.stop_ns > 0 || !flow.receiver.empty() || flow.receive_buffer_bytes > 0 ||
        flow.receiver_host >= 0 || flow.relay_from >= 0) {
      reject(at + ".misbehaviour", flow.misbehaviour,
             "empty for all but endless bulk flows without receive buffers, receiver controls and relays");
    }
  }
  // An optimistic receiver's sender knows no losses, and its window no end: a whole buffer is sent at once.
  constexpr int64_t kMostAtOnce = std::numeric_limits<int32_t>::max();  // Linux' sk_sndbuf is an int
  if (flow.misbehaviour == "optimistic" && (flow.send_buffer_bytes == 0 || flow.send_buffer_bytes > kMostAtOnce)) {
    reject(at + ".send_buffer_bytes", flow.send_buffer_bytes, "1 to 2147483647 beside an optimistic receiver");
  }
  if (flow.stop_ns != 0 && flow.stop_ns <= flow.start_ns) reject(at + ".stop_ns", flow.stop_ns, "0 or after start_ns");
  const Application& app = Catalogue<Application>::get(flow.app, at + ".app");
  app.check(flow, at);
  check_receiver_control(flow, at + ".receiver");
  if (!flow.receiver.empty() && flow.window_clamp_bytes > 0) {
    reject(at + ".window_clamp_bytes", flow.window_clamp_bytes, "0 beside a receiver control");
  }
  if (flow.timestamp_ns != kMillisecond && flow.timestamp_ns != kMicrosecond) {
    reject(at + ".timestamp_ns", flow.timestamp_ns, "1000 or 1000000");
  }
  if (app.answers && flow.read_bps > 0) reject(at + ".read_bps", flow.read_bps, "0 for a client, which reads at once");
  if (flow.relay_from >= 0 && !app.relays) reject(at + ".app", flow.app, "bulk for a flow that relays another's bytes");
  if (flow.relay_from >= 0 && flow.relay_buffer_bytes <= 0) {
    reject(at + ".relay_buffer_bytes", flow.relay_buffer_bytes, "positive for a relay");
  }
}

// An endless stream over links without a rate would grow its window, and the work of a millisecond, without end.
void check_bounded(const WorldConfig& config, const FlowConfig& flow, const std::string& at) {
  bool rate = false, delay = false;
  for (const auto* path : {&flow.path, &flow.return_path}) {
    for (const uint32_t index : *path) {
      const LinkConfig& link = config.links[index];
      const bool finite = link.rate_bps > 0 || !link.trace_ns.empty() || !link.schedule_time_ns.empty() ||
                          !link.medium.empty();
      rate |= finite && path == &flow.path;
      delay |= finite || link.delay_ns > 0;
    }
  }
  if (!delay) reject(at + ".path", "links without rate and delay", "a path and return_path that take time");
  const bool buffered = flow.send_buffer_bytes > 0 || flow.receive_buffer_bytes > 0 || flow.sender_host >= 0 ||
                        flow.receiver_host >= 0;
  if (application_of(flow).outruns(flow) && !rate && !buffered) {
    reject(at + ".path", "infinitely fast links", "a path with a finite rate, or a flow with a send or receive buffer");
  }
}

// Each of its routes is a path that it might have had from the start.
void check_routes(const WorldConfig& config, const FlowConfig& flow, const std::string& at) {
  for (size_t i = 0; i < flow.routes.size(); ++i) {
    FlowConfig other = flow;
    other.path = flow.routes[i].path, other.return_path = flow.routes[i].return_path;
    check_bounded(config, other, at + ".routes[" + std::to_string(i) + "]");
  }
}

// Each flow is relayed at most once, and no chain of relays closes upon itself.
void check_relays(const std::vector<FlowConfig>& flows) {
  std::vector<bool> relayed(flows.size(), false);
  for (size_t i = 0; i < flows.size(); ++i) {
    const std::string field = "flows[" + std::to_string(i) + "].relay_from";
    int32_t upstream = flows[i].relay_from;
    if (upstream < -1 || upstream >= static_cast<int32_t>(flows.size())) {
      reject(field, upstream, "-1 or the index of a flow");
    }
    if (upstream < 0) continue;
    if (relayed[static_cast<size_t>(upstream)]) reject(field, upstream, "a flow that no other relays");
    relayed[static_cast<size_t>(upstream)] = true;
    if (application_of(flows[static_cast<size_t>(upstream)]).answers) {
      reject(field, upstream, "a flow whose receiver is no client");
    }
    if (flows[static_cast<size_t>(upstream)].read_bps > 0) {
      reject(field, upstream, "a flow that no application reads at a rate");
    }
    for (size_t steps = 0; upstream >= 0 && upstream < static_cast<int32_t>(flows.size()); ++steps) {
      if (steps == flows.size()) {
        reject(field, flows[i].relay_from, "a flow that does not relay, over others or not, from this one");
      }
      upstream = flows[static_cast<size_t>(upstream)].relay_from;
    }
  }
}

void check(const SwitchConfig& sw, const std::string& at, const std::vector<LinkConfig>& links,
           std::vector<bool>& taken) {
  check_fields(sw, at);
  if (sw.ports.empty()) reject(at + ".ports", "[]", "at least one link");
  for (const uint32_t port : sw.ports) {
    if (port >= links.size()) reject(at + ".ports", port, "indices of links below " + std::to_string(links.size()));
    if (taken[port]) reject(at + ".ports", port, "a link that is no other port");
    taken[port] = true;
    const LinkConfig& link = links[port];
    if (!link.discipline.empty()) {
      reject("links[" + std::to_string(port) + "].discipline", link.discipline, "empty for the port of a switch");
    }
    if (link.queue_limit_packets != 0 || link.queue_limit_bytes != 0) {
      reject("links[" + std::to_string(port) + "].queue_limit_packets", link.queue_limit_packets,
             "0 for the port of a switch: its buffer is shared");
    }
  }
  if (sw.admission == "static") {
    if (sw.thresholds.size() != sw.queues) reject(at + ".thresholds", sw.thresholds.size(), "one for each queue");
    for (const int64_t threshold : sw.thresholds) {
      if (threshold < 0 || threshold > kLargest) reject(at + ".thresholds", threshold, "in [0, 2^40]");
    }
  } else if (sw.admission == "dynamic" || sw.admission == "abm" || sw.admission == "agent") {
    if (sw.alphas.size() != sw.queues) reject(at + ".alphas", sw.alphas.size(), "one for each queue");
    for (const double alpha : sw.alphas) {
      if (!(alpha >= 0 && alpha <= 1e6)) reject(at + ".alphas", alpha, "in [0, 1e6]");
    }
  } else {
    reject(at + ".admission", sw.admission, "static, dynamic, abm or agent");
  }
  if (!sw.betas.empty() && sw.betas.size() != sw.queues) {
    reject(at + ".betas", sw.betas.size(), "one for each queue, or none");
  }
  if (sw.drop != "tail" && sw.drop != "head") reject(at + ".drop", sw.drop, "tail or head");
  if (sw.congested != "drop" && sw.congested != "mark") reject(at + ".congested", sw.congested, "drop or mark");
  if (sw.scheduler == "drr") {
    if (sw.quanta.size() != sw.queues) reject(at + ".quanta", sw.quanta.size(), "one for each queue");
    for (const int64_t quantum : sw.quanta) {
      if (quantum < 1 || quantum > kLargest) reject(at + ".quanta", quantum, "in [1, 2^40]");
    }
  } else if (sw.scheduler != "round_robin" && sw.scheduler != "strict_priority") {
    reject(at + ".scheduler", sw.scheduler, "round_robin, drr or strict_priority");
  }
  if (sw.flow_service != "fifo" && sw.flow_service != "drr") {
    reject(at + ".flow_service", sw.flow_service, "fifo or drr");
  }
  if (sw.victims != "any" && sw.victims != "large") reject(at + ".victims", sw.victims, "any or large");
  if (sw.victims == "large" && sw.flow_slots == 0) reject(at + ".victims", sw.victims, "any without a table of flows");
}

void check(const ArrivalsConfig& arrivals, const std::string& at, size_t senders) {
  check_fields(arrivals, at);
  if (arrivals.stop_ns != 0 && arrivals.stop_ns <= arrivals.start_ns) {
    reject(at + ".stop_ns", arrivals.stop_ns, "0 or after start_ns");
  }
  Catalogue<ArrivalsRecord>::get(arrivals.kind, at + ".kind").check(arrivals, at, senders);
}

void check(const ProbeConfig& probe, const std::string& at, size_t links) {
  check_path(probe.path, at + ".path", links);
  check_fields(probe, at);
}

void check(const UdpConfig& udp, const std::string& at, size_t links) {
  check_path(udp.path, at + ".path", links);
  check_fields(udp, at);
  if (udp.sizes.size() > 1) reject(at + ".sizes", udp.sizes.size(), "one law at most");
  for (const LawConfig& law : udp.sizes) {
    Law::check(law, at + ".sizes");
    if (const double mean = Law(law).mean(); !(mean >= 0.5 && mean <= udp.bytes)) {
      reject(at + ".sizes", mean, "a law whose mean is from half a byte to bytes");
    }
  }
  if (!udp.periods.empty() && (udp.periods.size() != 2 || udp.on_ns > 0)) {
    reject(at + ".periods", udp.periods.size(), "those on and off, instead of on_ns");
  }
  for (const LawConfig& law : udp.periods) {
    Law::check(law, at + ".periods");
    if (const double mean = Law(law).mean(); !(mean >= 1e-9 && mean <= seconds(kLongest))) {
      reject(at + ".periods", mean, "laws whose mean is in [1e-9, 1e7] seconds");
    }
  }
  if (udp.replay_ns.size() != udp.replay_bytes.size()) {
    reject(at + ".replay_bytes", udp.replay_bytes.size(), "as many as replay_ns");
  }
  if (!udp.replay_ns.empty()) {
    const Time last = udp.replay_ns.back();
    if (!std::is_sorted(udp.replay_ns.begin(), udp.replay_ns.end()) || udp.replay_ns.front() < 0 || last > kLongest) {
      reject(at + ".replay_ns", last, "in [0, 1e16], in ascending order");
    }
    if (udp.replay_period_ns > 0 && udp.replay_period_ns <= last) {
      reject(at + ".replay_period_ns", udp.replay_period_ns, "0, or above the last of replay_ns");
    }
    if (udp.replay_period_ns > 0 && static_cast<size_t>(udp.replay_period_ns) < udp.replay_ns.size()) {
      reject(at + ".replay_period_ns", udp.replay_period_ns, "0, or at least a nanosecond a packet");
    }
    const uint32_t longest = *std::max_element(udp.replay_bytes.begin(), udp.replay_bytes.end());
    if (longest > udp.bytes) {
      reject(at + ".replay_bytes", longest, "at most bytes, " + std::to_string(udp.bytes));
    }
  }
  const double packet_bytes = udp.sizes.empty() ? udp.bytes : Law(udp.sizes.front()).mean();
  if (udp.rate_bps > packet_bytes * 8e9) reject(at + ".rate_bps", udp.rate_bps, "at most a packet a nanosecond");
  if (udp.stop_ns != 0 && udp.stop_ns <= udp.start_ns) reject(at + ".stop_ns", udp.stop_ns, "0 or after start_ns");
  if (udp.on_ns == 0 && udp.off_ns != 0) reject(at + ".off_ns", udp.off_ns, "0 for a source that is always on");
}

// Every queue that packets of this priority meet must be there.
void check_priority(uint32_t priority, const std::vector<uint32_t>& path, const WorldConfig& config,
                    const std::string& field) {
  for (const SwitchConfig& sw : config.switches) {
    for (const uint32_t port : sw.ports) {
      if (std::find(path.begin(), path.end(), port) != path.end() && priority >= sw.queues) {
        reject(field, priority, "below the number of queues, " + std::to_string(sw.queues));
      }
    }
  }
}

void check_traffic(const WorldConfig& config) {
  if (config.traffic.size() > 1) reject("traffic", config.traffic.size(), "one at most");
  if (config.traffic.empty()) return;
  const TrafficConfig& traffic = config.traffic.front();
  if (traffic.senders.empty()) reject("traffic.senders", "[]", "at least one sender");
  for (size_t i = 1; i < traffic.priority_below.size(); ++i) {
    if (traffic.priority_below[i] <= traffic.priority_below[i - 1]) {
      reject("traffic.priority_below", traffic.priority_below[i], "strictly increasing");
    }
  }
  uint32_t highest = 0;
  for (size_t i = 0; i < traffic.arrivals.size(); ++i) {
    const ArrivalsConfig& arrivals = traffic.arrivals[i];
    check(arrivals, "traffic.arrivals[" + std::to_string(i) + "]", traffic.senders.size());
    highest = std::max(highest, Catalogue<ArrivalsRecord>::find(arrivals.kind)->highest_priority(arrivals, traffic));
  }
  const auto check_leg = [&](FlowConfig leg, const std::string& at) {
    leg.app = "sized", leg.size_bytes = 1, leg.start_ns = leg.stop_ns = 0;
    if (leg.controlled || leg.relay_from >= 0) {
      reject(at + ".cc", leg.cc, "a sender that neither an agent controls nor relays");
    }
    check(leg, at, config.links.size(), config.stack);
    check_bounded(config, leg, at);
    for (const auto* path : {&leg.path, &leg.return_path}) {
      check_priority(highest, *path, config, at + "'s highest priority");
    }
  };
  for (size_t i = 0; i < traffic.senders.size(); ++i) {
    const FlowConfig& sender = traffic.senders[i];
    const std::string at = "traffic.senders[" + std::to_string(i) + "]", relay = at + ".relay";
    check_leg(sender, at);
    if (sender.relay.size() > 1) reject(relay, sender.relay.size(), "one at most");
    for (const FlowConfig& leg : sender.relay) {
      check_leg(leg, relay);
      if (leg.relay_buffer_bytes <= 0) reject(relay + ".relay_buffer_bytes", leg.relay_buffer_bytes, "positive");
      if (leg.sender_host < 0 || leg.sender_host != sender.receiver_host) {
        reject(relay + ".sender_host", leg.sender_host, "the host at which the first leg ends");
      }
    }
  }
}

}  // namespace

void validate(const WorldConfig& config) {
  check_fields(config, "");
  check_options({0, std::nullopt, config.window_scaling, config.timestamps, config.sack}, "", config.stack);
  if (!stack_profile(config.stack).takes_settings) {
    if (config.syn_retries) reject("syn_retries", config.syn_retries, "0 in the ns3 stack");
    if (config.data_retries) reject("data_retries", config.data_retries, "0 in the ns3 stack");
  }
  for (size_t i = 0; i < config.hosts.size(); ++i) {
    check_options(config.hosts[i], "hosts[" + std::to_string(i) + "].", config.stack);
  }
  if (config.links.empty()) reject("links", "[]", "at least one link");
  if (config.flows.empty() && config.traffic.empty() && config.udp.empty()) {
    reject("flows", "[]", "at least one flow, or traffic, or datagrams");
  }
  for (size_t i = 0; i < config.links.size(); ++i) check(config.links[i], "links[" + std::to_string(i) + "]");
  for (size_t i = 0; i < config.flows.size(); ++i) {
    check(config.flows[i], "flows[" + std::to_string(i) + "]", config.links.size(), config.stack);
  }
  check_relays(config.flows);
  check_hosts(config);
  for (size_t i = 0; i < config.flows.size(); ++i) {
    const std::string at = "flows[" + std::to_string(i) + "]";
    check_bounded(config, config.flows[i], at);
    check_routes(config, config.flows[i], at);
  }
  std::vector<bool> taken(config.links.size(), false);
  for (size_t i = 0; i < config.switches.size(); ++i) {
    check(config.switches[i], "switches[" + std::to_string(i) + "]", config.links, taken);
  }
  for (size_t i = 0; i < config.flows.size(); ++i) {
    const std::string field = "flows[" + std::to_string(i) + "].priority";
    for (const auto* path : {&config.flows[i].path, &config.flows[i].return_path}) {
      check_priority(config.flows[i].priority, *path, config, field);
    }
    for (const RouteConfig& route : config.flows[i].routes) {
      for (const auto* path : {&route.path, &route.return_path}) {
        check_priority(config.flows[i].priority, *path, config, field);
      }
    }
  }
  check_traffic(config);
  for (size_t i = 0; i < config.probes.size(); ++i) {
    const std::string at = "probes[" + std::to_string(i) + "]";
    check(config.probes[i], at, config.links.size());
    check_priority(config.probes[i].priority, config.probes[i].path, config, at + ".priority");
  }
  for (size_t i = 0; i < config.udp.size(); ++i) {
    const std::string at = "udp[" + std::to_string(i) + "]";
    check(config.udp[i], at, config.links.size());
    check_priority(config.udp[i].priority, config.udp[i].path, config, at + ".priority");
  }
}

}  // namespace netbuf
