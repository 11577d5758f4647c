// The window is what the user sets: the control "agent" of the simulator (cpp/src/cc/agent.cc), for kernel sockets.
// Neither acknowledgements nor losses move it; a time-out sets it to one segment until the next decision. Before the
// first decision it is what the connection begins with, and in a slow start what that has grown to. ssthresh is kept
// as RFC 5681 would have it, to be looked at. With cong_control the kernel leaves the window alone in recovery,
// after it and after idle times.
#include "slots.h"

struct steered {
  struct own own;
  u64 halted;               // the decision that a time-out has overruled, plus 1; 0: none
  u32 delivered;            // packets, up to the last acknowledgement
  // Of the slow start: the acknowledgement's round trip, which has not counted yet, or no positive number; the latest
  // and the least; microseconds. How many in a row are long.
  s32 sample;
  u32 rtt, least, longer;
  u32 round, round_end;     // packets of its round, delivered when that ends
  u32 lost, lost_before;    // packets, up to the last acknowledgement, and up to the round
};

enum { LONG_ROUND_TRIPS = 8, LEAST_RISE = 4000, MOST_RISE = 16000 };  // 1, microseconds, microseconds
enum { LEAST_LOST = 8, PACKETS_TO_ONE_LOST = 50 };                    // of a round

inline_always void set_window(struct tcp_sock *tp, struct slot *slot) {
  const struct steered *steered = own_of(tp);
  const u64 decision = slot->decision;
  if (!decision) return;
  const u32 mss = tp->mss_cache;
  const u64 bytes = slot->window_bytes;
  u64 packets = steered->halted == decision + 1 || !mss ? 1 : bytes / mss;
  if (packets < 1) packets = 1;
  if (packets == 1 && slot->fine && steered->halted != decision + 1 && bytes > mss) packets = 2;
  if (packets > 1 << 30) packets = 1 << 30;
  tp->snd_cwnd = packets;
}

// Bytes of a window below two segments that the pace alone keeps; 0: it is none.
inline_always u64 fine_window(const struct tcp_sock *tp, const struct slot *slot) {
  const struct steered *steered = own_of((struct tcp_sock *)tp);
  const u64 decision = slot->decision, bytes = slot->window_bytes;
  const u32 mss = tp->mss_cache;
  if (!slot->fine || !decision) return 0;
  if (steered->halted == decision + 1) return bytes < mss ? bytes : mss;
  return bytes < 2 * (u64)mss ? bytes : 0;
}

inline_always int starting(const struct tcp_sock *tp, const struct slot *slot) {
  return slot->slow_start && !slot->decision && tp->snd_ssthresh >= TCP_INFINITE_SSTHRESH;
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

SEC("struct_ops/init")
int init(u64 *ctx) {
  struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
  struct steered *steered = own_of(tp);
  find_slot(tp);
  steered->halted = 0;
  steered->sample = steered->rtt = steered->longer = 0;
  steered->least = ~0u;
  steered->delivered = steered->round_end = tp->delivered;
  steered->lost = tp->lost;
  struct slot *slot = slot_of(tp);
  if (!slot) return 0;
  set_window(tp, slot);
  copy_state(tp, slot);
  return 0;
}

SEC("struct_ops/pkts_acked")
int pkts_acked(u64 *ctx) {
  struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
  struct slot *slot = slot_of(tp);
  const struct ack_sample *sample = (const struct ack_sample *)ctx[1];
  struct steered *steered = own_of(tp);
  steered->sample = sample->rtt_us;
  if (slot) count_ack(tp, slot, sample);
  return 0;
}

SEC("struct_ops/cong_control")
int cong_control(u64 *ctx) {
  struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
  struct slot *slot = slot_of(tp);
  struct steered *steered = own_of(tp);
  const u32 acked = tp->delivered - steered->delivered;
  steered->delivered = tp->delivered;
  if (slot) {
    if (starting(tp, slot)) count_lost(tp, steered, acked);
    // a window that was not half used has not been confirmed
    if (starting(tp, slot) && tp->snd_cwnd < 2 * (tp->packets_out + acked)) tp->snd_cwnd += acked;
    if (starting(tp, slot)) watch(tp, steered);  // the window has grown by what this one acknowledges
    set_window(tp, slot);
    copy_state(tp, slot);
  }
  const u64 fine = slot && tp->srtt_us ? fine_window(tp, slot) : 0;
  if (fine) {
    tp->inet_conn.icsk_inet.sk.sk_pacing_rate = fine * 8000000 / tp->srtt_us;  // eighths
  } else if (slot && slot->paced && slot->rtt_least_us) {
    const u64 window = (u64)larger(tp->snd_cwnd, tp->packets_out) * tp->mss_cache;
    tp->inet_conn.icsk_inet.sk.sk_pacing_rate = window * 1200000 / slot->rtt_least_us;
  } else {
    set_rate(tp, tp->snd_cwnd);
  }
  return 0;
}

SEC("struct_ops/set_state")
int set_state(u64 *ctx) {
  struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
  const u32 state = (u8)ctx[1];
  struct steered *steered = own_of(tp);
  struct slot *slot = slot_of(tp);
  steered->own.state = state;
  if (state == TCP_CA_Loss) {
    if (slot && starting(tp, slot)) tp->snd_ssthresh = end_start(tp, steered);
    tp->snd_cwnd = 1;
  }
  if (!slot) return 0;
  if (state == TCP_CA_Loss) steered->halted = slot->decision + 1;
  count_state(tp, slot, state);
  copy_state(tp, slot);
  return 0;
}

SEC("struct_ops/ssthresh")
u32 ssthresh(u64 *ctx) {
  struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
  const struct slot *slot = slot_of(tp);
  if (slot && starting(tp, slot)) return TCP_INFINITE_SSTHRESH;
  return larger(in_flight(tp) / 2, 2);
}

SEC("struct_ops/undo_cwnd")
u32 undo_cwnd(u64 *ctx) { return ((struct tcp_sock *)ctx[0])->snd_cwnd; }

char _license[] SEC("license") = "GPL";
