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
  for (const FlowConfig& sender : senders) {
    Way& way = ways_.emplace_back();
    double slowest = std::numeric_limits<double>::infinity();
    for (const FlowConfig* leg : legs_of(sender)) {
      way.last = 0;
      for (const auto* path : {&leg->path, &leg->return_path}) {
        for (const uint32_t link : *path) way.rtt += seconds(links[link].delay()), way.last += links[link].delay();
      }
      way.delays += way.last;
      for (const uint32_t link : leg->path) {
        const Link& one = links[link];
        if (!one.constant_rate()) way.varying.push_back(&one);
        if (one.constant_rate()) slowest = std::min(slowest, one.mean_rate_bps());
      }
    }
    way.seconds_per_byte = 8 / slowest;
    way.first = way.delays - way.last;
    if (sender.relay.empty()) continue;
    way.delays *= 2;
    way.rtt *= 2;
  }
}

double IdealTimes::seconds_of(uint32_t sender, int64_t size_bytes, Time start) const {
  const auto bytes = static_cast<double>(size_bytes);
  const Way& way = ways_[sender];
  double carrying = bytes * way.seconds_per_byte;
  for (const Link* link : way.varying) carrying = std::max(carrying, link->carry_s(start + way.delays, bytes * 8));
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
