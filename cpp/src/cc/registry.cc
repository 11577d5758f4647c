// The congestion controls by name.
#include <sstream>
#include <stdexcept>

#include "cc/records.h"

namespace netbuf {

const std::vector<const CongestionControlRecord*>& congestion_controls() {
  static const std::vector<const CongestionControlRecord*> records{
      &newreno_record, &linuxreno_record, &cubic_record, &bbr_record, &vegas_record, &westwood_record, &agent_record};
  return records;
}

std::vector<std::string> congestion_control_names() {
  std::vector<std::string> names;
  for (const CongestionControlRecord* record : congestion_controls()) names.emplace_back(record->name);
  return names;
}

std::unique_ptr<CongestionControl> make_congestion_control(std::string_view name, Stack stack) {
  for (const CongestionControlRecord* record : congestion_controls()) {
    if (record->name == name) return record->make(stack);
  }
  std::ostringstream message;
  message << "congestion control '" << name << "' is unknown; valid names:";
  for (const std::string& valid : congestion_control_names()) message << ' ' << valid;
  throw std::invalid_argument(message.str());
}

}  // namespace netbuf
