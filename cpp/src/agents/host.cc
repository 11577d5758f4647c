// A host's buffers: its ring, the cap of explicit socket buffers, the initial sizes and the largest of TCP's. It sees
// what a program on it can: the kernel's counters of its connections and its memory.
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "netbuf/agent.h"
#include "netbuf/socket_buffer.h"

namespace netbuf {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kMost = 1LL << 31;

double ratio(double sum, double count) { return count > 0 ? sum / count : kNaN; }

constexpr std::string_view kFields[] = {
    "elapsed_s",            "sent_bytes",             "received_bytes",     "throughput_bps",
    "total_throughput_bps", "latency_s",              "rtt_min_s",          "loss",
    "packets_sent",         "packets_retransmitted",  "connections",        "connections_opened",
    "connections_closed",   "flows_sending",          "rwnd_limited_s",     "sndbuf_limited_s",
    "busy_s",               "cwnd_bytes",             "unsent_bytes",       "in_flight_bytes",
    "send_buffer_bytes",    "receive_buffer_bytes",   "send_queued_bytes",  "receive_queued_bytes",
    "memory_bytes",         "memory_limit_bytes",     "memory_pressure",    "ring_packets",
    "socket_bytes",         "tcp_rmem_default_bytes", "tcp_rmem_max_bytes", "tcp_wmem_default_bytes",
    "tcp_wmem_max_bytes",   "ring_queue_packets",     "ring_drops",         "interrupted_s",
    "delivery_rate_bps",
};

// What a program may choose for its sockets. BBR starts with an infinite ssthresh, which outlives it: what follows it at
// once begins with a slow start.
constexpr std::string_view kBbr = "bbr", kChoices[] = {"cubic", kBbr, "vegas"};

struct Start {
  Time time = 0, interrupted = 0, pressure = 0;
  uint64_t opened = 0, closed = 0, ring_drops = 0;
  int64_t received_bytes = 0;
  double memory = 0;
};

int64_t received_bytes(const Host& host) {
  int64_t bytes = host.totals.received_bytes;
  for (const ReceiveBuffer* one : host.receivers()) bytes += one->receiver().read_bytes();
  return bytes;
}

class HostAgent final : public AgentOf<Start> {
 public:
  explicit HostAgent(const Parameters& parameters)
      : AgentOf(std::size(kFields), 11), choices_(parameters.as<uint32_t>("choices")) {}

  std::vector<std::string> fields() const override { return {std::begin(kFields), std::end(kFields)}; }
  std::vector<Control> controls() const override {
    const std::string bytes = "bytes in [1, 2^31]";
    return {{"ring_packets", 1, 1 << 20, "packets in [1, 2^20]"},
            {"socket_bytes", 1, kMost, bytes},
            {"tcp_rmem_default_bytes", 1, kMost, bytes},
            {"tcp_rmem_max_bytes", 1, kMost, bytes},
            {"tcp_wmem_default_bytes", 1, kMost, bytes},
            {"tcp_wmem_max_bytes", 1, kMost, bytes},
            {"limit_output_bytes", 1, kMost, bytes},
            {"notsent_lowat_bytes", 1, 1LL << 32, "bytes in [1, 2^32]"},
            {"window_clamp_bytes", 1, kMost, bytes},
            {"congestion_control", 0, std::size(kChoices) - 1, "the number of a congestion control: 0 cubic, 1 bbr, 2 vegas"},
            {"slow_start", 0, 1, "0 or 1"}};
  }
  std::string_view what() const override { return "hosts under an agent's control"; }

  std::vector<uint32_t> find(World& world) const override {
    std::vector<uint32_t> hosts;
    for (uint32_t i = 0; i < world.hosts().size(); ++i) {
      if (world.hosts()[i].agent_controlled()) hosts.push_back(i);
    }
    return hosts;
  }

 protected:
  void begin(World& world, uint32_t index, Start& start) const override {
    Host& host = world.hosts()[index];
    const Time now = world.now();
    host.gone = {};
    for (SendBuffer* one : host.senders()) one->begin_interval(now);
    start = {now, host.interrupted(now), host.pressure_time(now), host.totals.opened, host.totals.closed,
             ring_drops(world, host), received_bytes(host), host.memory().integral(now)};
  }

  void apply(World& world, uint32_t index, const double* control) const override {
    Host& host = world.hosts()[index];
    HostConfig& settings = host.settings();
    const auto set = [&](size_t i, int64_t& value) {
      if (!std::isnan(control[i])) value = static_cast<int64_t>(control[i]);
    };
    int64_t ring = settings.ring_packets;
    set(0, ring);
    set(1, settings.socket_bytes);
    set(2, settings.tcp_rmem[1]);
    set(3, settings.tcp_rmem[2]);
    set(4, settings.tcp_wmem[1]);
    set(5, settings.tcp_wmem[2]);
    set(6, settings.limit_output_bytes);
    set(7, settings.notsent_lowat_bytes);
    set(8, host.window_clamp);
    if (!settings.devices.empty()) world.resize_ring(index, ring);
    if (!std::isnan(control[9])) choose(host, choice(control[9]), world.now());
    if (control[10] >= 1 && !host.congestion_control.empty()) {
      const std::string_view own = host.congestion_control;
      choose(host, own == kBbr ? kChoices[0] : kBbr, world.now());
      choose(host, own, world.now());
    }
  }

  // Hosts wait for nothing but the end of an interval.
  void run_to_event(World& world, std::span<const uint32_t>, Time interval, uint32_t) const override {
    world.run(world.now() + interval);
  }

