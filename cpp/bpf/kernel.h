// What the programs here touch of the kernel's types. Offsets are the running kernel's: whoever loads the programs has
// them relocated (CO-RE), so that members are named here, in any order, and the rest is left out.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef int s32;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;

#define SEC(name) __attribute__((section(name), used))
#define KERNEL __attribute__((preserve_access_index))
#define inline_always static inline __attribute__((always_inline))

// Maps are described by the types of such members, programs' addresses are what helpers have as numbers (linux/bpf.h).
#define NUMBER(name, value) int(*name)[value]
#define TYPE(name, type) type *name
enum { MAP_HASH = 1, MAP_ARRAY = 2, MAP_SK_STORAGE = 24, NO_PREALLOC = 1, MMAPABLE = 1 << 10, ANY = 0 };
enum { STORAGE_CREATE = 1 };
static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static long (*const map_update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*const map_delete)(void *map, const void *key) = (void *)3;
static u64 (*const now_ns)(void) = (void *)5;
static void *(*const storage_get)(void *map, void *socket, void *value, u64 flags) = (void *)107;
static long (*const storage_delete)(void *map, void *socket) = (void *)108;

// include/net/tcp.h, include/linux/tcp.h, include/uapi/linux/tcp.h
enum { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };
enum { TCP_INFINITE_SSTHRESH = 0x7fffffff };
enum { SK_PACING_NONE, SK_PACING_NEEDED };

struct in6_addr {
  union { u32 u6_addr32[4]; } in6_u;
} KERNEL;

struct sock_common {
  struct { long counter; } skc_cookie;
  u32 skc_daddr, skc_rcv_saddr;  // big-endian
  u16 skc_family, skc_num, skc_dport;  // the last one big-endian
  struct in6_addr skc_v6_daddr, skc_v6_rcv_saddr;  // not in every kernel
} KERNEL;

struct sock {
  struct sock_common __sk_common;
  unsigned long sk_pacing_rate;
  u32 sk_pacing_status;
} KERNEL;

struct inet_sock {
  struct sock sk;
} KERNEL;

struct inet_connection_sock {
  struct inet_sock icsk_inet;
  u64 icsk_ca_priv[13];
} KERNEL;

struct tcp_sock {
  struct inet_connection_sock inet_conn;
  u32 snd_wnd, mss_cache, snd_cwnd, snd_ssthresh, snd_una, snd_nxt;
  u32 packets_out, sacked_out, lost_out, retrans_out, total_retrans;
  u32 lost, delivered, srtt_us, data_segs_out;
  u64 tcp_wstamp_ns, tcp_mstamp;
} KERNEL;

struct ack_sample {
  u32 pkts_acked;
  s32 rtt_us;
  u32 in_flight;
} KERNEL;

inline_always u32 in_flight(const struct tcp_sock *tp) {
  return tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
}
inline_always u32 larger(u32 a, u32 b) { return a > b ? a : b; }
inline_always u32 smaller(u32 a, u32 b) { return a < b ? a : b; }

// What the kernel paces by, and sizes its bursts by in any case, where a congestion control sets no rate (behaviour of
// tcp_update_pacing_rate): twice a window a round trip in slow start, 1.2 later.
inline_always void set_rate(struct tcp_sock *tp, u32 cwnd) {
  const u32 srtt = tp->srtt_us;  // eighths
  if (!srtt) return;
  const u64 share = cwnd < tp->snd_ssthresh / 2 ? 200 : 120;
  tp->inet_conn.icsk_inet.sk.sk_pacing_rate = (u64)larger(cwnd, tp->packets_out) * tp->mss_cache * share * 80000 / srtt;
}
