// The arithmetic of the congestion-window task (netbuf_gym/tasks/congestion_window): what is remembered of each sender,
// and what it observes, in one pass. IEEE single precision in the order written here, so that the bits are the same
// everywhere; logarithms and exponentials are the caller's.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace netbuf {

// Vectors of all senders, one number a row each. Units and meanings: tracker.py.
struct SenderRows {
  size_t rows;
  float interval_rate, interval_bit_rate;  // 1 / interval and 8 / interval, 1/s
  // Last measured values of telemetry.
  const float *elapsed, *cwnd, *mss, *segments_acked, *rtt, *rtt_min, *receive_interval, *throughput, *packets_lost,
      *acks, *timeouts, *in_flight;
  float *previous_cwnd, *previous_rtt, *previous_throughput, *previous_rate;
  float *rate, *peak_rate, *age, *least_rtt;
  double* window;  // in force, exact
  uint8_t *rtt_known, *previous_rtt_known;  // 0 or 1
  // Of a world's life from the first ACK on: seconds, and sums over them of throughput / fair share and RTT / base RTT.
  float *lived, *throughput_sum, *rtt_sum;
  uint8_t* begun;  // whether an ACK has come, 0 or 1
  const float *share, *base_rtt;
};

// Makes what was measured last what was known one interval earlier; before the next interval's telemetry is taken in.
void remember(const SenderRows& senders);

// Exponents of what is left after intervals of these lengths, [rows], of amounts that decay at these rates, 1/s,
// [rates][rows].
void decay_exponents(const float* elapsed, size_t rows, std::span<const float> rates, float* out);

// Follows an interval whose telemetry was taken in. Windows, and the round trips that the least one is the least of, as they
// were measured, NaN where they were not, lie `stride` numbers apart; `kept`: the part of the highest rate that is not
// forgotten.
void follow(const SenderRows& senders, const double* windows, const double* base_rtts, size_t stride,
            const float* kept);

// What is observed by its logarithm.
enum SenderRatio : size_t {
  kQueueing, kStandingQueue, kWindowInBdp, kWindowUse, kRttChange, kRateChange, kWindowChange, kRttInIntervals,
  kWindowSize, kSegmentsAcked, kSegmentsQueued, kSenderRatios
};
// The ratios themselves, all above 0, into `out`, [kSenderRatios][rows].
void sender_ratios(const SenderRows& senders, float* out);

inline constexpr size_t kSenderFeatures = 16;
// Feature vectors in the order of observations.py, [kSenderFeatures][rows], within [-1, 1]. `logs`: logarithms of
// `sender_ratios`, `scales` their factors.
void sender_features(const SenderRows& senders, const float* logs, const float* scales, float* out);

// The recipe ppcc. Measured values of some fields into `out`, [columns][rows], each less its least value and times its
// scale, within [0, 1]; `last`, [fields][rows], holds no NaN.
void scaled_fields(const float* last, size_t rows, std::span<const int64_t> columns, const float* lows,
                   const float* scales, float* out);

// Windows in bytes, [rows], that `steps[action]` * MSS^2 / window are added to, not below `low` nor above `high`, or
// where that is null `most`.
void step_windows(const SenderRows& senders, const int64_t* actions, std::span<const double> steps, const double* low,
                  const double* high, double most, double* out);

// What the sign of a change of utility takes the logarithms of, [4][rows]: throughput now and an interval earlier, at least
// 1 bit/s, and round trips then, 1 s where no round trip was known an interval earlier.
void utility_arguments(const SenderRows& senders, double* out);

// Sign, -1, 0 or 1, of the change of weight * log(throughput) - (1 - weight) * log(round trip); 0 where that is not known.
void utility_signs(const SenderRows& senders, const double* logs, double weight, float* out);

}  // namespace netbuf
