// What can be read of a world at any time: statistics since its start, and samples of a moment.
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>

#include "bindings.h"
#include "netbuf/report.h"
#include "netbuf/socket_buffer.h"
#include "netbuf/video.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace netbuf {
namespace {

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
  d["failed_s"] = seconds_or_nan(flow.sender.failed_at());
  d["delivered_bytes"] = c.delivered_bytes;
  d["acked_bytes"] = c.acked_bytes;
  d["packets_sent"] = c.packets_sent;
  d["packets_retransmitted"] = c.packets_retransmitted;
  d["packets_received"] = c.packets_received;
  d["packets_lost_marked"] = flow.sender.tcb.lost;
  d["queue_drops"] = c.queue_drops;
  d["random_losses"] = c.random_losses;
  d["marks"] = c.marks;
  d["mark_responses"] = c.mark_responses;
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

using Matrix = nb::ndarray<nb::numpy, double, nb::ndim<2>>;
using Cube = nb::ndarray<nb::numpy, double, nb::ndim<3>>;
using Vector = nb::ndarray<nb::numpy, double, nb::ndim<1>>;

template <class Sample>
Matrix sample_matrix(size_t rows, size_t columns, Sample&& sample) {
  double* data = new double[rows * columns];
  for (size_t i = 0; i < rows; ++i) sample(static_cast<uint32_t>(i), data + i * columns);
  return Matrix(data, {rows, columns}, nb::capsule(data, [](void* p) noexcept { delete[] static_cast<double*>(p); }));
}

// Bits that a link could carry in a span of time, a second; NaN where it has no rate.
double capacity_bps(const Link& link, Time from, Time to) {
  const double bits = link.offered_bits(to) - link.offered_bits(from);
  return std::isfinite(bits) && to > from ? bits / seconds(to - from) : std::numeric_limits<double>::quiet_NaN();
}

// Chunks that have ended.
Matrix chunks(World& world, Flow& flow, const VideoClient& client) {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  size_t count = client.chunks().size();
  if (count > 0 && client.chunks().back().ended < 0) --count;
  const Link& link = world.links()[flow.bottleneck()];
  return sample_matrix(count, 9, [&](uint32_t i, double* out) {
    const Chunk& c = client.chunks()[i];
    const double row[] = {seconds(c.begun), seconds(c.first), seconds(c.ended), static_cast<double>(c.bytes),
                          c.bitrate_bps, seconds(c.buffered), c.window_bytes >= 0 ? c.window_bytes : kUnknown,
                          c.rtt >= 0 ? seconds(c.rtt) : kUnknown, capacity_bps(link, c.begun, c.ended)};
    std::copy(std::begin(row), std::end(row), out);
  });
}

nb::list video_stats(World& world) {
  nb::list all;
  for (Flow& flow : world.flows()) {
    const auto* client = dynamic_cast<const VideoClient*>(flow.receiver.sink());
    if (!client) {
      all.append(nb::none());
      continue;
    }
    const Playback playback = client->playback(world.now());
    nb::dict d;
    d["played_s"] = seconds(playback.played);
    d["buffered_s"] = seconds(playback.buffered);
    d["stalled_s"] = seconds(playback.stalled);
    d["stalls"] = playback.stalls;
    d["startup_s"] = playback.delay >= 0 ? seconds(playback.delay) : std::numeric_limits<double>::quiet_NaN();
    d["asked_bytes"] = client->asked_bytes();
    d["chunks"] = chunks(world, flow, *client);
    all.append(d);
  }
  return all;
}

}  // namespace

nb::dict link_stats(const LinkReading& link) {
  const LinkStats& s = link.stats;
  nb::dict d;
  d["name"] = link.name;
  d["packets_in"] = s.packets_in;
  d["packets_out"] = s.packets_out;
  d["bytes_out"] = s.bytes_out;
  d["bytes_sent"] = s.bytes_sent;
  d["used_bits"] = s.used_bits;
  d["offered_bits"] = link.offered_bits;
  d["queue_drops"] = s.queue_drops;
  d["random_losses"] = s.random_losses;
  d["marks"] = s.marks;
  d["sojourn_sum_s"] = s.sojourn_sum;
  d["sojourn_count"] = s.packets_out;
  d["sojourn_sum2"] = s.sojourn_sum2;
  d["queue_integral_packet_s"] = s.queue_integral;
  d["queue_packets"] = link.packets;
  d["queue_max_packets"] = s.queue_max;
  d["busy_s"] = s.busy;
  return d;
}

