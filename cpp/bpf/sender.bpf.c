// A trained sender in integers (cpp/policy/policy.h) as a congestion control of the kernel's: the control "compiled" of
// the simulator (cpp/src/cc/compiled.cc). Intervals end on a grid from the establishment on; the first acknowledgement
// after an end decides, on what was counted before it. Ends that silence has left out count as intervals without
// acknowledgements, and those beyond MOST_ENDS together as one.
#include "integers.h"
#include "steered.h"
#include "../policy/policy.h"

enum { MOST_ENDS = 8, TIMES = 256, LATE_NS = 10000000, MOST_SOCKETS = 65536, AF_INET6 = 10, FIELD_EXISTS = 2 };

// Set by whoever installs it, in the order of netbuf_gym/plants/linux/bpf/senders.py, as of the structures below.
struct settings {
  u64 most_window;          // bytes
  u64 most_rate;            // bytes a second; 0: any
  u64 most_growth;          // of a window by a decision, 2^-10; 0: any
  char agent[64];           // its name, to be shown
};

struct totals {
  u64 sockets, opened;      // now; ever
  u64 decisions, windows;   // of these with a window
  u64 clamped;              // windows, by the settings
  u64 late;                 // more than LATE_NS after the end of their interval
  u64 time_ns, times[TIMES];  // of decisions; how many took so many microseconds, the last: or more
};

// What is shown of a socket, as of its latest decision.
struct row {
  u64 decisions, clamped, timeouts;
  u64 window, rate, rtt_ns;  // bytes; of the interval, bytes a second; of the last one with round trips
  u32 action, family;
  u32 local[4], remote[4];  // big-endian
  u32 local_port, remote_port;
};

struct connection {
  struct nb_interval latest;  // that has been decided on
  s64 cwnd, mss, threshold;   // in force at the end of the interval
  u64 window, decision;       // decided, bytes; number
  u64 decisions, clamped, timeouts;
  u32 action, started;
  u64 end, last_ack;          // ns, CLOCK_MONOTONIC; 0: none
  u64 rtt_least_us;
  u32 before, lost_before;    // in flight, and lost so far, before this acknowledgement; packets
  u32 lost, unused;           // up to the latest interval; packets
  struct steered steered;
  struct nb_interval interval;
  struct nb_state state;
};

struct {
  NUMBER(type, MAP_ARRAY);
  NUMBER(max_entries, 1);
  TYPE(key, u32);
  TYPE(value, struct nb_policy);
} policies SEC(".maps");

struct {
  NUMBER(type, MAP_ARRAY);
  NUMBER(max_entries, 1);
  TYPE(key, u32);
  TYPE(value, struct settings);
} settings SEC(".maps");

struct {
  NUMBER(type, MAP_ARRAY);
  NUMBER(max_entries, 1);
  TYPE(key, u32);
  TYPE(value, struct totals);
} totals SEC(".maps");

struct {
  NUMBER(type, MAP_HASH);
  NUMBER(map_flags, NO_PREALLOC);
  NUMBER(max_entries, MOST_SOCKETS);  // others are not shown
  TYPE(key, u64);                     // of the socket, for as long as it lives
  TYPE(value, struct row);
} rows SEC(".maps");

struct {
  NUMBER(type, MAP_SK_STORAGE);
  NUMBER(map_flags, NO_PREALLOC);
  NUMBER(max_entries, 0);
  TYPE(key, s32);
  TYPE(value, struct connection);
} connections SEC(".maps");

inline_always void *only(void *map) {
  const u32 first = 0;
  return map_lookup(map, &first);
}
inline_always void add(u64 *to, u64 amount) { __sync_fetch_and_add(to, amount); }

inline_always struct connection *connection_of(struct tcp_sock *tp) { return storage_get(&connections, tp, 0, 0); }

inline_always struct order order_of(const struct nb_policy *policy, const struct connection *c) {
  const struct order order = {c->window, c->decision, policy->rules.paced, policy->rules.fine && policy->rules.paced,
                              policy->rules.slow_start, c->rtt_least_us};
  return order;
}

