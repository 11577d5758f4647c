// The window is what the user sets: the control "agent" of the simulator (cpp/src/cc/agent.cc), for kernel sockets. Neither
// acknowledgements nor losses move it; a time-out sets it to one segment until the next decision. Before the first decision it is
// what the connection begins with. ssthresh is kept as RFC 5681 would have it, to be looked at. With cong_control the kernel
// leaves the window alone in recovery, after it and after idle times.
#include "slots.h"

struct steered {
  struct own own;
  u64 halted;               // the decision that a time-out has overruled, plus 1; 0: none
};

inline_always void set_window(struct tcp_sock *tp, struct slot *slot) {
  const struct steered *steered = own_of(tp);
  const u64 decision = slot->decision;
  if (!decision) return;
  const u32 mss = tp->mss_cache;
  u64 packets = steered->halted == decision + 1 || !mss ? 1 : slot->window_bytes / mss;
  if (packets < 1) packets = 1;
  if (packets > 1 << 30) packets = 1 << 30;
  tp->snd_cwnd = packets;
}

SEC("struct_ops/init")
int init(u64 *ctx) {
  struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
  struct steered *steered = own_of(tp);
  find_slot(tp);
  steered->halted = 0;
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
  if (slot) count_ack(tp, slot, (const struct ack_sample *)ctx[1]);
  return 0;
}

SEC("struct_ops/cong_control")
int cong_control(u64 *ctx) {
  struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
  struct slot *slot = slot_of(tp);
  if (slot) {
    set_window(tp, slot);
    copy_state(tp, slot);
  }
  if (slot && slot->paced && slot->rtt_least_us) {
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
  if (state == TCP_CA_Loss) tp->snd_cwnd = 1;
  if (!slot) return 0;
  if (state == TCP_CA_Loss) steered->halted = slot->decision + 1;
  count_state(tp, slot, state);
  copy_state(tp, slot);
  return 0;
}

SEC("struct_ops/ssthresh")
u32 ssthresh(u64 *ctx) { return larger(in_flight((struct tcp_sock *)ctx[0]) / 2, 2); }

SEC("struct_ops/undo_cwnd")
u32 undo_cwnd(u64 *ctx) { return ((struct tcp_sock *)ctx[0])->snd_cwnd; }

char _license[] SEC("license") = "GPL";
