// A sender's trained policy in integers: features of its path, their history, the network, and the window that follows
// of an action. One source for the simulator (cpp/src/cc/compiled.cc), shared libraries (policy.c) and BPF
// (cpp/bpf/policy.bpf.c); C and C++.
//
// The rules are those of recipes default and robust of netbuf_gym/tasks/congestion_window, in floating point in
// cpp/src/features/{sender_features,sender_path,path_evidence}.cc, whose names are kept here. Weights, rules and tables
// are data (struct nb_policy), which netbuf_gym/zoo/integer_policy.py makes.
//
// Units: times in nanoseconds, windows in bytes, rates in 1/16 byte a second, features and activations in 2^-20,
// logarithms to base 2 in 2^-24, what is left of decaying amounts in 2^-30. There is no signed division, no division by
// zero, and no loop whose length data decide beyond the bounds below, since the kernel's verifier has to see that.
#pragma once

#ifdef __bpf__
typedef signed char int8_t;
typedef short int16_t;
typedef unsigned char uint8_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#else
#include <stdint.h>
#endif

#ifndef NB_INLINE
#define NB_INLINE static inline
#endif
// Functions that are verified once rather than at each of their calls.
#ifndef NB_SHARED
#define NB_SHARED static inline
#endif
// Calls function(i, argument) for each i below count.
#ifndef NB_EACH
#define NB_EACH(count, function, argument) \
  for (uint32_t nb_i_ = 0; nb_i_ < (count); ++nb_i_) function(nb_i_, argument)
#endif
#ifndef NB_UNROLL
#define NB_UNROLL
#endif
// Keeps the compiler from moving memory accesses across.
#ifndef NB_FENCE
#define NB_FENCE
#endif
// Hides from the compiler where a pointer comes from; orders the loads of an unrolled sum.
#ifndef NB_HIDE
#define NB_HIDE(pointer)
#define NB_IN_ORDER(sum)
#endif

enum {
  NB_MAGIC = 0x4e425031,  // "NBP1"
  NB_VERSION = 1,
  NB_INPUTS = 192,        // at most: features of all intervals of the history
  NB_UNITS = 64,          // of a layer
  NB_GATES = 4,
  NB_LAYERS = 3,          // dense ones before the output
  NB_ACTIONS = 64,
  NB_MOST_FEATURES = 47,
  NB_DEFAULT_FEATURES = 27,
  NB_BLOCK = 16,          // columns that are unrolled
  NB_CELLS = 1024         // of a table
};
enum { NB_FEEDFORWARD, NB_LSTM, NB_GRU };
enum { NB_TANH, NB_RELU };

#define NB_ONE 20
#define NB_LOG 24
#define NB_PART 30
#define NB_NEVER (1ll << 40)         // a time that has not been measured, ns
#define NB_LONGEST (1ll << 34)       // round trip, ns
#define NB_MOST_BYTES (1ll << 30)    // acknowledged in an interval
#define NB_MOST_WINDOW (1ll << 36)   // bytes
#define NB_FASTEST (1ll << 37)       // rate

struct nb_tables {
  int32_t log2[NB_CELLS + 1];   // log2(1 + i / 1024), 2^-24
  int32_t exp2[NB_CELLS + 1];   // 2^(-i / 1024), 2^-30
  int32_t tanh[NB_CELLS + 1];   // tanh(i / 128), 2^-20
  int32_t unused;
};

// Factors of logarithms that bring them to features: 2^28 / log2 of the value that is observed as 1.
enum {
  NB_BY_16, NB_BY_2, NB_BY_64, NB_BY_65536, NB_BY_4096, NB_BY_4, NB_BY_1001, NB_BY_1024, NB_BY_600, NB_BY_1000,
  NB_BY_1000000, NB_SCALES
};

struct nb_rules {
  int64_t interval;             // ns
  int64_t decay[3];             // of time constants lately (1 s), of losses (2 s), long (10 s): 2^54 log2(e) / ns
  int64_t robust, drain, slow_start, paced, fine;   // truths
  int64_t capped;               // whether windows are bounded by what was measured
  int64_t drain_due, seen_within;                   // ns; 2^-20
  int64_t started_rtt;          // 2^-10
  int64_t drain_round_trips, least_drain_intervals, drain_share, drain_of_product;  // the shares in 2^-10
  int64_t least_drained, lowest;                    // segments / 16
  int64_t heavy_loss, heavy_rounds, heavy_counted;  // 2^-20, rounds, segments
  int64_t heavy_kept, least_kept, careful;          // 2^-20, 2^-20, ns
  int64_t growth_loss, growth_rounds, growth_counted;
  int64_t peak_gain, rate_gain, cap_segments;       // 2^-10, 2^-10, segments
  int64_t spreads;              // 2^-10; 0: the least round trip is that of a packet
  int64_t scales[NB_SCALES];
  int64_t factors[NB_ACTIONS];  // of the window, 2^-20
};

// A dense layer: rows of weights w / 2^shift, biases in 2^-(20 + shift).
struct nb_layer {
  int64_t bias[NB_UNITS];
  int16_t weight[NB_UNITS][NB_INPUTS];
  uint8_t shift[NB_UNITS];
};

// LSTM: gates i f g o. GRU: r z, of the candidate the part that sees the input, and the one that sees the memory.
struct nb_recurrent {
  int64_t bias[NB_UNITS][NB_GATES];
  int16_t weight[NB_UNITS][NB_GATES][NB_INPUTS];
  int16_t memory[NB_UNITS][NB_GATES][NB_UNITS];
  uint8_t shift[NB_UNITS][NB_GATES];
};

struct nb_policy {
  uint32_t magic, version, bytes, kind;
  uint32_t features, history, inputs, units;        // inputs = features * history; units of the memory
  uint32_t layers, actions, unused[2];
  uint32_t width[NB_LAYERS + 1], activation[NB_LAYERS + 1];  // of dense layers; the last one is the output
  struct nb_rules rules;
  struct nb_tables tables;
  struct nb_layer layer[NB_LAYERS + 1];
  struct nb_recurrent recurrent;
};

