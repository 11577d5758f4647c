#include "netbuf/path_evidence.h"

#include <algorithm>
#include <cmath>

namespace netbuf {

namespace {

constexpr float kLeastSwing = 0.02f, kLeastRttSwing = 0.01f;  // shares of the mean below which changes say little
constexpr float kMostOffered = 64;
constexpr float kLeastRatio = 1e-6f;

// A time constant's mean; the first value is taken as it is.
void approach(float& mean, float value, float kept) { mean += (mean > 0 ? 1.0f - kept : 1.0f) * (value - mean); }

// Adds an interval to the regressions on what is in flight.
void add_to_regression(const EvidenceRows& e, size_t i) {
  const SenderRows& s = e.path.sender;
  const float kept = e.path.kept_losses[i];
  const float x = e.in_flight_mean[i] / s.mss[i], y = s.rtt[i], z = s.rate[i] * 0.125f / s.mss[i];
  const float weight = e.weight[i] * kept + 1.0f;
  const float dx = x - e.in_flight[i], dy = y - e.rtt[i], dz = z - e.rate[i];
  e.weight[i] = weight;
  e.in_flight[i] += dx / weight;
  e.rtt[i] += dy / weight;
  e.rate[i] += dz / weight;
  const float after = x - e.in_flight[i];
  e.in_flight_squares[i] = e.in_flight_squares[i] * kept + dx * after;
  e.rtt_products[i] = e.rtt_products[i] * kept + after * dy;
  e.rtt_squares[i] = e.rtt_squares[i] * kept + dy * (y - e.rtt[i]);
  e.rate_products[i] = e.rate_products[i] * kept + after * dz;
}

void add_losses(const EvidenceRows& e, size_t i, float lost) {
  const SenderRows& s = e.path.sender;
  const float kept = e.path.kept_long[i];
  e.loss_age[i] += s.elapsed[i];
  e.counted[i] *= kept;
  e.lossy[i] *= kept;
  if (e.path.acked[i] || lost > 0) e.counted[i] += 1;
  if (!(lost > 0)) return;
  e.lossy[i] += 1;
  e.loss_age[i] = 0;
  const float share = 1 / e.lossy[i];
  e.burst[i] += share * (lost - e.burst[i]);
  if (s.rtt_known[i]) e.loss_queue[i] += share * (std::max(s.rtt[i] - s.least_rtt[i], 0.0f) - e.loss_queue[i]);
  if (s.elapsed[i] > 0 && e.rate_long[i] > 0) {
    const float offered = (lost + s.segments_acked[i]) * s.mss[i] * 8 / s.elapsed[i] / e.rate_long[i];
    e.loss_offered[i] += share * (std::min(offered, kMostOffered) - e.loss_offered[i]);
  }
}

}  // namespace

void follow_evidence(const EvidenceRows& e, const double* telemetry, const PathColumns& at) {
  const PathRows& p = e.path;
  const SenderRows& s = p.sender;
  for (size_t i = 0; i < s.rows; ++i, telemetry += at.fields) {
    if (telemetry[at.rtt_min] > 0) {  // false of a NaN
      const float rtt = s.rtt[i];
      if (!(e.base_ever[i] > 0) || rtt < e.base_ever[i]) e.base_ever[i] = rtt;
      const float new_lately = e.weight[i] > 0 ? 1.0f - p.kept_lately[i] : 1.0f;
      e.spread[i] += new_lately * (std::max(rtt - s.rtt_min[i], 0.0f) - e.spread[i]);
      if (p.acked[i]) add_to_regression(e, i);
    }
    approach(e.rate_long[i], s.rate[i], p.kept_long[i]);
    add_losses(e, i, s.packets_lost[i]);
  }
}

void evidence_arguments(const EvidenceRows& e, float* out) {
  const PathRows& p = e.path;
  const SenderRows& s = p.sender;
  const size_t n = s.rows;
  const auto plus_ms = [](float seconds) { return 1.0f + 1000.0f * std::max(seconds, 0.0f); };
  for (size_t i = 0; i < n; ++i) {
    const float base = s.rtt_known[i] ? s.least_rtt[i] : 1.0f, known = s.rtt_known[i] ? 1.0f : 0.0f;
    const float packet = s.mss[i] * s.interval_bit_rate, long_rate = std::max(e.rate_long[i], packet);
    const float arguments[kEvidenceLogs] = {
        plus_ms(known * (s.rtt[i] - base)),
        plus_ms(known * (s.rtt_min[i] - base)),
        plus_ms(p.low_rtt[i] - e.rtt_min_ever[i]),
        plus_ms(e.spread[i]),
        1.0f + e.spread[i] / base,
        plus_ms(e.weight[i] > 0 ? std::sqrt(std::max(e.rtt_squares[i], 0.0f) / e.weight[i]) : 0.0f),
        1.0f + e.burst[i],
        plus_ms(e.loss_queue[i]),
        e.loss_offered[i] > 0 ? std::max(e.loss_offered[i], kLeastRatio) : 1.0f,
        1.0f + e.loss_age[i],
        std::max(p.rate_lately[i], packet) / long_rate,
        std::max(s.peak_rate[i], packet) / long_rate,
        std::max(e.segments_per_ack[i], 1.0f),
        std::max(known * base * 1000.0f, 1.0f),
        std::max(p.rate_lately[i] * 1e-4f, 1.0f),
    };
    for (size_t k = 0; k < kEvidenceLogs; ++k) out[k * n + i] = arguments[k];
  }
}

void evidence_features(const EvidenceRows& e, const float* logs, const float* scales, float* out) {
  const size_t n = e.path.sender.rows;
  for (size_t i = 0; i < n; ++i) {
    const auto scaled = [=](EvidenceLog log) { return logs[log * n + i] * scales[log]; };
    const float weight = e.weight[i], mean = e.in_flight[i], squares = e.in_flight_squares[i];
    const float steady = kLeastSwing * mean, still = kLeastRttSwing * e.rtt[i];
    const float moved = squares + weight * steady * steady;
    const float rtt_moved = e.rtt_squares[i] + weight * still * still;
    const float per_segment = moved > 0 ? 1.0f / moved : 0.0f;
    const float features[kEvidenceFeatures] = {
        scaled(kQueueMs),
        scaled(kStandingMs),
        scaled(kLowMs),
        scaled(kSpreadMs),
        scaled(kSpread),
        scaled(kSwingMs),
        0.5f * e.rtt_products[i] * per_segment * e.rate[i],
        moved > 0 && rtt_moved > 0 ? e.rtt_products[i] / std::sqrt(moved * rtt_moved) : 0.0f,
        0.5f * e.rate_products[i] * per_segment * e.rtt[i],
        mean > 0 ? std::sqrt(std::max(squares, 0.0f) / weight) / mean : 0.0f,
        e.counted[i] > 0 ? e.lossy[i] / e.counted[i] : 0.0f,
        scaled(kBurst),
        scaled(kLossQueueMs),
        scaled(kLossOffered),
        scaled(kLossAge),
        scaled(kLongRateTrend),
        scaled(kPeakToLongRate),
        scaled(kSegmentsPerAck),
        scaled(kBaseMs),
        scaled(kRateMbps),
    };
    for (size_t k = 0; k < kEvidenceFeatures; ++k) out[k * n + i] = std::clamp(features[k], -1.0f, 1.0f);
  }
}

}  // namespace netbuf
