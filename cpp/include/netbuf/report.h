// What Python reads: cumulative statistics, current samples and the telemetry of a decision interval.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "netbuf/world.h"

namespace netbuf {

// Telemetry of one agent over one decision interval. Units are in the names; NaN = nothing was measured.
inline constexpr std::string_view kTelemetryFields[] = {
    "elapsed_s",            "ssthresh_bytes",       "cwnd_bytes",          "mss_bytes",          "bytes_in_flight_sum",
    "bytes_in_flight_mean", "segments_acked_sum",   "segments_acked_mean", "rtt_mean_s",         "rtt_min_s",
    "send_interval_mean_s", "receive_interval_mean_s", "throughput_bps",   "goodput_bps",        "packets_sent",
    "packets_lost",         "packets_retransmitted", "acks",               "timeouts",           "in_flight_bytes",
    "rtt_min_ever_s",       "queue_delay_mean_s",   "queue_packets",       "queue_drops",
};
inline constexpr size_t kTelemetryCount = std::size(kTelemetryFields);

// State at the start of an agent's decision interval.
struct IntervalStart {
  Time time = 0;
  FlowCounters counters;
  uint32_t lost = 0;
  double sojourn_sum = 0;
  uint64_t dequeued = 0;
  uint64_t link_drops = 0;
};

IntervalStart begin_interval(World& world, uint32_t flow);
void write_telemetry(World& world, uint32_t flow, const IntervalStart& start, double* out);

// Telemetry of an agent's switch over one decision interval: these fields, then the ones of each queue, then what was so when
// a flow last completed in the interval.
std::vector<std::string> switch_telemetry_fields(uint32_t queues);

struct SwitchIntervalStart {
  Time time = 0;
  uint64_t packets_received = 0, flows_started = 0;
  int64_t delivered_bytes = 0;
};

SwitchIntervalStart begin_switch_interval(World& world, uint32_t index);
void write_switch_telemetry(World& world, uint32_t index, const SwitchIntervalStart& start, double* out);

inline constexpr std::string_view kFlowSampleFields[] = {"cwnd_packets",      "ssthresh_packets", "rtt_ms",      "srtt_ms",
                                                         "in_flight_packets", "delivered_bytes",  "pacing_mbps"};
inline constexpr std::string_view kLinkSampleFields[] = {"queue_packets", "queue_bytes", "sojourn_sum_s", "sojourn_count",
                                                         "bytes_out",     "queue_drops", "random_losses"};
void sample_flow(World& world, uint32_t flow, double* out);
void sample_link(World& world, uint32_t link, double* out);

}  // namespace netbuf