// What a sender has counted in an interval; 0 where nothing was measured.
struct nb_interval {
  int64_t elapsed;              // ns
  int64_t acks, segments;       // ACKs of data, segments newly acknowledged
  int64_t acked_bytes;          // newly acknowledged or SACKed
  int64_t span;                 // from the last ACK of earlier intervals to the last one of this, ns
  int64_t rtt_sum, rtt_count, rtt_min;
  int64_t lost, timeouts;       // segments marked lost, retransmission time-outs
  int64_t in_flight, in_flight_sum;                 // bytes: at the end; over ACKs
  int64_t cwnd, mss;            // bytes, at the end
  int64_t threshold;            // 1: a slow-start threshold is set
};
enum { NB_INTERVAL_FIELDS = 15 };

struct nb_round { int64_t lost, acked, time, heavy; };

// What is remembered of a connection. Begins as zeros, and nb_start.
struct nb_state {
  // of the interval, and of the one before
  int64_t elapsed, acks, segments, lost, timeouts, in_flight, cwnd, mss, rtt, rtt_min, rate, known;
  int64_t previous_cwnd, previous_rtt, previous_rate, previous_known;
  // of the path; see path_tracker.py
  int64_t peak_rate, age, least_rtt, rtt_min_ever, base_ever;
  int64_t unseen, draining, least_found, rate_lately, low_rtt, lost_lately, acked_lately, roughness, started;
  int64_t queue_long, lost_long, acked_long, standing, held, starting;
  int64_t wanted, resumed, drained, arrived, careful;
  int64_t least_packet, least_mean, packet_found, low_spread;
  struct nb_round heavy, growth;
  // evidence; see evidence_tracker.py
  int64_t spread, rate_long, weight, mean_in_flight, mean_rtt, mean_rate;
  int64_t in_flight_squares, rtt_products, rtt_squares, rate_products;
  int64_t counted, lossy, burst, loss_queue, loss_offered, loss_age;
  int64_t in_flight_mean, segments_per_ack;         // segments in 2^-10; logarithm
  int64_t c[NB_UNITS];
  int32_t seen[NB_UNITS];       // features of the latest interval
  // What layers read: memory and activations before the inputs, so that NB_INPUTS numbers follow wherever one begins.
  int32_t h[NB_UNITS], next[NB_UNITS], y[2][NB_UNITS];
  int32_t x[NB_INPUTS];         // features of the history, oldest first
};

// Whether an array of so many bytes is a policy whose numbers are within the bounds above.
NB_INLINE int nb_is_policy(const struct nb_policy *p, uint64_t bytes) {
  if (bytes != sizeof *p || p->bytes != bytes || p->magic != NB_MAGIC || p->version != NB_VERSION) return 0;
  const struct nb_rules *r = &p->rules;
  if (p->features != (r->robust ? NB_MOST_FEATURES : NB_DEFAULT_FEATURES) || p->history < 1) return 0;
  if (p->history > NB_INPUTS || p->inputs != p->features * p->history || p->inputs > NB_INPUTS) return 0;
  if (p->kind > NB_GRU || p->units > NB_UNITS || (p->kind != NB_FEEDFORWARD) != (p->units > 0)) return 0;
  if (p->layers > NB_LAYERS || p->actions < 1 || p->actions > NB_ACTIONS) return 0;
  for (uint32_t i = 0; i <= NB_LAYERS; ++i) {
    if (p->width[i] > NB_UNITS || (i < p->layers && p->width[i] < 1) || p->activation[i] > NB_RELU) return 0;
  }
  return r->interval >= 1000000 && r->interval <= NB_LONGEST && r->lowest >= 1 && r->lowest <= 1 << 20;
}

// ---- arithmetic

NB_INLINE int64_t nb_min(int64_t a, int64_t b) { return a < b ? a : b; }
NB_INLINE int64_t nb_max(int64_t a, int64_t b) { return a > b ? a : b; }
NB_INLINE int64_t nb_abs(int64_t a) { return a < 0 ? -a : a; }
NB_INLINE int64_t nb_clip(int64_t a, int64_t most) { return a > most ? most : a < -most ? -most : a; }
NB_INLINE int64_t nb_quotient(int64_t a, int64_t b) { return b > 0 ? (int64_t)((uint64_t)a / (uint64_t)b) : 0; }
NB_INLINE int64_t nb_signed_quotient(int64_t a, int64_t b) {
  const int64_t q = nb_quotient(nb_abs(a), b);
  return a < 0 ? -q : q;
}
// a * part / 2^30, of a >= 0.
NB_INLINE int64_t nb_part(int64_t a, int64_t part) {
  return (a >> NB_PART) * part + (((a & ((1ll << NB_PART) - 1)) * part) >> NB_PART);
}
NB_INLINE int64_t nb_signed_part(int64_t a, int64_t part) {
  const int64_t q = nb_part(nb_abs(a), part);
  return a < 0 ? -q : q;
}
NB_INLINE int64_t nb_toward(int64_t mean, int64_t value, int64_t part) {
  return value >= mean ? mean + nb_part(value - mean, part) : mean - nb_part(mean - value, part);
}

// Logarithm to base 2; that of 0 is less than any other.
NB_SHARED int64_t nb_log2(const struct nb_tables *t, uint64_t v) {
  if (!t || !v) return -(64ll << NB_LOG);
  uint32_t n = 63;
  if (!(v >> 32)) { n -= 32; v <<= 32; }
  if (!(v >> 48)) { n -= 16; v <<= 16; }
  if (!(v >> 56)) { n -= 8; v <<= 8; }
  if (!(v >> 60)) { n -= 4; v <<= 4; }
  if (!(v >> 62)) { n -= 2; v <<= 2; }
  if (!(v >> 63)) { n -= 1; v <<= 1; }
  const uint64_t fraction = v << 1;
  const uint32_t i = (uint32_t)(fraction >> 54) & (NB_CELLS - 1);
  const int64_t low = t->log2[i], high = t->log2[i + 1], rest = (int64_t)((fraction >> 22) & 0xffffffffu);
  return ((int64_t)n << NB_LOG) + low + (((high - low) * rest) >> 32);
}

