// The window is what the user sets: the control "agent" of the simulator (cpp/src/cc/agent.cc), for kernel sockets.
// Before the first decision it is what the connection begins with, and in a slow start what that has grown to. ssthresh
// is kept as RFC 5681 would have it, to be looked at. With cong_control the kernel leaves the window alone in recovery,
// after it and after idle times.
#include "slots.h"
#include "steered.h"

struct agent {
  struct own own;
  struct steered steered;
};

// The slot is the user's to write meanwhile; one that is missing orders nothing.
inline_always struct order order_of(const struct slot *slot) {
  struct order order = {};
  if (!slot) return order;
  order.decision = slot->decision;
  order.window_bytes = slot->window_bytes;
  order.paced = slot->paced;
  order.fine = slot->fine;
  order.slow_start = slot->slow_start;
  order.rtt_least_us = slot->rtt_least_us;
  return order;
}

SEC("struct_ops/init")
int init(u64 *ctx) {
  struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
  struct agent *agent = own_of(tp);
  find_slot(tp);
  begin_steering(tp, &agent->steered);
  struct slot *slot = slot_of(tp);
  if (!slot) return 0;
  const struct order order = order_of(slot);
  set_window(tp, &agent->steered, &order);
  copy_state(tp, slot);
  return 0;
}

SEC("struct_ops/pkts_acked")
int pkts_acked(u64 *ctx) {
  struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
  struct slot *slot = slot_of(tp);
  const struct ack_sample *sample = (const struct ack_sample *)ctx[1];
  struct agent *agent = own_of(tp);
  agent->steered.sample = sample->rtt_us;
  if (slot) count_ack(tp, slot, sample);
  return 0;
}

SEC("struct_ops/cong_control")
int cong_control(u64 *ctx) {
  struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
  struct slot *slot = slot_of(tp);
  struct agent *agent = own_of(tp);
  const struct order order = order_of(slot);
  const u32 acked = take_delivered(tp, &agent->steered);
  if (slot) {
    steer(tp, &agent->steered, &order, acked);
    copy_state(tp, slot);
  }
  pace(tp, &agent->steered, &order);
  return 0;
}

SEC("struct_ops/set_state")
int set_state(u64 *ctx) {
  struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
  const u32 state = (u8)ctx[1];
  struct agent *agent = own_of(tp);
  struct slot *slot = slot_of(tp);
  agent->own.state = state;
  const struct order order = order_of(slot);
  if (state == TCP_CA_Loss) time_out(tp, &agent->steered, &order);
  if (!slot) return 0;
  count_state(tp, slot, state);
  copy_state(tp, slot);
  return 0;
}

SEC("struct_ops/ssthresh")
u32 ssthresh(u64 *ctx) {
  struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
  const struct order order = order_of(slot_of(tp));
  return keep_threshold(tp, &order);
}

SEC("struct_ops/undo_cwnd")
u32 undo_cwnd(u64 *ctx) { return ((struct tcp_sock *)ctx[0])->snd_cwnd; }

char _license[] SEC("license") = "GPL";
