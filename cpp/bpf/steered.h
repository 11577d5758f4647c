// A window that is set by decisions, and the slow start before the first of them: rules of the simulator's
// cpp/src/cc/steered_window.h, for kernel sockets. Neither acknowledgements nor losses move the window; a time-out sets
// it to one segment until the next decision.
#pragma once
#include "kernel.h"

struct steered {
  u64 halted;               // the decision that a time-out has overruled, plus 1; 0: none
  u32 delivered;            // packets, up to the last acknowledgement
  // Of the slow start: the acknowledgement's round trip, which has not counted yet, or no positive number; the latest
  // and the least; microseconds. How many in a row are long.
  s32 sample;
  u32 rtt, least, longer;
  u32 round, round_end;     // packets of its round, delivered when that ends
  u32 lost, lost_before;    // packets, up to the last acknowledgement, and up to the round
};

// What is in force.
struct order {
  u64 window_bytes;
  u64 decision;             // number of the latest; 0: none yet
  u64 paced, fine, slow_start;  // truths; see struct slot
  u64 rtt_least_us;         // 0: none yet
};

enum { LONG_ROUND_TRIPS = 8, LEAST_RISE = 4000, MOST_RISE = 16000 };  // 1, microseconds, microseconds
enum { LEAST_LOST = 8, PACKETS_TO_ONE_LOST = 50 };                    // of a round

inline_always void begin_steering(const struct tcp_sock *tp, struct steered *steered) {
  steered->halted = 0;
  steered->sample = steered->rtt = steered->longer = 0;
  steered->least = ~0u;
  steered->delivered = steered->round_end = tp->delivered;
  steered->lost = tp->lost;
}

inline_always int is_halted(const struct steered *steered, const struct order *order) {
  return steered->halted == order->decision + 1;
}

inline_always void set_window(struct tcp_sock *tp, const struct steered *steered, const struct order *order) {
  if (!order->decision) return;
  const u32 mss = tp->mss_cache;
  const int halted = is_halted(steered, order);
  u64 packets = halted || !mss ? 1 : order->window_bytes / mss;
  if (packets < 1) packets = 1;
  if (packets == 1 && order->fine && !halted && order->window_bytes > mss) packets = 2;
  if (packets > 1 << 30) packets = 1 << 30;
  tp->snd_cwnd = packets;
}

// Bytes of a window below two segments that the pace alone keeps; 0: it is none.
inline_always u64 fine_window(const struct tcp_sock *tp, const struct steered *steered, const struct order *order) {
  const u64 bytes = order->window_bytes;
  const u32 mss = tp->mss_cache;
  if (!order->fine || !order->decision) return 0;
  if (is_halted(steered, order)) return bytes < mss ? bytes : mss;
  return bytes < 2 * (u64)mss ? bytes : 0;
}

inline_always int starting(const struct tcp_sock *tp, const struct order *order) {
  return order->slow_start && !order->decision && tp->snd_ssthresh >= TCP_INFINITE_SSTHRESH;
}

// What a round trip ago was in flight is half of the window; of that, what the least round trip holds.
inline_always u32 end_start(struct tcp_sock *tp, const struct steered *steered) {
  u64 packets = tp->snd_cwnd / 2;
  if (steered->rtt) packets = packets * steered->least / steered->rtt;
  tp->snd_cwnd = larger(packets, 2);
  return tp->snd_cwnd;
}

// Slow start is over when so many round trips in a row are longer than the least by an eighth of it, 4 to 16 ms.
inline_always void watch(struct tcp_sock *tp, struct steered *steered) {
  const s32 us = steered->sample;
  steered->sample = 0;
  if (us <= 0) return;
  steered->rtt = us;
  steered->least = smaller(steered->least, us);
  const u32 rise = smaller(larger(steered->least / 8, LEAST_RISE), MOST_RISE);
  steered->longer = steered->rtt > steered->least + rise ? steered->longer + 1 : 0;
  if (steered->longer == LONG_ROUND_TRIPS) tp->snd_ssthresh = end_start(tp, steered);
}

// So it is when so many packets of a round are lost.
inline_always void count_lost(struct tcp_sock *tp, struct steered *steered, u32 acked) {
  if ((s32)(tp->delivered - steered->round_end) >= 0) {
    steered->round = tp->packets_out + acked;
    steered->round_end = tp->delivered + steered->round;
    steered->lost_before = steered->lost;
  }
  steered->lost = tp->lost;
  const u32 lost = tp->lost - steered->lost_before;
  if (lost >= LEAST_LOST && lost * PACKETS_TO_ONE_LOST > steered->round) tp->snd_ssthresh = end_start(tp, steered);
}

// Packets that this acknowledgement is the first to acknowledge.
inline_always u32 take_delivered(const struct tcp_sock *tp, struct steered *steered) {
  const u32 acked = tp->delivered - steered->delivered;
  steered->delivered = tp->delivered;
  return acked;
}

inline_always void steer(struct tcp_sock *tp, struct steered *steered, const struct order *order, u32 acked) {
  if (starting(tp, order)) count_lost(tp, steered, acked);
  // a window that was not half used has not been confirmed
  if (starting(tp, order) && tp->snd_cwnd < 2 * (tp->packets_out + acked)) tp->snd_cwnd += acked;
  if (starting(tp, order)) watch(tp, steered);  // the window has grown by what this one acknowledges
  set_window(tp, steered, order);
}

inline_always u64 choose_rate(const struct tcp_sock *tp, const struct steered *steered, const struct order *order) {
  const u64 fine = tp->srtt_us ? fine_window(tp, steered, order) : 0;
  if (fine) return fine * 8000000 / tp->srtt_us;  // eighths
  const u64 window = (u64)larger(tp->snd_cwnd, tp->packets_out) * tp->mss_cache;
  if (order->paced && order->rtt_least_us) return window * 1200000 / order->rtt_least_us;
  return 0;
}

inline_always void pace(struct tcp_sock *tp, const struct steered *steered, const struct order *order) {
  const u64 rate = choose_rate(tp, steered, order);
  if (rate) {
    tp->inet_conn.icsk_inet.sk.sk_pacing_rate = rate;
  } else {
    set_rate(tp, tp->snd_cwnd);
  }
}

inline_always u32 keep_threshold(const struct tcp_sock *tp, const struct order *order) {
  if (starting(tp, order)) return TCP_INFINITE_SSTHRESH;
  return larger(in_flight(tp) / 2, 2);
}

inline_always void time_out(struct tcp_sock *tp, struct steered *steered, const struct order *order) {
  if (starting(tp, order)) tp->snd_ssthresh = end_start(tp, steered);
  tp->snd_cwnd = 1;
  steered->halted = order->decision + 1;
}