  void write(World& world, uint32_t index, const Start& start, double* out) const override {
    const Host& host = world.hosts()[index];
    const HostConfig& settings = host.settings();
    const Time now = world.now();
    const double elapsed = seconds(now - start.time);

    SendSum sum = host.gone;
    double cwnd = 0, rate = 0, sndbuf = 0, rcvbuf = 0;
    int64_t unsent = 0, in_flight = 0, send_queued = 0, receive_queued = 0;
    uint64_t sending = 0, senders = 0, receivers = 0;
    for (const SendBuffer* one : host.senders()) {
      if (!one->open()) continue;
      const SendShare share = one->share(now);
      const bool failed = one->sender().failed() && share.there > 0;  // in this interval
      if (!one->closed() || share.acked_bytes > 0 || failed) sum.add(share);
      if (one->closed()) continue;
      const Tcb& tcb = one->sender().tcb;
      ++senders;
      sndbuf += static_cast<double>(one->limit());
      unsent += one->unsent();
      in_flight += tcb.bytes_in_flight();
      send_queued += one->queued();
      if (share.sending) ++sending, cwnd += static_cast<double>(tcb.cwnd);
      if (const auto& sampler = one->sender().board.rate) rate = std::max(rate, sampler->estimate() * tcb.mss * 8);
    }
    for (const ReceiveBuffer* one : host.receivers()) {
      if (!one->open()) continue;
      ++receivers;
      rcvbuf += static_cast<double>(one->limit());
      receive_queued += one->queued();
    }
    const bool ring = !settings.devices.empty();

    *out++ = elapsed;
    *out++ = static_cast<double>(sum.acked_bytes);
    *out++ = static_cast<double>(received_bytes(host) - start.received_bytes);
    *out++ = ratio(sum.throughput, static_cast<double>(sum.flows));
    *out++ = ratio(static_cast<double>(sum.acked_bytes) * 8, elapsed);
    *out++ = ratio(sum.latency, static_cast<double>(sum.with_rtt));
    *out++ = ratio(sum.least, static_cast<double>(sum.with_least));
    *out++ = ratio(sum.loss, static_cast<double>(sum.with_packets));
    *out++ = static_cast<double>(sum.packets_sent);
    *out++ = static_cast<double>(sum.packets_retransmitted);
    *out++ = static_cast<double>(senders + receivers);
    *out++ = static_cast<double>(host.totals.opened - start.opened);
    *out++ = static_cast<double>(host.totals.closed - start.closed);
    *out++ = static_cast<double>(sum.flows);
    *out++ = seconds(sum.window_limited);
    *out++ = seconds(sum.buffer_limited);
    *out++ = seconds(sum.busy);
    *out++ = ratio(cwnd, static_cast<double>(sending));
    *out++ = static_cast<double>(unsent);
    *out++ = static_cast<double>(in_flight);
    *out++ = ratio(sndbuf, static_cast<double>(senders));
    *out++ = ratio(rcvbuf, static_cast<double>(receivers));
    *out++ = static_cast<double>(send_queued);
    *out++ = static_cast<double>(receive_queued);
    *out++ = ratio((host.memory().integral(now) - start.memory) * static_cast<double>(kPage) * 1e-9, elapsed);
    *out++ = settings.tcp_mem.empty() ? kNaN : static_cast<double>(settings.tcp_mem[2]);
    *out++ = ratio(seconds(host.pressure_time(now) - start.pressure), elapsed);
    *out++ = ring && settings.ring_packets > 0 ? static_cast<double>(settings.ring_packets) : kNaN;
    *out++ = static_cast<double>(settings.socket_bytes);
    *out++ = static_cast<double>(settings.tcp_rmem[1]);
    *out++ = static_cast<double>(settings.tcp_rmem[2]);
    *out++ = static_cast<double>(settings.tcp_wmem[1]);
    *out++ = static_cast<double>(settings.tcp_wmem[2]);
    *out++ = ring ? ring_queue(world, host) : kNaN;
    *out++ = ring ? static_cast<double>(ring_drops(world, host) - start.ring_drops) : kNaN;
    *out++ = seconds(host.interrupted(now) - start.interrupted);
    *out++ = rate > 0 ? rate : kNaN;
  }

 private:
  std::string_view choice(double number) const {
    const auto index = static_cast<uint32_t>(number);
    if ((choices_ >> index & 1) == 0) {
      throw std::invalid_argument("congestion_control = " + std::to_string(index) + ": must be one that choices = " +
                                  std::to_string(choices_) + " has");
    }
    return kChoices[index];
  }
  static void choose(Host& host, std::string_view control, Time now) {
    if (host.congestion_control == control) return;
    host.congestion_control = control;
    for (SendBuffer* one : host.senders()) {
      if (!one->closed()) one->sender().set_congestion_control(control, now);
    }
  }
  static uint64_t ring_drops(World& world, const Host& host) {
    uint64_t drops = 0;
    for (const uint32_t device : host.settings().devices) drops += world.links()[device].counters().queue_drops;
    return drops;
  }
  static double ring_queue(World& world, const Host& host) {
    double packets = 0;
    for (const uint32_t device : host.settings().devices) {
      world.links()[device].note(world.now());
      packets += world.links()[device].queue_packets();
    }
    return packets;
  }

  const uint32_t choices_;
};

const Entry<AgentRecord> entry{{
    .name = "host",
    .meaning = "sets a host's buffers: its ring, and what its sockets' buffers start with and may grow to",
    .make = make_kind<HostAgent>,
    .parameters = {whole("choices", 0, 0, (1 << std::size(kChoices)) - 1,
                         "what may be chosen as congestion control: the sum of 1 (cubic), 2 (bbr), 4 (vegas)")},
}};

}  // namespace
}  // namespace netbuf
