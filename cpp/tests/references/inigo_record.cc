// Writes inigo_reference.h: window and slow start threshold (packets) of the module over kernel_path.h, every 100 ms.
// Of the module the half that goes by RTTs; proportional rate reduction in the state CWR, the kernel's business,
// is done here as there.
//
//   git clone https://github.com/systemslab/tcp_inigo && git -C tcp_inigo checkout b3592ff
//   for part in 'define DCTCP_MAX_ALPHA/,/^static struct tcp_congestion_ops' 'static u32 inigo_rtt_ssthresh/,/^}' \
//       'static void inigo_update_rtt_alpha/,/^}' 'static void inigo_init_cwnd_reduction/,/^}' \
//       'void inigo_enter_cwr/,/^}' 'u32 inigo_slow_start/,/^}' 'void inigo_cong_avoid/,/^}' \
//       'static void inigo_pkts_acked/,/^}'; do
//     sed -n "/^#*$part/p" tcp_inigo/tcp_inigo.c | grep -v tcp_congestion_ops
//   done > tcp_inigo.inc
//   g++ -std=c++20 -O1 -fpermissive -w -I. -Icpp/include -Icpp/src cpp/tests/references/inigo_record.cc
//   ./a.out > cpp/tests/references/inigo_reference.h
#include <cstdio>

#include "kernel_path.h"

#include "kernel.h"

#include "tcp_inigo.inc"

static void reduce(tcp_sock& tp, const KernelPath& path, u32 sent_base) {
  const s64 target = tp.snd_ssthresh, in_flight = path.in_flight(), out = path.sent - sent_base;
  tp.prr_delivered += path.newly_delivered;
  const s64 delivered = tp.prr_delivered;
  s64 room = in_flight > target ? (target * delivered + tp.prior_cwnd - 1) / tp.prior_cwnd - out
                                : min(target - in_flight, max(delivered - out, s64{path.newly_delivered}) + 1);
  room = max(room, s64{out ? 0 : 1});
  tp.snd_cwnd = static_cast<u32>(in_flight + room);
}

int main() {
  sock socket{};
  tcp_sock& tp = the_connection;
  tp.snd_cwnd = 10;
  tp.snd_cwnd_clamp = ~0u;
  tp.snd_ssthresh = TCP_INFINITE_SSTHRESH;
  inigo* const state = inet_csk_ca(&socket);
  state->rtt_min = USEC_PER_SEC;
  KernelPath path;
  u32 sent_base = 0;
  std::printf("// Written by inigo_record.cc from github.com/systemslab/tcp_inigo at b3592ff.\n#pragma once\n\n");
  std::printf("struct InigoRecord {\n  unsigned window, ssthresh;\n};\n\n");
  std::printf("inline constexpr InigoRecord kInigoRecords[] = {\n");
  for (int tick = 1; tick <= 20'000; ++tick) {
    path.step(KernelPath::kUnpaced, tp.snd_cwnd);
    tp.snd_una = path.delivered + path.lost;
    tp.snd_nxt = path.sent;
    if (path.newly_delivered > 0) {
      inigo_pkts_acked(&socket, path.newly_delivered, static_cast<s32>(path.rtt_us));
      if (the_state.icsk_ca_state == TCP_CA_CWR && after(tp.snd_una, tp.high_seq)) {
        tp.snd_cwnd = tp.snd_ssthresh;
        the_state.icsk_ca_state = TCP_CA_Open;
      }
      if (the_state.icsk_ca_state == TCP_CA_CWR) {
        reduce(tp, path, sent_base);
      } else {
        inigo_cong_avoid(&socket, 0, path.newly_delivered);
        sent_base = path.sent;
      }
    }
    if (tick % 50 == 0) std::printf("    {%u, %u},\n", tp.snd_cwnd, tp.snd_ssthresh);
  }
  std::printf("};\n");
}
