// Writes vivace_reference.h: pacing rate (bytes a second) and window (packets) of the module over kernel_path.h,
// every 100 ms.
//
//   git clone -b vivace https://github.com/PCCproject/PCC-Kernel && git -C PCC-Kernel checkout ed39d0f
//   sed '/^#include/d; /^static struct tcp_congestion_ops/,$d' PCC-Kernel/src/tcp_pcc.c > tcp_pcc.inc
//   g++ -std=c++20 -O1 -fpermissive -w -I. -Icpp/include -Icpp/src cpp/tests/references/vivace_record.cc
//   ./a.out > cpp/tests/references/vivace_reference.h
#include <cstdio>

#include "kernel_path.h"

#include "kernel.h"

#include "tcp_pcc.inc"

int main() {
  sock socket{};
  socket.sk_max_pacing_rate = ~u64{0};
  tcp_sock& tp = the_connection;
  tp.mss_cache = KernelPath::kMss;
  tp.snd_cwnd = 10;
  tp.snd_cwnd_clamp = ~0u;
  KernelPath path;
  const auto tell = [&] {
    tp.srtt_us = static_cast<u32>(path.srtt_us << 3);
    tp.tcp_mstamp = static_cast<u64>(path.now_us);
    tp.data_segs_out = path.sent;
    tp.delivered = path.delivered;
    tp.lost = path.lost;
  };
  tell();
  pcc_init(&socket);
  std::printf("// Written by vivace_record.cc from github.com/PCCproject/PCC-Kernel, branch vivace at ed39d0f.\n"
              "#pragma once\n\n");
  std::printf("struct VivaceRecord {\n  double rate;\n  unsigned window;\n};\n\n");
  std::printf("inline constexpr VivaceRecord kVivaceRecords[] = {\n");
  for (int tick = 1; tick <= 20'000; ++tick) {
    path.step(socket.sk_pacing_rate, tp.snd_cwnd);
    tell();
    const rate_sample sample{};
    if (path.newly_delivered + path.newly_lost > 0) pcc_process_sample(&socket, &sample);
    if (tick % 50 == 0) {
      std::printf("    {%llu, %u},\n", static_cast<unsigned long long>(socket.sk_pacing_rate), tp.snd_cwnd);
    }
  }
  std::printf("};\n");
}