// 2^-x in 2^-30, of a logarithm x; at most 1.
NB_SHARED int64_t nb_exp2(const struct nb_tables *t, int64_t x) {
  if (!t || x >= (40ll << NB_LOG)) return 0;
  if (x < 0) x = 0;
  const uint32_t n = (uint32_t)(x >> NB_LOG) & 63, i = (uint32_t)(x >> (NB_LOG - 10)) & (NB_CELLS - 1);
  const int64_t high = t->exp2[i], low = t->exp2[i + 1], rest = x & ((1 << (NB_LOG - 10)) - 1);
  return (high - (((high - low) * rest) >> (NB_LOG - 10))) >> n;
}

NB_SHARED int32_t nb_tanh(const struct nb_tables *t, int64_t z) {
  if (!t) return 0;
  const int64_t a = nb_min(nb_abs(z), (8ll << NB_ONE) - 1);
  const uint32_t i = (uint32_t)(a >> (NB_ONE - 7)) & (NB_CELLS - 1);
  const int64_t low = t->tanh[i], high = t->tanh[i + 1];
  const int64_t y = low + (((high - low) * (a & ((1 << (NB_ONE - 7)) - 1))) >> (NB_ONE - 7));
  return (int32_t)(z < 0 ? -y : y);
}
NB_INLINE int64_t nb_sigmoid(const struct nb_tables *t, int64_t z) {
  return (1 << (NB_ONE - 1)) + (nb_tanh(t, z >> 1) >> 1);
}

// A logarithm as a feature, within +-1.
NB_INLINE int32_t nb_scaled(int64_t log, int64_t scale) {
  return (int32_t)nb_clip((log * scale) >> (NB_LOG + 28 - NB_ONE), 1 << NB_ONE);
}
// 2^log as a feature, at most 1.
NB_INLINE int32_t nb_power(const struct nb_tables *t, int64_t log) {
  return log >= 0 ? 1 << NB_ONE : (int32_t)(nb_exp2(t, -log) >> (NB_PART - NB_ONE));
}
// The root of a logarithm that is scaled, within 0 and 1.
NB_INLINE int32_t nb_root(const struct nb_tables *t, int64_t log, int64_t scale) {
  const int64_t value = (log * scale) >> 28;  // 2^-24
  if (value <= 0) return 0;
  return nb_power(t, (nb_log2(t, (uint64_t)value) - (24ll << NB_LOG)) >> 1);
}
NB_INLINE int32_t nb_loss_root(const struct nb_tables *t, int64_t lost, int64_t acked, int64_t one) {
  if (lost <= 0) return 0;
  return nb_power(t, (nb_log2(t, (uint64_t)lost) - nb_log2(t, (uint64_t)nb_max(lost + acked, one))) >> 1);
}
// Bytes that a rate makes in a time.
NB_INLINE int64_t nb_product(int64_t rate, int64_t time) {
  return nb_quotient(nb_min(rate, NB_FASTEST) * (nb_min(time, NB_LONGEST - 1) >> 8), 62500000);
}
NB_INLINE int64_t nb_rate(int64_t bytes, int64_t time) {
  const uint64_t scaled = (uint64_t)nb_min(bytes, NB_MOST_BYTES) * 16000000000ull;
  return time > 0 ? nb_min((int64_t)(scaled / (uint64_t)time), NB_FASTEST) : 0;
}
NB_INLINE int64_t nb_kept(const struct nb_policy *p, int which, int64_t elapsed) {
  return nb_exp2(&p->tables, (nb_min(elapsed, 1ll << 37) * p->rules.decay[which]) >> 30);
}
enum { NB_LATELY, NB_LOSSES, NB_LONG };

// ---- what is remembered

// Adds an interval to a round trip; whether it is complete.
NB_INLINE int nb_add_to_round(struct nb_round *round, const struct nb_state *s, int64_t lost, int64_t share,
                              int64_t least) {
  round->lost += lost;
  round->acked += s->segments;
  round->time += s->elapsed;
  const int64_t sent = round->lost + round->acked;
  if (round->time < s->rtt || sent < least) return 0;
  const int heavy = !s->starting && (round->lost << 20) > share * sent;
  round->heavy = heavy ? round->heavy + 1 : 0;
  return 1;
}
NB_INLINE void nb_start_round(struct nb_round *round) { round->lost = round->acked = round->time = 0; }

NB_INLINE void nb_start_drain(const struct nb_rules *r, struct nb_state *s) {
  const int64_t intervals =
      nb_max(nb_quotient(r->drain_round_trips * s->rtt + r->interval - 1, r->interval), r->least_drain_intervals);
  s->draining = intervals * r->interval;
  s->least_found = s->packet_found = NB_NEVER;
  s->resumed = s->cwnd;
  const int64_t product = nb_product(s->rate_lately, s->known ? s->least_rtt : 0);
  const int64_t held = nb_min((r->drain_share * s->cwnd) >> 10, (r->drain_of_product * product) >> 10);
  s->drained = nb_min(nb_max(held, (r->least_drained * s->mss) >> 4), s->cwnd);
}

#define NB_ROUNDING 100000  // ns

// The least round trip is the least mean of an interval, or that of a packet and some spreads, if that is less.
NB_INLINE void nb_adopt_least(const struct nb_rules *r, struct nb_state *s) {
  s->least_rtt = nb_min(s->least_mean, s->least_packet + ((r->spreads * s->low_spread) >> 10));
}

NB_INLINE void nb_track_spread(const struct nb_rules *r, struct nb_state *s, int64_t rtt_min, int64_t kept_losses,
                               int64_t kept_long) {
  if (!rtt_min) return;
  const int first = !s->least_packet;
  const int64_t gap = nb_max(s->rtt - rtt_min, 0), kept = gap < s->low_spread ? kept_losses : kept_long;
  s->least_packet = first ? rtt_min : nb_min(s->least_packet, rtt_min);
  s->least_mean = first ? s->rtt : nb_min(s->least_mean, s->rtt);
  s->low_spread = first ? gap : nb_toward(s->low_spread, gap, (1ll << NB_PART) - kept);
  nb_adopt_least(r, s);
}

