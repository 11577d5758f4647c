// The arithmetic of what a sender infers about its path (netbuf_gym/tasks/congestion_window/path_tracker.py, which says
// what everything means): a pass over all senders a call, in IEEE arithmetic in the order written here, so that the
// bits are those of numpy; logarithms and exponentials are the caller's.
#pragma once
#include <cstddef>
#include <cstdint>

#include "netbuf/sender_features.h"

namespace netbuf {

// The constants of path_tracker.py, by their names there.
struct PathRules {
  bool drain;
  float interval_s, started_rtt, drain_due_s, seen_ratio, drain_round_trips, least_drain_intervals;
  float heavy_loss, heavy_rounds, least_counted, heavy_kept, most_cut, care_s, growth_loss, growth_rounds, growth_counted;
  float peak_gain, rate_gain;
  double drain_share, drain_of_product, least_drained, cap_segments;
  float spreads;  // 0: the least round trip is that of a packet
};

// Counters of a round trip's losses, one number a row each.
struct LossRounds {
  float *lost, *acked, *seconds, *heavy_in_a_row;
};

// Vectors of all senders, one number a row each.
struct PathRows {
  SenderRows sender;
  const float* base_ever;  // the least of the connection of what `PathColumns::base` is
  const double* lowest_window;
  float *unseen, *draining, *least_found, *rate_lately, *low_rtt, *lost_lately, *acked_lately, *roughness, *started,
      *queue_long, *lost_long, *acked_long, *standing, *held, *least_packet, *least_mean, *packet_found, *spread, *careful;
  LossRounds heavy, growth;
  double *wanted, *resumed, *drained, *arrived;
  uint8_t *acked, *acknowledged, *starting;  // 0 or 1
  const float *kept_lately, *kept_losses, *kept_long;  // parts that are not forgotten
  // What the caller makes logarithms of, in place: change of the rate, round trip over the least one.
  float *jump, *queue;
};

// Where the fields stand in the telemetry of one sender; `base`: the round trip that the least one is the least of.
struct PathColumns {
  size_t fields, ssthresh, rtt_min, base, acks;
};

// Writes the change of the rate, 1 where none was measured.
void compare_rates(const PathRows& paths);
// Follows an interval that `follow` has followed; `telemetry` as it was measured, [rows][fields].
void follow_path(const PathRows& paths, const PathRules& rules, const double* telemetry, const PathColumns& columns);
// Follows what needs the logarithm of the queue.
void follow_queue(const PathRows& paths, const double* telemetry, const PathColumns& columns);

// Windows for factors of them, NaN where nothing is decided. `caps`: the largest ones; null: unlimited.
void decide_windows(const PathRows& paths, const PathRules& rules, const double* factors, const double* caps,
                    double* out);
void measured_caps(const PathRows& paths, const PathRules& rules, double* out);

// What is observed of the past by its logarithm.
enum PathRatio : size_t { kRateTrend, kWindowInMeanBdp, kQueueLately, kLeastRttRisen, kPathRatios };
// The ratios themselves, all above 0, [kPathRatios][rows].
void path_ratios(const PathRows& paths, float* out);
inline constexpr size_t kAllRatios = size_t{kSenderRatios} + size_t{kPathRatios};
inline constexpr size_t kPathFeatures = 11;
// Feature vectors in the order of observations.py, [kPathFeatures][rows], within [-1, 1]. `queue_scale`: the factor of
// `queue_long`, which is a logarithm already.
void path_features(const PathRows& paths, const float* logs, const float* scales, float queue_scale, float* out);

}  // namespace netbuf
