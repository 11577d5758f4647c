// What the live plant asks of the kernel natively.
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <sys/socket.h>

#include <atomic>
#include <limits>
#include <memory>
#include <system_error>

#include "bindings.h"
#include "netbuf/emulator.h"
#include "netbuf/kernel/btf.h"
#include "netbuf/kernel/inet_diag.h"
#include "netbuf/kernel/tcp_info.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace netbuf {
namespace {

using Matrix = nb::ndarray<nb::numpy, double, nb::ndim<2>>;

Matrix matrix(std::vector<double>&& rows, size_t columns) {
  auto held = std::make_unique<std::vector<double>>(std::move(rows));
  double* data = held->data();
  const size_t count = held->size() / columns;
  nb::capsule owner(held.release(), [](void* p) noexcept { delete static_cast<std::vector<double>*>(p); });
  return Matrix(data, {count, columns}, owner);
}

Matrix tcp_info_of(const std::vector<int>& sockets) {
  const size_t columns = tcp_info_fields().size();
  std::vector<double> rows(sockets.size() * columns, std::numeric_limits<double>::quiet_NaN());
  {
    nb::gil_scoped_release release;
    for (size_t i = 0; i < sockets.size(); ++i) read_tcp_info(sockets[i], &rows[i * columns]);
  }
  return matrix(std::move(rows), columns);
}

// Rows that `ask` fills, of inet_diag's columns; what the kernel refuses is an OSError in its words and ours.
template <class Ask>
Matrix sockets(Ask&& ask) {
  std::vector<double> rows;
  try {
    nb::gil_scoped_release release;
    ask(rows);
  } catch (const std::system_error& error) {
    PyErr_SetObject(PyExc_OSError, nb::make_tuple(error.code().value(), error.what()).ptr());
    throw nb::python_error();
  }
  return matrix(std::move(rows), diag_columns().size());
}

Matrix listed(int netlink, uint32_t states, uint16_t local_port, uint16_t remote_port, bool v6) {
  static std::atomic<size_t> before{0};  // who lists a thousand sockets will do so again
  return sockets([&](std::vector<double>& rows) {
    rows.reserve(before);
    list_tcp_sockets(netlink, {AF_INET, states, local_port, remote_port}, rows);
    if (v6) list_tcp_sockets(netlink, {AF_INET6, states, local_port, remote_port}, rows);
    before = rows.size();
  });
}

Matrix ended(int netlink) {
  return sockets([&](std::vector<double>& rows) { list_ended_tcp_sockets(netlink, rows); });
}

ReceiverMeter& meter_of(Emulator& emulator, uint32_t route) {
  ReceiverMeter* meter = emulator.meter(route);
  if (!meter) throw nb::index_error(("no receiver control at route " + std::to_string(route)).c_str());
  return *meter;
}

nb::dict receiver_stat(Emulator& emulator, uint32_t route) {
  MeterCounters c;
  int64_t held, advertised, clamp;
  uint32_t mss;
  {
    const Emulator::Guard guard = emulator.hold();
    const ReceiverMeter& meter = meter_of(emulator, route);
    c = meter.counters();
    held = meter.held_bytes(), advertised = meter.advertised_bytes(), clamp = meter.clamp_bytes(), mss = meter.mss();
  }
  nb::dict d;
  d["packets_received"] = c.packets_received;
  d["received_bytes"] = c.received_bytes;
  d["delivered_bytes"] = c.delivered_bytes;
  d["segments_missing"] = c.segments_missing;
  d["segments_repeated"] = c.segments_repeated;
  d["stamps_missing"] = c.stamps_missing;
  d["held_bytes"] = held;
  d["advertised_bytes"] = advertised;
  d["clamp_bytes"] = clamp;
  d["mss_bytes"] = mss;
  return d;
}

nb::dict receiver_reading(Emulator& emulator, uint32_t route) {
  MeterReading r;
  {
    const Emulator::Guard guard = emulator.hold();
    r = meter_of(emulator, route).read(monotonic());
  }
  nb::dict d;
  d["window_bytes"] = r.window_bytes;
  d["queue_delay_last_s"] = r.queue_delay_last_s;
  d["queue_delay_s"] = r.queue_delay_s;
  d["queue_delay_mean_s"] = r.queue_delay_mean_s;
  d["queue_delay_min_s"] = r.queue_delay_min_s;
  d["queue_delay_max_s"] = r.queue_delay_max_s;
  d["queue_delay_before_s"] = r.queue_delay_before_s;
  d["rtt_s"] = r.rtt_s;
  d["rtt_min_s"] = r.rtt_min_s;
  d["silence_s"] = r.silence_s;
  d["longest_gap_s"] = r.longest_gap_s;
  d["k"] = r.k;
  d["target_delay_s"] = r.target_delay_s;
  d["bdp_gain"] = r.bdp_gain;
  return d;
}

}  // namespace

