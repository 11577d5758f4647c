// One world, and many stepped together.
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstring>

#include "bindings.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace netbuf {
namespace {

using Mask = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

const uint8_t* mask_data(const Batch& batch, const std::optional<Mask>& mask) {
  if (!mask) return nullptr;
  if (mask->shape(0) != batch.worlds()) {
    throw std::invalid_argument("mask has " + std::to_string(mask->shape(0)) + " entries: must have " +
                                std::to_string(batch.worlds()));
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

bool run(SharedWorld& world, Time until, uint32_t& events) {
  if (world.broken) throw std::logic_error("the world was left in the middle of an event: it is of no further use");
  if (until < world.core->now()) return world.core->run(until, events);  // which says what is wrong with it
  world.broken = true;
  const bool done = world.core->run(until, events);
  world.broken = false;
  return done;
}

}  // namespace

void bind_worlds(nb::module_& m) {
  nb::class_<SharedWorld> world(m, "World", "One simulated world. Calls from several threads take turns.");
  world
      .def("__init__", [](SharedWorld* self, const WorldConfig& config, uint64_t seed) {
        within([&] { new (self) SharedWorld(config, seed); });
      }, "config"_a, "seed"_a)
      .def("run", [](SharedWorld& w, Time until, std::optional<uint32_t> events) {
        Held held(w.turn);
        bool done = true;
        outside([&] {
          const std::function<void()> ask = ask_for_signals;
          EventBudget budget{&ask};
          if (events) budget.left = *events;
          while (!(done = run(w, until, budget.left)) && !events) budget.renew();
        });
        return done;
      }, "until_ns"_a, "events"_a = nb::none(),
         R"(Handles every event up to and including until_ns, or so many of them; False: there are more.

What a handler of signals raises meanwhile, as KeyboardInterrupt, leaves the world between two events:
it may be run on.)")
      .def("packets", [](SharedWorld& w) {
        Held held(w.turn);
        const PacketLog* log = w.core->log();
        const size_t bytes = log ? log->rows().size() * sizeof(PacketRow) : 0;
        auto* data = new uint8_t[bytes];
        if (bytes > 0) std::memcpy(data, log->rows().data(), bytes);
        const nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<uint8_t*>(p); });
        return std::pair(nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>>(data, {bytes}, owner), log ? log->left_out() : 0);
      }, "The log of packets, rows of packet_fields(), and the number of rows that it had no room for.");
  m.def("packet_fields", [] {
#define NETBUF_COLUMN(name, format) std::tuple(#name, format, offsetof(PacketRow, name))
    return std::pair(
        std::vector<std::tuple<std::string, std::string, size_t>>{
            NETBUF_COLUMN(time, "i8"), NETBUF_COLUMN(stamp, "i8"), NETBUF_COLUMN(owner, "u4"), NETBUF_COLUMN(link, "u4"),
            NETBUF_COLUMN(segment, "u4"), NETBUF_COLUMN(window, "u4"), NETBUF_COLUMN(wire_bytes, "u4"),
            NETBUF_COLUMN(payload, "u4"), NETBUF_COLUMN(sack, "6u4"), NETBUF_COLUMN(event, "u1"),
            NETBUF_COLUMN(is_ack, "u1"), NETBUF_COLUMN(kind, "u1"), NETBUF_COLUMN(flags, "u1"), NETBUF_COLUMN(ecn, "u1"),
            NETBUF_COLUMN(sack_blocks, "u1")},
        sizeof(PacketRow));
#undef NETBUF_COLUMN
  }, "Columns of World.packets: name, format and offset of each, and the bytes of a row.");

  nb::class_<SharedBatch> batch(m, "Batch",
                                R"(Many worlds stepped together; results do not depend on the number of threads.

kind is one of agent_kinds(); its parameters stand beside it. Calls from several threads take turns.)");
  batch
      .def("__init__", [](SharedBatch* self, uint32_t worlds, uint32_t agents, uint32_t threads,
                          const std::string& kind, const nb::kwargs& parameters) {
        new (self) SharedBatch(worlds, agents, threads, make_agent(kind, given(parameters)));
        self->core->ask(ask_for_signals);
      }, "n_worlds"_a, "n_agents"_a, "threads"_a = 1, "kind"_a = "sender", "parameters"_a)
      .def_prop_ro("fields", [](const SharedBatch& b) { return b.core->fields(); }, "Columns of the telemetry.")
      .def_prop_ro("controls", [](const SharedBatch& b) {
        std::vector<std::string> names;
        for (const Control& control : b.core->controls()) names.push_back(control.name);
        return names;
      }, "Columns of the control.")
      .def_prop_ro("telemetry", [](SharedBatch& b) {
        return nb::ndarray<nb::numpy, double>(
            b.core->telemetry(), {b.core->worlds(), b.core->agents(), b.core->fields().size()}, nb::find(&b));
      }, "View, shape (worlds, agents, fields), written by each advance.")
      .def_prop_ro("agent_mask", [](SharedBatch& b) {
        return nb::ndarray<nb::numpy, uint8_t>(b.core->agent_mask(), {b.core->worlds(), b.core->agents()},
                                               nb::find(&b));
      }, "View, shape (worlds, agents): 1 where the world has that agent.")
      .def_prop_ro("control", [](SharedBatch& b) {
        return nb::ndarray<nb::numpy, double>(
            b.core->control(), {b.core->worlds(), b.core->agents(), b.core->controls().size()}, nb::find(&b));
      }, "View, shape (worlds, agents, controls): in force from the next advance on; NaN leaves things as they are.")
      .def("reset", [](SharedBatch& b, uint32_t world, const WorldConfig& config, uint64_t seed) {
        Held held(b.turn);
        within([&] { b.core->reset(world, config, seed); });
      }, "world"_a, "config"_a, "seed"_a)
      .def("advance", [](SharedBatch& b, Time interval, const std::optional<Mask>& mask) {
        const uint8_t* data = mask_data(*b.core, mask);
        Held held(b.turn);
        outside([&] { b.core->advance(interval, data); });
      }, "interval_ns"_a, "mask"_a = nb::none(), "Runs every world whose mask is not 0 interval_ns further.")
      .def("advance_to_event", [](SharedBatch& b, Time interval, uint32_t max_intervals,
                                  const std::optional<Mask>& mask) {
        const uint8_t* data = mask_data(*b.core, mask);
        Held held(b.turn);
        outside([&] { b.core->advance_to_event(interval, max_intervals, data); });
      }, "interval_ns"_a, "max_intervals"_a = 1, "mask"_a = nb::none(),
           R"(Runs every world whose mask is not 0 to what its agents wait for, at most max_intervals intervals.

Senders wait for their next ACK; switches until the worst slowdown of the flows that complete has changed, which is
looked at after every interval.)");
  bind_readings(m, world, batch);
}

}  // namespace netbuf