NB_INLINE void nb_track_least_rtt(const struct nb_rules *r, struct nb_state *s, int64_t base, int64_t rtt_min) {
  const int draining = s->draining > 0;
  const int seen = base && base <= s->least_rtt + ((s->least_rtt * r->seen_within) >> 20);
  int over = 0;
  const int64_t elapsed = s->acks ? s->elapsed : 0;
  s->unseen += elapsed;
  if (draining) {
    if (base) s->least_found = nb_min(s->least_found, base);
    if (rtt_min) s->packet_found = nb_min(s->packet_found, rtt_min);
    s->draining -= elapsed;
    over = s->draining <= NB_ROUNDING || seen;
    if (over) {
      if (!seen && s->least_found < NB_NEVER) {
        s->least_rtt = s->least_mean = s->least_found;
        s->least_packet = s->packet_found;
        if (r->spreads) nb_adopt_least(r, s);
      }
      s->draining = 0;
    }
  }
  if (seen || over) s->unseen = 0;
  if (!draining && s->acks && s->unseen >= r->drain_due) nb_start_drain(r, s);
  if (s->timeouts && s->resumed > 0) s->draining = s->resumed = 0;
}

NB_INLINE void nb_count_losses(const struct nb_rules *r, struct nb_state *s) {
  const int over = nb_add_to_round(&s->heavy, s, s->lost, r->heavy_loss, r->heavy_counted);
  s->held -= s->elapsed;
  s->careful -= s->elapsed;
  if (s->held < NB_ROUNDING) s->held = 0;
  if (s->careful < NB_ROUNDING) s->careful = 0;
  if (over && s->heavy.heavy >= r->heavy_rounds) {
    const int64_t arrived = nb_quotient(s->heavy.acked << 20, nb_max(s->heavy.lost + s->heavy.acked, 1));
    const int64_t kept = (r->heavy_kept * arrived) >> 20;
    s->arrived = nb_quotient(s->cwnd * (s->heavy.heavy == 1 ? nb_max(kept, r->least_kept) : kept), 1 << 20);
    s->held = s->rtt;
    s->careful = arrived < r->least_kept ? 0 : r->careful;
  }
  if (s->timeouts) s->held = s->careful = 0;
  if (over || s->timeouts || s->held > 0) nb_start_round(&s->heavy);
  if (r->growth_loss < 1 << 20 &&
      nb_add_to_round(&s->growth, s, s->acks ? s->lost : 0, r->growth_loss, r->growth_counted)) {
    nb_start_round(&s->growth);
  }
}

// Follows an interval; `base`: the round trip that the least one is the least of, 0 where none was measured.
NB_SHARED int nb_follow(const struct nb_policy *p, struct nb_state *s, const struct nb_interval *v) {
  if (!p || !s || !v) return 0;
  const struct nb_rules *r = &p->rules;
  const struct nb_tables *t = &p->tables;
  s->previous_cwnd = s->cwnd;
  s->previous_rtt = s->rtt;
  s->previous_rate = s->rate;
  s->previous_known = s->known;
  s->elapsed = v->elapsed;
  s->acks = v->acks;
  s->segments = v->segments;
  s->lost = v->lost;
  s->timeouts = v->timeouts;
  s->in_flight = v->in_flight;
  if (v->cwnd > 0) s->cwnd = nb_min(v->cwnd, NB_MOST_WINDOW);
  if (v->mss > 0) s->mss = v->mss;
  const int64_t rtt_min = nb_min(v->rtt_min, NB_LONGEST);
  const int64_t mean = nb_min(nb_quotient(v->rtt_sum, v->rtt_count), NB_LONGEST);
  const int64_t base = r->robust ? mean : rtt_min;
  if (mean) s->rtt = mean;
  if (rtt_min) {
    s->rtt_min = rtt_min;
    s->rtt_min_ever = nb_min(s->rtt_min_ever, rtt_min);
  }
  if (base) s->least_rtt = nb_min(s->least_rtt, base);
  s->known = s->rtt > 0;
  const int64_t span = v->acks && s->previous_known ? v->span : 0;
  s->rate = nb_rate(v->acked_bytes, span > 0 ? span : v->elapsed);
  const int64_t kept_lately = nb_kept(p, NB_LATELY, v->elapsed), new_lately = (1ll << NB_PART) - kept_lately;
  const int64_t kept_losses = nb_kept(p, NB_LOSSES, v->elapsed), kept_long = nb_kept(p, NB_LONG, v->elapsed);
  s->peak_rate = nb_max(nb_part(s->peak_rate, kept_long), s->rate);
  s->age = v->acks ? 0 : nb_min(s->age + v->elapsed, NB_NEVER);

  s->rate_lately = s->rate_lately > 0 ? nb_toward(s->rate_lately, s->rate, new_lately) : s->rate;
  if (rtt_min) s->low_rtt = s->low_rtt > 0 ? nb_min(nb_toward(s->low_rtt, rtt_min, new_lately), rtt_min) : rtt_min;
  s->lost_lately = nb_part(s->lost_lately, kept_losses) + (s->lost << 20);
  s->acked_lately = nb_part(s->acked_lately, kept_losses) + (s->segments << 20);
  const int filled = s->rtt << 10 > r->started_rtt * s->least_rtt;
  if (filled || s->lost) s->started = 1;
  if (s->acks) s->standing += s->elapsed;
  if (s->cwnd > s->previous_cwnd) s->standing = 0;
  if (v->threshold || filled || (s->standing > 0 && s->standing >= s->rtt)) s->starting = 0;
  if (s->rate > 0 && s->previous_rate > 0) {
    const int64_t jump = nb_abs(nb_log2(t, (uint64_t)s->rate) - nb_log2(t, (uint64_t)s->previous_rate));
    s->roughness = nb_toward(s->roughness, nb_min(jump, 2ll << NB_LOG), (1ll << NB_PART) - kept_losses);
  }
  if (r->spreads) nb_track_spread(r, s, rtt_min, kept_losses, kept_long);
  if (r->drain) nb_track_least_rtt(r, s, base, rtt_min);
  nb_count_losses(r, s);
  s->lost_long = nb_part(s->lost_long, kept_long) + (s->lost << 20);
  s->acked_long = nb_part(s->acked_long, kept_long) + (s->segments << 20);
  if (rtt_min) {
    const int64_t queue = nb_log2(t, (uint64_t)rtt_min) - nb_log2(t, (uint64_t)s->least_rtt);
    s->queue_long = nb_toward(s->queue_long, nb_max(queue, 0), (1ll << NB_PART) - kept_long);
  }
  return 1;
}

