// What there is by name, and the module itself.
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>

#include "bindings.h"
#include "netbuf/medium.h"
#include "netbuf/video.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace netbuf {
namespace {

constexpr const char* kKinds[] = {"real", "whole", "truth", "named"};

std::vector<std::string> all_stacks() { return {std::begin(kStackNames), std::end(kStackNames)}; }

template <class Has>
std::vector<std::string> stacks_where(Has&& has) {
  std::vector<std::string> names;
  for (const std::string& name : all_stacks()) {
    if (has(stack_of(name))) names.push_back(name);
  }
  return names;
}

nb::dict described(const Parameter& parameter) {
  nb::dict d;
  d["name"] = std::string(parameter.name);
  d["meaning"] = std::string(parameter.meaning);
  d["kind"] = kKinds[static_cast<size_t>(parameter.kind)];
  d["default"] = std::isnan(parameter.initial) ? nb::none() : nb::object(nb::float_(parameter.initial));
  d["low"] = parameter.low;
  d["high"] = parameter.high;
  d["stacks"] = stacks_where([&](Stack stack) { return parameter.in(stack); });
  d["segments"] = parameter.segments;
  d["names"] = std::string(parameter.names);
  return d;
}

// The records of a catalogue as dicts, for netbuf_gym.scenarios.catalogue to make types of.
template <class Record>
nb::list described() {
  nb::list all;
  for (const Record* record : Catalogue<Record>::all()) {
    nb::dict d;
    d["name"] = std::string(record->name);
    d["meaning"] = std::string(record->meaning);
    if constexpr (std::is_same_v<Record, CongestionControlRecord>) {
      d["stacks"] = stacks_where([&](Stack stack) { return record->in(stack) != nullptr; });
    } else {
      d["stacks"] = all_stacks();
    }
    if constexpr (requires { record->agent; }) d["agent"] = record->agent;
    nb::list parameters;
    for (const Parameter& parameter : record->parameters) parameters.append(described(parameter));
    d["parameters"] = parameters;
    all.append(d);
  }
  return all;
}

}  // namespace

void bind_catalogues(nb::module_& m) {
  m.def("stacks", [] {
    std::map<std::string, std::map<std::string, uint32_t>> profiles;
    for (const std::string& name : all_stacks()) {
      const StackProfile& profile = stack_profile(stack_of(name));
      profiles[name] = {{"mss_bytes", profile.mss}, {"data_bytes", profile.mss + profile.data_overhead},
                        {"ack_bytes", profile.ack_bytes}, {"paces", profile.paces}, {"has_hosts", profile.has_hosts},
                        {"speaks_ecn", profile.speaks_ecn},
                        {"unsent_limit_bytes", static_cast<uint32_t>(profile.unsent_limit)}};
    }
    return profiles;
  }, "The stack profiles by name: the largest segment, and a full data packet and an ACK on the wire, in bytes;\n"
        "whether it can pace, have hosts, and speak ECN; bytes that wait to leave from which on a socket takes no more (0: any).");
  const char* text =
      "A dict each: name, meaning, stacks, and for each of its parameters"
      " name, meaning, kind, default, low, high, stacks.";
  m.def("congestion_controls", &described<CongestionControlRecord>, text);
  m.def("receiver_controls", &described<ReceiverControlRecord>, text);
  m.def("bitrate_rules", [] {
    std::map<std::string, std::string> all;
    for (const BitrateRuleRecord* record : Catalogue<BitrateRuleRecord>::all()) {
      all.emplace(record->name, record->meaning);
    }
    return all;
  }, "How video clients choose bitrates: names with what they mean.");
  m.def("queue_disciplines", &described<DisciplineRecord>, text);
  m.def("media", &described<MediumRecord>, text);
  m.def("agent_kinds", &described<AgentRecord>, "The kinds of agents that a Batch steps, likewise.");
  m.def("check_discipline", [](const std::string& name, const Given& parameters) {
    const DisciplineRecord& record = Catalogue<DisciplineRecord>::get(name, "discipline");
    record.check(Parameters(record.parameters, parameters, name));
  }, "name"_a, "parameters"_a, "ValueError: parameters that do not go together.");
  m.def("check_medium", [](const std::string& name, const Given& parameters) {
    const MediumRecord& record = Catalogue<MediumRecord>::get(name, "medium");
    record.check(Parameters(record.parameters, parameters, name));
  }, "name"_a, "parameters"_a, "ValueError: parameters that do not go together.");
  m.def("medium_capacity_bps", [](const std::string& name, const Given& parameters, bool up, double gain_db) {
    return medium_capacity_bps(name, parameters, up, gain_db);
  }, "name"_a, "parameters"_a, "up"_a, "gain_db"_a,
        "What a medium carries of a link that has it for itself, in bit/s.");
}

}  // namespace netbuf

NB_MODULE(_core, m) {
  m.doc() = "Packet-level network simulator: links, TCP and congestion control in virtual time (integer nanoseconds).";
  nb::set_leak_warnings(false);  // daemon threads keep what they hold when the interpreter ends
  netbuf::bind_interpreter(m);
  netbuf::bind_catalogues(m);
  netbuf::bind_config(m);
  netbuf::bind_worlds(m);
  netbuf::bind_rows(m);
  netbuf::bind_episodes(m);
  netbuf::bind_networks(m);
  netbuf::bind_kernel(m);
  netbuf::bind_live(m);
}
