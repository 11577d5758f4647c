// Where validate() draws the line: for every bound the last value that is good
// and the first that is not, on both sides.
#include <initializer_list>

#include "worlds.h"

using namespace netbuf;

namespace {

constexpr int64_t kLongest = 10'000'000'000'000'000, kLargest = int64_t{1} << 40;

WorldConfig base() { return worlds::dumbbell(10, 40, 50, {"cubic"}); }

std::string why(const WorldConfig& config) {
  try {
    validate(config);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

// Every good value is taken, every bad one refused with a message that begins with the field.
template <class T, class Change>
void bound(const WorldConfig& world, const std::string& field, std::initializer_list<T> good,
           std::initializer_list<T> bad, Change&& change) {
  for (const bool fine : {true, false}) {
    for (const T value : fine ? good : bad) {
      WorldConfig config = world;
      change(config, value);
      const std::string message = why(config);
      if (fine ? message.empty() : message.rfind(field + " = ", 0) == 0) continue;
      std::ostringstream text;
      text << field << " = " << value << (fine ? " is good: " : " is bad: ")
           << (message.empty() ? "accepted" : message);
      check::fail(__FILE__, __LINE__, text.str());
    }
  }
}

template <class Change>
void refused(WorldConfig config, const std::string& field, Change&& change) {
  CHECK_EQ(why(config), "");
  change(config);
  CHECK_EQ(why(config).substr(0, field.size() + 3), field + " = ");
}

template <class Change>
void accepted(WorldConfig config, Change&& change) {
  change(config);
  CHECK_EQ(why(config), "");
}

WorldConfig with_switch() {
  WorldConfig world = base();
  world.links[0].queue_limit_packets = 0;
  SwitchConfig sw;
  sw.ports = {0};
  sw.queues = 2;
  sw.capacity = 100;
  sw.alphas = {1, 1};
  world.switches = {sw};
  return world;
}

WorldConfig with_traffic(const char* kind) {
  WorldConfig world = base();
  TrafficConfig traffic;
  traffic.senders = {world.flows[0], world.flows[0]};
  ArrivalsConfig arrivals;
  arrivals.kind = kind;
  if (arrivals.kind == "poisson") {
    arrivals.rate_per_s = 1;
    arrivals.size_bytes = {1000, 2000};
    arrivals.cumulative = {0.5, 1};
  } else if (arrivals.kind == "incast") {
    arrivals.interval_ns = kSecond;
    arrivals.fan_in = 1;
    arrivals.size_bytes = {1000};
  } else {
    arrivals.list_start_ns = {0, 5};
    arrivals.list_sender = {0, 1};
    arrivals.list_priority = {0, 0};
    arrivals.list_size = {1, 1000};
  }
  traffic.arrivals = {arrivals};
  world.traffic = {traffic};
  return world;
}

WorldConfig with_schedule() {
  WorldConfig world = base();
  world.links[0].schedule_time_ns = {0, 5};
  world.links[0].schedule_rate_bps = {1e6, 2e6};
  return world;
}

WorldConfig with_trace() {
  WorldConfig world = base();
  world.links[0].trace_ns = {0, 5};
  world.links[0].trace_period_ns = 5;
  return world;
}

ArrivalsConfig& arrivals(WorldConfig& world) { return world.traffic[0].arrivals[0]; }

}  // namespace

TEST(bounds_of_links) {
  bound<double>(base(), "links[0].rate_bps", {1, 1e12}, {std::nextafter(1, 0), -1, -1e-9, NAN, INFINITY},
        [](auto& w, double v) { w.links[0].rate_bps = v; });
  bound<double>(base(), "links[1].rate_bps", {0, 1}, {0.999, -0.001},
        [](auto& w, double v) { w.links[1].rate_bps = v; });
  bound<Time>(base(), "links[0].delay_ns", {0, 3'600'000'000'000}, {-1, 3'600'000'000'001},
        [](auto& w, Time v) { w.links[0].delay_ns = v; });
  bound<int64_t>(base(), "links[0].queue_limit_packets", {0, 1, INT64_MAX}, {-1},
        [](auto& w, int64_t v) { w.links[0].queue_limit_packets = v; });
  bound<int64_t>(base(), "links[0].queue_limit_bytes", {0, 1, INT64_MAX}, {-1},
        [](auto& w, int64_t v) { w.links[0].queue_limit_bytes = v; });
  bound<double>(base(), "links[0].loss", {0, std::nextafter(1, 0)}, {-1e-9, 1, NAN},
        [](auto& w, double v) { w.links[0].loss = v; });
  bound<double>(base(), "links[0].duplicate", {0, 1}, {-1e-9, std::nextafter(1, 2), NAN},
        [](auto& w, double v) { w.links[0].duplicate = v; });
  bound<double>(base(), "links[0].corrupt", {0, 1}, {-1e-9, std::nextafter(1, 2), NAN},
        [](auto& w, double v) { w.links[0].corrupt = v; });
  bound<double>(base(), "links[0].ge", {0, 1}, {-1e-9, std::nextafter(1, 2), NAN},
        [](auto& w, double v) { w.links[0].ge = {0.5, 0.5, 0.5, v}; });
  bound<double>(base(), "links[0].ge", {0, 1}, {-1e-9, std::nextafter(1, 2)},
        [](auto& w, double v) { w.links[0].ge = {v, 0.5, 0.5, 0.5}; });
  bound<size_t>(base(), "links[0].ge", {0, 4}, {1, 3, 5}, [](auto& w, size_t v) { w.links[0].ge.assign(v, 0.5); });
  bound<uint64_t>(base(), "links[0].loss_list", {4, 5}, {2, 3},
        [](auto& w, uint64_t v) { w.links[0].loss_list = {0, 3, v}; });
  bound<uint64_t>(base(), "links[0].loss_list", {1, 2}, {0},
        [](auto& w, uint64_t v) { w.links[0].loss_list = {0, v}; });
  bound<int64_t>(base(), "links[0].device_packets", {0, 1, 1'000'000}, {-1, 1'000'001},
        [](auto& w, int64_t v) { w.links[0].device_packets = v; });
  accepted(base(), [](auto& w) { w.links[0].discipline = "pie"; });
  refused(base(), "links[0].discipline", [](auto& w) { w.links[0].discipline = "wrr"; });
  refused(base(), "links[0].discipline_parameters",
        [](auto& w) { w.links[0].discipline_parameters = {{"target_ms", 5}}; });
}

TEST(bounds_of_changing_rates) {
  const auto schedule = with_schedule(), trace = with_trace();
  bound<size_t>(schedule, "links[0].schedule_rate_bps", {2}, {1, 3},
        [](auto& w, size_t v) { w.links[0].schedule_rate_bps.assign(v, 1e6); });
  bound<Time>(schedule, "links[0].schedule_time_ns[0]", {0}, {-1, 1},
        [](auto& w, Time v) { w.links[0].schedule_time_ns = {v, 5}; });
  bound<Time>(schedule, "links[0].schedule_time_ns", {1, kLongest}, {0, -1, kLongest + 1},
        [](auto& w, Time v) { w.links[0].schedule_time_ns = {0, v}; });
  bound<double>(schedule, "links[0].schedule_rate_bps", {0, 1, 1e12}, {0.999, -1, NAN, INFINITY},
        [](auto& w, double v) { w.links[0].schedule_rate_bps[1] = v; });
  bound<double>(schedule, "links[0].schedule_rate_bps", {1}, {0},
        [](auto& w, double v) { w.links[0].schedule_rate_bps = {0, v}; });
  bound<Time>(schedule, "links[0].schedule_period_ns", {0, 6, kLongest}, {-1, 5, kLongest + 1},
        [](auto& w, Time v) { w.links[0].schedule_period_ns = v; });
  bound<Time>(trace, "links[0].trace_ns", {0, 1}, {-1}, [](auto& w, Time v) { w.links[0].trace_ns = {v, 5}; });
  bound<Time>(trace, "links[0].trace_ns", {3, 4}, {2, 0}, [](auto& w, Time v) { w.links[0].trace_ns = {3, v}; });
  bound<Time>(trace, "links[0].trace_period_ns", {5, kLongest}, {4, 0, -1, kLongest + 1},
        [](auto& w, Time v) { w.links[0].trace_period_ns = v; });
  bound<Time>(trace, "links[0].trace_period_ns", {1}, {0},
        [](auto& w, Time v) { w.links[0].trace_ns = {0}, w.links[0].trace_period_ns = v; });
}

TEST(bounds_of_flows) {
  const auto size = [](auto& w, int64_t v) { w.flows[0].app = "sized", w.flows[0].size_bytes = v; };
  bound<int64_t>(base(), "flows[0].size_bytes", {1, (int64_t{1} << 60) - 1}, {0, -1, int64_t{1} << 60}, size);
  bound<Time>(base(), "flows[0].start_ns", {0, 1}, {-1}, [](auto& w, Time v) { w.flows[0].start_ns = v; });
  bound<Time>(base(), "flows[0].stop_ns", {0, 6}, {5, 4, -1},
        [](auto& w, Time v) { w.flows[0].start_ns = 5, w.flows[0].stop_ns = v; });
  bound<Time>(base(), "flows[0].stop_ns", {0, 1}, {-1}, [](auto& w, Time v) { w.flows[0].stop_ns = v; });
  bound<Time>(base(), "flows[0].on_ns", {1, kLongest}, {0, -1, kLongest + 1},
        [](auto& w, Time v) { w.flows[0].app = "on_off", w.flows[0].on_ns = v; });
  bound<Time>(base(), "flows[0].off_ns", {0, kLongest}, {-1, kLongest + 1},
        [](auto& w, Time v) { w.flows[0].off_ns = v; });
  bound<double>(base(), "flows[0].app_rate_bps", {0, 1}, {0.5, -1, NAN},
        [](auto& w, double v) { w.flows[0].app_rate_bps = v; });
  bound<int64_t>(base(), "flows[0].send_buffer_bytes", {0, 1}, {-1},
        [](auto& w, int64_t v) { w.flows[0].send_buffer_bytes = v; });
  bound<int64_t>(base(), "flows[0].receive_buffer_bytes", {0, 1}, {-1},
        [](auto& w, int64_t v) { w.flows[0].receive_buffer_bytes = v; });
  bound<int64_t>(base(), "flows[0].window_clamp_bytes", {0, 1, 1 << 30}, {-1, (1 << 30) + 1},
        [](auto& w, int64_t v) { w.flows[0].window_clamp_bytes = v; });
  bound<uint32_t>(base(), "flows[0].initial_cwnd_packets", {1, 1000}, {0, 1001},
        [](auto& w, uint32_t v) { w.flows[0].initial_cwnd_packets = v; });
  bound<uint32_t>(base(), "flows[0].path", {0, 1}, {2}, [](auto& w, uint32_t v) { w.flows[0].path = {0, v}; });
  bound<size_t>(base(), "flows[0].path", {1, 100}, {101}, [](auto& w, size_t v) { w.flows[0].path.assign(v, 0); });
  bound<size_t>(base(), "flows[0].return_path", {1, 100}, {0, 101},
        [](auto& w, size_t v) { w.flows[0].return_path.assign(v, 1); });
  for (const char* app : {"bulk", "sized", "on_off"}) {
    accepted(base(), [&](auto& w) { w.flows[0].app = app, w.flows[0].size_bytes = w.flows[0].on_ns = 1; });
  }
}

TEST(bounds_of_relays) {
  WorldConfig chain = base();
  chain.flows.resize(3, chain.flows[0]);
  chain.flows[1].relay_from = 0, chain.flows[2].relay_from = 1;
  chain.flows[1].relay_buffer_bytes = chain.flows[2].relay_buffer_bytes = 1;
  CHECK_EQ(why(chain), "");
  bound<int32_t>(chain, "flows[2].relay_from", {1, -1}, {0, 2, 3, -2},
        [](auto& w, int32_t v) { w.flows[2].relay_from = v; });
  bound<int64_t>(chain, "flows[1].relay_buffer_bytes", {1}, {0, -1},
        [](auto& w, int64_t v) { w.flows[1].relay_buffer_bytes = v; });
  refused(chain, "flows[0].relay_from",
        [](auto& w) { w.flows[0].relay_from = 2, w.flows[0].relay_buffer_bytes = 1; });  // a ring
  refused(chain, "flows[1].app", [](auto& w) { w.flows[1].app = "sized", w.flows[1].size_bytes = 1; });
  refused(chain, "flows[1].app", [](auto& w) { w.flows[1].app = "on_off", w.flows[1].on_ns = 1; });
  // The relayed flow itself may be of any kind, and what is not relayed needs no buffer.
  accepted(chain, [](auto& w) { w.flows[0].app = "sized", w.flows[0].size_bytes = 1; });
  accepted(base(), [](auto& w) { w.flows[0].relay_buffer_bytes = 0; });
}

TEST(worlds_must_take_time_and_end) {
  WorldConfig fast = base();
  fast.links[0].rate_bps = 0;  // both links infinitely fast, with delay
  CHECK_EQ(why(fast).substr(0, 16), "flows[0].path = ");
  accepted(fast, [](auto& w) { w.flows[0].receive_buffer_bytes = 1; });
  accepted(fast, [](auto& w) { w.flows[0].send_buffer_bytes = 1; });
  accepted(fast, [](auto& w) { w.flows[0].window_clamp_bytes = 1; });
  accepted(fast, [](auto& w) { w.links[0].rate_bps = 1; });
  accepted(fast, [](auto& w) { w.links[0].trace_ns = {0}, w.links[0].trace_period_ns = 1; });
  accepted(fast, [](auto& w) { w.links[0].schedule_time_ns = {0}, w.links[0].schedule_rate_bps = {1}; });
  accepted(fast, [](auto& w) { w.flows[0].app = "sized", w.flows[0].size_bytes = 1; });
  accepted(fast, [](auto& w) { w.flows[0].app = "on_off", w.flows[0].on_ns = 1, w.flows[0].app_rate_bps = 1; });
  WorldConfig often = fast;
  often.flows[0].app = "on_off", often.flows[0].on_ns = 1;
  CHECK_EQ(why(often).substr(0, 16), "flows[0].path = ");
  WorldConfig back = fast;  // a rate on the way back bounds nothing
  back.links[1].rate_bps = 1e6;
  CHECK_EQ(why(back).substr(0, 16), "flows[0].path = ");
  WorldConfig relay = fast;  // what is relayed is bounded by what feeds it
  relay.links.push_back(base().links[0]);
  relay.flows = {worlds::flow("cubic", {2}, {1}), worlds::flow("cubic", {0}, {1})};
  relay.flows[1].relay_from = 0, relay.flows[1].relay_buffer_bytes = 1;
  CHECK_EQ(why(relay), "");

  WorldConfig instant = fast;
  instant.flows[0].receive_buffer_bytes = 1;
  instant.links[0].delay_ns = instant.links[1].delay_ns = 0;
  CHECK_EQ(why(instant).substr(0, 16), "flows[0].path = ");
  accepted(instant, [](auto& w) { w.links[0].delay_ns = 1; });
  accepted(instant, [](auto& w) { w.links[1].delay_ns = 1; });
  accepted(instant, [](auto& w) { w.links[1].rate_bps = 1; });
  accepted(instant, [](auto& w) { w.links[0].rate_bps = 1; });
}

TEST(bounds_of_switches) {
  const WorldConfig world = with_switch();
  bound<uint32_t>(world, "switches[0].ports", {0, 1}, {2}, [](auto& w, uint32_t v) { w.switches[0].ports = {v}; });
  refused(world, "switches[0].ports", [](auto& w) { w.switches[0].ports.clear(); });
  refused(world, "switches[0].ports", [](auto& w) { w.switches[0].ports = {0, 0}; });
  refused(world, "switches[1].ports", [](auto& w) { w.switches.push_back(w.switches[0]); });
  accepted(world, [](auto& w) { w.switches.push_back(w.switches[0]), w.switches[1].ports = {1}; });
  refused(world, "links[0].discipline", [](auto& w) { w.links[0].discipline = "red"; });
  refused(world, "links[0].queue_limit_packets", [](auto& w) { w.links[0].queue_limit_packets = 1; });
  refused(world, "links[0].queue_limit_packets", [](auto& w) { w.links[0].queue_limit_bytes = 1; });
  accepted(world, [](auto& w) { w.links[1].queue_limit_packets = 1, w.links[1].discipline = "red"; });  // no port
  const auto queues = [](auto& w, uint32_t v) { w.switches[0].queues = v, w.switches[0].alphas.assign(v, 1); };
  bound<uint32_t>(world, "switches[0].queues", {1, 64}, {0, 65}, queues);
  bound<int64_t>(world, "switches[0].capacity", {1, kLargest}, {0, -1, kLargest + 1},
        [](auto& w, int64_t v) { w.switches[0].capacity = v; });
  bound<int64_t>(world, "switches[0].queue_cap", {0, 1, kLargest}, {-1, kLargest + 1},
        [](auto& w, int64_t v) { w.switches[0].queue_cap = v; });
  for (const char* admission : {"dynamic", "abm", "agent"}) {
    WorldConfig by_alpha = world;
    by_alpha.switches[0].admission = admission;
    bound<double>(by_alpha, "switches[0].alphas", {0, 1e6}, {-1e-9, std::nextafter(1e6, 1e7), NAN},
          [](auto& w, double v) { w.switches[0].alphas[1] = v; });
    bound<size_t>(by_alpha, "switches[0].alphas", {2}, {0, 1, 3},
          [](auto& w, size_t v) { w.switches[0].alphas.assign(v, 1); });
  }
  refused(world, "switches[0].admission", [](auto& w) { w.switches[0].admission = "none"; });
  WorldConfig fixed = world;
  fixed.switches[0].admission = "static", fixed.switches[0].thresholds = {1, 1}, fixed.switches[0].alphas.clear();
  bound<int64_t>(fixed, "switches[0].thresholds", {0, kLargest}, {-1, kLargest + 1},
        [](auto& w, int64_t v) { w.switches[0].thresholds[1] = v; });
  bound<size_t>(fixed, "switches[0].thresholds", {2}, {0, 1, 3},
        [](auto& w, size_t v) { w.switches[0].thresholds.assign(v, 1); });
  bound<double>(world, "switches[0].betas", {0, 1e6}, {-1e-9, std::nextafter(1e6, 1e7), NAN},
        [](auto& w, double v) { w.switches[0].betas = {v, 1}; });
  bound<size_t>(world, "switches[0].betas", {0, 2}, {1, 3},
        [](auto& w, size_t v) { w.switches[0].betas.assign(v, 1); });
  WorldConfig drr = world;
  drr.switches[0].scheduler = "drr", drr.switches[0].quanta = {1, 1};
  bound<int64_t>(drr, "switches[0].quanta", {1, kLargest}, {0, -1, kLargest + 1},
        [](auto& w, int64_t v) { w.switches[0].quanta[1] = v; });
  bound<size_t>(drr, "switches[0].quanta", {2}, {0, 1, 3},
        [](auto& w, size_t v) { w.switches[0].quanta.assign(v, 1); });
  for (const char* scheduler : {"round_robin", "strict_priority"}) {
    accepted(world, [&](auto& w) { w.switches[0].scheduler = scheduler; });
  }
  refused(world, "switches[0].scheduler", [](auto& w) { w.switches[0].scheduler = "fifo"; });
  // A priority must have its queue at every switch on the way, and there only.
  bound<uint32_t>(world, "flows[0].priority", {0, 1}, {2}, [](auto& w, uint32_t v) { w.flows[0].priority = v; });
  bound<uint32_t>(world, "flows[0].priority", {0, 1}, {2},
        [](auto& w, uint32_t v) { w.switches[0].ports = {1}, w.links[1].rate_bps = 1e6, w.flows[0].priority = v; });
  accepted(base(), [](auto& w) { w.flows[0].priority = 99; });
}

TEST(bounds_of_traffic) {
  const WorldConfig poisson = with_traffic("poisson"), incast = with_traffic("incast"), list = with_traffic("list");
  for (const WorldConfig& world : {poisson, incast, list}) {
    bound<Time>(world, "traffic.arrivals[0].start_ns", {0, kLongest}, {-1, kLongest + 1},
          [](auto& w, Time v) { arrivals(w).start_ns = v; });
    bound<Time>(world, "traffic.arrivals[0].stop_ns", {0, 6}, {5, 4, -1},
          [](auto& w, Time v) { arrivals(w).start_ns = 5, arrivals(w).stop_ns = v; });
    accepted(world, [](auto& w) { w.flows.clear(); });  // traffic alone is a world
  }
  refused(poisson, "traffic.arrivals[0].kind", [](auto& w) { arrivals(w).kind = "storm"; });
  const double rarely = std::nextafter(1e-9, 0), often = std::nextafter(1e9, 2e9);
  bound<double>(poisson, "traffic.arrivals[0].rate_per_s", {1e-9, 1e9}, {0, rarely, often, NAN},
        [](auto& w, double v) { arrivals(w).rate_per_s = v; });
  refused(poisson, "traffic.arrivals[0].cumulative", [](auto& w) { arrivals(w).cumulative = {1}; });
  refused(poisson, "traffic.arrivals[0].cumulative",
        [](auto& w) { arrivals(w).cumulative.clear(), arrivals(w).size_bytes.clear(); });
  const double most = static_cast<double>(kLargest);
  bound<double>(poisson, "traffic.arrivals[0].size_bytes", {1000, most}, {999, std::nextafter(most, 2 * most), NAN},
        [](auto& w, double v) { arrivals(w).size_bytes = {1000, v}; });
  bound<double>(poisson, "traffic.arrivals[0].size_bytes", {1e-3}, {0, -1},
        [](auto& w, double v) { arrivals(w).size_bytes = {v, 1000}; });
  bound<double>(poisson, "traffic.arrivals[0].cumulative", {0, 1}, {-1e-9, 1.5, NAN},
        [](auto& w, double v) { arrivals(w).cumulative = {v, 1}; });
  bound<double>(poisson, "traffic.arrivals[0].cumulative", {1}, {0.4, 0.5, std::nextafter(1, 0)},
        [](auto& w, double v) { arrivals(w).cumulative = {0.5, v}; });
  bound<double>(poisson, "traffic.arrivals[0].cumulative", {0.5, 1}, {0.4}, [](auto& w, double v) {
    arrivals(w).size_bytes = {1, 2, 3}, arrivals(w).cumulative = {0.5, v, 1};
  });
  bound<Time>(incast, "traffic.arrivals[0].interval_ns", {1, kLongest}, {0, -1, kLongest + 1},
        [](auto& w, Time v) { arrivals(w).interval_ns = v; });
  bound<uint32_t>(incast, "traffic.arrivals[0].fan_in", {1, 2}, {0, 3},
        [](auto& w, uint32_t v) { arrivals(w).fan_in = v; });
  bound<double>(incast, "traffic.arrivals[0].size_bytes", {1, most}, {0, 0.999, std::nextafter(most, 2 * most)},
        [](auto& w, double v) { arrivals(w).size_bytes = {v}; });
  bound<size_t>(incast, "traffic.arrivals[0].size_bytes", {1}, {0, 2},
        [](auto& w, size_t v) { arrivals(w).size_bytes.assign(v, 1000); });
  bound<Time>(list, "traffic.arrivals[0].list_start_ns[1]", {5, kLongest}, {4, kLongest + 1},
        [](auto& w, Time v) { arrivals(w).list_start_ns = {5, v}; });
  bound<Time>(list, "traffic.arrivals[0].list_start_ns[0]", {0, 5}, {-1},
        [](auto& w, Time v) { arrivals(w).list_start_ns = {v, 5}; });
  bound<uint32_t>(list, "traffic.arrivals[0].list_sender[1]", {0, 1}, {2},
        [](auto& w, uint32_t v) { arrivals(w).list_sender[1] = v; });
  bound<int64_t>(list, "traffic.arrivals[0].list_size[1]", {1, kLargest}, {0, -1, kLargest + 1},
        [](auto& w, int64_t v) { arrivals(w).list_size[1] = v; });
  bound<uint32_t>(list, "traffic.arrivals[0].list_priority[1]", {0, 63}, {64},
        [](auto& w, uint32_t v) { arrivals(w).list_priority[1] = v; });
  refused(list, "traffic.arrivals[0].list_size", [](auto& w) { arrivals(w).list_size = {1}; });
  refused(list, "traffic.arrivals[0].list_size", [](auto& w) { arrivals(w).list_sender = {0}; });
  refused(list, "traffic.arrivals[0].list_size", [](auto& w) { arrivals(w).list_priority = {0}; });

  refused(poisson, "traffic", [](auto& w) { w.traffic.push_back(w.traffic[0]); });
  refused(poisson, "traffic.senders", [](auto& w) { w.traffic[0].senders.clear(); });
  bound<int64_t>(poisson, "traffic.priority_below", {11, 12}, {10, 9},
        [](auto& w, int64_t v) { w.traffic[0].priority_below = {5, 10, v}; });
  bound<int64_t>(poisson, "traffic.priority_below", {6}, {5},
        [](auto& w, int64_t v) { w.traffic[0].priority_below = {5, v}; });
  refused(poisson, "traffic.senders[1].cc",
        [](auto& w) { w.traffic[0].senders[1].cc = "agent", w.traffic[0].senders[1].controlled = true; });
  refused(poisson, "traffic.senders[1].cc", [](auto& w) { w.traffic[0].senders[1].relay_from = 0; });
  refused(poisson, "traffic.senders[0].path", [](auto& w) { w.traffic[0].senders[0].path = {2}; });
  accepted(poisson,  // these do not count
        [](auto& w) { w.traffic[0].senders[0].start_ns = -1, w.traffic[0].senders[0].app = "none"; });
}

TEST(priorities_of_traffic_need_their_queues) {
  WorldConfig world = with_traffic("poisson");
  world.switches = with_switch().switches;
  world.links[0].queue_limit_packets = 0;
  const std::string field = "traffic.senders[0]'s highest priority";
  const auto bounds = [](auto& w, size_t v) {
    w.traffic[0].priority_below.clear();
    for (size_t i = 0; i < v; ++i) w.traffic[0].priority_below.push_back(static_cast<int64_t>(i) + 1);
  };
  bound<size_t>(world, field, {0, 1}, {2}, bounds);  // as many priorities as bounds, and one more
  WorldConfig listed = with_traffic("list");
  listed.switches = world.switches;
  listed.links[0].queue_limit_packets = 0;
  bound<uint32_t>(listed, field, {0, 1}, {2}, [](auto& w, uint32_t v) { arrivals(w).list_priority = {v, 0}; });
  accepted(listed, [&](auto& w) { bounds(w, 5); });  // a list says its own
}

TEST(bounds_of_probes_and_of_the_world) {
  WorldConfig world = base();
  world.probes.resize(1);
  world.probes[0].path = {0};
  bound<Time>(world, "probes[0].interval_ns", {1, kLongest}, {0, -1, kLongest + 1},
        [](auto& w, Time v) { w.probes[0].interval_ns = v; });
  bound<Time>(world, "probes[0].start_ns", {0, kLongest}, {-1, kLongest + 1},
        [](auto& w, Time v) { w.probes[0].start_ns = v; });
  bound<uint32_t>(world, "probes[0].bytes", {1, 65'535}, {0, 65'536},
        [](auto& w, uint32_t v) { w.probes[0].bytes = v; });
  bound<uint32_t>(world, "probes[0].path", {0, 1}, {2}, [](auto& w, uint32_t v) { w.probes[0].path = {v}; });
  WorldConfig sw = with_switch();
  sw.probes = world.probes;
  bound<uint32_t>(sw, "probes[0].priority", {0, 1}, {2}, [](auto& w, uint32_t v) { w.probes[0].priority = v; });
  refused(base(), "links", [](auto& w) { w.links.clear(); });
  refused(base(), "flows", [](auto& w) { w.flows.clear(); });
  bound<uint32_t>(base(), "mss", {0, 100, 9'000}, {1, 99, 9'001}, [](auto& w, uint32_t v) { w.mss = v; });
  bound<Time>(base(), "min_rto_ns", {0, 1, 60 * kSecond}, {-1, 60 * kSecond + 1},
        [](auto& w, Time v) { w.min_rto_ns = v; });
  bound<Time>(base(), "max_rto_ns", {0, kSecond, 120 * kSecond}, {-1, kSecond - 1, 120 * kSecond + 1},
        [](auto& w, Time v) { w.max_rto_ns = v; });
  bound<uint32_t>(base(), "delayed_ack_packets", {0, 1, 1'000}, {1'001},
        [](auto& w, uint32_t v) { w.delayed_ack_packets = v; });
}

TEST(bounds_of_sources_of_datagrams) {
  WorldConfig world = base();
  world.udp.resize(1);
  world.udp[0].path = {0};
  world.udp[0].rate_bps = 1e6;
  bound<double>(world, "udp[0].rate_bps", {1, 1e12}, {0, 0.5, -1, 1.1e12, std::nan("")},
        [](auto& w, double v) { w.udp[0].rate_bps = v; });
  bound<double>(world, "udp[0].rate_bps", {8e9}, {8.1e9},
        [](auto& w, double v) { w.udp[0].rate_bps = v, w.udp[0].bytes = 1; });
  bound<uint32_t>(world, "udp[0].bytes", {1, 65'535}, {0, 65'536}, [](auto& w, uint32_t v) { w.udp[0].bytes = v; });
  bound<uint32_t>(world, "udp[0].path", {0, 1}, {2}, [](auto& w, uint32_t v) { w.udp[0].path = {v}; });
  bound<Time>(world, "udp[0].start_ns", {0, kLongest}, {-1, kLongest + 1},
        [](auto& w, Time v) { w.udp[0].start_ns = v; });
  bound<Time>(world, "udp[0].stop_ns", {0, 6}, {-1, 5},
        [](auto& w, Time v) { w.udp[0].start_ns = 5, w.udp[0].stop_ns = v; });
  bound<Time>(world, "udp[0].on_ns", {0, 1, kLongest}, {-1, kLongest + 1}, [](auto& w, Time v) { w.udp[0].on_ns = v; });
  bound<Time>(world, "udp[0].off_ns", {0, 1, kLongest}, {-1, kLongest + 1},
        [](auto& w, Time v) { w.udp[0].on_ns = 1, w.udp[0].off_ns = v; });
  refused(world, "udp[0].off_ns", [](auto& w) { w.udp[0].off_ns = 1; });
  bound<uint32_t>(world, "udp[0].replay_bytes", {1, 1500}, {1501, 65'535}, [](auto& w, uint32_t v) {
    w.udp[0].bytes = 1500, w.udp[0].replay_ns = {0, 0}, w.udp[0].replay_bytes = {v, 1};
  });
  bound<Time>(world, "udp[0].replay_period_ns", {0, 2, kLongest}, {1, kLongest + 1}, [](auto& w, Time v) {
    w.udp[0].replay_ns = {0, 0}, w.udp[0].replay_bytes = {1, 1}, w.udp[0].replay_period_ns = v;
  });
  WorldConfig sw = with_switch();
  sw.udp = world.udp;
  bound<uint32_t>(sw, "udp[0].priority", {0, 1}, {2}, [](auto& w, uint32_t v) { w.udp[0].priority = v; });
}