// Adds an interval to the regressions on segments in flight (2^-10), of the round trip (us / 16) and of segments a
// second (2^-6). Means have ten bits more.
NB_INLINE void nb_regress(struct nb_state *s, int64_t kept) {
  const int64_t x = nb_min(s->in_flight_mean, 1 << 28) << 10;
  const int64_t y = nb_min(nb_quotient(s->rtt * 2, 125), 1 << 27) << 10;
  const int64_t z = nb_min(nb_quotient(s->rate * 4, s->mss), 1 << 29) << 10;
  s->weight = nb_part(s->weight, kept) + (1 << 20);
  const int64_t dx = x - s->mean_in_flight, dy = y - s->mean_rtt, dz = z - s->mean_rate;
  s->mean_in_flight += nb_signed_quotient(dx << 20, s->weight);
  s->mean_rtt += nb_signed_quotient(dy << 20, s->weight);
  s->mean_rate += nb_signed_quotient(dz << 20, s->weight);
  const int64_t ax = (x - s->mean_in_flight + 512) >> 10, ay = (y - s->mean_rtt + 512) >> 10;
  const int64_t bx = (dx + 512) >> 10, by = (dy + 512) >> 10, bz = (dz + 512) >> 10;
  s->in_flight_squares = nb_max(nb_part(s->in_flight_squares, kept) + bx * ax, 0);
  s->rtt_products = nb_signed_part(s->rtt_products, kept) + ax * by;
  s->rtt_squares = nb_max(nb_part(s->rtt_squares, kept) + by * ay, 0);
  s->rate_products = nb_signed_part(s->rate_products, kept) + ax * bz;
}

// Follows what the recipe robust observes beside.
NB_SHARED int nb_follow_evidence(const struct nb_policy *p, struct nb_state *s, const struct nb_interval *v) {
  if (!p || !s || !v) return 0;
  const int64_t kept_long = nb_kept(p, NB_LONG, s->elapsed), kept_losses = nb_kept(p, NB_LOSSES, s->elapsed);
  const int64_t whole = 1ll << NB_PART;
  if (s->acks) {
    s->in_flight_mean = nb_quotient(nb_quotient(nb_min(v->in_flight_sum, 1ll << 52) << 10, s->acks), s->mss);
    s->segments_per_ack =
        nb_max(nb_log2(&p->tables, (uint64_t)s->segments) - nb_log2(&p->tables, (uint64_t)s->acks), 0);
  }
  if (v->rtt_min) {
    s->base_ever = s->base_ever ? nb_min(s->base_ever, s->rtt) : s->rtt;
    const int64_t part = s->weight > 0 ? whole - nb_kept(p, NB_LATELY, s->elapsed) : whole;
    s->spread = nb_toward(s->spread, nb_max(s->rtt - s->rtt_min, 0), part);
    if (s->acks) nb_regress(s, kept_losses);
  }
  s->rate_long = s->rate_long > 0 ? nb_toward(s->rate_long, s->rate, whole - kept_long) : s->rate;
  s->loss_age = nb_min(s->loss_age + s->elapsed, NB_NEVER);
  s->counted = nb_part(s->counted, kept_long);
  s->lossy = nb_part(s->lossy, kept_long);
  if (s->acks || s->lost) s->counted += 1 << 20;
  if (!s->lost) return 1;
  s->lossy += 1 << 20;
  s->loss_age = 0;
  const int64_t part = nb_quotient(1ll << (NB_PART + 20), s->lossy);
  s->burst = nb_toward(s->burst, s->lost << 20, part);
  if (s->known) s->loss_queue = nb_toward(s->loss_queue, nb_max(s->rtt - s->least_rtt, 0), part);
  if (s->elapsed > 0 && s->rate_long > 0) {
    const int64_t offered = nb_rate((s->lost + s->segments) * s->mss, s->elapsed);
    s->loss_offered =
        nb_toward(s->loss_offered, nb_min(nb_quotient(offered << 20, s->rate_long), 64 << 20), part);
  }
  return 1;
}

// ---- what is observed

