// The sender that Nuwa's receiver steers: the control "receiver_driven" of the simulator
// (cpp/src/cc/receiver_driven.cc, of CUBIC's slow start cpp/src/cc/cubic.cc), for kernel sockets. After CUBIC's slow
// start the window never binds, so that what the receiver advertises is the window. While losses are repaired as much
// leaves as arrives; a time-out starts anew.
#include "slots.h"

struct start {
  struct own own;
  u64 round_start, last_ack;              // microseconds
  u32 end_seq, delay_min, least, samples; // of the round; delay_min 0: none yet
  u32 found;                              // slow start is over, until a time-out
  u32 delivered;                          // packets, up to the last acknowledgement
};

enum {
  LOW_WINDOW = 16, MIN_SAMPLES = 8, ACK_DELTA = 2000, DELAY_MIN = 4000, DELAY_MAX = 16000,  // packets, 1, microseconds
  BURSTS = 4 * 65536, MILLISECOND = 1000,
};

inline_always int slow_start(const struct tcp_sock *tp) { return tp->snd_cwnd < tp->snd_ssthresh; }

inline_always void start_round(struct tcp_sock *tp, struct start *start) {
  start->round_start = start->last_ack = tp->tcp_mstamp;
  start->end_seq = tp->snd_nxt;
  start->least = ~0u;
  start->samples = 0;
}

// Twice the largest window that may be in flight: the kernel sizes the send buffer by it, too.
inline_always u32 never_binds(const struct tcp_sock *tp) {
  const u32 mss = tp->mss_cache;
  return (mss ? tp->snd_wnd / mss : 0) * 2 + 64;
}

// The time that four of the largest bursts take at twice a window a round trip, a millisecond at most.
inline_always u32 burst_allowance(const struct tcp_sock *tp) {
  const u64 round = (u64)larger(tp->snd_cwnd, tp->packets_out) * tp->mss_cache * 2;
  if (!tp->srtt_us || !round) return 0;
  const u64 us = (u64)BURSTS * (tp->srtt_us >> 3) / round;
  return us < MILLISECOND ? us : MILLISECOND;
}

inline_always void leave(struct tcp_sock *tp, struct start *start) {
  start->found = 1;
  tp->snd_ssthresh = tp->snd_cwnd;
}

inline_always void hystart(struct tcp_sock *tp, struct start *start, u32 rtt) {
  if ((s32)(tp->snd_una - start->end_seq) > 0) start_round(tp, start);
  if (tp->snd_cwnd < LOW_WINDOW) return;
  const u64 now = tp->tcp_mstamp;
  if ((s32)(now - start->last_ack) <= ACK_DELTA) {
    start->last_ack = now;
    if ((s32)(now - start->round_start) > (s32)((start->delay_min + burst_allowance(tp)) / 2)) leave(tp, start);
  }
  start->least = smaller(start->least, rtt);
  if (start->samples < MIN_SAMPLES) {
    ++start->samples;
  } else if (start->least > start->delay_min + smaller(larger(start->delay_min / 8, DELAY_MIN), DELAY_MAX)) {
    leave(tp, start);
  }
}

SEC("struct_ops/init")
int init(u64 *ctx) {
  struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
  struct start *start = own_of(tp);
  find_slot(tp);
  start->delay_min = start->found = 0;
  start->delivered = tp->delivered;
  start_round(tp, start);
  struct slot *slot = slot_of(tp);
  if (slot) copy_state(tp, slot);
  return 0;
}

SEC("struct_ops/pkts_acked")
int pkts_acked(u64 *ctx) {
  struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
  const struct ack_sample *sample = (const struct ack_sample *)ctx[1];
  struct slot *slot = slot_of(tp);
  if (slot) count_ack(tp, slot, sample);
  struct start *start = own_of(tp);
  const s32 us = sample->rtt_us;
  if (us < 0 || start->found || !slow_start(tp)) return 0;
  const u32 rtt = us ? us : 1;
  if (!start->delay_min || rtt < start->delay_min) start->delay_min = rtt;
  hystart(tp, start, rtt);
  return 0;
}

SEC("struct_ops/cong_control")
int cong_control(u64 *ctx) {
  struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
  struct start *start = own_of(tp);
  struct slot *slot = slot_of(tp);
  const u32 acked = tp->delivered - start->delivered;
  start->delivered = tp->delivered;
  if (start->own.state >= TCP_CA_Recovery && !slow_start(tp)) {
    tp->snd_cwnd = in_flight(tp) + larger(acked, 1);
  } else {
    if (slow_start(tp)) tp->snd_cwnd = smaller(tp->snd_cwnd + acked, tp->snd_ssthresh);
    if (!slow_start(tp)) tp->snd_cwnd = !slot || slot->receiver_limits ? never_binds(tp) : larger(tp->snd_ssthresh, 2);
  }
  if (slot) copy_state(tp, slot);
  set_rate(tp, tp->snd_cwnd);
  return 0;
}

SEC("struct_ops/set_state")
int set_state(u64 *ctx) {
  struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
  const u32 state = (u8)ctx[1];
  struct start *start = own_of(tp);
  start->own.state = state;
  if (state == TCP_CA_Loss) {
    start->delay_min = start->found = 0;
    start_round(tp, start);
  }
  if (state == TCP_CA_Recovery) tp->snd_cwnd = in_flight(tp) + 1;
  struct slot *slot = slot_of(tp);
  if (!slot) return 0;
  count_state(tp, slot, state);
  copy_state(tp, slot);
  return 0;
}

// Of what is in flight: the window means nothing here.
SEC("struct_ops/ssthresh")
u32 ssthresh(u64 *ctx) { return larger(in_flight((struct tcp_sock *)ctx[0]) / 2, 2); }

SEC("struct_ops/undo_cwnd")
u32 undo_cwnd(u64 *ctx) { return ((struct tcp_sock *)ctx[0])->snd_cwnd; }

char _license[] SEC("license") = "GPL";
