#include "netbuf/receiver_features.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

namespace netbuf {

namespace {

constexpr float kLeastRatio = 1e-6f;  // whose logarithm is finite

// Vectors never overlap: short loops, of which the compiler makes vectors.
using Out = float* __restrict;
using In = const float* __restrict;

float larger(float a, float b) { return a < b ? b : a; }
float clipped(float value) {
  const float above = larger(value, -1.0f);
  return above > 1.0f ? 1.0f : above;
}
// 1 / the least round trip, 0 before there is one.
float per_rtt(float least) { return least > 0 ? 1.0f / least : 0.0f; }

}  // namespace

void remember_receivers(const ReceiverRows& r) {
  std::copy_n(r.rate, r.rows, r.previous_rate);
  std::copy_n(r.delay, r.rows, r.previous_delay);
  std::copy_n(r.window, r.rows, r.previous_window);
}

void take_in_receivers(const ReceiverRows& r, const ReceiverRules& rules, const double* telemetry,
                       const ReceiverColumns& columns) {
  const size_t n = r.rows;
  const double* arrived = telemetry + columns.received;
  for (size_t i = 0; i < n; ++i) r.received[i] = arrived[i * columns.fields] > 0 ? arrived[i * columns.fields] : 0.0;
  for (size_t i = 0; i < n; ++i) {
    const float now = r.received[i] > 0 ? 1.0f : 0.0f;
    r.rate[i] = r.receive_rate[i] * now;
    r.kept[i] = r.elapsed[i] * now * rules.peak_decay;
  }
}

void follow_receivers(const ReceiverRows& r, const ReceiverRules& rules, const double* telemetry,
                      const ReceiverColumns& columns) {
  const size_t n = r.rows;
  for (size_t i = 0; i < n; ++i) r.peak_rate[i] = larger(r.peak_rate[i] * r.kept[i], r.rate[i]);
  const auto follow_exact = [=](size_t column, double* exact) {
    for (size_t i = 0; i < n; ++i) {
      const double now = telemetry[i * columns.fields + column];
      if (now == now) exact[i] = now;
    }
  };
  follow_exact(columns.window, r.window_exact);
  follow_exact(columns.k, r.k_exact);
  follow_exact(columns.target, r.target);
  for (size_t i = 0; i < n; ++i) {  // silence suspends drains and what they wait for
    const bool outside = r.draining[i] == 0, arrived = r.received[i] > 0;
    if (outside) r.resumed[i] = r.window_exact[i];
    r.least_seen[i] += r.elapsed[i] * (arrived ? 1.0f : 0.0f);
    if (arrived && r.delay_min[i] <= larger(rules.seen_share * r.rtt_min[i], rules.seen_s)) r.least_seen[i] = 0;
    if (!rules.drain) continue;
    if (!outside) {
      r.draining[i] -= arrived ? 1.0f : 0.0f;
      r.least_seen[i] = 0;
    } else if (arrived && r.least_seen[i] >= rules.drain_due_s) {
      const float lasting = std::ceil(2 * r.rtt[i] / rules.interval_s);
      r.draining[i] = std::min(larger(lasting, rules.least_drain), rules.greatest_drain);
    }
  }
  for (size_t i = 0; i < n; ++i) {
    r.begun[i] |= r.received[i] > 0;
    const float time = r.elapsed[i] * (r.begun[i] ? 1.0f : 0.0f);
    r.lived[i] += time;
    r.throughput_sum[i] += time * (r.goodput[i] / r.share[i]);
    r.rtt_sum[i] += time * (r.true_delay[i] / r.base_rtt[i] + 1.0f);
  }
}

void receiver_ratios(const ReceiverRows& r, const ReceiverRules& rules, float* out) {
  const size_t n = r.rows;
  In least = r.rtt_min, window = r.window, mss = r.mss, rate = r.rate, delay = r.delay;
  Out to = out;
  for (In queueing : {r.delay, r.delay_filtered, r.delay_min, r.delay_max}) {
    for (size_t i = 0; i < n; ++i) to[i] = larger(queueing[i] * per_rtt(least[i]) + 1.0f, kLeastRatio);
    to += n;
  }
  for (size_t i = 0; i < n; ++i) to[i] = larger(static_cast<float>(delay[i] / r.target[i]), kLeastRatio);
  to += n;
  for (size_t i = 0; i < n; ++i) to[i] = larger(delay[i] * rules.interval_rate + 1.0f, kLeastRatio);
  to += n;
  for (size_t i = 0; i < n; ++i) {
    const float share = window[i] / larger(r.peak_rate[i] * least[i] * 0.125f, mss[i]);
    to[i] = larger(least[i] > 0 ? share : 1.0f, kLeastRatio);
  }
  to += n;
  for (size_t i = 0; i < n; ++i) {
    const float use = rate[i] * r.rtt[i] * 0.125f / window[i];
    to[i] = larger(least[i] > 0 ? use : 1.0f, kLeastRatio);
  }
  to += n;
  for (size_t i = 0; i < n; ++i) {
    const float packet = mss[i] * rules.packet_rate;
    to[i] = larger(larger(rate[i], packet) / larger(r.previous_rate[i], packet), kLeastRatio);
  }
  to += n;
  for (size_t i = 0; i < n; ++i) to[i] = larger(window[i] / r.previous_window[i], kLeastRatio);
  to += n;
  for (size_t i = 0; i < n; ++i) to[i] = larger(least[i] > 0 ? least[i] * rules.interval_rate : 1.0f, kLeastRatio);
  to += n;
  for (size_t i = 0; i < n; ++i) to[i] = larger(window[i] / mss[i], kLeastRatio);
  to += n;
  for (size_t i = 0; i < n; ++i) to[i] = larger(r.packets[i] + 1.0f, kLeastRatio);
  to += n;
  for (size_t i = 0; i < n; ++i) to[i] = larger(r.k[i] * (1.0f / rules.k_middle), kLeastRatio);
  to += n;
  for (size_t i = 0; i < n; ++i) {
    to[i] = larger(static_cast<float>(r.target[i] / static_cast<double>(rules.target_middle)), kLeastRatio);
  }
  to += n;
  for (size_t i = 0; i < n; ++i) to[i] = larger(r.bdp_gain[i], rules.least_gain);
}

void receiver_features(const ReceiverRows& r, const ReceiverRules& rules, const float* logs, const float* scales,
                       float* out) {
  const size_t n = r.rows, signed_logs = kReceiverRatios - 1;
  for (size_t k = 0; k < signed_logs; ++k) {
    In from = logs + k * n;
    Out to = out + k * n;
    const float scale = scales[k];
    if (k < 4 || k == 5) {
      for (size_t i = 0; i < n; ++i) to[i] = clipped(std::sqrt(larger(from[i] * scale, 0.0f)));
    } else {
      for (size_t i = 0; i < n; ++i) to[i] = clipped(from[i] * scale);
    }
  }
  const auto feature = [=](size_t index) { return out + index * n; };
  In packets = r.packets, missing = r.missing, delay = r.delay, least = r.rtt_min;
  Out rate = feature(15), change = feature(16), gradient = feature(17), lost = feature(18), repeated = feature(19),
      buffered = feature(20), gap = feature(21), silence = feature(22), seen = feature(23), draining = feature(24),
      gain = feature(25);
  for (size_t i = 0; i < n; ++i) rate[i] = clipped(r.rate[i] / larger(r.peak_rate[i], 1.0f) * 2.0f - 1.0f);
  for (size_t i = 0; i < n; ++i) change[i] = clipped((delay[i] - r.previous_delay[i]) * per_rtt(least[i]));
  for (size_t i = 0; i < n; ++i) gradient[i] = clipped(r.delay_gradient[i]);
  for (size_t i = 0; i < n; ++i) lost[i] = clipped(std::sqrt(missing[i] / larger(missing[i] + packets[i], 1.0f)));
  for (size_t i = 0; i < n; ++i) repeated[i] = clipped(std::sqrt(r.repeated[i] / larger(packets[i], 1.0f)));
  for (size_t i = 0; i < n; ++i) buffered[i] = clipped(r.buffered[i] / r.window[i] - 1.0f);
  for (size_t i = 0; i < n; ++i) gap[i] = clipped(std::sqrt(r.longest_gap[i]));
  for (size_t i = 0; i < n; ++i) silence[i] = clipped(std::sqrt(r.silence[i]));
  for (size_t i = 0; i < n; ++i) seen[i] = clipped(r.least_seen[i] * rules.per_drain_after);
  for (size_t i = 0; i < n; ++i) draining[i] = clipped(r.draining[i] * rules.per_greatest_drain);
  for (size_t i = 0; i < n; ++i) gain[i] = clipped(logs[signed_logs * n + i] * scales[signed_logs]);
}

}  // namespace netbuf
