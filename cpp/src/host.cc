#include "netbuf/host.h"

#include <algorithm>
#include <string>

#include "netbuf/app.h"
#include "netbuf/config_fields.h"
#include "netbuf/reject.h"
#include "netbuf/socket_buffer.h"
#include "netbuf/stack.h"

namespace netbuf {

namespace {

void check(const HostConfig& host, const std::string& at, size_t links) {
  check_fields(host, at);
  if (!host.tcp_mem.empty() && host.tcp_mem.size() != 3) {
    reject(at + ".tcp_mem", host.tcp_mem.size(), "three numbers, or none");
  }
  if (!std::is_sorted(host.tcp_mem.begin(), host.tcp_mem.end())) reject(at + ".tcp_mem", host.tcp_mem[0], "rising");
  for (const uint32_t device : host.devices) {
    if (device >= links) reject(at + ".devices", device, "indices of links below " + std::to_string(links));
  }
  if (host.ring_packets > 0 && host.devices.empty()) {
    reject(at + ".ring_packets", host.ring_packets, "0 for a host without a device");
  }
}

void check(const FlowConfig& flow, const std::string& at, const WorldConfig& config) {
  const auto hosts = static_cast<int32_t>(config.hosts.size());
  const std::string valid = "-1, or the index of a host below " + std::to_string(hosts);
  if (flow.sender_host < -1 || flow.sender_host >= hosts) reject(at + ".sender_host", flow.sender_host, valid);
  if (flow.receiver_host < -1 || flow.receiver_host >= hosts) reject(at + ".receiver_host", flow.receiver_host, valid);
  if (flow.sndbuf_bytes > 0 && flow.sender_host < 0) {
    reject(at + ".sndbuf_bytes", flow.sndbuf_bytes, "0 for a sender at no host");
  }
  if (flow.rcvbuf_bytes > 0 && flow.receiver_host < 0) {
    reject(at + ".rcvbuf_bytes", flow.rcvbuf_bytes, "0 for a receiver at no host");
  }
  if (flow.send_buffer_bytes > 0 && flow.sender_host >= 0) {
    reject(at + ".send_buffer_bytes", flow.send_buffer_bytes, "0 for a sender at a host");
  }
  if (flow.receive_buffer_bytes > 0 && flow.receiver_host >= 0) {
    reject(at + ".receive_buffer_bytes", flow.receive_buffer_bytes, "0 for a receiver at a host");
  }
}

template <class Socket>
void enter(std::vector<Socket*>& all, Socket& one) {
  one.place = static_cast<uint32_t>(all.size());
  all.push_back(&one);
}

template <class Socket>
void exit(std::vector<Socket*>& all, Socket& one) {
  all[one.place] = all.back();
  all[one.place]->place = one.place;
  all.pop_back();
}

}  // namespace

// sk_enter_memory_pressure above the second number, left below the first.
void Host::note_pressure(Time now) {
  const int64_t bytes = memory_.value() * kPage;
  if (!pressure_ && bytes > settings_.tcp_mem[1]) {
    pressure_ = true;
    pressed_since_ = now;
  } else if (pressure_ && bytes <= settings_.tcp_mem[0]) {
    pressure_ = false;
    pressed_ += now - pressed_since_;
  }
}

// __sk_mem_raise_allocated: above the hard limit nobody, under pressure whoever holds less than an even share of it.
bool Host::grants(int64_t held, int64_t more, int64_t least) const {
  if (!limited()) return true;
  const int64_t bytes = memory_.value() * kPage + more;
  if (bytes <= settings_.tcp_mem[0]) return true;
  if (bytes > settings_.tcp_mem[2]) return false;
  if (held < least || !(pressure_ || bytes > settings_.tcp_mem[1])) return true;
  const auto sockets = static_cast<int64_t>(senders_.size() + receivers_.size());
  return settings_.tcp_mem[2] > sockets * (held + more);
}

void Host::join(SendBuffer& one) { enter(senders_, one); }
void Host::join(ReceiveBuffer& one) { enter(receivers_, one); }
void Host::leave(SendBuffer& one) { exit(senders_, one); }
void Host::leave(ReceiveBuffer& one) { exit(receivers_, one); }

void SendSum::add(const SendShare& share) {
  acked_bytes += share.acked_bytes;
  packets_sent += share.packets_sent;
  packets_retransmitted += share.packets_retransmitted;
  rtt_count += share.rtt_count;
  rtt_sum += share.rtt_sum;
  busy += share.busy;
  window_limited += share.window_limited;
  buffer_limited += share.buffer_limited;
  if (share.sending && share.there > 0) {
    ++flows;
    throughput += static_cast<double>(share.acked_bytes) * 8e9 / static_cast<double>(share.there);
  }
  if (share.rtt_count > 0) {
    ++with_rtt;
    latency += seconds(share.rtt_sum) / static_cast<double>(share.rtt_count);
  }
  if (share.packets_sent > 0) {
    ++with_packets;
    loss += static_cast<double>(share.packets_retransmitted) / static_cast<double>(share.packets_sent);
  }
  if (share.rtt_min < kNever) {
    ++with_least;
    least += seconds(share.rtt_min);
    rtt_least = std::min(rtt_least, share.rtt_min);
  }
}

void check_hosts(const WorldConfig& config) {
  for (size_t i = 0; i < config.hosts.size(); ++i) {
    check(config.hosts[i], "hosts[" + std::to_string(i) + "]", config.links.size());
  }
  if (!config.hosts.empty() && !stack_profile(config.stack).has_hosts) {
    reject("hosts", config.hosts.size(), "none in this stack");
  }
  for (size_t i = 0; i < config.flows.size(); ++i) check(config.flows[i], "flows[" + std::to_string(i) + "]", config);
  for (const TrafficConfig& traffic : config.traffic) {
    for (size_t i = 0; i < traffic.senders.size(); ++i) {
      const std::string at = "traffic.senders[" + std::to_string(i) + "]";
      check(traffic.senders[i], at, config);
      for (const FlowConfig& leg : traffic.senders[i].relay) check(leg, at + ".relay", config);
    }
  }
}

}  // namespace netbuf
