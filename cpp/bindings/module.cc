// The Python module netbuf_gym._core.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "netbuf/batch.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace netbuf;

namespace {

Stack parse_stack(const std::string& name) {
  if (name == "linux") return Stack::linux_kernel;
  if (name == "ns3") return Stack::ns3;
  throw std::invalid_argument("stack = " + name + ": must be linux or ns3");
}

template <size_t N>
std::vector<std::string> names(const std::string_view (&fields)[N]) {
  return {std::begin(fields), std::end(fields)};
}

double seconds_or_nan(Time t) { return t >= kNever ? std::numeric_limits<double>::quiet_NaN() : seconds(t); }

nb::dict flow_stats(World& world, Flow& flow) {
  nb::dict d;
  const FlowCounters& c = flow.counters;
  d["start_s"] = seconds(flow.started_at());
  d["completion_s"] = seconds_or_nan(flow.completed_at());
  d["delivered_bytes"] = c.delivered_bytes;
  d["acked_bytes"] = c.acked_bytes;
  d["packets_sent"] = c.packets_sent;
  d["packets_retransmitted"] = c.packets_retransmitted;
  d["packets_lost_marked"] = flow.tcb.lost;
  d["queue_drops"] = c.queue_drops;
  d["random_losses"] = c.random_losses;
  d["acks_received"] = c.acks;
  d["rtt_count"] = c.rtt_count;
  d["rtt_sum_s"] = c.rtt_sum * 1e-9;
  d["rtt_min_s"] = seconds_or_nan(flow.rtt_min);
  d["timeouts"] = c.timeouts;
  d["fast_recoveries"] = c.fast_recoveries;
  d["cwnd_integral_byte_s"] = flow.cwnd_integral(std::max(world.now(), flow.started_at()));
  d["packets_in_network"] = flow.packets_in_network();
  return d;
}

nb::list flow_stats(World& world) {
  nb::list all;
  for (Flow& flow : world.flows()) all.append(flow_stats(world, flow));
  return all;
}

nb::list link_stats(World& world) {
  nb::list all;
  for (Link& link : world.links()) {
    const LinkStats s = link.stats(world.now());
    nb::dict d;
    d["name"] = link.name();
    d["packets_in"] = s.packets_in;
    d["packets_out"] = s.packets_out;
    d["bytes_out"] = s.bytes_out;
    d["queue_drops"] = s.queue_drops;
    d["random_losses"] = s.random_losses;
    d["sojourn_sum_s"] = s.sojourn_sum;
    d["sojourn_count"] = s.packets_out;
    d["sojourn_sum2"] = s.sojourn_sum2;
    d["queue_integral_packet_s"] = s.queue_integral;
    d["queue_packets"] = link.queue_packets();
    d["queue_max_packets"] = s.queue_max;
    d["busy_s"] = s.busy;
    all.append(d);
  }
  return all;
}

using Matrix = nb::ndarray<nb::numpy, double, nb::ndim<2>>;

template <class Sample>
Matrix sample_matrix(size_t rows, size_t columns, Sample&& sample) {
  double* data = new double[rows * columns];
  for (size_t i = 0; i < rows; ++i) sample(static_cast<uint32_t>(i), data + i * columns);
  return Matrix(data, {rows, columns}, nb::capsule(data, [](void* p) noexcept { delete[] static_cast<double*>(p); }));
}

using Mask = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

const uint8_t* mask_data(const Batch& batch, const std::optional<Mask>& mask) {
  if (!mask) return nullptr;
  if (mask->shape(0) != batch.worlds()) {
    throw std::invalid_argument("mask has " + std::to_string(mask->shape(0)) + " entries: must have " + std::to_string(batch.worlds()));
  }
  return mask->data();
}

}  // namespace

