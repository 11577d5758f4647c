#include "netbuf/sender_path.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace netbuf {

namespace {

constexpr float kRounding = 1e-4f;  // of a float32 sum of intervals, in seconds
constexpr float kLeastRatio = 1e-6f;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Loss over all of what a share has been counted of.
float loss_root(float lost, float acked) { return std::sqrt(lost / std::max(lost + acked, 1.0f)); }

// Adds an interval to a round trip; whether it is complete. `lost`, `counts`: losses that count, and whether the round
// trip can count as heavy.
bool add_to_round(const LossRounds& round, const SenderRows& s, size_t i, float lost, float share, float least,
                  bool counts) {
  round.lost[i] += lost;
  round.acked[i] += s.segments_acked[i];
  round.seconds[i] += s.elapsed[i];
  const float sent = round.lost[i] + round.acked[i];
  if (!(round.seconds[i] >= s.rtt[i] && sent >= least)) return false;
  const bool heavy = counts && round.lost[i] > share * sent;
  round.heavy_in_a_row[i] = heavy ? round.heavy_in_a_row[i] + 1 : 0;
  return true;
}

void start_round(const LossRounds& round, size_t i) { round.lost[i] = round.acked[i] = round.seconds[i] = 0; }

void start_drain(const PathRows& p, const PathRules& rules, size_t i) {
  const SenderRows& s = p.sender;
  const float intervals =
      std::max(std::ceil(rules.drain_round_trips * s.rtt[i] / rules.interval_s), rules.least_drain_intervals);
  p.draining[i] = intervals * rules.interval_s;
  p.least_found[i] = p.packet_found[i] = kInfinity;
  p.resumed[i] = s.window[i];
  const double product = double{p.rate_lately[i]} * (s.rtt_known[i] ? s.least_rtt[i] : 0.0f) / 8;
  const double held = std::min(rules.drain_share * s.window[i], rules.drain_of_product * product);
  p.drained[i] = std::min(std::max(held, rules.least_drained * s.mss[i]), s.window[i]);
}

// The least round trip is the least mean of an interval, or that of a packet and some spreads, if that is less.
void adopt_least(const PathRows& p, const PathRules& rules, size_t i) {
  p.sender.least_rtt[i] = std::min(p.least_mean[i], p.least_packet[i] + rules.spreads * p.spread[i]);
}

// Follows the least round trips of packets and of intervals' means, and by how much these exceed those of their intervals,
// which falls faster than it rises.
void track_spread(const PathRows& p, const PathRules& rules, size_t i, float rtt_min) {
  const SenderRows& s = p.sender;
  if (!(rtt_min > 0)) return;  // a NaN
  const bool first = !(p.least_packet[i] > 0);
  const float gap = std::max(s.rtt[i] - rtt_min, 0.0f);
  p.least_packet[i] = first ? rtt_min : std::min(p.least_packet[i], rtt_min);
  p.least_mean[i] = first ? s.rtt[i] : std::min(p.least_mean[i], s.rtt[i]);
  const float part = first ? 1.0f : 1.0f - (gap < p.spread[i] ? p.kept_losses[i] : p.kept_long[i]);
  p.spread[i] += part * (gap - p.spread[i]);
  adopt_least(p, rules, i);
}

// The time since the least round trip was seen, and drains; time without ACKs counts for neither.
void track_least_rtt(const PathRows& p, const PathRules& rules, size_t i, float rtt, float rtt_min) {
  const SenderRows& s = p.sender;
  const bool draining = p.draining[i] > 0;
  const bool seen = rtt <= s.least_rtt[i] * rules.seen_ratio;  // false of a NaN
  bool over = false;
  const float elapsed = p.acked[i] ? s.elapsed[i] : 0.0f;
  p.unseen[i] += elapsed;
  if (draining) {
    p.least_found[i] = std::fmin(p.least_found[i], rtt);
    p.packet_found[i] = std::fmin(p.packet_found[i], rtt_min);
    p.draining[i] -= elapsed;
    over = p.draining[i] <= kRounding || seen;
    if (over) {
      if (!seen && std::isfinite(p.least_found[i])) {
        s.least_rtt[i] = p.least_found[i];
        if (rules.spreads > 0) {
          p.least_mean[i] = p.least_found[i];
          p.least_packet[i] = p.packet_found[i];
          adopt_least(p, rules, i);
        }
      }
      p.draining[i] = 0;
    }
  }
  if (seen || over) p.unseen[i] = 0;
  if (!draining && p.acked[i] && p.unseen[i] >= rules.drain_due_s) start_drain(p, rules, i);
  if (s.timeouts[i] > 0 && p.resumed[i] > 0) {  // the window before the drain is no better confirmed than any other
    p.draining[i] = 0;
    p.resumed[i] = 0;
  }
}

// Holds the window while losses stay heavy; losses during a hold do not count, since they were on their way. Careful for
// a while after those that are no outage's.
void count_losses(const PathRows& p, const PathRules& rules, size_t i) {
  const SenderRows& s = p.sender;
  const bool counts = !p.starting[i];
  const bool over = add_to_round(p.heavy, s, i, s.packets_lost[i], rules.heavy_loss, rules.least_counted, counts);
  for (float* left : {&p.held[i], &p.careful[i]}) {
    *left -= s.elapsed[i];
    if (*left < kRounding) *left = 0;
  }
  if (over && p.heavy.heavy_in_a_row[i] >= rules.heavy_rounds) {
    const float sent = std::max(p.heavy.lost[i] + p.heavy.acked[i], 1.0f);
    const double arrived = s.window[i] * p.heavy.acked[i] / sent, least = s.window[i] * (1 - rules.most_cut);
    p.arrived[i] = rules.heavy_kept * arrived;
    if (p.heavy.heavy_in_a_row[i] == 1) p.arrived[i] = std::max(p.arrived[i], least);
    p.held[i] = s.rtt[i];
    p.careful[i] = arrived < least ? 0.0f : rules.care_s;
  }
  const bool halted = s.timeouts[i] > 0;
  if (halted) p.held[i] = p.careful[i] = 0;
  if (over || halted || p.held[i] > 0) start_round(p.heavy, i);
  if (rules.growth_loss < 1) {
    const float lost = p.acked[i] ? s.packets_lost[i] : 0.0f;
    if (add_to_round(p.growth, s, i, lost, rules.growth_loss, rules.growth_counted, counts)) start_round(p.growth, i);
  }
}

}  // namespace

