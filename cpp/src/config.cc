#include "netbuf/config.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>

#include "netbuf/app.h"

namespace netbuf {

namespace {

template <class T>
[[noreturn]] void reject(const std::string& field, const T& value, const std::string& valid) {
  std::ostringstream message;
  message << field << " = " << value << ": must be " << valid;
  throw std::invalid_argument(message.str());
}

constexpr Time kLongest = 10'000'000 * kSecond;  // of any time in a configuration, so that sums of them cannot overflow

bool valid_rate(double bps) { return std::isfinite(bps) && (bps == 0 || bps >= 1); }

void check(const LinkConfig& link, const std::string& at) {
  if (!valid_rate(link.rate_bps)) reject(at + ".rate_bps", link.rate_bps, "finite and at least 1, or 0 for infinitely fast");
  if (link.delay_ns < 0 || link.delay_ns > 3600 * kSecond) reject(at + ".delay_ns", link.delay_ns, "in [0, 3.6e12]");
  if (link.queue_limit_packets < 0) reject(at + ".queue_limit_packets", link.queue_limit_packets, ">= 0 (0: no limit)");
  if (link.queue_limit_bytes < 0) reject(at + ".queue_limit_bytes", link.queue_limit_bytes, ">= 0 (0: no limit)");
  if (!(link.loss >= 0 && link.loss < 1)) reject(at + ".loss", link.loss, "in [0, 1)");
  if (!link.ge.empty()) {
    if (link.ge.size() != 4) reject(at + ".ge", link.ge.size(), "four probabilities");
    for (const double p : link.ge) {
      if (!(p >= 0 && p <= 1)) reject(at + ".ge", p, "probabilities in [0, 1]");
    }
  }
  for (size_t i = 1; i < link.loss_list.size(); ++i) {
    if (link.loss_list[i] <= link.loss_list[i - 1]) reject(at + ".loss_list", link.loss_list[i], "strictly increasing");
  }
  if (link.schedule_time_ns.size() != link.schedule_rate_bps.size()) {
    reject(at + ".schedule_rate_bps", link.schedule_rate_bps.size(), "as long as schedule_time_ns");
  }
  if (!link.schedule_time_ns.empty()) {
    if (link.schedule_time_ns.front() != 0) reject(at + ".schedule_time_ns[0]", link.schedule_time_ns.front(), "0");
    for (size_t i = 1; i < link.schedule_time_ns.size(); ++i) {
      if (link.schedule_time_ns[i] <= link.schedule_time_ns[i - 1] || link.schedule_time_ns[i] > kLongest) reject(at + ".schedule_time_ns", link.schedule_time_ns[i], "strictly increasing, at most 1e16");
    }
    for (const double rate : link.schedule_rate_bps) {
      if (!valid_rate(rate)) reject(at + ".schedule_rate_bps", rate, "finite and at least 1, or 0 for an outage");
    }
    if (*std::max_element(link.schedule_rate_bps.begin(), link.schedule_rate_bps.end()) <= 0) reject(at + ".schedule_rate_bps", 0, "positive at least once");
    if (link.schedule_period_ns != 0 && (link.schedule_period_ns <= link.schedule_time_ns.back() || link.schedule_period_ns > kLongest)) {
      reject(at + ".schedule_period_ns", link.schedule_period_ns, "0, or beyond the last step and at most 1e16");
    }
  }
  if (!link.trace_ns.empty()) {
    if (!std::is_sorted(link.trace_ns.begin(), link.trace_ns.end()) || link.trace_ns.front() < 0) reject(at + ".trace_ns", link.trace_ns.front(), "sorted and >= 0");
    if (link.trace_period_ns < link.trace_ns.back() || link.trace_period_ns <= 0 || link.trace_period_ns > kLongest) {
      reject(at + ".trace_period_ns", link.trace_period_ns, "positive, not before the last opportunity and at most 1e16");
    }
  }
}

constexpr size_t kMaxHops = 100;
constexpr int64_t kMaxWindow = int64_t{1} << 30;  // RFC 7323, 2.3

void check(const FlowConfig& flow, const std::string& at, size_t links) {
  const auto names = congestion_control_names();
  if (std::find(names.begin(), names.end(), flow.cc) == names.end()) reject(at + ".cc", flow.cc, "a known congestion control");
  if (flow.controlled && flow.cc != "agent") reject(at + ".cc", flow.cc, "agent when the flow is controlled");
  if (flow.path.empty()) reject(at + ".path", "[]", "at least one link");
  if (flow.return_path.empty()) reject(at + ".return_path", "[]", "at least one link");
  for (const auto* path : {&flow.path, &flow.return_path}) {
    if (path->size() > kMaxHops) reject(at + ".path", path->size(), "at most " + std::to_string(kMaxHops) + " links a direction");
    for (const uint32_t link : *path) {
      if (link >= links) reject(at + ".path", link, "indices of links below " + std::to_string(links));
    }
  }
  if (flow.start_ns < 0) reject(at + ".start_ns", flow.start_ns, ">= 0");
  if (flow.stop_ns != 0 && flow.stop_ns <= flow.start_ns) reject(at + ".stop_ns", flow.stop_ns, "0 or after start_ns");
  if (flow.app != "bulk" && flow.app != "sized" && flow.app != "on_off") reject(at + ".app", flow.app, "bulk, sized or on_off");
  if (flow.app == "sized" && (flow.size_bytes <= 0 || flow.size_bytes >= kEndless)) reject(at + ".size_bytes", flow.size_bytes, "positive and below 2^60");
  if (flow.app == "on_off" && (flow.on_ns <= 0 || flow.on_ns > kLongest)) reject(at + ".on_ns", flow.on_ns, "in [1, 1e16]");
  if (flow.off_ns < 0 || flow.off_ns > kLongest) reject(at + ".off_ns", flow.off_ns, "in [0, 1e16]");
  if (!valid_rate(flow.app_rate_bps)) reject(at + ".app_rate_bps", flow.app_rate_bps, "finite and at least 1, or 0 for as fast as TCP takes it");
  if (flow.send_buffer_bytes < 0) reject(at + ".send_buffer_bytes", flow.send_buffer_bytes, ">= 0 (0: never limits)");
  if (flow.receive_buffer_bytes < 0) reject(at + ".receive_buffer_bytes", flow.receive_buffer_bytes, ">= 0 (0: never limits)");
  if (flow.window_clamp_bytes < 0 || flow.window_clamp_bytes > kMaxWindow) reject(at + ".window_clamp_bytes", flow.window_clamp_bytes, "in [1, 2^30], or 0 for no clamp");
  if (flow.relay_from >= 0 && flow.app != "bulk") reject(at + ".app", flow.app, "bulk for a flow that relays another's bytes");
  if (flow.relay_from >= 0 && flow.relay_buffer_bytes <= 0) reject(at + ".relay_buffer_bytes", flow.relay_buffer_bytes, "positive for a relay");
  if (flow.initial_cwnd_packets < 1 || flow.initial_cwnd_packets > 1000) reject(at + ".initial_cwnd_packets", flow.initial_cwnd_packets, "in [1, 1000]");
}

// An endless stream over links without a rate would grow its window, and the work of a millisecond, without end.
void check_bounded(const WorldConfig& config, const FlowConfig& flow, const std::string& at) {
  bool rate = false, delay = false;
  for (const auto* path : {&flow.path, &flow.return_path}) {
    for (const uint32_t index : *path) {
      const LinkConfig& link = config.links[index];
      const bool finite = link.rate_bps > 0 || !link.trace_ns.empty() || !link.schedule_time_ns.empty();
      rate |= finite && path == &flow.path;
      delay |= finite || link.delay_ns > 0;
    }
  }
  if (!delay) reject(at + ".path", "links without rate and delay", "a path and return_path that take time");
  const bool endless = (flow.app == "bulk" && flow.relay_from < 0 && flow.window_clamp_bytes == 0) || (flow.app == "on_off" && flow.app_rate_bps == 0);
  if (endless && !rate && flow.send_buffer_bytes == 0 && flow.receive_buffer_bytes == 0) {
    reject(at + ".path", "infinitely fast links", "a path with a finite rate, or a flow with a send or receive buffer");
  }
}

// Each flow is relayed at most once, and no chain of relays closes upon itself.
void check_relays(const std::vector<FlowConfig>& flows) {
  std::vector<bool> relayed(flows.size(), false);
  for (size_t i = 0; i < flows.size(); ++i) {
    const std::string field = "flows[" + std::to_string(i) + "].relay_from";
    int32_t upstream = flows[i].relay_from;
    if (upstream < -1 || upstream >= static_cast<int32_t>(flows.size())) reject(field, upstream, "-1 or the index of a flow");
    if (upstream < 0) continue;
    if (relayed[static_cast<size_t>(upstream)]) reject(field, upstream, "a flow that no other relays");
    relayed[static_cast<size_t>(upstream)] = true;
    for (size_t steps = 0; upstream >= 0 && upstream < static_cast<int32_t>(flows.size()); ++steps) {
      if (steps == flows.size()) reject(field, flows[i].relay_from, "a flow that does not relay, over others or not, from this one");
      upstream = flows[static_cast<size_t>(upstream)].relay_from;
    }
  }
}

}  // namespace

void validate(const WorldConfig& config) {
  if (config.links.empty()) reject("links", "[]", "at least one link");
  if (config.flows.empty()) reject("flows", "[]", "at least one flow");
  for (size_t i = 0; i < config.links.size(); ++i) check(config.links[i], "links[" + std::to_string(i) + "]");
  for (size_t i = 0; i < config.flows.size(); ++i) check(config.flows[i], "flows[" + std::to_string(i) + "]", config.links.size());
  check_relays(config.flows);
  for (size_t i = 0; i < config.flows.size(); ++i) check_bounded(config, config.flows[i], "flows[" + std::to_string(i) + "]");
}

const StackProfile& stack_profile(Stack stack) {
  // Linux 6.x: 1500-byte IP packets without link header; TCP_DELACK_MIN, TCP_MAX_QUICKACKS, tcp_comp_sack_delay_ns, TCP_RTO_MIN.
  static const StackProfile linux_kernel{1448, 52, 52, {0, 12, 20, 28}, 60, 3, 2, 40 * kMillisecond, 16, kMillisecond,
                                         kSecond, 200 * kMillisecond, 120 * kSecond, 0};
  // ns-3.44 as the reference runs configure it: PPP framing of two bytes; only the first segment is
  // acknowledged at once; no SACK compression.
  static const StackProfile ns3{1448, 54, 54, {0, 8, 16, 24}, 58, 3, 2, 200 * kMillisecond, 1, 0,
                                3 * kSecond, kSecond, 60 * kSecond, kMillisecond};
  return stack == Stack::ns3 ? ns3 : linux_kernel;
}

}  // namespace netbuf
