#include "netbuf/kernel/tcp_info.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>

namespace netbuf {

namespace {

using enum TcpInfoField::Type;
constexpr double kMillisecondUnit = 1e-3, kMicrosecondUnit = 1e-6;
// ~0, as a double is rounded.
constexpr double kInfiniteThreshold = 0x7fffffff, kNoSample = 0xffffffff, kUnpaced = 0x1p64;
constexpr size_t kMostBytes = 512;

// Offsets do not change: fields are only added at the end. In brackets the kernel that the fields below came with.
constexpr TcpInfoField kFields[] = {
    {"state", 0, u8},
    {"ca_state", 1, u8},
    {"retransmits", 2, u8},
    {"probes", 3, u8},
    {"backoff", 4, u8},
    {"options", 5, u8},
    {"send_window_scale", 6, low4},
    {"receive_window_scale", 6, high4},
    {"delivery_rate_app_limited", 7, bit0},
    {"rto_s", 8, u32, kMicrosecondUnit},
    {"ato_s", 12, u32, kMicrosecondUnit},
    {"mss_bytes", 16, u32},
    {"received_mss_bytes", 20, u32},
    {"unacked_packets", 24, u32},
    {"sacked_packets", 28, u32},
    {"lost_packets", 32, u32},
    {"retransmitting_packets", 36, u32},
    {"since_data_sent_s", 44, u32, kMillisecondUnit},
    {"since_data_received_s", 52, u32, kMillisecondUnit},
    {"since_ack_received_s", 56, u32, kMillisecondUnit},
    {"path_mtu_bytes", 60, u32},
    {"receive_threshold_bytes", 64, u32},
    {"rtt_s", 68, u32, kMicrosecondUnit, 0},
    {"rtt_deviation_s", 72, u32, kMicrosecondUnit},
    {"ssthresh_packets", 76, u32, 1, kInfiniteThreshold},
    {"cwnd_packets", 80, u32},
    {"advertised_mss_bytes", 84, u32},
    {"reordering_packets", 88, u32},
    {"receiver_rtt_s", 92, u32, kMicrosecondUnit, 0},
    {"receive_space_bytes", 96, u32},
    {"retransmitted_packets", 100, u32},
    // [3.15]
    {"pacing_rate_bytes_per_s", 104, u64, 1, kUnpaced},
    // [4.1, 4.2]
    {"acked_bytes", 120, u64},
    {"received_bytes", 128, u64},
    {"segments_sent", 136, u32},
    {"segments_received", 140, u32},
    // [4.6]
    {"unsent_bytes", 144, u32},
    {"rtt_min_s", 148, u32, kMicrosecondUnit, kNoSample},
    {"data_segments_received", 152, u32},
    {"data_segments_sent", 156, u32},
    // [4.9, 4.10]
    {"delivery_rate_bytes_per_s", 160, u64},
    {"busy_s", 168, u64, kMicrosecondUnit},
    {"rwnd_limited_s", 176, u64, kMicrosecondUnit},
    {"sndbuf_limited_s", 184, u64, kMicrosecondUnit},
    // [4.18, 4.19]
    {"delivered_packets", 192, u32},
    {"delivered_marked_packets", 196, u32},
    {"sent_bytes", 200, u64},
    {"retransmitted_bytes", 208, u64},
    {"duplicate_sacks", 216, u32},
    {"reorderings", 220, u32},
    // [5.4]
    {"received_out_of_order_packets", 224, u32},
    {"send_window_bytes", 228, u32},
    // [6.2]
    {"receive_window_bytes", 232, u32},
    // [6.7]
    {"timeouts", 240, u16},
    {"timeout_recoveries", 242, u16},
    {"timeout_recovery_s", 244, u32, kMillisecondUnit},
};

template <class Number>
double number_at(const uint8_t* at) {
  Number value;
  std::memcpy(&value, at, sizeof value);
  return static_cast<double>(value);
}

size_t length(TcpInfoField::Type type) { return type == u64 ? 8 : type == u32 ? 4 : type == u16 ? 2 : 1; }

double raw(const uint8_t* at, TcpInfoField::Type type) {
  switch (type) {
    case u16: return number_at<uint16_t>(at);
    case u32: return number_at<uint32_t>(at);
    case u64: return number_at<uint64_t>(at);
    case low4: return *at & 15;
    case high4: return *at >> 4;
    case bit0: return *at & 1;
    case u8: break;
  }
  return *at;
}

}  // namespace

std::span<const TcpInfoField> tcp_info_fields() { return kFields; }

size_t tcp_info_index(std::string_view name) {
  for (size_t i = 0; i < std::size(kFields); ++i) {
    if (kFields[i].name == name) return i;
  }
  throw std::out_of_range("tcp_info has no field " + std::string(name));
}

void parse_tcp_info(std::span<const uint8_t> data, double* out) {
  for (const TcpInfoField& field : kFields) {
    double value = std::numeric_limits<double>::quiet_NaN();
    if (field.offset + length(field.type) <= data.size()) {
      value = raw(&data[field.offset], field.type);
      value = value == field.never ? std::numeric_limits<double>::quiet_NaN() : value * field.unit;
    }
    *out++ = value;
  }
}

bool read_tcp_info(int fd, double* out) {
  uint8_t data[kMostBytes];
  socklen_t bytes = sizeof data;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, data, &bytes) != 0) return false;
  parse_tcp_info({data, bytes}, out);
  return true;
}

}  // namespace netbuf
