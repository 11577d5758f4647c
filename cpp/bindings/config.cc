// The description of a world: records whose fields are those of config_fields.h.
#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "netbuf/config_fields.h"
#include "netbuf/law.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace netbuf {

namespace {

template <class Config>
nb::class_<Config> bind_fields(nb::class_<Config> record) {
  record.def(nb::init<>());
  std::apply([&](const auto&... field) { (record.def_rw(field.name, field.member), ...); }, kFields<Config>);
  return record;
}

Law make_law(const LawConfig& config) {
  Law::check(config, "law");
  return Law(config);
}

template <class Config>
nb::class_<Config> bind_record(nb::module_& m, const char* name, const char* doc) {
  return bind_fields(nb::class_<Config>(m, name, doc));
}

}  // namespace

void bind_config(nb::module_& m) {
  bind_record<JitterConfig>(m, "JitterConfig",
                            "Random delay of each packet; see netbuf_gym.scenarios.Jitter. Times in ns.");
  bind_record<LinkConfig>(m, "LinkConfig",
                          "A link; see netbuf_gym.scenarios.Link. Rates in bit/s, times in ns, sizes in bytes.");
  bind_record<SwitchConfig>(m, "SwitchConfig", "Links that share a buffer; see netbuf_gym.scenarios.Switch.");
  bind_record<HostConfig>(m, "HostConfig",
                          "Where flows end; see netbuf_gym.scenarios.Host. Sizes in bytes, times in ns.");
  bind_record<LawConfig>(m, "LawConfig", "A distribution; see netbuf_gym.scenarios.Law. Times in s, sizes in bytes.")
      .def("check", [](const LawConfig& law, const std::string& at) { Law::check(law, at); }, "at"_a,
           "Raises ValueError with the field and its valid values.")
      .def("mean", [](const LawConfig& law, double limit) { return make_law(law).mean(limit); },
           "limit"_a = std::numeric_limits<double>::infinity(), "Mean of the lesser of a draw and the limit.")
      .def("tail", [](const LawConfig& law, double x) { return make_law(law).tail(x); }, "x"_a,
           "Share of draws of x or more.")
      .def("highest", [](const LawConfig& law) { return make_law(law).highest(); }, "The largest draw.")
      .def("sample", [](const LawConfig& law, uint64_t seed, size_t n) {
        const Law drawn = make_law(law);
        Rng rng(seed);
        std::vector<double> draws(n);
        for (double& draw : draws) draw = drawn.draw(rng);
        return draws;
      }, "seed"_a, "n"_a, "Draws in a row.");
  bind_record<ArrivalsConfig>(m, "ArrivalsConfig",
                              "When flows are opened; see netbuf_gym.scenarios.PoissonArrivals, Incast, FlowList.");
  bind_record<ProbeConfig>(m, "ProbeConfig", "A packet sent now and then; see netbuf_gym.scenarios.Probe.");
  bind_record<UdpConfig>(m, "UdpConfig", "Datagrams that nothing answers; see netbuf_gym.scenarios.UdpSource.");
  bind_record<VideoConfig>(m, "VideoConfig",
                           "What a video client plays, and how; see netbuf_gym.scenarios.Video. Times in ns.");
  bind_record<RouteConfig>(m, "RouteConfig", "Where packets go from a time on; see netbuf_gym.scenarios.Route.");

  nb::class_<FlowConfig> flow(m, "FlowConfig", "A TCP connection; see netbuf_gym.scenarios.Flow.");
  bind_controls(m, flow);
  bind_own_controls(m, flow);
  bind_policies(m, flow);
  bind_fields(flow);

  bind_record<TrafficConfig>(m, "TrafficConfig",
                             "Senders and the flows that they open; see netbuf_gym.scenarios.Traffic.");
  bind_record<WorldConfig>(m, "WorldConfig", "Links, flows and the stack profile; see netbuf_gym.scenarios.Scenario.")
      .def_prop_rw(
          "traffic",
          [](const WorldConfig& c) { return c.traffic.empty() ? std::nullopt : std::optional(c.traffic.front()); },
          [](WorldConfig& c, const std::optional<TrafficConfig>& traffic) {
            c.traffic.clear();
            if (traffic) c.traffic.push_back(*traffic);
          }, nb::arg().none())
      .def_prop_rw(
          "stack", [](const WorldConfig& c) { return std::string(name_of(c.stack)); },
          [](WorldConfig& c, const std::string& name) { c.stack = stack_of(name); });
}

}  // namespace netbuf
