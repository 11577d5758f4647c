// The Python module netbuf_gym._core.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "netbuf/batch.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace netbuf;

namespace netbuf {
void bind_rows(nb::module_& m);  // rows.cc
}

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
  const FlowCounters c = flow.counters();
  d["start_s"] = seconds(flow.started_at());
  d["completion_s"] = seconds_or_nan(flow.completed_at());
  d["delivered_bytes"] = c.delivered_bytes;
  d["acked_bytes"] = c.acked_bytes;
  d["packets_sent"] = c.packets_sent;
  d["packets_retransmitted"] = c.packets_retransmitted;
  d["packets_received"] = c.packets_received;
  d["packets_lost_marked"] = flow.sender.tcb.lost;
  d["queue_drops"] = c.queue_drops;
  d["random_losses"] = c.random_losses;
  d["acks_received"] = c.acks;
  d["rtt_count"] = c.rtt_count;
  d["rtt_sum_s"] = static_cast<double>(c.rtt_sum) * 1e-9;
  d["rtt_min_s"] = seconds_or_nan(flow.sender.rtt_min);
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
using Cube = nb::ndarray<nb::numpy, double, nb::ndim<3>>;
using Vector = nb::ndarray<nb::numpy, double, nb::ndim<1>>;

template <class Sample>
Matrix sample_matrix(size_t rows, size_t columns, Sample&& sample) {
  double* data = new double[rows * columns];
  for (size_t i = 0; i < rows; ++i) sample(static_cast<uint32_t>(i), data + i * columns);
  return Matrix(data, {rows, columns}, nb::capsule(data, [](void* p) noexcept { delete[] static_cast<double*>(p); }));
}

Matrix completions(const World& world) {
  const auto& done = world.completions();
  return sample_matrix(done.size(), 6, [&](uint32_t i, double* out) {
    const OpenedFlow& flow = world.opened()[done[i].flow];
    const double row[] = {static_cast<double>(done[i].flow), seconds(flow.start), seconds(done[i].fct),
                          static_cast<double>(flow.size_bytes), static_cast<double>(flow.sender), static_cast<double>(flow.priority)};
    std::copy(std::begin(row), std::end(row), out);
  });
}

Matrix flows_opened(const World& world) {
  return sample_matrix(world.opened().size(), 5, [&](uint32_t i, double* out) {
    const OpenedFlow& flow = world.opened()[i];
    const double row[] = {seconds(flow.start), static_cast<double>(flow.sender), static_cast<double>(flow.size_bytes),
                          static_cast<double>(flow.priority), static_cast<double>(world.received_bytes(flow))};
    std::copy(std::begin(row), std::end(row), out);
  });
}

nb::dict queue_stats(const SharedBuffer& sw, uint32_t port, uint32_t index, Time now) {
  const SharedBuffer::Queue& queue = sw.queue(port, index);
  nb::dict d;
  d["port"] = port;
  d["queue"] = index;
  d["arrivals"] = queue.counters.arrivals;
  d["drops"] = queue.counters.drops;
  d["departures"] = queue.counters.departures;
  d["bytes_out"] = queue.counters.bytes_out;
  d["sojourn_sum_s"] = seconds(queue.counters.sojourn);
  d["packets"] = queue.size();
  d["packets_mean"] = queue.packets.mean(now);
  d["packets_p99"] = queue.packets.percentile(0.99, now);
  d["packets_max"] = queue.packets.max();
  return d;
}

nb::list switch_stats(World& world) {
  nb::list all;
  const Time now = world.now();
  for (const auto& sw : world.switches()) {
    const auto capacity = static_cast<double>(sw->capacity());
    const double step = static_cast<double>(sw->occupancy_step()) / capacity;
    nb::dict d;
    d["time_s"] = seconds(now);
    d["capacity"] = sw->capacity();
    d["occupancy"] = static_cast<double>(sw->occupancy()) / capacity;
    d["occupancy_mean"] = sw->occupancy_histogram().mean(now) * step;
    d["occupancy_p99"] = sw->occupancy_histogram().percentile(0.99, now) * step;
    d["occupancy_max"] = static_cast<double>(sw->occupancy_max()) / capacity;
    nb::list queues;
    for (uint32_t port = 0; port < sw->ports(); ++port) {
      for (uint32_t q = 0; q < sw->queues(); ++q) queues.append(queue_stats(*sw, port, q, now));
    }
    d["queues"] = queues;
    all.append(d);
  }
  return all;
}

