#include <algorithm>
#include <stdexcept>

#include "netbuf/medium.h"

namespace netbuf {

Parameters medium_parameters(std::string_view name, const Given& given, const std::string& field) {
  const MediumRecord& record = Catalogue<MediumRecord>::get(name, field);
  Parameters parameters(record.parameters, given, field + "_parameters");
  try {
    record.check(parameters);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(field + "_parameters: " + error.what());
  }
  return parameters;
}

double medium_capacity_bps(std::string_view name, const Given& given, bool up, double gain_db) {
  const MediumRecord& record = Catalogue<MediumRecord>::get(name, "medium");
  return record.capacity_bps(medium_parameters(name, given, "medium"), up, gain_db);
}

LinkConfig with_nominal_rate(LinkConfig link) {
  link.rate_bps = medium_capacity_bps(link.medium, link.medium_parameters, link.uplink, link.gain_db);
  return link;
}

std::vector<SharedMedium> build_media(const WorldConfig& config, Rng* rng, std::vector<Link>& links) {
  std::vector<SharedMedium> media;
  for (uint32_t i = 0; i < config.links.size(); ++i) {
    const LinkConfig& link = config.links[i];
    if (link.medium.empty()) continue;
    const auto shared = std::find_if(media.begin(), media.end(), [&](const SharedMedium& one) {
      const LinkConfig& first = config.links[one.links.front()];
      return first.medium == link.medium && first.medium_parameters == link.medium_parameters;
    });
    if (shared == media.end()) {
      media.push_back({nullptr, {i}});
    } else {
      shared->links.push_back(i);
    }
  }
  for (SharedMedium& shared : media) {
    const LinkConfig& first = config.links[shared.links.front()];
    std::vector<MediumPort> ports;
    for (const uint32_t link : shared.links) {
      ports.push_back({&links[link], config.links[link].uplink, config.links[link].gain_db});
    }
    shared.medium = Catalogue<MediumRecord>::get(first.medium, "medium")
                        .make({medium_parameters(first.medium, first.medium_parameters, "medium"), ports, rng->next()});
    for (uint32_t port = 0; port < shared.links.size(); ++port) {
      links[shared.links[port]].attach(shared.medium.get(), port);
    }
  }
  return media;
}

}  // namespace netbuf
