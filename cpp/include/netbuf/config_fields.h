// Tables of the configuration's fields: the name and member of each, and its bounds where these depend on no other
// field. The bindings offer what stands here, and check_fields() holds values to the bounds. A new field is a member in
// config.h, a line here, and its use.
#pragma once
#include <limits>
#include <sstream>
#include <string>
#include <tuple>
#include <type_traits>

#include "netbuf/config.h"
#include "netbuf/host.h"
#include "netbuf/reject.h"

namespace netbuf {

template <class Config, class Value>
struct Field {
  const char* name;
  Value Config::* member;
};

// A field that is a number within bounds, or holds several of them.
template <class Config, class Value, class Number = Value>
struct BoundedField : Field<Config, Value> {
  Number low, high;                        // inclusive
  const char* zero = nullptr;              // meaning of 0, where it is valid beside the bounds
  bool open = false;                       // the upper bound itself is not valid

  constexpr BoundedField or_zero(const char* meaning) const {
    BoundedField changed = *this;
    changed.zero = meaning;
    return changed;
  }
  constexpr BoundedField below_high() const {
    BoundedField changed = *this;
    changed.open = true;
    return changed;
  }
  void check(const Config& config, const std::string& at) const {
    const Value& value = config.*this->member;
    if constexpr (std::is_same_v<Value, Number>) {
      check_number(value, at);
    } else {
      for (const Number number : value) check_number(number, at);
    }
  }