Cube switch_sample(World& world) {
  const auto& switches = world.switches();
  uint32_t queues = 0;
  for (const auto& sw : switches) queues = std::max(queues, sw->queues());
  const size_t row = size_t{queues} * 4;
  double* data = new double[std::max<size_t>(1, switches.size() * row)];
  std::fill_n(data, switches.size() * row, std::numeric_limits<double>::quiet_NaN());
  for (size_t s = 0; s < switches.size(); ++s) {
    for (uint32_t q = 0; q < switches[s]->queues(); ++q) {
      double* out = data + s * row + q * 4;
      out[0] = switches[s]->packets(q);
      out[1] = static_cast<double>(switches[s]->bytes(q));
      out[2] = switches[s]->threshold(0, q);
      out[3] = static_cast<double>(switches[s]->totals(q).drops);
    }
  }
  return Cube(data, {switches.size(), queues, 4}, nb::capsule(data, [](void* p) noexcept { delete[] static_cast<double*>(p); }));
}

nb::list probe_delays(World& world) {
  nb::list all;
  for (size_t i = 0; i < world.probes(); ++i) {
    const auto& delays = world.probe(i).delays;
    double* data = new double[std::max<size_t>(1, delays.size())];
    std::copy(delays.begin(), delays.end(), data);
    all.append(Vector(data, {delays.size()}, nb::capsule(data, [](void* p) noexcept { delete[] static_cast<double*>(p); })));
  }
  return all;
}

std::vector<uint64_t> probe_sent(World& world) {
  std::vector<uint64_t> sent;
  for (size_t i = 0; i < world.probes(); ++i) sent.push_back(world.probe(i).sent);
  return sent;
}

