// The arithmetic of the receiver-window task (netbuf_gym/tasks/receiver_window): what is remembered of each receiver, and
// what the recipe default observes, in one pass. IEEE arithmetic in the order written here, so that the bits are the same
// everywhere; logarithms and exponentials are the caller's.
#pragma once
#include <cstddef>
#include <cstdint>

namespace netbuf {

// Constants of tracker.py and observations.py.
struct ReceiverRules {
  bool drain;
  float interval_s, interval_rate, packet_rate;  // packet_rate: bits of a byte over the interval
  float peak_decay;                              // 1/s, below 0
  float seen_share, seen_s, drain_due_s;
  float least_drain, greatest_drain;
  float per_drain_after, per_greatest_drain;  // what divides by them
  float k_middle, target_middle, least_gain;
};

// Vectors of all receivers, one number a row each. Units and meanings: tracker.py.
struct ReceiverRows {
  size_t rows;
  // Last measured values of telemetry.
  const float *elapsed, *packets, *receive_rate, *window, *buffered, *delay_filtered, *delay, *delay_min, *delay_max,
      *delay_gradient, *rtt, *rtt_min, *missing, *repeated, *silence, *longest_gap, *k, *bdp_gain, *mss, *goodput,
      *true_delay;
  float *rate, *previous_rate, *previous_delay, *previous_window, *peak_rate, *least_seen, *draining;
  double *window_exact, *k_exact, *target, *received, *resumed;
  float* kept;  // of the highest rate: its exponent, of which the caller makes an exponential
  // Of a world's life from the first packet on: seconds, and sums of throughput / fair share and 1 + queueing / base RTT.
  float *lived, *throughput_sum, *rtt_sum;
  uint8_t* begun;  // 0 or 1
  const float *share, *base_rtt;
};

// Columns of telemetry, and its width.
struct ReceiverColumns {
  size_t fields, received, window, k, target;
};

// Makes what was measured last what was known one interval earlier; before the next interval's telemetry is taken in.
void remember_receivers(const ReceiverRows& receivers);

// After telemetry, [rows][fields], was taken in: what arrived, and the exponents of what is kept.
void take_in_receivers(const ReceiverRows& receivers, const ReceiverRules& rules, const double* telemetry,
                       const ReceiverColumns& columns);

// Follows the interval that was taken in; needs the exponentials.
void follow_receivers(const ReceiverRows& receivers, const ReceiverRules& rules, const double* telemetry,
                      const ReceiverColumns& columns);

inline constexpr size_t kReceiverRatios = 16, kReceiverFeatures = 26;
// What is observed by its logarithm, all above 0, [kReceiverRatios][rows]: the first 15 features and the last one.
void receiver_ratios(const ReceiverRows& receivers, const ReceiverRules& rules, float* out);

// Feature vectors in the order of observations.py, [kReceiverFeatures][rows], within [-1, 1]. `logs`: logarithms of
// `receiver_ratios`, `scales` their factors.
void receiver_features(const ReceiverRows& receivers, const ReceiverRules& rules, const float* logs,
                       const float* scales, float* out);

}  // namespace netbuf