// Observes an interval that has been followed: features of recipe default, into `seen`.
NB_SHARED int nb_observe(const struct nb_policy *p, struct nb_state *s) {
  if (!p || !s) return 0;
  int32_t *x = s->seen;
  const struct nb_tables *t = &p->tables;
  const int64_t *by = p->rules.scales;
  const int64_t one = 1 << NB_ONE, known = s->known;
  // logarithms
  const int64_t cwnd = nb_log2(t, (uint64_t)s->cwnd), mss = nb_log2(t, (uint64_t)s->mss);
  const int64_t least = nb_log2(t, (uint64_t)s->least_rtt), rtt = nb_log2(t, (uint64_t)s->rtt);
  const int64_t queueing = known ? nb_max(rtt - least, 0) : 0;
  const int64_t per_byte = nb_log2(t, 16000000000ull);
  const int64_t packet = nb_quotient(s->mss * 16000000000ll, p->rules.interval);
  const int64_t rate = nb_log2(t, (uint64_t)nb_max(s->rate, packet));
  const int64_t mean = nb_log2(t, (uint64_t)nb_max(s->rate_lately, packet));
  x[0] = nb_root(t, queueing, by[NB_BY_16]);
  x[1] = nb_root(t, known ? nb_max(nb_log2(t, (uint64_t)s->rtt_min) - least, 0) : 0, by[NB_BY_16]);
  x[2] = (int32_t)(nb_quotient(s->rate << (NB_ONE + 1), nb_max(s->peak_rate, 2)) - one);
  const int64_t peak = nb_log2(t, (uint64_t)s->peak_rate) + least - per_byte;
  x[3] = known ? nb_scaled(cwnd - nb_max(peak, mss), by[NB_BY_2]) : 0;
  x[4] = nb_scaled(known && s->rate ? nb_log2(t, (uint64_t)s->rate) + rtt - per_byte - cwnd : -(64ll << NB_LOG),
                   by[NB_BY_2]);
  x[5] = s->previous_known ? nb_scaled(rtt - nb_log2(t, (uint64_t)s->previous_rtt), by[NB_BY_2]) : 0;
  x[6] = nb_scaled(rate - nb_log2(t, (uint64_t)nb_max(s->previous_rate, packet)), by[NB_BY_2]);
  x[7] = nb_scaled(cwnd - nb_log2(t, (uint64_t)s->previous_cwnd), by[NB_BY_2]);
  x[8] = known ? nb_scaled(rtt - nb_log2(t, (uint64_t)p->rules.interval), by[NB_BY_64]) : 0;
  x[9] = nb_scaled(cwnd - mss, by[NB_BY_65536]);
  NB_FENCE
  x[10] = nb_scaled(nb_log2(t, (uint64_t)s->segments + 1), by[NB_BY_4096]);
  const int64_t waiting = (1ll << NB_PART) - nb_exp2(t, queueing);   // 1 - least RTT / RTT
  const int64_t queued = nb_part(nb_quotient(s->cwnd << 20, s->mss), waiting);
  x[11] = nb_scaled(nb_log2(t, (uint64_t)queued + (1 << 20)) - (20ll << NB_LOG), by[NB_BY_64]);
  x[12] = nb_loss_root(t, s->lost, s->segments, 1);
  x[13] = (int32_t)nb_min(nb_quotient(nb_min(s->in_flight, NB_MOST_WINDOW) << NB_ONE, s->cwnd) - one, one);
  x[14] = s->timeouts ? 1 << NB_ONE : 0;
  x[15] = (int32_t)nb_quotient(nb_min(s->age, 1000000000) << NB_ONE, 1000000000);
  x[16] = nb_scaled(rate - mean, by[NB_BY_4]);
  x[17] = known ? nb_scaled(cwnd - nb_max(mean + least - per_byte, mss), by[NB_BY_4]) : 0;
  x[18] = nb_root(t, known ? nb_max(nb_log2(t, (uint64_t)s->low_rtt) - least, 0) : 0, by[NB_BY_16]);
  x[19] = nb_loss_root(t, s->lost_lately, s->acked_lately, 1 << 20);
  NB_FENCE
  x[20] = (int32_t)(s->roughness >> (NB_LOG + 1 - NB_ONE));
  x[21] = (int32_t)nb_quotient(nb_min(s->unseen, 10000000000ll) << NB_ONE, 10000000000ll);
  x[22] = s->draining > 0 ? 1 << NB_ONE : 0;
  x[23] = s->started ? 1 << NB_ONE : 0;
  x[24] = nb_root(t, s->queue_long, by[NB_BY_16]);
  x[25] = nb_loss_root(t, s->lost_long, s->acked_long, 1 << 20);
  const int64_t ever = p->rules.robust ? s->base_ever : s->rtt_min_ever;
  x[26] = known && ever ? nb_scaled(nb_max(least - nb_log2(t, (uint64_t)ever), 0), by[NB_BY_16]) : 0;
  return 1;
}

NB_INLINE int64_t nb_plus_ms(const struct nb_tables *t, int64_t time) {
  return nb_log2(t, (uint64_t)(1000000 + nb_max(time, 0))) - nb_log2(t, 1000000);
}
NB_INLINE int32_t nb_with_sign(int64_t sign, int32_t size) { return sign < 0 ? -size : size; }

