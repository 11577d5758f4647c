#include "netbuf/ideal.h"

#include <algorithm>
#include <limits>

namespace netbuf {

IdealTimes::IdealTimes(const std::vector<FlowConfig>& senders, const std::vector<Link>& links) {
  for (const FlowConfig& sender : senders) {
    Time delays = 0;
    double rtt = 0, slowest = std::numeric_limits<double>::infinity();
    for (const auto* path : {&sender.path, &sender.return_path}) {
      for (const uint32_t link : *path) rtt += seconds(links[link].delay()), delays += links[link].delay();
    }
    varying_.emplace_back();
    for (const uint32_t link : sender.path) {
      const Link& one = links[link];
      if (!one.constant_rate()) varying_.back().push_back(&one);
      if (one.constant_rate()) slowest = std::min(slowest, one.mean_rate_bps());
    }
    base_rtt_.push_back(delays);
    base_rtt_s_.push_back(rtt);
    seconds_per_byte_.push_back(8 / slowest);
  }
}

double IdealTimes::seconds_of(uint32_t sender, int64_t size_bytes, Time start) const {
  const auto bytes = static_cast<double>(size_bytes);
  double carrying = bytes * seconds_per_byte_[sender];
  for (const Link* link : varying_[sender]) carrying = std::max(carrying, link->carry_s(start + base_rtt_[sender], bytes * 8));
  return base_rtt_s_[sender] + carrying;
}

std::vector<std::vector<uint32_t>> crossed_switches(const std::vector<FlowConfig>& senders, const std::vector<SwitchConfig>& switches) {
  std::vector<std::vector<uint32_t>> crossed;
  for (const FlowConfig& sender : senders) {
    crossed.emplace_back();
    for (uint32_t i = 0; i < switches.size(); ++i) {
      const std::vector<uint32_t>& ports = switches[i].ports;
      const auto is_port = [&](uint32_t link) { return std::find(ports.begin(), ports.end(), link) != ports.end(); };
      if (std::any_of(sender.path.begin(), sender.path.end(), is_port)) crossed.back().push_back(i);
    }
  }
  return crossed;
}

}  // namespace netbuf
