// Writes bbrplus_reference.h: pacing rate (bytes a second) and window (packets) of the module over kernel_path.h,
// every 100 ms.
//
//   git clone https://github.com/cx9208/bbrplus && git -C bbrplus checkout 8e46a57
//   sed "/^#include/d; /^static struct tcp_congestion_ops/,\$d; /^static size_t bbr_get_info/,/^}/d" \
//       bbrplus/tcp_bbrplus.c > tcp_bbrplus.inc
//   g++ -std=c++20 -O1 -fpermissive -w -I. -Icpp/include -Icpp/src cpp/tests/references/bbrplus_record.cc
//   ./a.out > cpp/tests/references/bbrplus_reference.h
#include <cstdio>

#include "kernel_path.h"

#include "kernel.h"

#include "tcp_bbrplus.inc"

int main() {
  sock socket{};
  socket.sk_max_pacing_rate = ~u64{0};
  tcp_sock& tp = the_connection;
  tp.mss_cache = KernelPath::kMss;
  tp.snd_cwnd = 10;
  tp.snd_cwnd_clamp = ~0u;
  tp.min_rtt = KernelPath::kRtt;
  KernelPath path;
  const auto tell = [&] {
    tp.srtt_us = static_cast<u32>(path.srtt_us << 3);
    tp.tcp_mstamp = static_cast<u64>(path.now_us);
    tp.delivered_mstamp = static_cast<u64>(path.delivered_us);
    tp.delivered = path.delivered;
    tp.lost = path.lost;
    the_in_flight = path.in_flight();
    tcp_jiffies32 = static_cast<u32>(path.now_us / 4000) + 1;
  };
  tell();
  bbr_init(&socket);
  std::printf("// Written by bbrplus_record.cc from github.com/cx9208/bbrplus at 8e46a57.\n#pragma once\n\n");
  std::printf("struct BbrPlusRecord {\n  double rate;\n  unsigned window;\n};\n\n");
  std::printf("inline constexpr BbrPlusRecord kBbrPlusRecords[] = {\n");
  for (int tick = 1; tick <= 20'000; ++tick) {
    path.step(socket.sk_pacing_rate, tp.snd_cwnd);
    tell();
    rate_sample sample{};
    sample.prior_delivered = path.sample_prior_delivered;
    sample.prior_in_flight = path.prior_in_flight;
    sample.losses = path.newly_lost;
    sample.acked_sacked = path.newly_delivered;
    sample.delivered = path.sample_interval_us > 0 ? static_cast<s32>(path.sample_delivered) : -1;
    sample.interval_us = path.sample_interval_us > 0 ? path.sample_interval_us : -1;
    sample.rtt_us = path.rtt_us;
    if (path.newly_delivered + path.newly_lost > 0) bbr_main(&socket, &sample);
    if (tick % 50 == 0) {
      std::printf("    {%llu, %u},\n", static_cast<unsigned long long>(socket.sk_pacing_rate), tp.snd_cwnd);
    }
  }
  std::printf("};\n");
}
