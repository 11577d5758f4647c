// As much of the kernel as the congestion control modules need that are run here outside of it. `sed '/^#include/d'` takes their
// own #include lines away; the harness defines the socket's fields as globals of one connection.
#pragma once
#include <cstdint>
#include <cstdlib>

#include "netbuf/rng.h"

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using s32 = int32_t;
using s64 = int64_t;

#define __read_mostly
#define __init
#define __exit
#define THIS_MODULE 0
#define KERN_INFO
#define GFP_KERNEL 0
#define printk(...) ((void)0)
#define pr_debug_ratelimited(...) ((void)0)
#define unlikely(x) (x)
#define BUILD_BUG_ON(x) ((void)0)
#define cmpxchg(pointer, old, next) ((void)0)
#define module_init(x)
#define module_exit(x)
#define module_param(...) static_assert(true)
#define MODULE_PARM_DESC(...) static_assert(true)
#define MODULE_AUTHOR(x) static_assert(true)
#define MODULE_LICENSE(x) static_assert(true)
#define MODULE_DESCRIPTION(x) static_assert(true)
#define EXPORT_SYMBOL_GPL(x)
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define min_t(type, a, b) min((type)(a), (type)(b))
#define max_t(type, a, b) max((type)(a), (type)(b))
#define clamp(x, low, high) min(max(x, low), high)
#define do_div(n, base) ((n) /= (base))
inline u64 div_u64(u64 a, u32 b) { return a / b; }

constexpr s64 USEC_PER_SEC = 1'000'000, S64_MIN = INT64_MIN;
constexpr u32 USEC_PER_MSEC = 1000, HZ = 250, TCP_INFINITE_SSTHRESH = 0x7fffffff, TCP_INIT_CWND = 10;
enum { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };
enum { SK_PACING_NONE, SK_PACING_NEEDED, TCP_CONG_NON_RESTRICTED };
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
  u32 srtt_us, mss_cache, snd_cwnd, snd_cwnd_clamp, snd_cwnd_cnt, snd_ssthresh, prior_ssthresh, prior_cwnd, data_segs_out;
  u32 delivered, lost, app_limited, snd_una, snd_nxt, high_seq, tlp_high_seq, prr_delivered, prr_out, undo_marker, min_rtt;
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
inline void kfree(void* memory) { free(memory); }
inline u32 tcp_packets_in_flight(const tcp_sock*) { return the_in_flight; }
inline u32 prandom_u32_max(u32 below) { return the_random.below(below); }
inline void get_random_bytes(char* bytes, int) { *bytes = static_cast<char>(the_random.below(4)); }  // the module looks at two bits

struct tcp_congestion_ops {
  int flags;
  const char* name;
  int owner;
  void (*init)(sock*);
  void (*release)(sock*);
  void (*cong_control)(sock*, const rate_sample*);
  u32 (*undo_cwnd)(sock*);
  u32 (*ssthresh)(sock*);
  void (*set_state)(sock*, u8);
  void (*cong_avoid)(sock*, u32, u32);
  void (*pkts_acked)(sock*, const ack_sample*);
  void (*in_ack_event)(sock*, u32);
  void (*cwnd_event)(sock*, tcp_ca_event);
};
inline int tcp_register_congestion_control(tcp_congestion_ops*) { return 0; }
inline void tcp_unregister_congestion_control(tcp_congestion_ops*) {}
