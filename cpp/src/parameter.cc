#include "netbuf/parameter.h"

#include <cmath>
#include <sstream>
#include <stdexcept>

namespace netbuf {

Stack stack_of(std::string_view name) {
  std::string message = "stack = " + std::string(name) + ": must be one of";
  for (size_t i = 0; i < std::size(kStackNames); ++i) {
    if (kStackNames[i] == name) return static_cast<Stack>(i);
    message.append(" ").append(kStackNames[i]);
  }
  throw std::invalid_argument(message);
}

namespace {

bool allowed(const Parameter& parameter, double value) {
  if (!(value >= parameter.low && value <= parameter.high)) return false;  // nor NaN
  return parameter.kind == Parameter::Kind::real || value == std::floor(value);
}

std::string range_of(const Parameter& parameter) {
  if (parameter.kind == Parameter::Kind::truth) return "0 or 1";
  std::ostringstream range;
  range << (parameter.kind == Parameter::Kind::real ? "in [" : "a whole number in [") << parameter.low << ", "
        << parameter.high << "]";
  return range.str();
}

}  // namespace

void check_defaults(const std::vector<Parameter>& known, const std::string& field) {
  for (const Parameter& parameter : known) {
    if (std::isnan(parameter.initial) || allowed(parameter, parameter.initial)) continue;  // kAutomatic is NaN
    std::ostringstream message;
    message << field << "[" << parameter.name << "]: its default " << parameter.initial << " must be "
            << range_of(parameter);
    throw std::invalid_argument(message.str());
  }
}

Parameters::Parameters(const std::vector<Parameter>& known, const Given& given, const std::string& field,
                       std::optional<Stack> stack) {
  values_.reserve(known.size());
  const auto there = [&](const Parameter& parameter) { return !stack || parameter.in(*stack); };
  for (const Parameter& parameter : known) {
    if (there(parameter)) values_.emplace_back(parameter.name, parameter.initial);
  }
  for (const auto& [name, value] : given) {
    const Parameter* found = nullptr;
    for (const Parameter& parameter : known) {
      if (parameter.name == name && there(parameter)) found = &parameter;
    }
    if (found && allowed(*found, value)) {
      for (auto& [key, taken] : values_) taken = key == name ? value : taken;
      continue;
    }
    std::ostringstream message;
    message << field << "[" << name << "] = " << value << ": must be ";
    if (found) {
      message << range_of(*found);
    } else if (values_.empty()) {
      message << "left out: there are no parameters";
    } else {
      message << "one of";
      for (const auto& entry : values_) message << ' ' << entry.first;
    }
    throw std::invalid_argument(message.str());
  }
}

}  // namespace netbuf
