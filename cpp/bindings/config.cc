// The description of a world.
#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"

namespace nb = nanobind;

namespace netbuf {

void bind_config(nb::module_& m) {
  nb::class_<JitterConfig>(m, "JitterConfig",
                           "Random delay of each packet; see netbuf_gym.scenarios.Jitter. Times in ns.")
      .def(nb::init<>())
      .def_rw("distribution", &JitterConfig::distribution)
      .def_rw("scale_ns", &JitterConfig::scale_ns)
      .def_rw("mean_ns", &JitterConfig::mean_ns)
      .def_rw("shape", &JitterConfig::shape)
      .def_rw("correlation", &JitterConfig::correlation)
      .def_rw("reorder", &JitterConfig::reorder);

  nb::class_<LinkConfig>(m, "LinkConfig",
                         "A link; see netbuf_gym.scenarios.Link. Rates in bit/s, times in ns, sizes in bytes.")
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
      .def_rw("device_packets", &LinkConfig::device_packets)
      .def_rw("delay_time_ns", &LinkConfig::delay_time_ns)
      .def_rw("delay_step_ns", &LinkConfig::delay_step_ns)
      .def_rw("delay_period_ns", &LinkConfig::delay_period_ns)
      .def_rw("delay_reorders", &LinkConfig::delay_reorders)
      .def_rw("loss_time_ns", &LinkConfig::loss_time_ns)
      .def_rw("loss_step", &LinkConfig::loss_step)
      .def_rw("loss_period_ns", &LinkConfig::loss_period_ns)
      .def_rw("jitter", &LinkConfig::jitter)
      .def_rw("outage_ns", &LinkConfig::outage_ns);

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
      .def_rw("drop", &SwitchConfig::drop)
      .def_rw("mark", &SwitchConfig::mark)
      .def_rw("congested", &SwitchConfig::congested)
      .def_rw("protect_syn", &SwitchConfig::protect_syn)
      .def_rw("scheduler", &SwitchConfig::scheduler)
      .def_rw("quanta", &SwitchConfig::quanta);

  nb::class_<HostConfig>(m, "HostConfig",
                         "Where flows end; see netbuf_gym.scenarios.Host. Sizes in bytes, times in ns.")
      .def(nb::init<>())
      .def_rw("name", &HostConfig::name)
      .def_rw("tcp_rmem", &HostConfig::tcp_rmem)
      .def_rw("tcp_wmem", &HostConfig::tcp_wmem)
      .def_rw("socket_bytes", &HostConfig::socket_bytes)
      .def_rw("tcp_mem", &HostConfig::tcp_mem)
      .def_rw("devices", &HostConfig::devices)
      .def_rw("ring_packets", &HostConfig::ring_packets)
      .def_rw("ring_stall_ns", &HostConfig::ring_stall_ns)
      .def_rw("notsent_lowat_bytes", &HostConfig::notsent_lowat_bytes)
      .def_rw("limit_output_bytes", &HostConfig::limit_output_bytes)
      .def_rw("moderate_rcvbuf", &HostConfig::moderate_rcvbuf)
      .def_rw("polls", &HostConfig::polls)
      .def_rw("kernel", &HostConfig::kernel)
      .def_rw("agent", &HostConfig::agent);

  nb::class_<ArrivalsConfig>(m, "ArrivalsConfig",
                             "When flows are opened; see netbuf_gym.scenarios.PoissonArrivals, Incast, FlowList.")
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

  nb::class_<UdpConfig>(m, "UdpConfig", "Datagrams that nothing answers; see netbuf_gym.scenarios.UdpSource.")
      .def(nb::init<>())
      .def_rw("path", &UdpConfig::path)
      .def_rw("rate_bps", &UdpConfig::rate_bps)
      .def_rw("bytes", &UdpConfig::bytes)
      .def_rw("start_ns", &UdpConfig::start_ns)
      .def_rw("stop_ns", &UdpConfig::stop_ns)
      .def_rw("on_ns", &UdpConfig::on_ns)
      .def_rw("off_ns", &UdpConfig::off_ns)
      .def_rw("random_on_off", &UdpConfig::random_on_off)
      .def_rw("priority", &UdpConfig::priority);

  nb::class_<VideoConfig>(m, "VideoConfig",
                          "What a video client plays, and how; see netbuf_gym.scenarios.Video. Times in ns.")
      .def(nb::init<>())
      .def_rw("bitrate_bps", &VideoConfig::bitrate_bps)
      .def_rw("chunk_ns", &VideoConfig::chunk_ns)
      .def_rw("buffer_ns", &VideoConfig::buffer_ns)
      .def_rw("startup_ns", &VideoConfig::startup_ns)
      .def_rw("abr", &VideoConfig::abr)
      .def_rw("window_chunks", &VideoConfig::window_chunks)
      .def_rw("safety", &VideoConfig::safety)
      .def_rw("reservoir_ns", &VideoConfig::reservoir_ns)
      .def_rw("cushion_ns", &VideoConfig::cushion_ns);

  nb::class_<RouteConfig>(m, "RouteConfig", "Where packets go from a time on; see netbuf_gym.scenarios.Route.")
      .def(nb::init<>())
      .def_rw("from_ns", &RouteConfig::from_ns)
      .def_rw("path", &RouteConfig::path)
      .def_rw("return_path", &RouteConfig::return_path);

  nb::class_<FlowConfig> flow(m, "FlowConfig", "A TCP connection; see netbuf_gym.scenarios.Flow.");
  bind_controls(m, flow);
  bind_own_controls(m, flow);
  flow.def(nb::init<>())
      .def_rw("cc", &FlowConfig::cc)
      .def_rw("cc_parameters", &FlowConfig::cc_parameters)
      .def_rw("controlled", &FlowConfig::controlled)
      .def_rw("ecn", &FlowConfig::ecn)
      .def_rw("ecn_counts", &FlowConfig::ecn_counts)
      .def_rw("path", &FlowConfig::path)
      .def_rw("return_path", &FlowConfig::return_path)
      .def_rw("routes", &FlowConfig::routes)
      .def_rw("misbehaviour", &FlowConfig::misbehaviour)
      .def_rw("rest_ns", &FlowConfig::rest_ns)
      .def_rw("start_ns", &FlowConfig::start_ns)
      .def_rw("stop_ns", &FlowConfig::stop_ns)
      .def_rw("app", &FlowConfig::app)
      .def_rw("video", &FlowConfig::video)
      .def_rw("size_bytes", &FlowConfig::size_bytes)
      .def_rw("on_ns", &FlowConfig::on_ns)
      .def_rw("off_ns", &FlowConfig::off_ns)
      .def_rw("random_on_off", &FlowConfig::random_on_off)
      .def_rw("app_rate_bps", &FlowConfig::app_rate_bps)
      .def_rw("send_buffer_bytes", &FlowConfig::send_buffer_bytes)
      .def_rw("receive_buffer_bytes", &FlowConfig::receive_buffer_bytes)
      .def_rw("sender_host", &FlowConfig::sender_host)
      .def_rw("receiver_host", &FlowConfig::receiver_host)
      .def_rw("sndbuf_bytes", &FlowConfig::sndbuf_bytes)
      .def_rw("rcvbuf_bytes", &FlowConfig::rcvbuf_bytes)
      .def_rw("window_clamp_bytes", &FlowConfig::window_clamp_bytes)
      .def_rw("receiver", &FlowConfig::receiver)
      .def_rw("receiver_parameters", &FlowConfig::receiver_parameters)
      .def_rw("clock_offset_ns", &FlowConfig::clock_offset_ns)
      .def_rw("clock_drift_ppm", &FlowConfig::clock_drift_ppm)
      .def_rw("timestamp_ns", &FlowConfig::timestamp_ns)
      .def_rw("clamp_interval_ns", &FlowConfig::clamp_interval_ns)
      .def_rw("read_bps", &FlowConfig::read_bps)
      .def_rw("relay_from", &FlowConfig::relay_from)
      .def_rw("relay_buffer_bytes", &FlowConfig::relay_buffer_bytes)
      .def_rw("initial_cwnd_packets", &FlowConfig::initial_cwnd_packets)
      .def_rw("priority", &FlowConfig::priority)
      .def_rw("relay", &FlowConfig::relay);

  nb::class_<TrafficConfig>(m, "TrafficConfig",
                            "Senders and the flows that they open; see netbuf_gym.scenarios.Traffic.")
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
      .def_rw("udp", &WorldConfig::udp)
      .def_rw("hosts", &WorldConfig::hosts)
      .def_rw("mss", &WorldConfig::mss)
      .def_rw("min_rto_ns", &WorldConfig::min_rto_ns)
      .def_rw("delayed_ack_packets", &WorldConfig::delayed_ack_packets)
      .def_rw("hystart", &WorldConfig::hystart)
      .def_rw("pacing", &WorldConfig::pacing)
      .def_prop_rw(
          "stack", [](const WorldConfig& c) { return std::string(name_of(c.stack)); },
          [](WorldConfig& c, const std::string& name) { c.stack = stack_of(name); });
}

}  // namespace netbuf
