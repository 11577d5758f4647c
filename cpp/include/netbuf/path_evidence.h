// By what a sender tells queues from jitter, and overflow from random loss and policers
// (netbuf_gym/tasks/congestion_window/evidence_tracker.py, which says what everything means): a pass over all senders a
// call, in IEEE arithmetic in the order written here; logarithms are the caller's.
#pragma once
#include <cstddef>

#include "netbuf/sender_path.h"

namespace netbuf {

// Vectors of all senders, one number a row each.
struct EvidenceRows {
  PathRows path;
  const float *in_flight_mean, *segments_per_ack, *rtt_min_ever;  // last measured: bytes, segments, seconds
  float *base_ever, *spread, *rate_long;                          // seconds, seconds, bit/s
  // Weighted means and sums of products of deviations, of segments in flight, round trip in seconds, segments a second.
  float *weight, *in_flight, *rtt, *rate, *in_flight_squares, *rtt_products, *rtt_squares, *rate_products;
  float *counted, *lossy;                                         // intervals: all, with losses
  float *burst, *loss_queue, *loss_offered, *loss_age;            // segments, seconds, ratio, seconds
};

// Follows an interval that `follow_path` has followed; `telemetry` as it was measured, [rows][fields].
void follow_evidence(const EvidenceRows& evidence, const double* telemetry, const PathColumns& columns);

// What is observed by its logarithm.
enum EvidenceLog : size_t {
  kQueueMs, kStandingMs, kLowMs, kSpreadMs, kSpread, kSwingMs, kBurst, kLossQueueMs, kLossOffered, kLossAge,
  kLongRateTrend, kPeakToLongRate, kSegmentsPerAck, kBaseMs, kRateMbps, kEvidenceLogs
};
// The arguments of the logarithms, all above 0, [kEvidenceLogs][rows].
void evidence_arguments(const EvidenceRows& evidence, float* out);
inline constexpr size_t kEvidenceFeatures = 20;
// Feature vectors in the order of observations.py, [kEvidenceFeatures][rows], within [-1, 1].
void evidence_features(const EvidenceRows& evidence, const float* logs, const float* scales, float* out);

}  // namespace netbuf
