// Samples of a moment: what time series are made of.
#pragma once
#include <string_view>

#include "netbuf/world.h"

namespace netbuf {

inline constexpr std::string_view kFlowSampleFields[] = {
    "cwnd_packets", "ssthresh_packets", "rtt_ms", "srtt_ms", "in_flight_packets", "delivered_bytes", "pacing_mbps"};
inline constexpr std::string_view kLinkSampleFields[] = {
    "queue_packets", "queue_bytes", "sojourn_sum_s", "sojourn_count", "bytes_sent", "queue_drops", "random_losses"};
void sample_flow(World& world, uint32_t flow, double* out);
void sample_link(World& world, uint32_t link, double* out);

}  // namespace netbuf