// Features of recipe robust after those of default.
NB_SHARED int nb_observe_evidence(const struct nb_policy *p, struct nb_state *s) {
  if (!p || !s) return 0;
  int32_t *x = s->seen + NB_DEFAULT_FEATURES;
  const struct nb_tables *t = &p->tables;
  const int64_t *by = p->rules.scales;
  const int64_t known = s->known, base = known ? s->least_rtt : 1000000000;
  const int64_t packet = nb_quotient(s->mss * 16000000000ll, p->rules.interval);
  const int64_t lately = nb_log2(t, (uint64_t)nb_max(s->rate_lately, packet));
  const int64_t long_rate = nb_log2(t, (uint64_t)nb_max(s->rate_long, packet));
  const int64_t weight = nb_log2(t, (uint64_t)s->weight) - (20ll << NB_LOG);
  const int64_t per_second = nb_log2(t, 1000000);
  x[0] = nb_scaled(known ? nb_plus_ms(t, s->rtt - base) : 0, by[NB_BY_1001]);
  x[1] = nb_scaled(known ? nb_plus_ms(t, s->rtt_min - base) : 0, by[NB_BY_1001]);
  x[2] = nb_scaled(nb_plus_ms(t, s->low_rtt - s->rtt_min_ever), by[NB_BY_1001]);
  x[3] = nb_scaled(nb_plus_ms(t, s->spread), by[NB_BY_1001]);
  x[4] = nb_scaled(nb_log2(t, (uint64_t)(base + s->spread)) - nb_log2(t, (uint64_t)base), by[NB_BY_16]);
  x[5] = 0;
  if (s->rtt_squares > 0 && s->weight > 0) {
    const int64_t swing = (nb_log2(t, (uint64_t)s->rtt_squares) - weight) >> 1;  // of us / 16
    x[5] = nb_scaled(nb_plus_ms(t, (nb_exp2(t, (30ll << NB_LOG) - swing) * 125) >> 1), by[NB_BY_1001]);
  }
  NB_FENCE
  const int64_t flying = s->mean_in_flight >> 10, still = s->mean_rtt >> 10;
  const int64_t steady = (nb_quotient(flying * flying, 2500) * (s->weight >> 10)) >> 10;
  const int64_t moved = s->in_flight_squares + steady;
  const int64_t rtt_moved = s->rtt_squares + ((nb_quotient(still * still, 10000) * (s->weight >> 10)) >> 10);
  const int64_t moved_log = nb_log2(t, (uint64_t)moved) - (20ll << NB_LOG);
  const int64_t product = nb_log2(t, (uint64_t)nb_abs(s->rtt_products)) - (14ll << NB_LOG);
  x[6] = x[7] = x[8] = 0;
  if (moved > 0 && s->rtt_products) {
    const int64_t rate = nb_log2(t, (uint64_t)s->mean_rate) - (17ll << NB_LOG);  // half of it
    x[6] = nb_with_sign(s->rtt_products, nb_power(t, product - per_second - moved_log + rate));
    const int64_t rtt_log = nb_log2(t, (uint64_t)rtt_moved) - (8ll << NB_LOG);
    if (rtt_moved > 0) x[7] = nb_with_sign(s->rtt_products, nb_power(t, product - ((moved_log + rtt_log) >> 1)));
  }
  if (moved > 0 && s->rate_products) {
    const int64_t rates = nb_log2(t, (uint64_t)nb_abs(s->rate_products)) - (16ll << NB_LOG);
    const int64_t rtt = nb_log2(t, (uint64_t)s->mean_rtt) - (15ll << NB_LOG) - per_second;
    x[8] = nb_with_sign(s->rate_products, nb_power(t, rates - moved_log + rtt));
  }
  NB_FENCE
  x[9] = 0;
  if (s->mean_in_flight > 0 && s->in_flight_squares > 0) {
    const int64_t swing = (nb_log2(t, (uint64_t)s->in_flight_squares) - (20ll << NB_LOG) - weight) >> 1;
    x[9] = nb_power(t, swing - (nb_log2(t, (uint64_t)s->mean_in_flight) - (20ll << NB_LOG)));
  }
  x[10] = (int32_t)nb_quotient(s->lossy << NB_ONE, s->counted);
  x[11] = nb_scaled(nb_log2(t, (uint64_t)(s->burst + (1 << 20))) - (20ll << NB_LOG), by[NB_BY_1024]);
  x[12] = nb_scaled(nb_plus_ms(t, s->loss_queue), by[NB_BY_1001]);
  const int64_t offered = nb_log2(t, (uint64_t)s->loss_offered) - (20ll << NB_LOG);
  x[13] = s->loss_offered > 0 ? nb_scaled(offered, by[NB_BY_4]) : 0;
  x[14] = nb_scaled(nb_log2(t, (uint64_t)(1000000000 + s->loss_age)) - nb_log2(t, 1000000000), by[NB_BY_600]);
  x[15] = nb_scaled(lately - long_rate, by[NB_BY_4]);
  NB_FENCE
  x[16] = nb_scaled(nb_log2(t, (uint64_t)nb_max(s->peak_rate, packet)) - long_rate, by[NB_BY_16]);
  x[17] = nb_scaled(s->segments_per_ack, by[NB_BY_64]);
  x[18] = known ? nb_scaled(nb_max(nb_log2(t, (uint64_t)base) - nb_log2(t, 1000000), 0), by[NB_BY_1000]) : 0;
  x[19] = nb_scaled(nb_max(nb_log2(t, (uint64_t)s->rate_lately) - nb_log2(t, 20000), 0), by[NB_BY_1000000]);
  return 1;
}

// ---- the network

struct nb_pass {
  const struct nb_policy *p;
  struct nb_state *s;
  const int32_t *from;
  int32_t *to;
  int64_t best;
  uint32_t layer, columns, action;
};

// Sum of `columns` products, of weights and inputs that are padded by zeros to whole blocks.
NB_INLINE int64_t nb_dot(const int16_t *weight, const int32_t *x, uint32_t columns, uint32_t most) {
  int64_t sum = 0;
  for (uint32_t start = 0; start < most; start += NB_BLOCK) {
    if (start >= columns) break;
    const int16_t *w = weight + start;
    const int32_t *in = x + start;
    NB_HIDE(w);
    NB_HIDE(in);
    NB_UNROLL
    for (uint32_t c = 0; c < NB_BLOCK; ++c) {
      sum += (int64_t)w[c] * in[c];
      NB_IN_ORDER(sum);
    }
  }
  return sum;
}
NB_INLINE int64_t nb_rounded(int64_t sum, uint32_t shift) {
  const uint32_t by = shift & 31;
  return (sum + ((1ll << by) >> 1)) >> by;
}

NB_INLINE long nb_memory_unit(uint32_t u, struct nb_pass *pass) {
  const struct nb_policy *p = pass->p;
  struct nb_state *s = pass->s;
  if (u >= NB_UNITS) return 1;
  const struct nb_recurrent *net = &p->recurrent;
  int64_t z[NB_GATES];
  NB_UNROLL
  for (uint32_t gate = 0; gate < NB_GATES; ++gate) {
    const int64_t sum = nb_dot(net->weight[u][gate], s->x, p->inputs, NB_INPUTS) +
                        nb_dot(net->memory[u][gate], s->h, p->units, NB_UNITS) + net->bias[u][gate];
    z[gate] = nb_rounded(sum, net->shift[u][gate]);
  }
  const struct nb_tables *t = &p->tables;
  const int64_t half = 1 << (NB_ONE - 1), first = nb_sigmoid(t, z[0]), second = nb_sigmoid(t, z[1]);
  if (p->kind == NB_LSTM) {
    const int64_t c = (second * s->c[u] + first * nb_tanh(t, z[2]) + half) >> NB_ONE;
    s->c[u] = nb_clip(c, 1ll << 30);
    s->next[u] = (int32_t)((nb_sigmoid(t, z[3]) * nb_tanh(t, s->c[u]) + half) >> NB_ONE);
  } else {
    const int64_t candidate = nb_tanh(t, z[2] + ((first * z[3] + half) >> NB_ONE));
    s->next[u] = (int32_t)((((1 << NB_ONE) - second) * candidate + second * s->h[u] + half) >> NB_ONE);
  }
  return 0;
}
NB_INLINE long nb_take_memory(uint32_t u, struct nb_pass *pass) {
  if (u >= NB_UNITS) return 1;
  pass->s->h[u] = pass->s->next[u];
  return 0;
}