// Ends an interval of so many nanoseconds: decides, and keeps the window in force.
NB_SHARED int end_interval(const struct nb_policy *policy, struct connection *c, u64 length) {
  const struct settings *bounds = only(&settings);
  struct totals *counted = only(&totals);
  if (!policy || !c || !bounds || !counted) return 0;
  struct nb_interval *interval = &c->interval;
  interval->elapsed = length;
  interval->cwnd = c->cwnd;
  interval->mss = c->mss;
  interval->threshold = c->threshold;
  const s64 held = nb_max(c->cwnd, c->state.resumed);
  const u64 began = now_ns();
  u32 action = 0;
  s64 window = nb_step(policy, &c->state, interval, &action);
  const u64 took = now_ns() - began;
  add(&counted->decisions, 1);
  add(&counted->time_ns, took);
  u64 us = nb_min(took / 1000, TIMES - 1);
  NB_HIDE(us);
  add(&counted->times[us & (TIMES - 1)], 1);
  c->action = action;
  ++c->decisions;
  c->latest = *interval;
  const struct nb_interval none = {.in_flight = c->latest.in_flight};
  *interval = none;
  if (window <= 0) return 0;
  s64 most = bounds->most_window;
  if (bounds->most_growth) most = nb_min(most, (held * (s64)bounds->most_growth) >> 10);
  if (window > most) {
    window = c->state.wanted = most;
    ++c->clamped;
    add(&counted->clamped, 1);
  }
  const int fine = policy->rules.fine && policy->rules.paced;
  c->window = c->cwnd = nb_max(window, fine ? c->mss >> 4 : c->mss);
  ++c->decision;
  add(&counted->windows, 1);
  return 1;
}

NB_SHARED int begin_policy(const struct nb_policy *policy, struct connection *c) {
  if (!policy || !c) return 0;
  nb_start(policy, &c->state, c->cwnd, c->mss);
  return 1;
}

inline_always void read_addresses(struct tcp_sock *tp, struct row *row) {
  const struct sock_common *common = &tp->inet_conn.icsk_inet.sk.__sk_common;
  row->family = common->skc_family;
  row->local_port = common->skc_num;
  row->remote_port = __builtin_bswap16(common->skc_dport);
  row->local[0] = common->skc_rcv_saddr;
  row->remote[0] = common->skc_daddr;
  if (row->family != AF_INET6) return;
  if (!__builtin_preserve_field_info(common->skc_v6_daddr, FIELD_EXISTS)) return;
  for (u32 i = 0; i < 4; ++i) {
    row->local[i] = common->skc_v6_rcv_saddr.in6_u.u6_addr32[i];
    row->remote[i] = common->skc_v6_daddr.in6_u.u6_addr32[i];
  }
}

inline_always void show(struct tcp_sock *tp, const struct connection *c) {
  const u64 key = (u64)tp;
  struct row *row = map_lookup(&rows, &key);
  if (!row) return;
  row->decisions = c->decisions;
  row->clamped = c->clamped;
  row->timeouts = c->timeouts;
  row->window = c->cwnd;
  row->rate = c->state.rate >> 4;
  row->rtt_ns = c->state.rtt;
  row->action = c->action;
}

SEC("struct_ops/init")
int init(u64 *ctx) {
  struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
  struct totals *counted = only(&totals);
  const struct nb_policy *policy = only(&policies);
  const struct settings *bounds = only(&settings);
  storage_delete(&connections, tp);
  struct connection *c = storage_get(&connections, tp, 0, STORAGE_CREATE);
  if (!c || !counted || !policy || !bounds) return 0;
  begin_steering(tp, &c->steered);
  c->mss = tp->mss_cache;
  c->cwnd = (s64)tp->snd_cwnd * c->mss;
  c->lost = tp->lost;
  c->end = now_ns() + policy->rules.interval;
  struct sock *sk = &tp->inet_conn.icsk_inet.sk;
  const int paced = policy->rules.paced || bounds->most_rate;
  if (paced && sk->sk_pacing_status == SK_PACING_NONE) sk->sk_pacing_status = SK_PACING_NEEDED;
  add(&counted->sockets, 1);
  add(&counted->opened, 1);
  const u64 key = (u64)tp;
  struct row row = {};
  read_addresses(tp, &row);
  row.window = c->cwnd;
  map_update(&rows, &key, &row, ANY);
  return 0;
}

SEC("struct_ops/release")
int release(u64 *ctx) {
  struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
  struct totals *counted = only(&totals);
  if (storage_delete(&connections, tp)) return 0;  // it never had its turn
  const u64 key = (u64)tp;
  map_delete(&rows, &key);
  if (counted) add(&counted->sockets, -1);
  return 0;
}

// Before losses are looked for.
SEC("struct_ops/pkts_acked")
int pkts_acked(u64 *ctx) {
  struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
  const struct ack_sample *sample = (const struct ack_sample *)ctx[1];
  struct connection *c = connection_of(tp);
  if (!c) return 0;
  c->steered.sample = sample->rtt_us;
  c->before = in_flight(tp) + tp->delivered - c->steered.delivered;
  c->lost_before = tp->lost;
  return 0;
}

