// What there is by name, and the module itself.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cmath>

#include "bindings.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace netbuf {
namespace {

constexpr const char* kKinds[] = {"real", "whole", "truth"};

std::vector<std::string> all_stacks() { return {std::begin(kStackNames), std::end(kStackNames)}; }

template <class Has>
std::vector<std::string> stacks_where(Has&& has) {
  std::vector<std::string> names;
  for (const std::string& name : all_stacks()) {
    if (has(stack_of(name))) names.push_back(name);
  }
  return names;
}

// What Python sees of a record of any catalogue.
struct Described {
  std::string name, meaning;
  std::vector<Parameter> parameters;
  std::vector<std::string> stacks;
  bool agent = false;
};

template <class Record>
std::vector<Described> described() {
  std::vector<Described> all;
  for (const Record* record : Catalogue<Record>::all()) {
    all.push_back({std::string(record->name), std::string(record->meaning), record->parameters, all_stacks()});
    if constexpr (std::is_same_v<Record, CongestionControlRecord>) {
      all.back().stacks = stacks_where([&](Stack stack) { return record->in(stack) != nullptr; });
      all.back().agent = record->agent;
    }
  }
  return all;
}

}  // namespace

void bind_catalogues(nb::module_& m) {
  nb::class_<Parameter>(m, "Parameter", "A number that something of a catalogue is made with.")
      .def_prop_ro("name", [](const Parameter& p) { return std::string(p.name); })
      .def_prop_ro("meaning", [](const Parameter& p) { return std::string(p.meaning); })
      .def_prop_ro("default", [](const Parameter& p) { return std::isnan(p.initial) ? std::nullopt : std::optional(p.initial); },
                   "None: it follows from the rest.")
      .def_ro("low", &Parameter::low)
      .def_ro("high", &Parameter::high, "The range, inclusive.")
      .def_prop_ro("kind", [](const Parameter& p) { return kKinds[static_cast<size_t>(p.kind)]; }, "real, whole or truth.")
      .def_prop_ro("stacks", [](const Parameter& p) { return stacks_where([&](Stack stack) { return p.in(stack); }); });
  nb::class_<Described>(m, "Record", "Something of a catalogue.")
      .def_ro("name", &Described::name)
      .def_ro("meaning", &Described::meaning)
      .def_ro("parameters", &Described::parameters)
      .def_ro("stacks", &Described::stacks)
      .def_ro("agent", &Described::agent, "A congestion control that needs an agent.");
  m.def("stacks", &all_stacks, "Names of the stack profiles.");
  m.def("congestion_controls", &described<CongestionControlRecord>);
  m.def("queue_disciplines", &described<DisciplineRecord>);
  m.def("agent_kinds", &described<AgentRecord>, "Kinds of agents that a Batch can step.");
  m.def("check_discipline", [](const std::string& name, const Given& parameters) {
    Catalogue<DisciplineRecord>::get(name, "discipline")
        .check(Parameters(Catalogue<DisciplineRecord>::get(name, "discipline").parameters, parameters, name));
  }, "name"_a, "parameters"_a, "ValueError: parameters that do not go together.");
}

}  // namespace netbuf

NB_MODULE(_core, m) {
  m.doc() = "Packet-level network simulator: links, TCP and congestion control in virtual time (integer nanoseconds).";
  netbuf::bind_catalogues(m);
  netbuf::bind_config(m);
  netbuf::bind_worlds(m);
}
