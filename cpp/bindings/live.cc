// The live plant's native half: links in real time, and connections of the kernel's.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <fcntl.h>

#include <tuple>

#include "bindings.h"
#include "netbuf/live_flows.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace netbuf {
namespace {

double seconds_or_nan(Time t) { return t >= kNever ? std::numeric_limits<double>::quiet_NaN() : seconds(t); }

// What is read while others wait for the lock; Python's objects are made when it has been given back: they may take a
// while, of a garbage collection.
struct TapReading {
  explicit TapReading(const Tap& tap)
      : counters(tap.counters()), in_flight_bytes(tap.in_flight_bytes()), interval_rtt_min(tap.interval_rtt_min) {}
  TapCounters counters;
  int64_t in_flight_bytes;
  Time interval_rtt_min;
};

template <class Held, class Read>
auto held(Held& what, Read&& read) {
  const auto guard = what.hold();
  return read();
}

template <class T>
nb::list dicts(const std::vector<T>& readings, nb::dict (*dict)(const T&)) {
  nb::list all;
  for (const T& one : readings) all.append(dict(one));
  return all;
}

nb::dict tap_stats(const TapReading& tap) {
  const TapCounters& c = tap.counters;
  nb::dict d;
  d["packets_sent"] = c.packets_sent;
  d["packets_retransmitted"] = c.packets_retransmitted;
  d["packets_received"] = c.packets_received;
  d["sent_bytes"] = c.sent_bytes;
  d["received_bytes"] = c.received_bytes;
  d["acked_bytes"] = c.acked_bytes;
  d["queue_drops"] = c.queue_drops;
  d["random_losses"] = c.random_losses;
  d["marks"] = c.marks;
  d["acks"] = c.acks;
  d["in_flight_sum_bytes"] = c.in_flight_sum;
  d["in_flight_bytes"] = tap.in_flight_bytes;
  d["rtt_count"] = c.rtt_count;
  d["rtt_sum_s"] = seconds(c.rtt_sum);
  d["rtt_min_s"] = seconds_or_nan(c.rtt_min);
  d["rtt_last_s"] = seconds_or_nan(c.rtt_last);
  d["interval_rtt_min_s"] = seconds_or_nan(tap.interval_rtt_min);
  d["first_sent_s"] = seconds(c.first_sent);
  d["last_sent_s"] = seconds(c.last_sent);
  d["first_ack_s"] = seconds(c.first_ack);
  d["last_ack_s"] = seconds(c.last_ack);
  return d;
}

nb::dict flow_stats(const LiveFlowStats& flow) {
  nb::dict d;
  d["start_s"] = seconds(flow.start);
  d["completion_s"] = seconds_or_nan(flow.completed);
  d["connected"] = flow.connected;
  d["written_bytes"] = flow.written_bytes;
  d["delivered_bytes"] = flow.delivered_bytes;
  d["cwnd_integral_byte_s"] = flow.cwnd_integral_byte_s;
  d["info"] = flow.info;
  d["failed_s"] = seconds_or_nan(flow.failed);
  d["failure"] = flow.failure;
  return d;
}

nb::dict live_link_stats(const LinkReading& link) {
  nb::dict d = link_stats(link);
  d["queue_bytes"] = link.bytes;
  return d;
}

int duplicate(int fd) { return fd < 0 ? -1 : ::fcntl(fd, F_DUPFD_CLOEXEC, 0); }

template <class T>
T& at(std::vector<T>& all, size_t index, const char* what) {
  if (index >= all.size()) throw nb::index_error((std::string(what) + " " + std::to_string(index)).c_str());
  return all[index];
}

}  // namespace