nb::dict traffic_stats(World& world) {
  const TrafficTotals t = world.traffic_totals();
  nb::dict d;
  d["flows_started"] = world.opened().size();
  d["flows_connected"] = t.connected;
  d["flows_completed"] = world.completions().size();
  d["delivered_bytes"] = t.delivered_bytes;
  d["packets_sent"] = t.packets_sent;
  d["packets_retransmitted"] = t.packets_retransmitted;
  d["packets_received"] = t.packets_received;
  d["packets_in_network"] = world.data_packets_in_network();
  d["timeouts"] = t.timeouts;
  d["queue_drops"] = t.queue_drops;
  d["random_losses"] = t.random_losses;
  return d;
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
      .def_rw("trace_period_ns", &LinkConfig::trace_period_ns)
      .def_rw("discipline", &LinkConfig::discipline)
      .def_rw("discipline_parameters", &LinkConfig::discipline_parameters)
      .def_rw("device_packets", &LinkConfig::device_packets);

  nb::class_<SwitchConfig>(m, "SwitchConfig", "Links that share a buffer; see netbuf_gym.scenarios.Switch.")
      .def(nb::init<>())
      .def_rw("name", &SwitchConfig::name)
      .def_rw("ports", &SwitchConfig::ports)
      .def_rw("queues", &SwitchConfig::queues)
      .def_rw("capacity", &SwitchConfig::capacity)
      .def_rw("in_bytes", &SwitchConfig::in_bytes)
      .def_rw("admission", &SwitchConfig::admission)
      .def_rw("alphas", &SwitchConfig::alphas)
      .def_rw("betas", &SwitchConfig::betas)
      .def_rw("thresholds", &SwitchConfig::thresholds)
      .def_rw("queue_cap", &SwitchConfig::queue_cap)
      .def_rw("scheduler", &SwitchConfig::scheduler)
      .def_rw("quanta", &SwitchConfig::quanta);

  nb::class_<ArrivalsConfig>(m, "ArrivalsConfig", "When flows are opened; see netbuf_gym.scenarios.PoissonArrivals, Incast, FlowList.")
      .def(nb::init<>())
      .def_rw("kind", &ArrivalsConfig::kind)
      .def_rw("start_ns", &ArrivalsConfig::start_ns)
      .def_rw("stop_ns", &ArrivalsConfig::stop_ns)
      .def_rw("rate_per_s", &ArrivalsConfig::rate_per_s)
      .def_rw("size_bytes", &ArrivalsConfig::size_bytes)
      .def_rw("cumulative", &ArrivalsConfig::cumulative)
      .def_rw("interval_ns", &ArrivalsConfig::interval_ns)
      .def_rw("random", &ArrivalsConfig::random)
      .def_rw("fan_in", &ArrivalsConfig::fan_in)
      .def_rw("list_start_ns", &ArrivalsConfig::list_start_ns)
      .def_rw("list_sender", &ArrivalsConfig::list_sender)
      .def_rw("list_size", &ArrivalsConfig::list_size)
      .def_rw("list_priority", &ArrivalsConfig::list_priority);

  nb::class_<ProbeConfig>(m, "ProbeConfig", "A packet sent now and then; see netbuf_gym.scenarios.Probe.")
      .def(nb::init<>())
      .def_rw("path", &ProbeConfig::path)
      .def_rw("priority", &ProbeConfig::priority)
      .def_rw("interval_ns", &ProbeConfig::interval_ns)
      .def_rw("start_ns", &ProbeConfig::start_ns)
      .def_rw("bytes", &ProbeConfig::bytes);

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
      .def_rw("initial_cwnd_packets", &FlowConfig::initial_cwnd_packets)
      .def_rw("priority", &FlowConfig::priority);

  nb::class_<TrafficConfig>(m, "TrafficConfig", "Senders and the flows that they open; see netbuf_gym.scenarios.Traffic.")
      .def(nb::init<>())
      .def_rw("senders", &TrafficConfig::senders)
      .def_rw("arrivals", &TrafficConfig::arrivals)
      .def_rw("priority_below", &TrafficConfig::priority_below);

  nb::class_<WorldConfig>(m, "WorldConfig", "Links, flows and the stack profile; see netbuf_gym.scenarios.Scenario.")
      .def(nb::init<>())
      .def_rw("links", &WorldConfig::links)
      .def_rw("flows", &WorldConfig::flows)
      .def_rw("switches", &WorldConfig::switches)
      .def_prop_rw(
          "traffic",
          [](const WorldConfig& c) { return c.traffic.empty() ? std::nullopt : std::optional(c.traffic.front()); },
          [](WorldConfig& c, const std::optional<TrafficConfig>& traffic) {
            c.traffic.clear();
            if (traffic) c.traffic.push_back(*traffic);
          }, nb::arg().none())
      .def_rw("probes", &WorldConfig::probes)
      .def_rw("mss", &WorldConfig::mss)
      .def_rw("min_rto_ns", &WorldConfig::min_rto_ns)
      .def_rw("delayed_ack_packets", &WorldConfig::delayed_ack_packets)
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
      .def("completions", &completions, "Finished flows of the traffic, shape (flows, 6): flow, start_s, fct_s, size_bytes, sender, priority.")
      .def("flows_opened", &flows_opened, "All flows of the traffic, shape (flows, 5): start_s, sender, size_bytes, priority, received_bytes.")
      .def("ideal_s", &World::ideal_s, "sender"_a, "size_bytes"_a, "Base RTT plus size over the rate of the slowest link.")
      .def("switch_stats", &switch_stats, "One dict a switch: occupancy (shares of the capacity, over time) and counters of each queue.")
      .def("switch_sample", &switch_sample, "Current values, shape (switches, queues, 4): packets, bytes, threshold, drops.")
      .def("probe_delays", &probe_delays, "Delays in seconds of the probe packets that arrived, one array a probe.")
      .def("probe_sent", &probe_sent, "Packets sent, one number a probe.")
      .def("traffic_stats", &traffic_stats, "Cumulative counters over the flows of the traffic.")
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
      .def("__init__", [](Batch* self, uint32_t worlds, uint32_t agents, uint32_t threads, const std::string& kind, uint32_t queues) {
        if (kind != "flow" && kind != "switch") throw std::invalid_argument("kind = " + kind + ": must be flow or switch");
        new (self) Batch(worlds, agents, threads, kind == "flow" ? Batch::Kind::flow : Batch::Kind::shared_buffer, queues);
      }, "n_worlds"_a, "n_agents"_a, "threads"_a = 1, "kind"_a = "flow", "queues"_a = 1)
      .def_prop_ro("telemetry", [](Batch& b) {
        return nb::ndarray<nb::numpy, double>(b.telemetry(), {b.worlds(), b.agents(), b.fields()}, nb::find(&b));
      }, "View, shape (worlds, agents, fields), written by each advance; fields are telemetry_fields() or switch_telemetry_fields().")
      .def_prop_ro("agent_mask", [](Batch& b) {
        return nb::ndarray<nb::numpy, uint8_t>(b.agent_mask(), {b.worlds(), b.agents()}, nb::find(&b));
      }, "View, shape (worlds, agents): 1 where the world has that agent.")
      .def_prop_ro("control", [](Batch& b) {
        if (b.kind() == Batch::Kind::flow) return nb::ndarray<nb::numpy, double>(b.control(), {b.worlds(), b.agents()}, nb::find(&b));
        return nb::ndarray<nb::numpy, double>(b.control(), {b.worlds(), b.agents(), b.controls()}, nb::find(&b));
      }, "View, shape (worlds, agents): cwnd in bytes from the next advance on, or (worlds, agents, queues): alphas; NaN leaves it.")
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
      .def("advance_to_change", [](Batch& b, Time interval, uint32_t max_intervals, const std::optional<Mask>& mask) {
        const uint8_t* data = mask_data(b, mask);
        nb::gil_scoped_release release;
        b.advance_to_change(interval, max_intervals, data);
      }, "interval_ns"_a, "max_intervals"_a, "mask"_a = nb::none(),
           "Runs every world by whole intervals until the worst slowdown of the flows completed has changed, at most max_intervals.")
      .def("completions", [](Batch& b, uint32_t i) { return completions(b.world(i)); }, "world"_a)
      .def("flows_opened", [](Batch& b, uint32_t i) { return flows_opened(b.world(i)); }, "world"_a)
      .def("ideal_s", [](Batch& b, uint32_t i, uint32_t sender, int64_t size) { return b.world(i).ideal_s(sender, size); }, "world"_a, "sender"_a, "size_bytes"_a)
      .def("switch_stats", [](Batch& b, uint32_t i) { return switch_stats(b.world(i)); }, "world"_a)
      .def("switch_sample", [](Batch& b, uint32_t i) { return switch_sample(b.world(i)); }, "world"_a)
      .def("probe_delays", [](Batch& b, uint32_t i) { return probe_delays(b.world(i)); }, "world"_a)
      .def("probe_sent", [](Batch& b, uint32_t i) { return probe_sent(b.world(i)); }, "world"_a)
      .def("traffic_stats", [](Batch& b, uint32_t i) { return traffic_stats(b.world(i)); }, "world"_a)
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

  bind_rows(m);

  m.def("queue_disciplines", &queue_discipline_names, "Names of the queue disciplines.");
  m.def("switch_telemetry_fields", &switch_telemetry_fields, "queues"_a);
  m.def("congestion_controls", &congestion_control_names, "Names of the congestion controls.");
  m.def("telemetry_fields", [] { return names(kTelemetryFields); });
  m.def("flow_sample_fields", [] { return names(kFlowSampleFields); });
  m.def("link_sample_fields", [] { return names(kLinkSampleFields); });
}