 private:
  bool allows(Number value) const {
    if (zero && value == 0) return true;
    return value >= low && (open ? value < high : value <= high);  // NaN: neither
  }
  void check_number(Number value, const std::string& at) const {
    if (allows(value)) return;
    std::ostringstream valid;
    if (high == std::numeric_limits<Number>::max()) {
      valid << (std::is_floating_point_v<Number> ? "finite and at least " : "at least ") << low;
    } else {
      valid << "in [" << low << ", " << high << (open ? ")" : "]");
    }
    if (zero) valid << ", or 0 for " << zero;
    reject(at.empty() ? this->name : at + "." + this->name, value, valid.str());
  }
};

template <class Config, class Value>
constexpr auto field(const char* name, Value Config::* member) {
  return Field<Config, Value>{name, member};
}
template <class Config, class Value>
constexpr auto field(const char* name, Value Config::* member, std::type_identity_t<Value> low,
                     std::type_identity_t<Value> high = std::numeric_limits<Value>::max()) {
  return BoundedField<Config, Value>{{name, member}, low, high};
}
// Each number of a vector or an array.
template <class Config, class Values, class Number = typename Values::value_type>
constexpr auto each(const char* name, Values Config::* member, std::type_identity_t<Number> low,
                    std::type_identity_t<Number> high = std::numeric_limits<Number>::max()) {
  return BoundedField<Config, Values, Number>{{name, member}, low, high};
}

inline constexpr Time kLongestDelay = 3600 * kSecond;
inline constexpr int64_t kMaxWindow = int64_t{1} << 30;  // RFC 7323, 2.3
inline constexpr uint32_t kMaxDatagram = 65'535;
inline constexpr double kMostBps = 1e12;

template <class Config>
inline constexpr auto kFields = std::tuple{};

template <>
inline constexpr auto kFields<JitterConfig> = std::tuple{
    field("distribution", &JitterConfig::distribution),
    field("scale_ns", &JitterConfig::scale_ns, 0, static_cast<double>(kLongestDelay)),
    field("mean_ns", &JitterConfig::mean_ns, 0, static_cast<double>(kLongestDelay)),
    field("shape", &JitterConfig::shape, 0.1, 100),
    field("correlation", &JitterConfig::correlation, 0, 1).below_high(),
    field("reorder", &JitterConfig::reorder),
};

template <>
inline constexpr auto kFields<LinkConfig> = std::tuple{
    field("name", &LinkConfig::name),
    field("rate_bps", &LinkConfig::rate_bps, 1).or_zero("infinitely fast"),
    field("delay_ns", &LinkConfig::delay_ns, 0, kLongestDelay),
    field("queue_limit_packets", &LinkConfig::queue_limit_packets, 1).or_zero("no limit"),
    field("queue_limit_bytes", &LinkConfig::queue_limit_bytes, 1).or_zero("no limit"),
    field("loss", &LinkConfig::loss, 0, 1).below_high(),
    each("ge", &LinkConfig::ge, 0, 1),
    field("loss_list", &LinkConfig::loss_list),
    field("loss_on_acks", &LinkConfig::loss_on_acks),
    field("schedule_time_ns", &LinkConfig::schedule_time_ns),
    each("schedule_rate_bps", &LinkConfig::schedule_rate_bps, 1).or_zero("an outage"),
    field("schedule_period_ns", &LinkConfig::schedule_period_ns),
    field("trace_ns", &LinkConfig::trace_ns),
    field("trace_packet_bytes", &LinkConfig::trace_packet_bytes, 0, 1000),
    field("trace_period_ns", &LinkConfig::trace_period_ns),
    field("discipline", &LinkConfig::discipline),
    field("discipline_parameters", &LinkConfig::discipline_parameters),
    field("device_packets", &LinkConfig::device_packets, 0, 1'000'000),
    field("delay_time_ns", &LinkConfig::delay_time_ns),
    field("delay_step_ns", &LinkConfig::delay_step_ns),
    field("delay_period_ns", &LinkConfig::delay_period_ns),
    field("delay_reorders", &LinkConfig::delay_reorders),
    field("loss_time_ns", &LinkConfig::loss_time_ns),
    each("loss_step", &LinkConfig::loss_step, 0, 1),
    field("loss_period_ns", &LinkConfig::loss_period_ns),
    field("jitter", &LinkConfig::jitter),
    field("outage_ns", &LinkConfig::outage_ns, 1, kLongest).or_zero("queues that outlast outages"),
    field("duplicate", &LinkConfig::duplicate, 0, 1),
    field("corrupt", &LinkConfig::corrupt, 0, 1),
    field("medium", &LinkConfig::medium),
    field("medium_parameters", &LinkConfig::medium_parameters),
    field("uplink", &LinkConfig::uplink),
    field("gain_db", &LinkConfig::gain_db, -60, 60),
};

template <>
inline constexpr auto kFields<SwitchConfig> = std::tuple{
    field("name", &SwitchConfig::name),
    field("ports", &SwitchConfig::ports),
    field("queues", &SwitchConfig::queues, 1, kMaxQueues),
    field("capacity", &SwitchConfig::capacity, 1, kLargest),
    field("in_bytes", &SwitchConfig::in_bytes),
    field("admission", &SwitchConfig::admission),
    field("alphas", &SwitchConfig::alphas),
    each("betas", &SwitchConfig::betas, 0, 1e6),
    field("thresholds", &SwitchConfig::thresholds),
    field("queue_cap", &SwitchConfig::queue_cap, 1, kLargest).or_zero("none"),
    field("drop", &SwitchConfig::drop),
    field("mark", &SwitchConfig::mark, 1, kLargest).or_zero("never"),
    field("congested", &SwitchConfig::congested),
    field("protect_syn", &SwitchConfig::protect_syn),
    field("scheduler", &SwitchConfig::scheduler),
    field("quanta", &SwitchConfig::quanta),
    field("flow_slots", &SwitchConfig::flow_slots, 1, 65'536).or_zero("none"),
    field("flow_service", &SwitchConfig::flow_service),
    field("flow_quantum", &SwitchConfig::flow_quantum, 64, 1'000'000),
    field("victims", &SwitchConfig::victims),
};

// Those of TcpSettings, of a record that has them.
template <class Config>
inline constexpr auto kTcpFields = std::tuple{
    field<Config, Time>("max_rto_ns", &Config::max_rto_ns, kSecond, 120 * kSecond).or_zero("not set"),
    field<Config, std::optional<bool>>("slow_start_after_idle", &Config::slow_start_after_idle),
    field<Config, std::optional<bool>>("window_scaling", &Config::window_scaling),
    field<Config, std::optional<bool>>("timestamps", &Config::timestamps),
    field<Config, std::optional<bool>>("sack", &Config::sack),
};

template <>
inline constexpr auto kFields<HostConfig> = std::tuple_cat(kTcpFields<HostConfig>, std::tuple{
    field("name", &HostConfig::name),
    each("tcp_rmem", &HostConfig::tcp_rmem, 1, kLargest),
    each("tcp_wmem", &HostConfig::tcp_wmem, 1, kLargest),
    field("socket_bytes", &HostConfig::socket_bytes, 1, kLargest),
    each("tcp_mem", &HostConfig::tcp_mem, kPage, kLargest),
    field("devices", &HostConfig::devices),
    field("ring_packets", &HostConfig::ring_packets, 1, kLargest).or_zero("as the links say"),
    field("ring_stall_ns", &HostConfig::ring_stall_ns, 0, kLongestDelay),
    field("notsent_lowat_bytes", &HostConfig::notsent_lowat_bytes, 1, kLargest).or_zero("no limit"),
    field("limit_output_bytes", &HostConfig::limit_output_bytes, 1, kLargest).or_zero("no limit"),
    field("moderate_rcvbuf", &HostConfig::moderate_rcvbuf),
    field("polls", &HostConfig::polls),
    field("kernel", &HostConfig::kernel),
    field("agent", &HostConfig::agent),
});

template <>
inline constexpr auto kFields<RouteConfig> = std::tuple{
    field("from_ns", &RouteConfig::from_ns),
    field("path", &RouteConfig::path),
    field("return_path", &RouteConfig::return_path),
};

template <>
inline constexpr auto kFields<VideoConfig> = std::tuple{
    each("bitrate_bps", &VideoConfig::bitrate_bps, 1, kMostBps),
    field("chunk_ns", &VideoConfig::chunk_ns, kMillisecond, 1000 * kSecond),
    field("buffer_ns", &VideoConfig::buffer_ns, kMillisecond, kLongestDelay),
    field("startup_ns", &VideoConfig::startup_ns, 0, kLongestDelay),
    field("abr", &VideoConfig::abr),
    field("window_chunks", &VideoConfig::window_chunks, 1, 1000),
    field("safety", &VideoConfig::safety),
    field("reservoir_ns", &VideoConfig::reservoir_ns, 0, kLongestDelay),
    field("cushion_ns", &VideoConfig::cushion_ns, 0, kLongestDelay),
};

template <>
inline constexpr auto kFields<FlowConfig> = std::tuple_cat(kTcpFields<FlowConfig>, std::tuple{
    field("cc", &FlowConfig::cc),
    field("cc_parameters", &FlowConfig::cc_parameters),
    field("controlled", &FlowConfig::controlled),
    field("ecn", &FlowConfig::ecn),
    field("ecn_counts", &FlowConfig::ecn_counts),
    field("path", &FlowConfig::path),
    field("return_path", &FlowConfig::return_path),
    field("routes", &FlowConfig::routes),
    field("start_ns", &FlowConfig::start_ns, 0),
    field("stop_ns", &FlowConfig::stop_ns),
    field("app", &FlowConfig::app),
    field("rest_ns", &FlowConfig::rest_ns),
    field("misbehaviour", &FlowConfig::misbehaviour),
    field("video", &FlowConfig::video),
    field("size_bytes", &FlowConfig::size_bytes),
    field("on_ns", &FlowConfig::on_ns),
    field("off_ns", &FlowConfig::off_ns, 0, kLongest),
    field("random_on_off", &FlowConfig::random_on_off),
    field("app_rate_bps", &FlowConfig::app_rate_bps, 1).or_zero("as fast as TCP takes it"),
    field("send_buffer_bytes", &FlowConfig::send_buffer_bytes, 1).or_zero("no limit"),
    field("receive_buffer_bytes", &FlowConfig::receive_buffer_bytes, 1).or_zero("no limit"),
    field("sender_host", &FlowConfig::sender_host),
    field("receiver_host", &FlowConfig::receiver_host),
    field("sndbuf_bytes", &FlowConfig::sndbuf_bytes, 1, kLargest).or_zero("the kernel's own"),
    field("rcvbuf_bytes", &FlowConfig::rcvbuf_bytes, 1, kLargest).or_zero("the kernel's own"),
    field("window_clamp_bytes", &FlowConfig::window_clamp_bytes, 1, kMaxWindow).or_zero("no clamp"),
    field("receiver", &FlowConfig::receiver),
    field("receiver_parameters", &FlowConfig::receiver_parameters),
    field("clock_offset_ns", &FlowConfig::clock_offset_ns, -kLongest, kLongest),
    field("clock_drift_ppm", &FlowConfig::clock_drift_ppm, -1e5, 1e5),
    field("timestamp_ns", &FlowConfig::timestamp_ns),
    field("clamp_interval_ns", &FlowConfig::clamp_interval_ns, -1, 10 * kSecond),
    field("read_bps", &FlowConfig::read_bps, 1).or_zero("at once"),
    field("relay_from", &FlowConfig::relay_from),
    field("relay_buffer_bytes", &FlowConfig::relay_buffer_bytes),
    field("initial_cwnd_packets", &FlowConfig::initial_cwnd_packets, 1, 1000),
    field("priority", &FlowConfig::priority),
    field("relay", &FlowConfig::relay),
});

template <>
inline constexpr auto kFields<LawConfig> = std::tuple{
    field("kind", &LawConfig::kind),
    field("scale", &LawConfig::scale),
    field("shape", &LawConfig::shape),
    field("low", &LawConfig::low),
    field("high", &LawConfig::high),
    field("values", &LawConfig::values),
    field("cumulative", &LawConfig::cumulative),
    field("parts", &LawConfig::parts),
};

template <>
inline constexpr auto kFields<ArrivalsConfig> = std::tuple{
    field("kind", &ArrivalsConfig::kind),
    field("start_ns", &ArrivalsConfig::start_ns, 0, kLongest),
    field("stop_ns", &ArrivalsConfig::stop_ns),
    field("rate_per_s", &ArrivalsConfig::rate_per_s),
    field("size_bytes", &ArrivalsConfig::size_bytes),
    field("cumulative", &ArrivalsConfig::cumulative),
    field("interval_ns", &ArrivalsConfig::interval_ns),
    field("random", &ArrivalsConfig::random),
    field("fan_in", &ArrivalsConfig::fan_in),
    field("list_start_ns", &ArrivalsConfig::list_start_ns),
    field("list_sender", &ArrivalsConfig::list_sender),
    field("list_size", &ArrivalsConfig::list_size),
    field("list_priority", &ArrivalsConfig::list_priority),
    field("laws", &ArrivalsConfig::laws),
    field("users", &ArrivalsConfig::users),
    field("connections", &ArrivalsConfig::connections),
};

template <>
inline constexpr auto kFields<TrafficConfig> = std::tuple{
    field("senders", &TrafficConfig::senders),
    field("arrivals", &TrafficConfig::arrivals),
    field("priority_below", &TrafficConfig::priority_below),
};

template <>
inline constexpr auto kFields<ProbeConfig> = std::tuple{
    field("path", &ProbeConfig::path),
    field("priority", &ProbeConfig::priority),
    field("interval_ns", &ProbeConfig::interval_ns, 1, kLongest),
    field("start_ns", &ProbeConfig::start_ns, 0, kLongest),
    field("bytes", &ProbeConfig::bytes, 1, kMaxDatagram),
};

template <>
inline constexpr auto kFields<UdpConfig> = std::tuple{
    field("path", &UdpConfig::path),
    field("rate_bps", &UdpConfig::rate_bps, 1, kMostBps),
    field("bytes", &UdpConfig::bytes, 1, kMaxDatagram),
    field("start_ns", &UdpConfig::start_ns, 0, kLongest),
    field("stop_ns", &UdpConfig::stop_ns),
    field("on_ns", &UdpConfig::on_ns, 1, kLongest).or_zero("always on"),
    field("off_ns", &UdpConfig::off_ns, 0, kLongest),
    field("random_on_off", &UdpConfig::random_on_off),
    field("priority", &UdpConfig::priority),
    field("poisson", &UdpConfig::poisson),
    field("sizes", &UdpConfig::sizes),
    field("periods", &UdpConfig::periods),
    field("replay_ns", &UdpConfig::replay_ns),
    each("replay_bytes", &UdpConfig::replay_bytes, 1, kMaxDatagram),
    field("replay_period_ns", &UdpConfig::replay_period_ns, 1, kLongest).or_zero("once"),
};

// The stack and the traffic, which the bindings offer in another form, are not among them.
template <>
inline constexpr auto kFields<WorldConfig> = std::tuple{
    field("links", &WorldConfig::links),
    field("flows", &WorldConfig::flows),
    field("switches", &WorldConfig::switches),
    field("probes", &WorldConfig::probes),
    field("udp", &WorldConfig::udp),
    field("hosts", &WorldConfig::hosts),
    field("mss", &WorldConfig::mss, 100, 9000).or_zero("the stack's"),
    field("min_rto_ns", &WorldConfig::min_rto_ns, 1, 60 * kSecond).or_zero("the stack's"),
    field("max_rto_ns", &WorldConfig::max_rto_ns, kSecond, 120 * kSecond).or_zero("the stack's"),
    field("delayed_ack_packets", &WorldConfig::delayed_ack_packets, 1, 1000).or_zero("the stack's"),
    field("syn_retries", &WorldConfig::syn_retries, 1, 127).or_zero("the stack's"),
    field("data_retries", &WorldConfig::data_retries, 1, 255).or_zero("the stack's"),
    field("start_jitter_ns", &WorldConfig::start_jitter_ns, 0, 60 * kSecond),
    field("hystart", &WorldConfig::hystart),
    field("hystart_plus_plus", &WorldConfig::hystart_plus_plus),
    field("pacing", &WorldConfig::pacing),
    field("slow_start_after_idle", &WorldConfig::slow_start_after_idle),
    field("window_scaling", &WorldConfig::window_scaling),
    field("timestamps", &WorldConfig::timestamps),
    field("sack", &WorldConfig::sack),
    field("log_packets", &WorldConfig::log_packets),
};

// Throws std::invalid_argument "AT.FIELD = VALUE: must be ..." for a number out of its own bounds; at: the record's
// place in the world, empty for the world itself.
template <class Config>
void check_fields(const Config& config, const std::string& at) {
  const auto check = [&](const auto& field) {
    if constexpr (requires { field.low; }) field.check(config, at);
  };
  std::apply([&](const auto&... field) { (check(field), ...); }, kFields<Config>);
}

}  // namespace netbuf
