#include "netbuf/switch_features.h"

#include <algorithm>
#include <cmath>

namespace netbuf {

namespace {

constexpr float kShortest = 1e-9f;  // interval that is divided by, in seconds
constexpr float kLeastFree = 1e-6f;

void follow_queue(const SwitchRows& s, const SwitchQueueRows& q, const SwitchRules& rules) {
  for (size_t i = 0; i < s.rows; ++i) {
    const float elapsed = s.elapsed[i], least = q.queue_bytes_min[i];
    q.share_of_buffer[i] = (s.in_bytes[i] ? q.queue_bytes[i] : q.queue_packets[i]) / s.capacity[i];
    const float rate = q.arrivals[i] * s.service[i] / std::max(elapsed, kShortest);
    q.load[i] += (1.0f - s.kept_load[i]) * (rate - q.load[i]);
    q.starts_lately[i] = q.starts_lately[i] * s.kept_starts[i] + q.syns[i];
    q.starts_most[i] = std::max(q.starts_most[i] * s.kept_burst[i], q.starts_lately[i]);
    q.flows_seen[i] = std::max(q.flows_seen[i] + q.flows_opened[i] - q.flows_closed[i], 0.0f);
    q.excess_sum[i] = (q.excess_sum[i] + (q.ratio_sum[i] - q.flows_completed[i])) * s.kept_excess[i];
    q.excess_flows[i] = (q.excess_flows[i] + q.flows_completed[i]) * s.kept_excess[i];

    // The least of the window being filled and of the one before it.
    q.least_now[i] = s.window[i] > 0 ? std::min(q.least_now[i], least) : least;
    const bool full = s.window[i] + elapsed >= rules.least_window;
    q.least_bytes[i] = full ? q.least_now[i] : std::min(q.least_before[i], q.least_now[i]);
    if (full) q.least_before[i] = q.least_now[i];

    const bool is_short = least * 8.0f <= rules.target * s.capacity_bps[i];
    q.above[i] = is_short ? 0.0f : std::min(q.above[i] + elapsed, rules.long_ago);
    q.cut_age[i] = std::min(q.cut_age[i] + elapsed, rules.long_ago);
    q.drop_age[i] = q.drops[i] > 0 ? 0.0f : std::min(q.drop_age[i] + elapsed, rules.long_ago);
  }
}

// Of the whole buffer, in seconds that the ports take to send it.
float buffer_time(const SwitchRows& s, size_t i) {
  const float bytes_per_unit = s.service[i] * s.capacity_bps[i] / (8.0f * s.packet_units[i]);
  return s.capacity[i] * bytes_per_unit * 8.0f / s.capacity_bps[i];
}

// Share of what the ports can send in the interval.
float drained_share(const SwitchRows& s, const SwitchQueueRows& q, size_t i) {
  return q.drained_bytes[i] / (s.capacity_bps[i] * std::max(s.elapsed[i], kShortest) * 0.125f);
}

float clipped(float value) { return std::clamp(value, -1.0f, 1.0f); }

}  // namespace

void follow_switches(const SwitchRows& s, const SwitchRules& rules) {
  for (const SwitchQueueRows& queue : s.queues) follow_queue(s, queue, rules);
  for (size_t i = 0; i < s.rows; ++i) {
    s.window[i] += s.elapsed[i];
    if (s.window[i] >= rules.least_window) s.window[i] = 0;
    s.flows_open[i] += s.flows_started[i] - s.flows_completed[i];
    s.flow_known[i] |= s.flows_completed[i] > 0;
  }
}

void switch_ratios(const SwitchRows& s, const SwitchLogScales& scales, float* logs, float* log1ps) {
  const size_t n = s.rows, queues = s.queues.size();
  for (size_t i = 0; i < n; ++i) {
    logs[i] = std::max(buffer_time(s, i), scales[0].least);
    logs[n + i] = std::max(s.service[i], scales[1].least);
  }
  for (size_t k = 0; k < queues; ++k) {
    const SwitchQueueRows& q = s.queues[k];
    float* alphas = logs + (kSwitchLogs + k) * n;
    float* levels = alphas + queues * n;
    for (size_t i = 0; i < n; ++i) {
      const float free = s.free_fraction[i], bps = s.capacity_bps[i];
      const float threshold = std::min(q.alpha[i] * q.betas[i] * free, s.cap_share[i]) * s.ports[i];
      const float level = q.share_of_buffer[i] / std::max(s.ports[i] * q.betas[i] * free, kLeastFree);
      alphas[i] = std::max(q.alpha[i], scales[kSwitchLogs].least);
      levels[i] = std::max(level, scales[kSwitchLogs].least);
      const float values[kQueueLog1ps] = {
          std::min(threshold, 1.0f) * buffer_time(s, i) * 1e3f,
          q.queue_bytes[i] * 8e3f / bps,
          q.least_bytes[i] * 8e3f / bps,
          q.above[i] * 1e3f,
          q.cut_age[i] * 1e3f,
          q.drop_age[i] * 1e3f,
          q.queue_delay_mean[i] * 1e3f,
          q.arrivals[i] * s.service[i] / std::max(s.elapsed[i], kShortest),
          q.syns[i],
          q.starts_lately[i],
          q.starts_most[i],
          q.flows_seen[i],
      };
      for (size_t value = 0; value < kQueueLog1ps; ++value) log1ps[(value * queues + k) * n + i] = values[value];
    }
  }
}

void switch_features(const SwitchRows& s, const SwitchLogScales& scales, const float* log1p_scales,
                     const float* logs, const float* log1ps, float* out) {
  const size_t n = s.rows, queues = s.queues.size();
  const auto scaled = [](float log, const LogScale& scale) { return log * scale.factor - scale.offset; };
  for (size_t i = 0; i < n; ++i) {
    float drained = drained_share(s, s.queues[0], i);
    for (size_t k = 1; k < queues; ++k) drained += drained_share(s, s.queues[k], i);
    const float features[kSwitchFeatures] = {scaled(logs[i], scales[0]), scaled(logs[n + i], scales[1]),
                                             1.0f - 2.0f * s.free_fraction[i], 2.0f * drained - 1.0f, s.drop_head[i]};
    for (size_t f = 0; f < kSwitchFeatures; ++f) out[f * n + i] = clipped(features[f]);
  }
  out += kSwitchFeatures * n;
  for (size_t k = 0; k < queues; ++k) {
    const SwitchQueueRows& q = s.queues[k];
    const float* alphas = logs + (kSwitchLogs + k) * n;
    const float* levels = alphas + queues * n;
    for (size_t i = 0; i < n; ++i) {
      const auto log1p = [&](size_t value) { return log1ps[(value * queues + k) * n + i] * log1p_scales[value]; };
      const float packets = std::max(s.capacity[i] / s.packet_units[i], 1.0f);
      const float features[kQueueFeatures] = {
          scaled(alphas[i], scales[kSwitchLogs]),
          log1p(0),
          scaled(levels[i], scales[kSwitchLogs]),
          std::sqrt(q.queue_packets_max[i] / packets),
          log1p(1),
          log1p(2),
          log1p(3),
          log1p(4),
          log1p(5),
          log1p(6),
          log1p(7),
          q.load[i] - 1.0f,
          2.0f * drained_share(s, q, i) - 1.0f,
          std::sqrt(q.drops[i] / std::max(q.arrivals[i], 1.0f)),
          log1p(8),
          log1p(9),
          log1p(10),
          log1p(11),
      };
      for (size_t f = 0; f < kQueueFeatures; ++f) out[(f * queues + k) * n + i] = clipped(features[f]);
    }
  }
}

}  // namespace netbuf