void compare_rates(const PathRows& p) {
  const SenderRows& s = p.sender;
  for (size_t i = 0; i < s.rows; ++i) {
    const bool measured = s.rate[i] > 0 && s.previous_rate[i] > 0;
    p.jump[i] = measured ? s.rate[i] / s.previous_rate[i] : 1.0f;
  }
}

void follow_path(const PathRows& p, const PathRules& rules, const double* telemetry, const PathColumns& at) {
  const SenderRows& s = p.sender;
  for (size_t i = 0; i < s.rows; ++i, telemetry += at.fields) {
    const float rtt_min = static_cast<float>(telemetry[at.rtt_min]), lost = s.packets_lost[i];
    const bool seen = rtt_min > 0;  // false of a NaN
    p.acked[i] = telemetry[at.acks] > 0;
    p.acknowledged[i] |= p.acked[i];

    const float new_lately = 1.0f - p.kept_lately[i];
    p.rate_lately[i] += (p.rate_lately[i] > 0 ? new_lately : 1.0f) * (s.rate[i] - p.rate_lately[i]);
    if (seen) {
      const float low = p.low_rtt[i] + new_lately * (s.rtt_min[i] - p.low_rtt[i]);
      p.low_rtt[i] = p.low_rtt[i] > 0 ? std::min(low, rtt_min) : rtt_min;
    }
    p.lost_lately[i] = p.lost_lately[i] * p.kept_losses[i] + lost;
    p.acked_lately[i] = p.acked_lately[i] * p.kept_losses[i] + s.segments_acked[i];
    const bool filled = s.rtt[i] > rules.started_rtt * s.least_rtt[i];
    if (filled || lost > 0) p.started[i] = 1;
    p.standing[i] += p.acked[i] ? s.elapsed[i] : 0.0f;
    if (s.cwnd[i] > s.previous_cwnd[i]) p.standing[i] = 0;  // ACKs grow the window of a slow start
    const bool stands = p.standing[i] > 0 && p.standing[i] >= s.rtt[i];
    p.starting[i] &= std::isnan(telemetry[at.ssthresh]) && !filled && !stands;
    if (s.rate[i] > 0 && s.previous_rate[i] > 0) {
      const float jump = std::min(std::abs(p.jump[i]), 2.0f);
      p.roughness[i] += (1.0f - p.kept_losses[i]) * (jump - p.roughness[i]);
    }
    if (rules.spreads > 0) track_spread(p, rules, i, rtt_min);
    if (rules.drain) track_least_rtt(p, rules, i, static_cast<float>(telemetry[at.base]), rtt_min);
    count_losses(p, rules, i);
    p.lost_long[i] = p.lost_long[i] * p.kept_long[i] + lost;
    p.acked_long[i] = p.acked_long[i] * p.kept_long[i] + s.segments_acked[i];
    p.queue[i] = seen ? std::max(rtt_min / s.least_rtt[i], 1.0f) : 1.0f;
  }
}