inline_always void end_intervals(struct tcp_sock *tp, const struct nb_policy *policy, struct connection *c, u64 now) {
  const u64 length = policy->rules.interval;
  struct totals *counted = only(&totals);
  const struct order order = order_of(policy, c);
  const int halted = is_halted(&c->steered, &order);
  c->mss = tp->mss_cache;
  if (halted || !order.decision) c->cwnd = (s64)tp->snd_cwnd * c->mss;
  if (halted && order.fine) c->cwnd = nb_min(c->cwnd, c->window);
  c->threshold = tp->snd_ssthresh < TCP_INFINITE_SSTHRESH;
  c->interval.lost = c->lost_before - c->lost;
  c->lost = c->lost_before;
  c->interval.in_flight = (s64)c->before * c->mss;
  if (counted && now - c->end > LATE_NS) add(&counted->late, 1);
  u64 ends = length ? (now - c->end) / length + 1 : 1;
  c->end += ends * length;
  end_interval(policy, c, length);
  --ends;
  if (ends > MOST_ENDS) {
    end_interval(policy, c, (ends - MOST_ENDS + 1) * length);
    ends = MOST_ENDS - 1;
  }
  for (u32 i = 0; i < MOST_ENDS; ++i) {
    if (i >= ends) break;
    end_interval(policy, c, length);
  }
  c->interval.in_flight = 0;
  show(tp, c);
}

inline_always void count(const struct tcp_sock *tp, struct connection *c, u64 now, u32 acked, s32 rtt_us) {
  struct nb_interval *interval = &c->interval;
  const s64 mss = tp->mss_cache;
  interval->acks += 1;
  interval->segments += acked;
  interval->acked_bytes += acked * mss;
  interval->in_flight_sum += in_flight(tp) * mss;
  if (c->last_ack) interval->span += now - c->last_ack;
  c->last_ack = now;
  if (rtt_us < 0) return;
  const s64 us = rtt_us ? rtt_us : 1, rtt = us * 1000;
  interval->rtt_sum += rtt;
  interval->rtt_count += 1;
  if (us % 1000u == 0) return;  // as in slots.h
  interval->rtt_min = interval->rtt_min ? nb_min(interval->rtt_min, rtt) : rtt;
  c->rtt_least_us = c->rtt_least_us && c->rtt_least_us < us ? c->rtt_least_us : us;
}

SEC("struct_ops/cong_control")
int cong_control(u64 *ctx) {
  struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
  struct connection *c = connection_of(tp);
  const struct nb_policy *policy = only(&policies);
  const struct settings *bounds = only(&settings);
  if (!c || !policy || !bounds) return 0;
  const u64 now = tp->tcp_mstamp * 1000;
  const s32 rtt_us = c->steered.sample;
  if (!c->started) c->started = begin_policy(policy, c);
  if (now >= c->end) end_intervals(tp, policy, c, now);
  const struct order order = order_of(policy, c);
  const u32 acked = take_delivered(tp, &c->steered);
  steer(tp, &c->steered, &order, acked);
  if (!order.decision && tp->mss_cache) {  // slow start
    const u64 most = bounds->most_window / tp->mss_cache;
    if (tp->snd_cwnd > most) tp->snd_cwnd = larger(most, 1);
  }
  c->steered.sample = 0;
  count(tp, c, now, acked, rtt_us);
  pace(tp, &c->steered, &order);
  struct sock *sk = &tp->inet_conn.icsk_inet.sk;
  if (bounds->most_rate && sk->sk_pacing_rate > bounds->most_rate) sk->sk_pacing_rate = bounds->most_rate;
  return 0;
}

SEC("struct_ops/set_state")
int set_state(u64 *ctx) {
  struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
  struct connection *c = connection_of(tp);
  const struct nb_policy *policy = only(&policies);
  if (!c || !policy || (u8)ctx[1] != TCP_CA_Loss) return 0;
  const struct order order = order_of(policy, c);
  time_out(tp, &c->steered, &order);
  ++c->interval.timeouts;
  ++c->timeouts;
  return 0;
}

SEC("struct_ops/ssthresh")
u32 ssthresh(u64 *ctx) {
  struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
  const struct connection *c = connection_of(tp);
  const struct nb_policy *policy = only(&policies);
  if (!c || !policy) return larger(in_flight(tp) / 2, 2);
  const struct order order = order_of(policy, c);
  return keep_threshold(tp, &order);
}

SEC("struct_ops/undo_cwnd")
u32 undo_cwnd(u64 *ctx) { return ((struct tcp_sock *)ctx[0])->snd_cwnd; }

char _license[] SEC("license") = "GPL";
