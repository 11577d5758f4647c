#include <sstream>
#include <stdexcept>

#include "netbuf/queue_discipline.h"

namespace netbuf {

extern const DisciplineRecord kDropTail, kRed, kCodel, kFqCodel, kPie;

const std::vector<const DisciplineRecord*>& queue_disciplines() {
  static const std::vector<const DisciplineRecord*> all{&kDropTail, &kRed, &kCodel, &kFqCodel, &kPie};
  return all;
}

std::vector<std::string> queue_discipline_names() {
  std::vector<std::string> names;
  for (const DisciplineRecord* record : queue_disciplines()) names.emplace_back(record->name);
  return names;
}

const DisciplineRecord& check_discipline(std::string_view name, std::map<std::string, double>& parameters,
                                         const std::string& field) {
  std::ostringstream message;
  for (const DisciplineRecord* record : queue_disciplines()) {
    if (record->name != name) continue;
    for (const auto& [key, value] : parameters) {
      const DisciplineParameter* known = nullptr;
      for (const DisciplineParameter& parameter : record->parameters) {
        if (parameter.name == key) known = &parameter;
      }
      if (known && value >= known->low && value <= known->high) continue;  // not for NaN
      message << field << "_parameters[" << key << "] = " << value << ": must be ";
      if (known) {
        message << "in [" << known->low << ", " << known->high << "]";
      } else {
        message << "one of";
        for (const DisciplineParameter& parameter : record->parameters) message << ' ' << parameter.name;
        if (record->parameters.empty()) message << " none: " << name << " has no parameters";
      }
      throw std::invalid_argument(message.str());
    }
    for (const DisciplineParameter& parameter : record->parameters) parameters.try_emplace(std::string(parameter.name), parameter.initial);
    return *record;
  }
  message << field << " = " << name << ": must be one of";
  for (const std::string& known : queue_discipline_names()) message << ' ' << known;
  throw std::invalid_argument(message.str());
}

}  // namespace netbuf