void bind_kernel(nb::module_& m) {
  m.def("btf_structs", [](const std::string& path, const std::vector<std::string>& names) {
    nb::list all;
    for (const BtfStruct& s : find_structs(path, names)) {
      if (s.id == 0) {
        all.append(nb::none());
        continue;
      }
      nb::dict d, members;
      uint32_t index = 0;
      for (const BtfStruct::Member& member : s.members) {
        if (!member.name.empty()) members[member.name.c_str()] = nb::make_tuple(index, member.bit_offset / 8);
        ++index;
      }
      d["id"] = s.id;
      d["bytes"] = s.bytes;
      d["members"] = members;
      all.append(d);
    }
    return all;
  }, "path"_a, "names"_a,
        "Structures by name in a file of BTF, a dict each or None:"
        " id, bytes, members (name: number and offset in bytes).");
  m.def("tcp_info_columns", [] {
    std::vector<std::string> names;
    for (const TcpInfoField& field : tcp_info_fields()) names.emplace_back(field.name);
    return names;
  }, "The columns of tcp_info.");
  m.def("tcp_info", &tcp_info_of, "sockets"_a,
        "TCP_INFO of descriptors, float64 (sockets, columns); NaN: not known to this kernel, or no TCP socket.");
  m.def("tcp_info_row", [](int socket) {
    std::vector<double> row(tcp_info_fields().size());
    if (!read_tcp_info(socket, row.data())) row.clear();
    return row;
  }, "socket"_a, "TCP_INFO of a descriptor, a list by tcp_info_columns(); empty: no TCP socket. Without numpy.");
  m.def("inet_diag_columns", &diag_columns, "The columns of inet_diag.");
  m.def("inet_diag", &listed, "netlink"_a, "states"_a, "local_port"_a, "remote_port"_a, "v6"_a,
        "The TCP sockets of the namespace in which a NETLINK_SOCK_DIAG socket was opened, float64 (sockets, columns).");
  m.def("inet_diag_ended", &ended, "netlink"_a,
        "Those that a non-blocking one, bound to the groups of destroyed sockets,"
        " was told of since this was last asked.");
  m.def("meter_receiver", [](Emulator& emulator, uint32_t route, const FlowConfig& flow, uint32_t mss) {
    auto meter = std::make_unique<ReceiverMeter>(flow, mss);
    const Emulator::Guard guard = emulator.hold();
    emulator.meter(route, std::move(meter));
  }, "emulator"_a, "route"_a, "flow"_a, "mss"_a,
        "From now on the flow's receiver control is told what arrives at the route's receiver,"
        " whose window is clamped to what it says.");
  m.def("first_window_bytes", [](const FlowConfig& flow, uint32_t mss) {
    const auto control = make_receiver_control(flow, mss);
    return control ? control->initial_window() : -1;
  }, "flow"_a, "mss"_a, "What a flow's receiver control advertises first; negative: it has none.");
  m.def("receiver_stat", &receiver_stat, "emulator"_a, "route"_a, "What a metered receiver has counted.");
  m.def("receiver_reading", &receiver_reading, "emulator"_a, "route"_a,
        "What its control, Nuwa's or an agent's, knows.");
  m.def("begin_receiver", [](Emulator& emulator, uint32_t route) {
    const Emulator::Guard guard = emulator.hold();
    meter_of(emulator, route).begin(monotonic());
  }, "emulator"_a, "route"_a, "An interval of readings begins.");
  m.def("set_receiver", [](Emulator& emulator, uint32_t route, double k, double target_s, double window_bytes,
                           double gain) {
    const Emulator::Guard guard = emulator.hold();
    meter_of(emulator, route).set(k, target_s, window_bytes, gain);
  }, "emulator"_a, "route"_a, "k"_a, "target_delay_s"_a, "window_bytes"_a, "bdp_gain"_a,
        "What an agent decided; NaN: leaves it.");
}

}  // namespace netbuf
