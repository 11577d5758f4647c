#include "netbuf/ideal.h"

#include <algorithm>
#include <limits>

namespace netbuf {

std::vector<const FlowConfig*> legs_of(const FlowConfig& sender) {
  std::vector<const FlowConfig*> legs{&sender};
  for (const FlowConfig& leg : sender.relay) legs.push_back(&leg);
  return legs;
}

IdealTimes::IdealTimes(const std::vector<FlowConfig>& senders, const std::vector<Link>& links) {
  const auto propagation = [&](const std::vector<uint32_t>& path) {
    Time sum = 0;
    for (const uint32_t link : path) sum += links[link].delay();
    return sum;
  };
  for (const FlowConfig& sender : senders) {
    Way& way = ways_.emplace_back();
    const bool relayed = !sender.relay.empty();
    const Time back = propagation(sender.return_path);
    if (relayed) {
      const FlowConfig& relay = sender.relay.front();
      way.relay_opens = propagation(relay.return_path);
      way.sender_opens = 2 * way.relay_opens + propagation(relay.path) + back;
    }
    const Time sets_out = way.sender_opens + propagation(sender.path) + back;
    double slowest = std::numeric_limits<double>::infinity();
    Time reached = sets_out;
    for (const FlowConfig* leg : legs_of(sender)) {
      for (const auto* path : {&leg->path, &leg->return_path}) {
        for (const uint32_t link : *path) way.rtt += seconds(links[link].delay());
      }
      for (const uint32_t link : leg->path) {
        const Link& one = links[link];
        if (one.constant_rate()) slowest = std::min(slowest, one.mean_rate_bps());
        if (!one.constant_rate()) way.varying.push_back({&one, relayed ? reached : sets_out});
        reached += one.delay();
      }
    }
    way.seconds_per_byte = 8 / slowest;
    if (relayed) way.rtt *= 2;
  }
}

double IdealTimes::seconds_of(uint32_t sender, int64_t size_bytes, Time start) const {
  const auto bytes = static_cast<double>(size_bytes);
  const Way& way = ways_[sender];
  double carrying = bytes * way.seconds_per_byte;
  for (const Varying& one : way.varying) carrying = std::max(carrying, one.link->carry_s(start + one.reached, bytes * 8));
  return way.rtt + carrying;
}

std::vector<std::vector<uint32_t>> crossed_switches(const std::vector<FlowConfig>& senders,
                                                    const std::vector<SwitchConfig>& switches) {
  std::vector<std::vector<uint32_t>> crossed;
  for (const FlowConfig& sender : senders) {
    crossed.emplace_back();
    for (uint32_t i = 0; i < switches.size(); ++i) {
      const std::vector<uint32_t>& ports = switches[i].ports;
      const auto is_port = [&](uint32_t link) { return std::find(ports.begin(), ports.end(), link) != ports.end(); };
      for (const FlowConfig* leg : legs_of(sender)) {
        if (!std::any_of(leg->path.begin(), leg->path.end(), is_port)) continue;
        crossed.back().push_back(i);
        break;
      }
    }
  }
  return crossed;
}

}  // namespace netbuf
