#include "netbuf/sender_features.h"

#include <algorithm>
#include <cmath>

namespace netbuf {

namespace {

constexpr float kLeastRatio = 1e-6f;  // whose logarithm is finite

// Vectors never overlap. One short loop a quantity: the compiler makes vectors of each, and all of them stay in cache.
using Out = float* __restrict;
using In = const float* __restrict;
using Flags = const uint8_t* __restrict;

// As std::max, by value: a reference to a constant keeps the compiler from making vectors.
float larger(float a, float b) { return a < b ? b : a; }
float clipped(float value) {
  const float above = larger(value, -1.0f);
  return above > 1.0f ? 1.0f : above;
}

}  // namespace

void remember(const SenderRows& s) {
  std::copy_n(s.cwnd, s.rows, s.previous_cwnd);
  std::copy_n(s.rtt, s.rows, s.previous_rtt);
  std::copy_n(s.throughput, s.rows, s.previous_throughput);
  std::copy_n(s.rate, s.rows, s.previous_rate);
  std::copy_n(s.rtt_known, s.rows, s.previous_rtt_known);
}

void decay_exponents(const float* elapsed, size_t rows, std::span<const float> rates, float* out) {
  In from = elapsed;
  for (const float rate : rates) {
    Out to = out;
    for (size_t i = 0; i < rows; ++i) to[i] = from[i] * rate;
    out += rows;
  }
}

void follow(const SenderRows& s, const double* windows, const double* base_rtts, size_t stride, const float* kept) {
  const size_t n = s.rows;
  {
    double* __restrict window = s.window;
    Out least = s.least_rtt;
    for (size_t i = 0; i < n; ++i) {
      const double measured = windows[i * stride];
      const float rtt = static_cast<float>(base_rtts[i * stride]);
      window[i] = measured == measured ? measured : window[i];
      least[i] = rtt < least[i] ? rtt : least[i];  // false of a NaN
    }
  }
  {
    uint8_t* __restrict known = s.rtt_known;
    In rtt = s.rtt;
    for (size_t i = 0; i < n; ++i) known[i] = rtt[i] > 0;
  }
  {
    Out rate = s.rate;
    In elapsed = s.elapsed, throughput = s.throughput, gap = s.receive_interval, acks = s.acks;
    Flags known = s.previous_rtt_known;
    for (size_t i = 0; i < n; ++i) {
      const float span = gap[i] * acks[i];  // from the last ACK of earlier intervals to the last one of this
      const float over_span = throughput[i] * elapsed[i] / span;
      rate[i] = (span > 0) & (known[i] != 0) ? over_span : throughput[i];
    }
  }
  {
    Out peak = s.peak_rate;
    In rate = s.rate;
    for (size_t i = 0; i < n; ++i) peak[i] = larger(peak[i] * kept[i], rate[i]);
  }
  {
    Out age = s.age;
    In elapsed = s.elapsed, acks = s.acks;
    for (size_t i = 0; i < n; ++i) {
      const float older = age[i] + elapsed[i];
      age[i] = acks[i] > 0 ? 0 : older;
    }
  }
  {
    uint8_t* __restrict begun = s.begun;
    Out lived = s.lived, throughput_sum = s.throughput_sum, rtt_sum = s.rtt_sum;
    In elapsed = s.elapsed, acks = s.acks, throughput = s.throughput, share = s.share, rtt = s.rtt, base = s.base_rtt;
    for (size_t i = 0; i < n; ++i) begun[i] |= acks[i] > 0;
    for (size_t i = 0; i < n; ++i) {
      const float time = elapsed[i] * (begun[i] ? 1.0f : 0.0f);
      lived[i] += time;
      throughput_sum[i] += time * (throughput[i] / share[i]);
      rtt_sum[i] += time * larger(rtt[i] / base[i], 1.0f);
    }
  }
}

void sender_ratios(const SenderRows& s, float* out) {
  const size_t n = s.rows;
  const auto row = [out, n](SenderRatio ratio) { return out + ratio * n; };
  Out queueing = row(kQueueing), standing = row(kStandingQueue), in_bdp = row(kWindowInBdp), use = row(kWindowUse),
      rtt_change = row(kRttChange), rate_change = row(kRateChange), window_change = row(kWindowChange),
      rtt_in_intervals = row(kRttInIntervals), size = row(kWindowSize), acked = row(kSegmentsAcked),
      queued = row(kSegmentsQueued);
  In rtt = s.rtt, rate = s.rate, cwnd = s.cwnd, mss = s.mss;
  {
    Out least = queued;  // the least RTT, as long as it is needed
    In seen = s.least_rtt, rtt_min = s.rtt_min, peak = s.peak_rate;
    Flags known = s.rtt_known;
    for (size_t i = 0; i < n; ++i) {
      const float so_far = seen[i];
      least[i] = known[i] ? so_far : 1.0f;
    }
    for (size_t i = 0; i < n; ++i) queueing[i] = larger(rtt[i] / least[i], 1.0f);
    for (size_t i = 0; i < n; ++i) standing[i] = larger(rtt_min[i] / least[i], 1.0f);
    for (size_t i = 0; i < n; ++i) {
      in_bdp[i] = larger(cwnd[i] / larger(peak[i] * least[i] * 0.125f, mss[i]), kLeastRatio);
    }
  }
  {
    In previous = s.previous_rtt;
    Flags known = s.previous_rtt_known;
    for (size_t i = 0; i < n; ++i) {
      const float change = rtt[i] / previous[i];
      rtt_change[i] = larger(known[i] ? change : 1.0f, kLeastRatio);
    }
  }
  {
    In previous = s.previous_rate;
    const float per_segment = s.interval_bit_rate;
    for (size_t i = 0; i < n; ++i) {
      const float packet = mss[i] * per_segment;
      rate_change[i] = larger(larger(rate[i], packet) / larger(previous[i], packet), kLeastRatio);
    }
  }
  {
    In previous = s.previous_cwnd, segments = s.segments_acked;
    const float per_second = s.interval_rate;
    for (size_t i = 0; i < n; ++i) use[i] = larger(rate[i] * rtt[i] * 0.125f / cwnd[i], kLeastRatio);
    for (size_t i = 0; i < n; ++i) window_change[i] = larger(cwnd[i] / previous[i], kLeastRatio);
    for (size_t i = 0; i < n; ++i) rtt_in_intervals[i] = larger(rtt[i] * per_second, kLeastRatio);
    for (size_t i = 0; i < n; ++i) acked[i] = larger(segments[i] + 1.0f, kLeastRatio);
  }
  for (size_t i = 0; i < n; ++i) {
    const float segments = cwnd[i] / mss[i];
    size[i] = larger(segments, kLeastRatio);
    queued[i] = larger((1.0f - 1.0f / queueing[i]) * segments + 1.0f, kLeastRatio);
  }
}

void sender_features(const SenderRows& s, const float* logs, const float* scales, float* out) {
  const size_t n = s.rows;
  const auto feature = [out, n](size_t index) { return out + index * n; };
  const auto log_feature = [=](SenderRatio ratio, size_t index) {
    In from = logs + ratio * n;
    Out to = feature(index);
    const float scale = scales[ratio];
    for (size_t i = 0; i < n; ++i) to[i] = clipped(from[i] * scale);
  };
  const auto root_feature = [=](SenderRatio ratio, size_t index) {
    In from = logs + ratio * n;
    Out to = feature(index);
    const float scale = scales[ratio];
    for (size_t i = 0; i < n; ++i) to[i] = clipped(std::sqrt(from[i] * scale));
  };
  const auto known_feature = [=](SenderRatio ratio, size_t index) {  // 0 before there is a round trip
    In from = logs + ratio * n;
    Out to = feature(index);
    Flags known = s.rtt_known;
    const float scale = scales[ratio];
    for (size_t i = 0; i < n; ++i) to[i] = clipped(from[i] * scale * (known[i] ? 1.0f : 0.0f));
  };
  root_feature(kQueueing, 0);
  root_feature(kStandingQueue, 1);
  {
    In rate = s.rate, peak = s.peak_rate;
    Out to = feature(2);
    for (size_t i = 0; i < n; ++i) to[i] = clipped(rate[i] / larger(peak[i], 1.0f) * 2.0f - 1.0f);
  }
  known_feature(kWindowInBdp, 3);
  log_feature(kWindowUse, 4);
  log_feature(kRttChange, 5);
  log_feature(kRateChange, 6);
  log_feature(kWindowChange, 7);
  known_feature(kRttInIntervals, 8);
  log_feature(kWindowSize, 9);
  log_feature(kSegmentsAcked, 10);
  log_feature(kSegmentsQueued, 11);
  {
    In lost = s.packets_lost, acked = s.segments_acked;
    Out to = feature(12);
    for (size_t i = 0; i < n; ++i) to[i] = clipped(std::sqrt(lost[i] / larger(lost[i] + acked[i], 1.0f)));
  }
  {
    In in_flight = s.in_flight, cwnd = s.cwnd;
    Out to = feature(13);
    for (size_t i = 0; i < n; ++i) to[i] = clipped(in_flight[i] / cwnd[i] - 1.0f);
  }
  std::transform(s.timeouts, s.timeouts + n, feature(14), clipped);
  std::transform(s.age, s.age + n, feature(15), clipped);
}

void scaled_fields(const float* last, size_t rows, std::span<const int64_t> columns, const float* lows,
                   const float* scales, float* out) {
  for (size_t k = 0; k < columns.size(); ++k, out += rows) {
    In from = last + static_cast<size_t>(columns[k]) * rows;
    Out to = out;
    const float low = lows[k], scale = scales[k];
    for (size_t i = 0; i < rows; ++i) {
      const float scaled = (from[i] - low) * scale, above = scaled > 0 ? scaled : 0.0f;
      to[i] = above < 1 ? above : 1.0f;
    }
  }
}

void step_windows(const SenderRows& s, const int64_t* actions, std::span<const double> steps, const double* low,
                  const double* high, double most, double* out) {
  const auto last = static_cast<int64_t>(steps.size()) - 1;
  for (size_t i = 0; i < s.rows; ++i) {
    const double step = steps[static_cast<size_t>(std::clamp<int64_t>(actions[i], 0, last))];
    const double mss = s.mss[i], window = step * mss * mss / s.window[i] + s.window[i];
    out[i] = std::min(std::max(window, low[i]), high != nullptr ? high[i] : most);
  }
}

void utility_arguments(const SenderRows& s, double* out) {
  const size_t n = s.rows;
  Flags known = s.previous_rtt_known;
  for (size_t i = 0; i < n; ++i) out[i] = larger(s.throughput[i], 1.0f);
  for (size_t i = 0; i < n; ++i) out[n + i] = larger(s.previous_throughput[i], 1.0f);
  for (size_t i = 0; i < n; ++i) out[2 * n + i] = known[i] ? s.rtt[i] : 1.0f;
  for (size_t i = 0; i < n; ++i) out[3 * n + i] = known[i] ? s.previous_rtt[i] : 1.0f;
}

void utility_signs(const SenderRows& s, const double* logs, double weight, float* out) {
  const size_t n = s.rows;
  const double other = 1 - weight;
  for (size_t i = 0; i < n; ++i) {
    const double now = weight * logs[i] - other * logs[2 * n + i];
    const double before = weight * logs[n + i] - other * logs[3 * n + i];
    const double change = now - before;
    out[i] = static_cast<float>((change > 0) - (change < 0)) * static_cast<float>(s.previous_rtt_known[i]);
  }
}

}  // namespace netbuf
