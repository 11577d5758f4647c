// As much of the kernel as the congestion control modules need that are run here outside of it. Their own #include
// lines and the tables by which they register are taken away first. There is one connection.
#pragma once
#include <cstdint>
#include <cstdlib>

#include "cc/windowed_max.h"
#include "netbuf/rng.h"
#include "netbuf/types.h"

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using s32 = int32_t;
using s64 = int64_t;

#define __read_mostly
#define KERN_INFO
#define GFP_KERNEL 0
#define printk(...) ((void)0)
#define pr_debug_ratelimited(...) ((void)0)
#define unlikely(x) (x)
#define cmpxchg(pointer, old, next) ((void)0)
#define module_param(...) static_assert(true)
#define MODULE_PARM_DESC(...) static_assert(true)
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define min_t(type, a, b) min((type)(a), (type)(b))
#define max_t(type, a, b) max((type)(a), (type)(b))
#define clamp(x, low, high) min(max(x, low), high)
#define abs(x) ((s32)(x) < 0 ? -(x) : (x))
#define do_div(n, base) ({ const auto remainder = (n) % (base); (n) /= (base); remainder; })
#define min_not_zero(a, b) ((a) == 0 ? (b) : (b) == 0 ? (a) : min(a, b))
inline u64 div_u64(u64 a, u32 b) { return a / b; }

constexpr s64 USEC_PER_SEC = 1'000'000, S64_MIN = INT64_MIN;
constexpr u32 USEC_PER_MSEC = 1000, HZ = 250, TCP_INFINITE_SSTHRESH = 0x7fffffff, TCP_INIT_CWND = 10;
enum { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };
enum { SK_PACING_NONE, SK_PACING_NEEDED };
enum tcp_ca_event { CA_EVENT_TX_START };

struct rate_sample {
  u64 prior_mstamp;
  u32 prior_delivered, prior_in_flight, losses, acked_sacked;
  s32 delivered;
  long interval_us, rtt_us;
  bool is_app_limited, is_retrans, is_ack_delayed;
};
struct ack_sample {
  u32 pkts_acked;
  s32 rtt_us;
};
struct sk_buff {};
struct tcp_sock {
  u32 srtt_us, mss_cache, snd_cwnd, snd_cwnd_clamp, snd_cwnd_cnt, snd_ssthresh, prior_ssthresh, prior_cwnd,
      data_segs_out;
  u32 delivered, lost, app_limited, snd_una, snd_nxt, high_seq, tlp_high_seq, prr_delivered, prr_out, undo_marker,
      min_rtt;
  u64 tcp_mstamp, delivered_mstamp;
};
struct sock {
  u64 sk_pacing_rate, sk_max_pacing_rate;
  int sk_pacing_status, sk_state;
};
struct inet_connection_sock {
  u8 icsk_ca_state;
};

inline tcp_sock the_connection;
inline inet_connection_sock the_state;
inline u64 the_private_part[64];
inline netbuf::Rng the_random(7);
inline u32 the_in_flight, tcp_jiffies32;

inline void tcp_set_ca_state(sock*, u8 state) { the_state.icsk_ca_state = state; }
inline bool tcp_is_cwnd_limited(const sock*) { return true; }
inline tcp_sock* tcp_sk(const sock*) { return &the_connection; }
struct PrivatePart {
  template <class T> operator T*() const { return reinterpret_cast<T*>(the_private_part); }
};
inline PrivatePart inet_csk_ca(const sock*) { return {}; }
inline inet_connection_sock* inet_csk(const sock*) { return &the_state; }
struct Zeroed {
  void* memory;
  template <class T> operator T*() const { return static_cast<T*>(memory); }
};
inline Zeroed kzalloc(size_t bytes, int) { return {calloc(1, bytes)}; }
inline u32 tcp_min_rtt(const tcp_sock* tp) { return tp->min_rtt; }
inline u32 tcp_stamp_us_delta(u64 later, u64 earlier) {
  return later > earlier ? static_cast<u32>(later - earlier) : 0;
}
inline u32 tcp_mss_to_mtu(const sock*, u32 mss) { return mss; }  // paced by the payload, as here
inline u32 tcp_tso_autosize(const sock* sk, u32 mss, u32 least) {
  return max(static_cast<u32>(min(sk->sk_pacing_rate >> 10, u64{65536 - 321})) / mss, least);
}
inline bool tcp_snd_wnd_test(const tcp_sock*, const sk_buff*, unsigned) { return true; }
inline sk_buff* tcp_send_head(const sock*) {
  static sk_buff next;
  return &next;  // there is always more to send
}
inline u32 msecs_to_jiffies(u32 ms) { return ms * HZ / 1000; }
using netbuf::after;
using netbuf::before;
struct minmax {
  netbuf::WindowedMax filter;
};
inline u64 minmax_get(const minmax* m) { return m->filter.get(); }
inline void minmax_reset(minmax* m, u32 time, u64 value) { m->filter.reset(time, value); }
inline void minmax_running_max(minmax* m, u32 window, u32 time, u64 value) { m->filter.update(window, time, value); }
inline void kfree(void* memory) { free(memory); }
inline u32 tcp_packets_in_flight(const tcp_sock*) { return the_in_flight; }
inline u32 prandom_u32_max(u32 below) { return the_random.below(below); }
// The module looks at two bits.
inline void get_random_bytes(char* bytes, int) { *bytes = static_cast<char>(the_random.below(4)); }