NB_INLINE long nb_dense_row(uint32_t row, struct nb_pass *pass) {
  const struct nb_policy *p = pass->p;
  const uint32_t layer = pass->layer;
  if (row >= NB_UNITS || layer > NB_LAYERS) return 1;
  const struct nb_layer *net = &p->layer[layer];
  const int64_t sum = nb_dot(net->weight[row], pass->from, pass->columns, NB_INPUTS) + net->bias[row];
  if (!pass->to) {  // the output: the largest, and of equal ones the first
    if (!row || sum > pass->best) {
      pass->best = sum;
      pass->action = row;
    }
    return 0;
  }
  const int64_t z = nb_rounded(sum, net->shift[row]);
  pass->to[row] = p->activation[layer] == NB_RELU ? (int32_t)nb_max(nb_min(z, 1 << 30), 0) : nb_tanh(&p->tables, z);
  return 0;
}

// The action for what stands in x.
NB_INLINE uint32_t nb_infer(const struct nb_policy *p, struct nb_state *s) {
  struct nb_pass pass = {p, s, s->x, s->y[0], 0, 0, p->inputs, 0};
  if (p->kind != NB_FEEDFORWARD) {
    NB_EACH(p->units, nb_memory_unit, &pass);
    NB_EACH(p->units, nb_take_memory, &pass);
    pass.from = s->h;
    pass.columns = p->units;
  }
  for (uint32_t layer = 0; layer < NB_LAYERS; ++layer) {
    if (layer >= p->layers) break;
    pass.layer = layer;
    pass.to = s->y[layer & 1];
    NB_EACH(p->width[layer], nb_dense_row, &pass);
    pass.from = pass.to;
    pass.columns = p->width[layer];
  }
  pass.layer = NB_LAYERS;
  pass.to = 0;
  NB_EACH(p->actions, nb_dense_row, &pass);
  return pass.action;
}

// ---- the window

// The window in bytes that an action means, 0 where nothing is decided.
NB_SHARED int64_t nb_decide(const struct nb_policy *p, struct nb_state *s, uint32_t action) {
  if (!p || !s || !s->acks || s->starting) return 0;
  const struct nb_rules *r = &p->rules;
  const int64_t mss = s->mss, acknowledged = s->segments * mss, lowest = (r->lowest * mss) >> 4;
  const int64_t held = nb_max(s->cwnd, s->resumed), reach = held + acknowledged;
  const int64_t start = s->resumed > 0 ? s->resumed : nb_max(s->cwnd, nb_min(s->wanted, reach));
  int64_t window = nb_min((start * r->factors[action & (NB_ACTIONS - 1)]) >> 20, reach);
  if (r->capped) {
    const int64_t peak = nb_product(s->peak_rate, s->known ? s->least_rtt : 0), now = nb_product(s->rate, s->rtt);
    window = nb_min(window, nb_max((r->peak_gain * peak) >> 10, (r->rate_gain * now) >> 10) + r->cap_segments * mss);
  }
  if ((r->growth_loss < 1 << 20 && s->growth.heavy >= r->growth_rounds) || s->careful > 0) {
    const int64_t present = nb_max(held, lowest);
    window = nb_min(window, present + (present < mss ? present : nb_quotient(acknowledged * mss, present)));
  }
  if (s->draining > 0) window = s->drained;
  if (s->held > 0) window = nb_min(window, s->arrived);
  window = nb_min(nb_max(window, lowest), NB_MOST_WINDOW);
  s->wanted = window;
  if (s->draining <= 0) s->resumed = 0;
  return window;
}

NB_INLINE void nb_observe_all(const struct nb_policy *p, struct nb_state *s) {
  nb_observe(p, s);
  if (p->rules.robust) nb_observe_evidence(p, s);
}

NB_INLINE long nb_repeat_input(uint32_t i, struct nb_pass *pass) {
  if (i >= NB_INPUTS || !pass->columns) return 1;
  pass->s->x[i] = pass->s->seen[(i % pass->columns) & (NB_UNITS - 1)];
  return 0;
}
NB_INLINE long nb_shift_input(uint32_t i, struct nb_pass *pass) {
  const uint32_t from = i + pass->columns;
  if (i >= NB_INPUTS || from >= NB_INPUTS) return 1;
  pass->s->x[i] = pass->s->x[from];
  return 0;
}
NB_INLINE long nb_append_input(uint32_t i, struct nb_pass *pass) {
  const uint32_t to = i + pass->columns;
  if (i >= NB_UNITS || to >= NB_INPUTS) return 1;
  pass->s->x[to] = pass->s->seen[i];
  return 0;
}

// Begins a connection with a window and segments of so many bytes: the history is full of its first features. `s` is
// zeros.
NB_INLINE uint32_t nb_start(const struct nb_policy *p, struct nb_state *s, int64_t cwnd, int64_t mss) {
  s->least_rtt = s->rtt_min_ever = NB_NEVER;
  s->cwnd = s->previous_cwnd = s->wanted = nb_max(cwnd, 1);
  s->mss = nb_max(mss, 1);
  s->starting = p->rules.slow_start;
  nb_observe_all(p, s);
  struct nb_pass pass = {p, s, 0, 0, 0, 0, p->features, 0};
  NB_EACH(p->inputs, nb_repeat_input, &pass);
  return nb_infer(p, s);
}

// Takes in an interval: its features behind the history's.
NB_INLINE void nb_take_in(const struct nb_policy *p, struct nb_state *s, const struct nb_interval *v) {
  const uint32_t n = p->features, all = p->inputs;
  nb_follow(p, s, v);
  if (p->rules.robust) nb_follow_evidence(p, s, v);
  nb_observe_all(p, s);
  struct nb_pass pass = {p, s, 0, 0, 0, 0, n, 0};
  NB_EACH(all - n, nb_shift_input, &pass);
  pass.columns = all - n;
  NB_EACH(n, nb_append_input, &pass);
}

// Decides at the end of an interval; the window in bytes, 0: as it is.
NB_INLINE int64_t nb_step(const struct nb_policy *p, struct nb_state *s, const struct nb_interval *v,
                          uint32_t *action) {
  nb_take_in(p, s, v);
  *action = nb_infer(p, s);
  return nb_decide(p, s, *action);
}
