// One world, and many stepped together.
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace netbuf {
namespace {

using Mask = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

const uint8_t* mask_data(const Batch& batch, const std::optional<Mask>& mask) {
  if (!mask) return nullptr;
  if (mask->shape(0) != batch.worlds()) {
    throw std::invalid_argument("mask has " + std::to_string(mask->shape(0)) + " entries: must have " + std::to_string(batch.worlds()));
  }
  return mask->data();
}

Given given(const nb::kwargs& parameters) {
  Given values;
  for (const auto& [name, value] : parameters) {
    try {
      values[nb::cast<std::string>(name)] = nb::cast<double>(value);
    } catch (const nb::cast_error&) {
      throw std::invalid_argument(nb::cast<std::string>(name) + " = " + nb::repr(value).c_str() + ": must be a number");
    }
  }
  return values;
}

}  // namespace

void bind_worlds(nb::module_& m) {
  nb::class_<World> world(m, "World", "One simulated world.");
  world.def(nb::init<const WorldConfig&, uint64_t>(), "config"_a, "seed"_a)
      .def("run", &World::run, "until_ns"_a, nb::call_guard<nb::gil_scoped_release>(),
           "Handles every event up to and including until_ns.");

  nb::class_<Batch> batch(m, "Batch", R"(Many worlds stepped together; results do not depend on the number of threads.

kind is one of agent_kinds(); its parameters stand beside it.)");
  batch
      .def("__init__", [](Batch* self, uint32_t worlds, uint32_t agents, uint32_t threads, const std::string& kind, const nb::kwargs& parameters) {
        new (self) Batch(worlds, agents, threads, make_agent(kind, given(parameters)));
      }, "n_worlds"_a, "n_agents"_a, "threads"_a = 1, "kind"_a = "sender", "parameters"_a)
      .def_prop_ro("fields", &Batch::fields, "Columns of the telemetry.")
      .def_prop_ro("controls", [](const Batch& b) {
        std::vector<std::string> names;
        for (const Control& control : b.controls()) names.push_back(control.name);
        return names;
      }, "Columns of the control.")
      .def_prop_ro("telemetry", [](Batch& b) {
        return nb::ndarray<nb::numpy, double>(b.telemetry(), {b.worlds(), b.agents(), b.fields().size()}, nb::find(&b));
      }, "View, shape (worlds, agents, fields), written by each advance.")
      .def_prop_ro("agent_mask", [](Batch& b) {
        return nb::ndarray<nb::numpy, uint8_t>(b.agent_mask(), {b.worlds(), b.agents()}, nb::find(&b));
      }, "View, shape (worlds, agents): 1 where the world has that agent.")
      .def_prop_ro("control", [](Batch& b) {
        return nb::ndarray<nb::numpy, double>(b.control(), {b.worlds(), b.agents(), b.controls().size()}, nb::find(&b));
      }, "View, shape (worlds, agents, controls): in force from the next advance on; NaN leaves things as they are.")
      .def("reset", &Batch::reset, "world"_a, "config"_a, "seed"_a)
      .def("advance", [](Batch& b, Time interval, const std::optional<Mask>& mask) {
        const uint8_t* data = mask_data(b, mask);
        nb::gil_scoped_release release;
        b.advance(interval, data);
      }, "interval_ns"_a, "mask"_a = nb::none(), "Runs every world whose mask is not 0 interval_ns further.")
      .def("advance_to_event", [](Batch& b, Time interval, uint32_t max_intervals, const std::optional<Mask>& mask) {
        const uint8_t* data = mask_data(b, mask);
        nb::gil_scoped_release release;
        b.advance_to_event(interval, max_intervals, data);
      }, "interval_ns"_a, "max_intervals"_a = 1, "mask"_a = nb::none(),
           R"(Runs every world whose mask is not 0 to what its agents wait for, at most max_intervals intervals.

Senders wait for their next ACK; switches until the worst slowdown of the flows that complete has changed, which is looked
at after every interval.)");
  bind_readings(m, world, batch);
}

}  // namespace netbuf