void follow_queue(const PathRows& p, const double* telemetry, const PathColumns& at) {
  for (size_t i = 0; i < p.sender.rows; ++i, telemetry += at.fields) {
    if (telemetry[at.rtt_min] > 0) p.queue_long[i] += (1.0f - p.kept_long[i]) * (p.queue[i] - p.queue_long[i]);
  }
}

void decide_windows(const PathRows& p, const PathRules& rules, const double* factors, const double* caps,
                    double* out) {
  const SenderRows& s = p.sender;
  for (size_t i = 0; i < s.rows; ++i) {
    if (!p.acked[i] || p.starting[i]) {
      out[i] = kNaN;
      continue;
    }
    const double mss = s.mss[i], acknowledged = s.segments_acked[i] * mss;
    const double held = std::max(s.window[i], p.resumed[i]), reach = held + acknowledged;
    const double start = p.resumed[i] > 0 ? p.resumed[i] : std::max(s.window[i], std::min(p.wanted[i], reach));
    double window = std::min(start * factors[i], reach);
    if (caps) window = std::min(window, caps[i]);
    const bool crowded = rules.growth_loss < 1 && p.growth.heavy_in_a_row[i] >= rules.growth_rounds;
    if (crowded || p.careful[i] > 0) {
      const double present = std::max(held, p.lowest_window[i]);
      const double growth = present < mss ? present : acknowledged * mss / present;  // below a segment: doubled by an ACK
      window = std::min(window, present + growth);
    }
    const bool draining = p.draining[i] > 0;
    if (draining) window = p.drained[i];
    if (p.held[i] > 0) window = std::min(window, p.arrived[i]);
    p.wanted[i] = out[i] = std::max(window, p.lowest_window[i]);
    if (!draining) p.resumed[i] = 0;
  }
}

void measured_caps(const PathRows& p, const PathRules& rules, double* out) {
  const SenderRows& s = p.sender;
  for (size_t i = 0; i < s.rows; ++i) {
    const float least = s.rtt_known[i] ? s.least_rtt[i] : 0.0f;
    const float bits = std::max(rules.peak_gain * s.peak_rate[i] * least, rules.rate_gain * s.rate[i] * s.rtt[i]);
    out[i] = double{bits} / 8 + rules.cap_segments * s.mss[i];
  }
}

void path_ratios(const PathRows& p, float* out) {
  const SenderRows& s = p.sender;
  const size_t n = s.rows;
  for (size_t i = 0; i < n; ++i) {
    const float least = s.rtt_known[i] ? s.least_rtt[i] : 1.0f, ever = p.base_ever[i];
    const float packet = s.mss[i] * s.interval_bit_rate, mean = std::max(p.rate_lately[i], packet);
    out[kRateTrend * n + i] = std::max(std::max(s.rate[i], packet) / mean, kLeastRatio);
    out[kWindowInMeanBdp * n + i] = std::max(s.cwnd[i] / std::max(mean * least * 0.125f, s.mss[i]), kLeastRatio);
    out[kQueueLately * n + i] = std::max(p.low_rtt[i] / least, 1.0f);
    out[kLeastRttRisen * n + i] = std::max(least / (ever > 0 ? ever : least), 1.0f);
  }
}

void path_features(const PathRows& p, const float* logs, const float* scales, float queue_scale, float* out) {
  const size_t n = p.sender.rows;
  for (size_t i = 0; i < n; ++i) {
    const auto scaled = [=](PathRatio ratio) { return logs[ratio * n + i] * scales[ratio]; };
    const float features[kPathFeatures] = {
        scaled(kRateTrend),
        scaled(kWindowInMeanBdp) * (p.sender.rtt_known[i] ? 1.0f : 0.0f),
        std::sqrt(scaled(kQueueLately)),
        loss_root(p.lost_lately[i], p.acked_lately[i]),
        p.roughness[i] * 0.5f,
        p.unseen[i] * 0.1f,
        p.draining[i] > 0 ? 1.0f : 0.0f,
        p.started[i],
        std::sqrt(p.queue_long[i] * queue_scale),
        loss_root(p.lost_long[i], p.acked_long[i]),
        scaled(kLeastRttRisen),
    };
    for (size_t k = 0; k < kPathFeatures; ++k) out[k * n + i] = std::clamp(features[k], -1.0f, 1.0f);
  }
}

}  // namespace netbuf