namespace {

nb::list link_stats(World& world) {
  nb::list all;
  for (Link& link : world.links()) all.append(link_stats(LinkReading(link, world.now())));
  return all;
}

Matrix completions(const World& world) {
  const auto& done = world.completions();
  return sample_matrix(done.size(), 7, [&](uint32_t i, double* out) {
    const OpenedFlow& flow = world.opened()[done[i].flow];
    const double row[] = {static_cast<double>(done[i].flow), seconds(flow.start), seconds(done[i].fct),
                          static_cast<double>(flow.size_bytes), static_cast<double>(flow.sender),
                          static_cast<double>(flow.priority), done[i].ideal_s};
    std::copy(std::begin(row), std::end(row), out);
  });
}

Matrix pages(const World& world) {
  const std::vector<PageLoad> all = world.pages();
  return sample_matrix(all.size(), 6, [&](uint32_t i, double* out) {
    const PageLoad& page = all[i];
    const double row[] = {static_cast<double>(page.user), static_cast<double>(page.sender), seconds(page.start),
                          seconds(page.load), static_cast<double>(page.objects), static_cast<double>(page.bytes)};
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

nb::dict queue_stats(const SwitchReading::Queue& queue) {
  nb::dict d;
  d["port"] = queue.port;
  d["queue"] = queue.queue;
  d["arrivals"] = queue.counters.arrivals;
  d["drops"] = queue.counters.drops;
  d["marks"] = queue.counters.marks;
  d["departures"] = queue.counters.departures;
  d["bytes_out"] = queue.counters.bytes_out;
  d["sojourn_sum_s"] = seconds(queue.counters.sojourn);
  d["packets"] = queue.packets;
  d["packets_mean"] = queue.mean;
  d["packets_p99"] = queue.p99;
  d["packets_max"] = queue.max;
  return d;
}

}  // namespace

SwitchReading::SwitchReading(const SharedBuffer& sw, Time now) : time(now), capacity(sw.capacity()) {
  const auto whole = static_cast<double>(capacity);
  const double step = static_cast<double>(sw.occupancy_step()) / whole;
  occupancy = static_cast<double>(sw.occupancy()) / whole;
  mean = sw.occupancy_histogram().mean(now) * step;
  p99 = sw.occupancy_histogram().percentile(0.99, now) * step;
  max = static_cast<double>(sw.occupancy_max()) / whole;
  for (uint32_t port = 0; port < sw.ports(); ++port) {
    for (uint32_t q = 0; q < sw.queues(); ++q) {
      const SharedBuffer::Queue& queue = sw.queue(port, q);
      const TimeHistogram& lengths = queue.packets;
      queues.push_back(
          {port, q, queue.state.counters, queue.state.packets, lengths.mean(now), lengths.percentile(0.99, now), lengths.max()});
    }
  }
}

nb::dict switch_stats(const SwitchReading& sw) {
  nb::dict d;
  d["time_s"] = seconds(sw.time);
  d["capacity"] = sw.capacity;
  d["occupancy"] = sw.occupancy;
  d["occupancy_mean"] = sw.mean;
  d["occupancy_p99"] = sw.p99;
  d["occupancy_max"] = sw.max;
  nb::list queues;
  for (const SwitchReading::Queue& queue : sw.queues) queues.append(queue_stats(queue));
  d["queues"] = queues;
  return d;
}

nb::dict udp_stats(const UdpCounters& c) {
  nb::dict d;
  d["packets_sent"] = c.sent;
  d["packets_received"] = c.received;
  d["sent_bytes"] = c.sent_bytes;
  d["received_bytes"] = c.received_bytes;
  d["queue_drops"] = c.queue_drops;
  d["random_losses"] = c.random_losses;
  d["delay_sum_s"] = c.delay_sum;
  d["delay_sum2"] = c.delay_sum2;
  d["delay_min_s"] = c.received ? seconds(c.delay_min) : std::numeric_limits<double>::quiet_NaN();
  d["delay_max_s"] = c.received ? seconds(c.delay_max) : std::numeric_limits<double>::quiet_NaN();
  return d;
}

namespace {

nb::list switch_stats(World& world) {
  nb::list all;
  for (const auto& sw : world.switches()) all.append(switch_stats(SwitchReading(*sw, world.now())));
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
  return Cube(data, {switches.size(), queues, 4},
              nb::capsule(data, [](void* p) noexcept { delete[] static_cast<double*>(p); }));
}

nb::list probe_delays(World& world) {
  nb::list all;
  for (size_t i = 0; i < world.probes(); ++i) {
    const auto& delays = world.probe(i).delays;
    double* data = new double[std::max<size_t>(1, delays.size())];
    std::copy(delays.begin(), delays.end(), data);
    all.append(Vector(data, {delays.size()},
                      nb::capsule(data, [](void* p) noexcept { delete[] static_cast<double*>(p); })));
  }
  return all;
}

std::vector<uint64_t> probe_sent(World& world) {
  std::vector<uint64_t> sent;
  for (size_t i = 0; i < world.probes(); ++i) sent.push_back(world.probe(i).sent);
  return sent;
}

nb::list udp_stats(World& world) {
  nb::list all;
  for (const auto& source : world.udp()) all.append(udp_stats(source->counters()));
  return all;
}

nb::list host_stats(World& world) {
  nb::list all;
  const Time now = world.now();
  for (const Host& host : world.hosts()) {
    SendSum sent = host.totals.sent;
    int64_t received = host.totals.received_bytes;
    uint64_t connections = 0;
    for (const SendBuffer* one : host.senders()) {
      if (one->open()) sent.add(one->whole(now));
      connections += one->open() && !one->closed();
    }
    for (const ReceiveBuffer* one : host.receivers()) {
      received += one->receiver().read_bytes();
      connections += one->open();
    }
    const auto page = static_cast<double>(kPage);
    double queued = 0;
    for (const uint32_t device : host.settings().devices) queued += world.links()[device].stats(now).queue_integral;
    nb::dict d;
    d["name"] = host.settings().name;
    d["now_s"] = seconds(now);
    d["sent_bytes"] = sent.acked_bytes;
    d["received_bytes"] = received;
    d["flows_completed"] = host.totals.completed;
    d["connections"] = connections;
    d["connections_opened"] = host.totals.opened;
    d["connections_closed"] = host.totals.closed;
    d["packets_sent"] = sent.packets_sent;
    d["packets_retransmitted"] = sent.packets_retransmitted;
    d["rtt_count"] = sent.rtt_count;
    d["rtt_sum_s"] = seconds(sent.rtt_sum);
    d["rtt_min_s"] = seconds_or_nan(sent.rtt_least);
    d["busy_s"] = seconds(sent.busy);
    d["rwnd_limited_s"] = seconds(sent.window_limited);
    d["sndbuf_limited_s"] = seconds(sent.buffer_limited);
    d["memory_bytes"] = static_cast<double>(host.memory().value()) * page;
    d["memory_mean_bytes"] = now > 0 ? host.memory().integral(now) / static_cast<double>(now) * page : 0.0;
    d["memory_max_bytes"] = static_cast<double>(host.memory().most()) * page;
    d["memory_pressure_s"] = seconds(host.pressure_time(now));
    d["packets_refused"] = host.totals.refused;
    d["ring_mean_packets"] =
        now > 0 && !host.settings().devices.empty() ? queued / seconds(now) : seconds_or_nan(kNever);
    d["interrupted_s"] = seconds(host.interrupted(now));
    all.append(d);
  }
  return all;
}

// Of the sockets at hosts: one row a flow that lives as long as the world.
nb::list socket_stats(World& world) {
  nb::list all;
  for (const Flow& flow : world.flows()) {
    nb::dict d;
    if (const SendBuffer* send = flow.sender.buffer()) {
      const SendShare life = send->whole(world.now());
      d["sndbuf_bytes"] = send->limit();
      d["send_queued_bytes"] = send->queued();
      d["unsent_bytes"] = send->unsent();
      d["busy_s"] = seconds(life.busy);
      d["rwnd_limited_s"] = seconds(life.window_limited);
      d["sndbuf_limited_s"] = seconds(life.buffer_limited);
    }
    if (const ReceiveBuffer* receive = flow.receiver.buffer()) {
      d["rcvbuf_bytes"] = receive->limit();
      d["receive_queued_bytes"] = receive->queued();
      d["window_bytes"] = flow.receiver.advertised_bytes();
    }
    all.append(d);
  }
  return all;
}

nb::dict traffic_stats(World& world) {
  const TrafficTotals t = world.traffic_totals();
  nb::dict d;
  d["flows_started"] = world.opened().size();
  d["flows_connected"] = t.connected;
  d["flows_completed"] = world.completions().size();
  d["received_bytes"] = t.received_bytes;
  d["delivered_bytes"] = t.delivered_bytes;
  d["packets_sent"] = t.packets_sent;
  d["packets_retransmitted"] = t.packets_retransmitted;
  d["packets_received"] = t.packets_received;
  d["packets_in_network"] = world.data_packets_in_network();
  d["timeouts"] = t.timeouts;
  d["syn_timeouts"] = t.syn_timeouts;
  d["flows_failed"] = t.failed;
  d["queue_drops"] = t.queue_drops;
  d["random_losses"] = t.random_losses;
  d["marks"] = t.marks;
  d["mark_responses"] = t.mark_responses;
  return d;
}

template <class Read>
void reading(nb::class_<SharedWorld>& world, nb::class_<SharedBatch>& batch, const char* name, Read, const char* text) {
  world.def(name, [](SharedWorld& w) {
    Held held(w.turn);
    return Read{}(*w.core);
  }, text);
  batch.def(name, [](SharedBatch& b, uint32_t i) {
    Held held(b.turn);
    return Read{}(b.core->world(i));
  }, "world"_a, text);
}

}  // namespace

void bind_readings(nb::module_& m, nb::class_<SharedWorld>& world, nb::class_<SharedBatch>& batch) {
  const auto add = [&](const char* name, auto read, const char* text) { reading(world, batch, name, read, text); };
  add("flow_stats", [](World& w) { return flow_stats(w); }, "Cumulative counters, one dict a flow.");
  add("video_stats", [](World& w) { return video_stats(w); },
      "What each flow's video client has played so far, and its chunks that have ended, shape (chunks, 9):\n"
      "begun_s, first_byte_s, ended_s, bytes, bitrate_bps, buffered_s, window_bytes, rtt_s, capacity_bps;\n"
      "None for flows without one.");
  add("link_stats", [](World& w) { return link_stats(w); }, "Cumulative counters, one dict a link.");
  add("flow_sample", [](World& w) {
    return sample_matrix(w.flows().size(), std::size(kFlowSampleFields),
                         [&](uint32_t i, double* out) { sample_flow(w, i, out); });
  }, "Current values, shape (flows, fields); columns are flow_sample_fields().");
  add("link_sample", [](World& w) {
    return sample_matrix(w.links().size(), std::size(kLinkSampleFields),
                         [&](uint32_t i, double* out) { sample_link(w, i, out); });
  }, "Current values, shape (links, fields); columns are link_sample_fields().");
  add("flow_arrivals", [](World& w) {
    std::vector<int64_t> bytes;
    for (const Flow& flow : w.flows()) bytes.push_back(flow.receiver.counters().received_bytes);
    return bytes;
  }, "Data bytes that arrived at each flow's receiver so far, in whatever order, duplicates included.");
  add("completions", [](World& w) { return completions(w); },
      "Finished flows of the traffic, shape (flows, 7): flow, start_s, fct_s, size_bytes, sender, priority, ideal_s.");
  add("flows_opened", [](World& w) { return flows_opened(w); },
      "All flows of the traffic, shape (flows, 5): start_s, sender, size_bytes, priority, received_bytes.");
  add("pages", [](World& w) { return pages(w); },
      "Pages that users of the traffic have got, shape (pages, 6): user, sender, start_s, load_s, objects, size_bytes.");
  add("traffic_stats", [](World& w) { return traffic_stats(w); }, "Cumulative counters over the flows of the traffic.");
  add("switch_stats", [](World& w) { return switch_stats(w); },
      "One dict a switch: occupancy (shares of the capacity, over time) and counters of each queue.");
  add("switch_sample", [](World& w) { return switch_sample(w); },
      "Current values, shape (switches, queues, 4): packets, bytes, threshold, drops.");
  add("probe_delays", [](World& w) { return probe_delays(w); },
      "Delays in seconds of the probe packets that arrived, one array a probe.");
  add("udp_stats", [](World& w) { return udp_stats(w); }, "Cumulative counters, one dict a source of datagrams.");
  add("host_stats", [](World& w) { return host_stats(w); }, "Cumulative counters, one dict a host.");
  add("socket_stats", [](World& w) { return socket_stats(w); },
      "Of each flow what its sockets at hosts have and hold: a dict, empty for a flow without hosts.");
  add("probe_sent", [](World& w) { return probe_sent(w); }, "Packets sent, one number a probe.");

  const char* ideal = "Base RTT, and what the slowest link takes to carry the bytes of a flow that starts then.";
  world.def("ideal_s", [](SharedWorld& w, uint32_t sender, int64_t size, Time start) {
    Held held(w.turn);
    return w.core->ideal_s(sender, size, start);
  }, "sender"_a, "size_bytes"_a, "start_ns"_a, ideal);
  batch.def("ideal_s", [](SharedBatch& b, uint32_t i, uint32_t sender, int64_t size, Time start) {
    Held held(b.turn);
    return b.core->world(i).ideal_s(sender, size, start);
  }, "world"_a, "sender"_a, "size_bytes"_a, "start_ns"_a, ideal);
  world.def_prop_ro("now_ns", [](SharedWorld& w) { return Held(w.turn), w.core->now(); })
      .def_prop_ro("memory_bytes", [](SharedWorld& w) { return Held(w.turn), w.core->memory_bytes(); });
  batch.def("now_ns", [](SharedBatch& b, uint32_t i) { return Held(b.turn), b.core->world(i).now(); }, "world"_a)
      .def("memory_bytes", [](SharedBatch& b, uint32_t i) { return Held(b.turn), b.core->world(i).memory_bytes(); },
           "world"_a);

  m.def("flow_sample_fields", [] { return names(kFlowSampleFields); });
  m.def("link_sample_fields", [] { return names(kLinkSampleFields); });
}

}  // namespace netbuf
