#include "netbuf/links.h"

#include <algorithm>

#include "netbuf/medium.h"
#include "netbuf/netem.h"
#include "netbuf/stack.h"

namespace netbuf {

namespace {

bool is_ring(const WorldConfig& config, uint32_t link) {
  return std::any_of(config.hosts.begin(), config.hosts.end(), [link](const HostConfig& host) {
    return host.agent && std::find(host.devices.begin(), host.devices.end(), link) != host.devices.end();
  });
}

uint32_t find_longest_packet(const WorldConfig& config) {
  const StackProfile& profile = stack_profile(config.stack);  // with time stamps
  uint32_t longest = (config.mss ? config.mss : profile.mss) + profile.data_overhead;
  for (const UdpConfig& source : config.udp) longest = std::max(longest, source.bytes);
  for (const ProbeConfig& probe : config.probes) longest = std::max(longest, probe.bytes);
  return longest;
}

}  // namespace

void build_links(const WorldConfig& config, Rng* rng, Link::Host* host, std::vector<Link>& links,
                 std::vector<std::unique_ptr<SharedBuffer>>& switches, const std::function<void(uint32_t)>& managed,
                 const std::function<PacketEnds(const Queued&)>& ends) {
  links.reserve(config.links.size());
  const bool keep_rates = stack_profile(config.stack).keeps_rates;
  for (const LinkConfig& link : config.links) {
    Link& made = link.medium.empty() ? links.emplace_back(link, rng) : links.emplace_back(with_nominal_rate(link), rng);
    if (keep_rates) made.keep_rates();
  }
  // Switch and port of each link.
  std::vector<std::pair<uint32_t, uint32_t>> ports(config.links.size(), {UINT32_MAX, 0});
  for (uint32_t s = 0; s < config.switches.size(); ++s) {
    const SwitchConfig& sw = config.switches[s];
    switches.push_back(std::make_unique<SharedBuffer>(sw));
    for (uint32_t port = 0; port < sw.ports.size(); ++port) ports[sw.ports[port]] = {s, port};
  }
  // What is longer than its queue may be is dropped, as by every discipline: never sent past an empty queue.
  const uint32_t longest = find_longest_packet(config);
  for (uint32_t i = 0; i < config.links.size(); ++i) {
    LinkConfig link = config.links[i];
    const auto [s, port] = ports[i];
    Link::Maker make;
    if (s != UINT32_MAX) {
      make = [&, s = s, port = port](const DisciplineSetting& setting) {
        return switches[s]->make_port(port, setting.sink);
      };
    } else if (!link.discipline.empty() || link.device_packets > 0 || link.outage_ns > 0 || is_ring(config, i) ||
               has_netem(link) || !link.medium.empty() || (link.queue_limit_bytes > 0 && link.queue_limit_bytes < longest)) {
      if (link.discipline.empty()) link.discipline = "droptail";
      make = [&](const DisciplineSetting& setting) {
        DisciplineSetting all = setting;
        all.ends = ends;
        return make_discipline(link.discipline, link.discipline_parameters, std::move(all));
      };
    } else {
      continue;
    }
    if (link.medium.empty()) managed(i);
    links[i].manage(make, link, i, host);
  }
}

}  // namespace netbuf