NB_MODULE(_core, m) {
  m.doc() = "Packet-level network simulator: links, TCP and congestion control in virtual time (integer nanoseconds).";

  nb::class_<LinkConfig>(m, "LinkConfig", "A link; see netbuf_gym.scenarios.Link. Rates in bit/s, times in ns, sizes in bytes.")
      .def(nb::init<>())
      .def_rw("name", &LinkConfig::name)
      .def_rw("rate_bps", &LinkConfig::rate_bps)
      .def_rw("delay_ns", &LinkConfig::delay_ns)
      .def_rw("queue_limit_packets", &LinkConfig::queue_limit_packets)
      .def_rw("queue_limit_bytes", &LinkConfig::queue_limit_bytes)
      .def_rw("loss", &LinkConfig::loss)
      .def_rw("ge", &LinkConfig::ge)
      .def_rw("loss_list", &LinkConfig::loss_list)
      .def_rw("loss_on_acks", &LinkConfig::loss_on_acks)
      .def_rw("schedule_time_ns", &LinkConfig::schedule_time_ns)
      .def_rw("schedule_rate_bps", &LinkConfig::schedule_rate_bps)
      .def_rw("schedule_period_ns", &LinkConfig::schedule_period_ns)
      .def_rw("trace_ns", &LinkConfig::trace_ns)
      .def_rw("trace_period_ns", &LinkConfig::trace_period_ns);

  nb::class_<FlowConfig>(m, "FlowConfig", "A TCP connection; see netbuf_gym.scenarios.Flow.")
      .def(nb::init<>())
      .def_rw("cc", &FlowConfig::cc)
      .def_rw("controlled", &FlowConfig::controlled)
      .def_rw("path", &FlowConfig::path)
      .def_rw("return_path", &FlowConfig::return_path)
      .def_rw("start_ns", &FlowConfig::start_ns)
      .def_rw("stop_ns", &FlowConfig::stop_ns)
      .def_rw("app", &FlowConfig::app)
      .def_rw("size_bytes", &FlowConfig::size_bytes)
      .def_rw("on_ns", &FlowConfig::on_ns)
      .def_rw("off_ns", &FlowConfig::off_ns)
      .def_rw("random_on_off", &FlowConfig::random_on_off)
      .def_rw("app_rate_bps", &FlowConfig::app_rate_bps)
      .def_rw("send_buffer_bytes", &FlowConfig::send_buffer_bytes)
      .def_rw("receive_buffer_bytes", &FlowConfig::receive_buffer_bytes)
      .def_rw("window_clamp_bytes", &FlowConfig::window_clamp_bytes)
      .def_rw("relay_from", &FlowConfig::relay_from)
      .def_rw("relay_buffer_bytes", &FlowConfig::relay_buffer_bytes)
      .def_rw("initial_cwnd_packets", &FlowConfig::initial_cwnd_packets);

  nb::class_<WorldConfig>(m, "WorldConfig", "Links, flows and the stack profile; see netbuf_gym.scenarios.Scenario.")
      .def(nb::init<>())
      .def_rw("links", &WorldConfig::links)
      .def_rw("flows", &WorldConfig::flows)
      .def_rw("hystart", &WorldConfig::hystart)
      .def_rw("pacing", &WorldConfig::pacing)
      .def_prop_rw(
          "stack", [](const WorldConfig& c) { return c.stack == Stack::ns3 ? "ns3" : "linux"; },
          [](WorldConfig& c, const std::string& name) { c.stack = parse_stack(name); });

  nb::class_<World>(m, "World", "One simulated world.")
      .def(nb::init<const WorldConfig&, uint64_t>(), "config"_a, "seed"_a)
      .def("run", &World::run, "until_ns"_a, nb::call_guard<nb::gil_scoped_release>(),
           "Handles every event up to and including until_ns.")
      .def_prop_ro("now_ns", &World::now)
      .def_prop_ro("memory_bytes", &World::memory_bytes)
      .def("flow_stats", [](World& w) { return flow_stats(w); }, "Cumulative counters, one dict a flow.")
      .def("link_stats", [](World& w) { return link_stats(w); }, "Cumulative counters, one dict a link.")
      .def("flow_sample",
           [](World& w) {
             return sample_matrix(w.flows().size(), std::size(kFlowSampleFields),
                                  [&](uint32_t i, double* out) { sample_flow(w, i, out); });
           },
           "Current values, shape (flows, fields); columns are flow_sample_fields().")
      .def("link_sample", [](World& w) {
        return sample_matrix(w.links().size(), std::size(kLinkSampleFields),
                             [&](uint32_t i, double* out) { sample_link(w, i, out); });
      }, "Current values, shape (links, fields); columns are link_sample_fields().");

  nb::class_<Batch>(m, "Batch", "Many worlds stepped together; results do not depend on the number of threads.")
      .def(nb::init<uint32_t, uint32_t, uint32_t>(), "n_worlds"_a, "n_agents"_a, "threads"_a = 1)
      .def_prop_ro("telemetry", [](Batch& b) {
        return nb::ndarray<nb::numpy, double>(b.telemetry(), {b.worlds(), b.agents(), kTelemetryCount}, nb::find(&b));
      }, "View, shape (worlds, agents, fields), written by each advance; fields are telemetry_fields().")
      .def_prop_ro("agent_mask", [](Batch& b) {
        return nb::ndarray<nb::numpy, uint8_t>(b.agent_mask(), {b.worlds(), b.agents()}, nb::find(&b));
      }, "View, shape (worlds, agents): 1 where the world has that agent.")
      .def_prop_ro("control", [](Batch& b) {
        return nb::ndarray<nb::numpy, double>(b.control(), {b.worlds(), b.agents()}, nb::find(&b));
      }, "View, shape (worlds, agents): cwnd in bytes from the next advance on; NaN leaves it.")
      .def("reset", &Batch::reset, "world"_a, "config"_a, "seed"_a)
      .def("advance", [](Batch& b, Time interval) {
        nb::gil_scoped_release release;
        b.advance(interval, nullptr);
      }, "interval_ns"_a, "Runs every world interval_ns further.")
      .def("advance_masked", [](Batch& b, Time interval, const Mask& mask) {
        const uint8_t* data = mask_data(b, mask);
        nb::gil_scoped_release release;
        b.advance(interval, data);
      }, "interval_ns"_a, "mask"_a, "Runs the worlds whose mask is not 0.")
      .def("advance_to_ack", [](Batch& b, Time max_wait, const std::optional<Mask>& mask) {
        const uint8_t* data = mask_data(b, mask);
        nb::gil_scoped_release release;
        b.advance_to_ack(max_wait, data);
      }, "max_wait_ns"_a, "mask"_a = nb::none(), "Runs every world to its agents' next ACK, at most max_wait_ns.")
      .def("flow_stats", [](Batch& b, uint32_t i) { return flow_stats(b.world(i)); }, "world"_a)
      .def("link_stats", [](Batch& b, uint32_t i) { return link_stats(b.world(i)); }, "world"_a)
      .def("flow_sample", [](Batch& b, uint32_t i) {
        World& w = b.world(i);
        return sample_matrix(w.flows().size(), std::size(kFlowSampleFields),
                             [&](uint32_t k, double* out) { sample_flow(w, k, out); });
      }, "world"_a)
      .def("link_sample", [](Batch& b, uint32_t i) {
        World& w = b.world(i);
        return sample_matrix(w.links().size(), std::size(kLinkSampleFields),
                             [&](uint32_t k, double* out) { sample_link(w, k, out); });
      }, "world"_a)
      .def("now_ns", [](Batch& b, uint32_t i) { return b.world(i).now(); }, "world"_a)
      .def("memory_bytes", [](Batch& b, uint32_t i) { return b.world(i).memory_bytes(); }, "world"_a);

  m.def("congestion_controls", &congestion_control_names, "Names of the congestion controls.");
  m.def("telemetry_fields", [] { return names(kTelemetryFields); });
  m.def("flow_sample_fields", [] { return names(kFlowSampleFields); });
  m.def("link_sample_fields", [] { return names(kLinkSampleFields); });
}
