// The catalogue of queue disciplines: what holds for all of them.
#include <cmath>
#include <set>
#include <stdexcept>

#include "check.h"
#include "qdisc_server.h"

using namespace netbuf;

namespace {

std::string refusal(std::string_view name, const Given& parameters) {
  try {
    discipline_parameters(name, parameters, "discipline");
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST(records_are_whole_and_in_the_order_of_their_names) {
  std::string last;
  for (const DisciplineRecord* record : Catalogue<DisciplineRecord>::all()) {
    CHECK_LT(last, std::string(record->name));
    last = record->name;
    CHECK(!record->meaning.empty());
    std::set<std::string_view> names;
    for (const Parameter& parameter : record->parameters) {
      CHECK(names.insert(parameter.name).second);
      CHECK(!parameter.meaning.empty());
      CHECK_LT(parameter.low, parameter.high);
      CHECK(std::isnan(parameter.initial) ||
            (parameter.low <= parameter.initial && parameter.initial <= parameter.high));
    }
  }
  CHECK_THROWS(Entry<DisciplineRecord>({.name = "codel", .meaning = "another", .make = nullptr}), std::logic_error);
}

TEST(an_unknown_name_is_named_with_the_valid_ones) {
  const std::string message = refusal("sfq", {});
  CHECK(message.find("discipline = sfq: must be one of ") != std::string::npos);
  for (const DisciplineRecord* record : Catalogue<DisciplineRecord>::all()) {
    CHECK(message.find(std::string(record->name)) != std::string::npos);
  }
}

TEST(parameters_are_checked_and_filled_in) {
  for (const DisciplineRecord* record : Catalogue<DisciplineRecord>::all()) {
    CHECK(refusal(record->name, {{"colour", 1}}).find("discipline_parameters[colour] = 1: must be ") !=
          std::string::npos);
    for (const Parameter& parameter : record->parameters) {
      const std::string name(parameter.name);
      for (const double bad : {parameter.low - 1, parameter.high * 2 + 1, double{NAN}}) {
        CHECK(refusal(record->name, {{name, bad}}).find("discipline_parameters[" + name + "] = ") != std::string::npos);
      }
      const Parameters good = discipline_parameters(record->name, {{name, parameter.high}}, "discipline");
      CHECK_EQ(good[name], parameter.high);
      for (const Parameter& other : record->parameters) {
        if (other.name == parameter.name) continue;
        CHECK_EQ(good.automatic(other.name), std::isnan(other.initial));
        if (!good.automatic(other.name)) CHECK_EQ(good[other.name], other.initial);
      }
    }
  }
}

TEST(every_one_conserves_packets_at_every_end_of_its_ranges) {
  for (const DisciplineRecord* record : Catalogue<DisciplineRecord>::all()) {
    CHECK(survives_anything(std::string(record->name).c_str(), {}, 30, INT64_MAX, 1));
    CHECK(survives_anything(std::string(record->name).c_str(), {}, INT64_MAX, 30'000, 2));
    for (const Parameter& parameter : record->parameters) {
      for (const double value : {parameter.low, parameter.high}) {
        const Given given{{std::string(parameter.name), value}};
        CHECK(survives_anything(std::string(record->name).c_str(), given, 30, INT64_MAX, 3));
      }
    }
  }
}
