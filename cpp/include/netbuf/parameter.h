// The numbers that a part of the simulator is made with, by name: each with its default, its range and what it means.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace netbuf {

enum class Stack : uint8_t { linux_kernel, ns3 };
inline constexpr std::string_view kStackNames[] = {"linux", "ns3"};
inline std::string_view name_of(Stack stack) { return kStackNames[static_cast<size_t>(stack)]; }
Stack stack_of(std::string_view name);       // std::invalid_argument names the valid ones

// The default of a parameter that follows from others, or from where the part stands, unless it is given.
inline constexpr double kAutomatic = std::numeric_limits<double>::quiet_NaN();

struct Parameter {
  enum class Kind : uint8_t { real, whole, truth, named };

  std::string_view name, meaning;            // with its unit
  double initial, low, high;                 // the default, and the range, inclusive
  Kind kind = Kind::real;
  uint8_t stacks = 3;                        // bit i: there in stack i
  uint8_t segments = 0;                      // bytes that are as many full segments at least, whatever low says
  std::string_view names = {};               // of the values 0, 1, .., when named: with commas between

  bool in(Stack stack) const { return stacks >> static_cast<unsigned>(stack) & 1; }
  constexpr Parameter only(Stack stack) const {
    Parameter changed = *this;
    changed.stacks = static_cast<uint8_t>(1u << static_cast<unsigned>(stack));
    return changed;
  }
  constexpr Parameter at_least_segments(uint8_t count) const {
    Parameter changed = *this;
    changed.segments = count;
    return changed;
  }
};

constexpr Parameter real(std::string_view name, double initial, double low, double high, std::string_view meaning) {
  return {name, meaning, initial, low, high};
}
constexpr Parameter whole(std::string_view name, double initial, double low, double high, std::string_view meaning) {
  return {name, meaning, initial, low, high, Parameter::Kind::whole};
}
constexpr Parameter truth(std::string_view name, bool initial, std::string_view meaning) {
  return {name, meaning, initial ? 1.0 : 0.0, 0, 1, Parameter::Kind::truth};
}
// One of several words, which stand for 0, 1, ..
constexpr Parameter named(std::string_view name, double initial, std::string_view names, std::string_view meaning) {
  double last = 0;
  for (const char c : names) last += c == ',';
  return {name, meaning, initial, 0, last, Parameter::Kind::named, 3, 0, names};
}

// Throws std::invalid_argument "FIELD[name]: its default VALUE must be ..." for a default that is out of its own range.
void check_defaults(const std::vector<Parameter>& known, const std::string& field);

using Given = std::map<std::string, double>;

// Those that were given, and the defaults of the others.
class Parameters {
 public:
  Parameters() = default;        // of what has none
  // Throws std::invalid_argument "FIELD[name] = value: must be ..." for one that is unknown or out of its range. With a
  // stack only what is there in that stack is known.
  Parameters(const std::vector<Parameter>& known, const Given& given, const std::string& field,
             std::optional<Stack> stack = {});

  // std::out_of_range: the record does not have it. In the header, like all that a control in a file of its own calls.
  double operator[](std::string_view name) const {
    for (const auto& [known, value] : values_) {
      if (known == name) return value;
    }
    std::string message = "no parameter " + std::string(name) + "; valid: ";
    if (values_.empty()) message += "none, the record has no parameters";
    for (const auto& entry : values_) message.append(&entry == &values_.front() ? "" : ", ").append(entry.first);
    throw std::out_of_range(message);
  }
  bool automatic(std::string_view name) const { return std::isnan((*this)[name]); }
  double or_else(std::string_view name, double otherwise) const { return automatic(name) ? otherwise : (*this)[name]; }
  template <class Integer>
  Integer as(std::string_view name) const { return static_cast<Integer>((*this)[name]); }
  bool is(std::string_view name) const { return (*this)[name] != 0; }

 private:
  std::vector<std::pair<std::string_view, double>> values_;
};

}  // namespace netbuf