void bind_live(nb::module_& m) {
  m.def("monotonic_ns", &monotonic, "The clock of emulators, CLOCK_MONOTONIC.");

  nb::class_<Route>(m, "Route", "Links between two nodes: path from the sender's to the receiver's, return_path back.")
      .def(nb::init<>())
      .def_rw("sender_node", &Route::sender_node)
      .def_rw("receiver_node", &Route::receiver_node)
      .def_rw("path", &Route::path)
      .def_rw("return_path", &Route::return_path);

  nb::class_<LiveSocket>(m, "LiveSocket",
                         "What a flow's sockets are given, and the number of its route. 0: as the namespace has it.")
      .def(nb::init<>())
      .def_rw("route", &LiveSocket::route)
      .def_rw("cc", &LiveSocket::cc)
      .def_rw("send_buffer_bytes", &LiveSocket::send_buffer_bytes)
      .def_rw("asked_send_bytes", &LiveSocket::asked_send_bytes)
      .def_rw("receive_buffer_bytes", &LiveSocket::receive_buffer_bytes)
      .def_rw("window_clamp_bytes", &LiveSocket::window_clamp_bytes)
      .def_rw("notsent_lowat_bytes", &LiveSocket::notsent_lowat_bytes)
      .def_rw("pacing_bytes_per_s", &LiveSocket::pacing_bytes_per_s)
      .def_rw("polls", &LiveSocket::polls)
      .def_rw("limited", &LiveSocket::limited)
      .def_rw("window_bytes", &LiveSocket::window_bytes);

  nb::class_<Emulator>(
      m, "Emulator",
      R"(A world's links in real time, between descriptors of TUN devices; see cpp/include/netbuf/emulator.h.

Times are nanoseconds since its start. It can be read and set while it runs, by one thread at a time or several.)")
      .def("__init__", [](Emulator* self, const WorldConfig& world, uint64_t seed, const std::vector<Route>& routes,
                          const std::vector<int>& nodes, uint32_t mtu, bool realtime) {
        new (self) Emulator({world, seed, routes, nodes, mtu, realtime});
      }, "world"_a, "seed"_a, "routes"_a, "nodes"_a, "mtu"_a = 1500, "realtime"_a = false)
      .def("start", &Emulator::start, "epoch_ns"_a, "Begins, at time 0 of this moment of the monotonic clock.")
      .def("stop", &Emulator::stop, nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("now_ns", &Emulator::now)
      .def_prop_ro("epoch_ns", &Emulator::epoch)
      .def_prop_ro("failure", &Emulator::failure, "Why its thread has ended; empty while it runs.")
      .def_prop_ro("realtime", &Emulator::realtime, "Whether its thread has a real-time priority.")
      .def("link_stats", [](Emulator& e) {
        return dicts(held(e, [&] {
          const Time now = e.advance();
          std::vector<LinkReading> all;
          for (Link& link : e.links()) all.emplace_back(link, now);
          return all;
        }), &live_link_stats);
      }, "Cumulative counters, one dict a link, as a World's.")
      .def("link_stat", [](Emulator& e, uint32_t link) {
        return live_link_stats(held(e, [&] {
          const Time now = e.advance();
          return LinkReading(at(e.links(), link, "link"), now);
        }));
      }, "link"_a, "Of one link.")
      .def("switch_stats", [](Emulator& e) {
        return dicts(held(e, [&] {
          const Time now = e.advance();
          std::vector<SwitchReading> all;
          for (const auto& sw : e.switches()) all.emplace_back(*sw, now);
          return all;
        }), &switch_stats);
      }, "One dict a switch, as a World's.")
      .def("route_stats", [](Emulator& e) {
        return dicts(held(e, [&] { return std::vector<TapReading>(e.taps().begin(), e.taps().end()); }), &tap_stats);
      }, "What passed the sender's end of each route, a dict each, cumulative.")
      .def("route_stat", [](Emulator& e, uint32_t route) {
        return tap_stats(held(e, [&] { return TapReading(at(e.taps(), route, "route")); }));
      }, "route"_a)
      .def("begin_interval", [](Emulator& e, uint32_t route) {
        const Emulator::Guard guard = e.hold();
        at(e.taps(), route, "route").interval_rtt_min = kNever;
      }, "route"_a, "From now on counts interval_rtt_min_s of a route.")
      .def("switch_sample", [](Emulator& e) {
        const Emulator::Guard guard = e.hold();
        e.advance();
        std::vector<std::vector<std::vector<double>>> all;
        for (const auto& sw : e.switches()) {
          all.emplace_back();
          for (uint32_t q = 0; q < sw->queues(); ++q) {
            all.back().push_back({static_cast<double>(sw->packets(q)), static_cast<double>(sw->bytes(q)),
                                  sw->threshold(0, q), static_cast<double>(sw->totals(q).drops)});
          }
        }
        return all;
      }, "Current values of each switch's queues: packets, bytes, threshold, drops.")
      .def("probe_delays", [](Emulator& e) {
        const Emulator::Guard guard = e.hold();
        e.advance();
        std::vector<std::vector<double>> all;
        for (size_t i = 0; i < e.probes(); ++i) all.push_back(e.probe(i).delays);
        return all;
      }, "Delays in seconds of the probes' packets that arrived, a list a probe.")
      .def("probe_sent", [](Emulator& e) {
        const Emulator::Guard guard = e.hold();
        std::vector<uint64_t> all;
        for (size_t i = 0; i < e.probes(); ++i) all.push_back(e.probe(i).sent);
        return all;
      }, "Packets sent, a number a probe.")
      .def("udp_stats", [](Emulator& e) {
        return dicts(held(e, [&] {
          e.advance();
          std::vector<UdpCounters> all;
          for (const auto& source : e.udp()) all.push_back(source->counters());
          return all;
        }), &udp_stats);
      })
      .def("set_alpha", [](Emulator& e, uint32_t sw, uint32_t queue, double alpha) {
        const Emulator::Guard guard = e.hold();
        SharedBuffer& buffer = *at(e.switches(), sw, "switch");
        if (queue >= buffer.queues()) throw nb::index_error("queue");
        buffer.set_alpha(queue, alpha);
      }, "switch"_a, "queue"_a, "alpha"_a, "From now on, at an agent's switch.")
      .def("set_cut", [](Emulator& e, uint32_t sw, double cut_s, const std::vector<double>& alphas) {
        const Emulator::Guard guard = e.hold();
        SharedBuffer& buffer = *at(e.switches(), sw, "switch");
        if (alphas.size() != buffer.queues()) throw nb::index_error("queue");
        buffer.set_cut(e.now() + from_seconds(cut_s), alphas.data());
      }, "switch"_a, "cut_s"_a, "alphas"_a,
           "For so long from now, at an agent's switch; an alpha a queue, NaN: none of its own.")
      .def("set_drop_head", [](Emulator& e, uint32_t sw, bool from_head) {
        const Emulator::Guard guard = e.hold();
        at(e.switches(), sw, "switch")->set_drop_head(from_head);
      }, "switch"_a, "from_head"_a, "From now on: whether the oldest packet of a queue goes, or the one that arrives.")
      .def("limit_packets", [](Emulator& e, uint32_t link, int64_t packets) {
        const Emulator::Guard guard = e.hold();
        Link& one = at(e.links(), link, "link");
        e.advance();
        one.resize_queue(packets);
      }, "link"_a, "packets"_a, "Another limit of a link's queue from now on; 0: none. What waits stays.")
      .def("counters", [](Emulator& e) {
        const auto [c, late, reading, kept, in_network] =
            held(e, [&] { return std::tuple(e.counters(), e.lateness(), e.reading(), e.rate_kept(), e.in_network()); });
        nb::dict d;
        d["packets_read"] = c.packets_read;
        d["packets_written"] = c.packets_written;
        d["packets_in_network"] = in_network;
        d["strays"] = c.strays;
        d["refused"] = c.refused;
        d["wakes"] = c.wakes;
        d["busy_s"] = c.busy_s;
        d["late_mean_s"] = late.mean_s();
        d["late_p50_s"] = late.percentile_s(0.5);
        d["late_p90_s"] = late.percentile_s(0.9);
        d["late_p99_s"] = late.percentile_s(0.99);
        d["late_p999_s"] = late.percentile_s(0.999);
        d["late_max_s"] = late.max_s();
        d["read_late_p50_s"] = reading.percentile_s(0.5);
        d["read_late_p90_s"] = reading.percentile_s(0.9);
        d["read_late_p99_s"] = reading.percentile_s(0.99);
        d["read_late_max_s"] = reading.max_s();
        d["rate_error"] = kept.error();
        d["rate_busy_s"] = kept.busy_s;
        return d;
      }, R"(Packets, and how true their times are.

late_*_s: how late packets were written, against when the links had them arrive.
read_late_*_s: how long packets had waited to be read, at most.
rate_error: how much more (less: negative) links carried than their schedules could, relative, by the wall clock, while
they were saturated for 0.1 s or more, which was rate_busy_s long, of all links together; NaN: none was.)");

  nb::class_<LiveFlows>(m, "LiveFlows",
                        "A world's connections over sockets of the kernel; see cpp/include/netbuf/live_flows.h.")
      .def("__init__", [](LiveFlows* self, const WorldConfig& world, uint64_t seed, Emulator& emulator,
                          const std::vector<int>& namespaces, const std::vector<LiveSocket>& flows,
                          const std::vector<LiveSocket>& senders) {
        new (self) LiveFlows({world, seed, namespaces, flows, senders}, emulator);
      }, "world"_a, "seed"_a, "emulator"_a, "namespaces"_a, "flows"_a, "senders"_a, nb::keep_alive<1, 4>())
      .def("listen", &LiveFlows::listen, nb::call_guard<nb::gil_scoped_release>(), "Before the start.")
      .def("start", &LiveFlows::start, "After the emulator's.")
      .def("stop", &LiveFlows::stop, nb::call_guard<nb::gil_scoped_release>(), "Ends all connections.")
      .def_prop_ro("failure", &LiveFlows::failure, "Why its thread has ended; empty while it runs.")
      .def("flow_stats", [](LiveFlows& f) {
        return dicts(held(f, [&] {
          f.look();
          return f.flows();
        }), &flow_stats);
      }, "One dict a flow, cumulative; info: its sender's TCP_INFO by tcp_info_columns(), empty before the first look.")
      .def("flow_stat", [](LiveFlows& f, uint32_t flow) {
        return flow_stats(held(f, [&] {
          if (flow >= f.flows().size()) throw nb::index_error(("flow " + std::to_string(flow)).c_str());
          f.look(flow);
          return f.flows()[flow];
        }));
      }, "flow"_a, "Of one flow.")
      .def("failures", [](LiveFlows& f) {
        const LiveFlows::Guard guard = f.hold();
        std::vector<std::pair<uint32_t, std::string>> all;
        for (uint32_t i = 0; i < f.flows().size(); ++i) {
          const LiveFlowStats& flow = f.flows()[i];
          if (!flow.failure.empty() && flow.failed == kNever) all.emplace_back(i, flow.failure);
        }
        return all;
      }, "Flows that could not be opened, and why.")
      .def("totals", [](LiveFlows& f) {
        const auto [started, connected, completed, failed, bytes, open] = held(f, [&] {
          return std::tuple(f.opened().size(), f.connected(), f.completions().size(), f.failed(),
                            f.traffic_delivered_bytes(), f.open_connections());
        });
        nb::dict d;
        d["flows_started"] = started;
        d["flows_connected"] = connected;
        d["flows_completed"] = completed;
        d["flows_failed"] = failed;
        d["delivered_bytes"] = bytes;
        d["connections"] = open;
        return d;
      }, "Of the traffic's flows; failed: could not be opened, or broke;"
           " connections: that are open, of the traffic and others.")
      .def("completed_at", [](LiveFlows& f, uint32_t node) {
        const LiveFlows::Guard guard = f.hold();
        return f.completed_at(node);
      }, "node"_a, "Streams of a known size that a node has sent or received to their end, each leg of relayed ones.")
      .def("completions", [](LiveFlows& f, size_t first) {
        const LiveFlows::Guard guard = f.hold();
        std::vector<std::vector<double>> rows;
        for (size_t i = first; i < f.completions().size(); ++i) {
          const Completion& done = f.completions()[i];
          const OpenedFlow& flow = f.opened()[done.flow];
          rows.push_back({static_cast<double>(done.flow), seconds(flow.start), seconds(done.fct),
                          static_cast<double>(flow.size_bytes), static_cast<double>(flow.sender),
                          static_cast<double>(flow.priority), done.ideal_s});
        }
        return rows;
      }, "first"_a = 0,
           "Finished flows of the traffic from number first on:"
           " flow, start_s, fct_s, size_bytes, sender, priority, ideal_s.")
      .def("flows_opened", [](LiveFlows& f) {
        const LiveFlows::Guard guard = f.hold();
        std::vector<std::vector<double>> rows;
        for (const OpenedFlow& flow : f.opened()) {
          rows.push_back({seconds(flow.start), static_cast<double>(flow.sender), static_cast<double>(flow.size_bytes),
                          static_cast<double>(flow.priority), static_cast<double>(flow.received_bytes)});
        }
        return rows;
      }, "All flows of the traffic: start_s, sender, size_bytes, priority, received_bytes.")
      .def("sender_fd", [](LiveFlows& f, uint32_t flow) {
        const LiveFlows::Guard guard = f.hold();
        return duplicate(f.sender_fd(flow));
      }, "flow"_a, "A duplicate of a flow's sending socket, the caller's to close; -1: not open (any more).")
      .def("receiver_fd", [](LiveFlows& f, uint32_t flow) {
        const LiveFlows::Guard guard = f.hold();
        return duplicate(f.receiver_fd(flow));
      }, "flow"_a, "Likewise of its receiving socket.")
      .def("begin_switch", [](LiveFlows& f, uint32_t sw) {
        const LiveFlows::Guard guard = f.hold();
        f.begin_switch(sw);
      }, "switch"_a, "A decision interval of a switch begins.")
      .def("observe_switch", [](LiveFlows& f, uint32_t sw) {
        const LiveFlows::Guard guard = f.hold();
        return f.observe_switch(sw);
      }, "switch"_a, "Its telemetry since then, as that of agents of kind switch.")
      .def("switch_changed", [](LiveFlows& f, uint32_t sw) {
        const LiveFlows::Guard guard = f.hold();
        return f.switch_changed(sw);
      }, "switch"_a,
           "Whether the worst slowdown of the flows that complete is another one than when this was last asked.")
      .def("cap_buffers", [](LiveFlows& f, uint32_t node, int64_t bytes) {
        const LiveFlows::Guard guard = f.hold();
        f.cap_buffers(node, bytes);
      }, "node"_a, "bytes"_a,
           "Send buffers that connections opened from now on ask for at a node are at most as large.")
      .def("clamp_windows", [](LiveFlows& f, uint32_t node, int64_t bytes) {
        const LiveFlows::Guard guard = f.hold();
        return f.clamp_windows(node, bytes);
      }, "node"_a, "bytes"_a,
           R"(Receive windows of all connections that a node receives, now or from now on, are at most as large;
but for receivers with a control of their own. Returns how many there are.)")
      .def("set_congestion_control", [](LiveFlows& f, uint32_t node, const std::string& control) {
        const LiveFlows::Guard guard = f.hold();
        return f.set_congestion_control(node, control);
      }, "node"_a, "control"_a,
           R"(Congestion control, by the kernel's name, of all connections that a node sends on, now or from now on.
Returns how many there are.)")
      .def("set_window", [](LiveFlows& f, uint32_t flow, double bytes) {
        const LiveFlows::Guard guard = f.hold();
        f.set_window(flow, bytes);
      }, "flow"_a, "bytes"_a, "What a limited flow may have written and not acknowledged, from now on.");
}

}  // namespace netbuf
