// The arithmetic of the queue-threshold task (netbuf_gym/tasks/queue_threshold, which says what everything means): what
// is remembered of each switch, and what it observes, in a pass over all of them. IEEE single precision in the order
// written here, so that the bits are those of numpy; logarithms and exponentials are the caller's.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace netbuf {

// Vectors of all switches, one number a row each.
struct SwitchQueueRows {
  const float *alpha, *queue_packets, *queue_bytes, *arrivals, *drops, *drained_bytes, *queue_delay_mean,
      *flows_completed, *ratio_sum, *queue_packets_max, *queue_bytes_min, *syns, *flows_opened, *flows_closed, *betas;
  float *load, *starts_lately, *starts_most, *flows_seen, *share_of_buffer, *excess_sum, *excess_flows;
  float *least_bytes, *least_before, *least_now;
  float *above, *cut_age, *drop_age;
};
struct SwitchRows {
  size_t rows;
  const float *elapsed, *capacity, *free_fraction, *flows_started, *flows_completed, *drop_head;  // last measured
  const float *capacity_bps, *service, *packet_units, *ports, *cap_share;
  const uint8_t* in_bytes;                                            // 0 or 1
  const float *kept_load, *kept_starts, *kept_burst, *kept_excess;    // parts that are not forgotten
  float *flows_open, *window;
  uint8_t* flow_known;                                                // 0 or 1
  std::vector<SwitchQueueRows> queues;
};

// The constants of tracker.py, seconds.
struct SwitchRules {
  float least_window, target, long_ago;
};

// Follows an interval whose telemetry was taken in.
void follow_switches(const SwitchRows& switches, const SwitchRules& rules);

// What is observed by its logarithm, on a scale of its own: of the switch, and of each queue.
inline constexpr size_t kSwitchLogs = 2, kQueueLogs = 2;
// What is observed by the logarithm of 1 + it, of each queue.
inline constexpr size_t kQueueLog1ps = 12;
inline constexpr size_t kSwitchFeatures = 5, kQueueFeatures = 18;

// A logarithm's least argument, its factor, and what is subtracted then.
struct LogScale {
  float least, factor, offset;
};
using SwitchLogScales = std::array<LogScale, kSwitchLogs + 1>;        // the queues' have one

// Arguments of the logarithms, [kSwitchLogs + kQueueLogs * queues][rows], and of those of 1 + them,
// [kQueueLog1ps * queues][rows].
void switch_ratios(const SwitchRows& switches, const SwitchLogScales& scales, float* logs, float* log1ps);
// Feature vectors in the order of observations.py, [kSwitchFeatures + kQueueFeatures * queues][rows], within [-1, 1];
// `log1p_scales`: factors, [kQueueLog1ps].
void switch_features(const SwitchRows& switches, const SwitchLogScales& scales, const float* log1p_scales,
                     const float* logs, const float* log1ps, float* out);

}  // namespace netbuf
