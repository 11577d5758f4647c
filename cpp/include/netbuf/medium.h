// A medium that several links share: their queues are their own, and the medium decides which of them sends, when, and
// what arrives. One event source for all of its links, which have no events then.
#pragma once
#include <memory>
#include <string_view>
#include <vector>

#include "netbuf/catalogue.h"
#include "netbuf/event_source.h"
#include "netbuf/link.h"
#include "netbuf/parameter.h"

namespace netbuf {

// One of its links.
struct MediumPort {
  Link* link;
  bool up;                                   // from a station or user to the access point or base station
  double gain_db;                            // of its channel
};

class Medium : public EventSource {
 public:
  // Something came to the queue of a port, or may leave it again; whether next() has changed.
  virtual bool offered(Time now, uint32_t port) = 0;
  virtual size_t memory_bytes() const = 0;
};

struct MediumSetting {
  Parameters parameters;                     // complete
  std::vector<MediumPort> ports;
  uint64_t seed;
};

// What the file of a medium ends in: an Entry of one of these.
struct MediumRecord {
  static constexpr std::string_view kWhat = "medium";

  std::string_view name, meaning;
  std::unique_ptr<Medium> (*make)(MediumSetting setting);
  // What a link carries that always has packets of 1500 bytes to send, beside the medium's own stations or users and
  // no other link; bit/s.
  double (*capacity_bps)(const Parameters&, bool up, double gain_db);
  bool has_gains;                            // whether its links' channels may differ
  std::vector<Parameter> parameters = {};
  // What parameters must keep to together; throws std::invalid_argument "name = value is ...".
  void (*check)(const Parameters&) = [](const Parameters&) {};
};

// Throws std::invalid_argument: an unknown medium or parameter, or a value out of range.
Parameters medium_parameters(std::string_view name, const Given& given, const std::string& field);
double medium_capacity_bps(std::string_view name, const Given& given, bool up, double gain_db);
LinkConfig with_nominal_rate(LinkConfig link);  // what its medium carries of it alone, as a rate

struct SharedMedium {
  std::unique_ptr<Medium> medium;
  std::vector<uint32_t> links;
};
// The media of a world whose links are made; these tell their medium from now on.
std::vector<SharedMedium> build_media(const WorldConfig& config, Rng* rng, std::vector<Link>& links);

}  // namespace netbuf
