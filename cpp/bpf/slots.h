// A row for each steered socket, in memory that the user's side has mapped: what it sets, and what is counted here with
// each acknowledgement. The order is that of netbuf_gym/plants/linux/bpf/windows.py. A socket finds its row when its
// connection stands, or when it is given the congestion control then, by its cookie or by its two addresses; without a
// row it is steered by nobody and counted nowhere.
#pragma once
#include "kernel.h"

struct slot {
  // set by the user
  u64 window_bytes;
  u64 decision;             // 0: none yet; the window counts once this has moved
  u64 interval;             // of measurement: rtt_min_us is of this one
  u64 paced;                // not 0: at 1.2 windows in the least round trip
  u64 slow_start;           // not 0: until the first decision the window grows by what is acknowledged
  u64 receiver_limits;      // not 0: what the receiver advertises may be less than there is to send
  u64 fine;                 // not 0: windows below two segments leave at one in a smoothed round trip
  // counted
  u64 acks;                 // acknowledgements of data
  u64 delivered;            // packets acknowledged, cumulatively or selectively
  u64 in_flight_sum;        // packets, a term an acknowledgement
  u64 rtt_count, rtt_sum_us;
  u64 rtt_interval;         // whose rtt_min_us is
  u64 rtt_min_us, rtt_least_us;  // of the interval; of all
  u64 first_ack_us, last_ack_us;  // CLOCK_MONOTONIC
  u64 first_sent_ns;        // when the connection stood, and the first data left
  u64 last_sent_ns;         // CLOCK_MONOTONIC, when the last packet left
  u64 packets_sent;         // when that was read
  u64 packets_lost, packets_retransmitted;  // marked lost, sent again
  u64 timeouts, recoveries;
  u64 in_flight;            // packets, after the last acknowledgement
  u64 cwnd, ssthresh, mss, srtt_us;  // packets, packets, bytes, microseconds
  u64 state;                // TCP_CA_*
  u64 established;          // 1: since its connection stands
  u64 delivered_before;     // packets, when it was given the control: the SYN
};

struct {
  NUMBER(type, MAP_ARRAY);
  NUMBER(map_flags, MMAPABLE);
  NUMBER(max_entries, 1);   // as many as the loader is asked for
  TYPE(key, u32);
  TYPE(value, struct slot);
} slots SEC(".maps");

struct {
  NUMBER(type, MAP_HASH);
  NUMBER(max_entries, 1);
  TYPE(key, u64);
  TYPE(value, u32);
} keys SEC(".maps");

// First in every control's part of the socket (icsk_ca_priv).
struct own {
  u32 slot;                 // its number plus 1
  u32 state;                // TCP_CA_*
};

inline_always void *own_of(struct tcp_sock *tp) { return tp->inet_conn.icsk_ca_priv; }

inline_always struct slot *slot_of(struct tcp_sock *tp) {
  const struct own *own = own_of(tp);
  const u32 number = own->slot - 1;
  return map_lookup(&slots, &number);
}

inline_always void find_slot(struct tcp_sock *tp) {
  struct own *own = own_of(tp);
  const struct sock_common *common = &tp->inet_conn.icsk_inet.sk.__sk_common;
  u64 key = common->skc_cookie.counter;
  const u32 *number = map_lookup(&keys, &key);
  if (!number) {
    key = (u64)common->skc_rcv_saddr << 32 | common->skc_daddr;  // cookies are smaller
    number = map_lookup(&keys, &key);
  }
  own->slot = number ? *number + 1 : 0;
  own->state = TCP_CA_Open;
  struct slot *slot = slot_of(tp);
  if (!slot) return;
  slot->established = 1;
  slot->delivered_before = tp->delivered;
  slot->first_sent_ns = tp->tcp_mstamp * 1000;
}

// Before losses are looked for: the round trip of the newest packet acknowledged, and what is in flight now.
inline_always void count_ack(struct tcp_sock *tp, struct slot *slot, const struct ack_sample *sample) {
  const s32 rtt = sample->rtt_us;
  if (rtt >= 0) {
    const u64 us = rtt ? rtt : 1;
    ++slot->rtt_count;
    slot->rtt_sum_us += us;
    // Of an ACK of retransmitted packets alone the kernel takes the difference of time stamps, in whole milliseconds:
    // right in the mean, up to one too short, and so no minimum (nor are samples that are whole ones by chance).
    if (us % 1000) {
      if (slot->rtt_interval != slot->interval || us < slot->rtt_min_us) {
        slot->rtt_min_us = us;
        slot->rtt_interval = slot->interval;
      }
      if (!slot->rtt_least_us || us < slot->rtt_least_us) slot->rtt_least_us = us;
    }
  }
  slot->last_ack_us = tp->tcp_mstamp;
  if (!slot->acks++) slot->first_ack_us = slot->last_ack_us;
  slot->in_flight_sum += in_flight(tp);
}

// After: what stands in the socket.
inline_always void copy_state(struct tcp_sock *tp, struct slot *slot) {
  slot->delivered = tp->delivered - (u32)slot->delivered_before;
  slot->last_sent_ns = tp->tcp_wstamp_ns;
  slot->packets_sent = tp->data_segs_out;
  slot->packets_lost = tp->lost;
  slot->packets_retransmitted = tp->total_retrans;
  slot->in_flight = in_flight(tp);
  slot->cwnd = tp->snd_cwnd;
  slot->ssthresh = tp->snd_ssthresh;
  slot->mss = tp->mss_cache;
  slot->srtt_us = tp->srtt_us >> 3;
}

inline_always void count_state(struct tcp_sock *tp, struct slot *slot, u32 state) {
  slot->state = state;
  if (state == TCP_CA_Loss) ++slot->timeouts;
  if (state == TCP_CA_Recovery) ++slot->recoveries;
}
