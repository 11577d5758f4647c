// Writes copa_reference.h: the windows (packets) and gaps between packets (ms) of the reference code,
// after every 40th ACK.
//
//   git clone https://github.com/venkatarun95/genericCC && git -C genericCC checkout 18299d6
//   g++ -std=c++17 -O1 -IgenericCC -DRANDOM_HH -include cpp/tests/references/copa_random.h \
//       cpp/tests/references/copa_record.cc genericCC/markoviancc.cc genericCC/rtt-window.cc genericCC/estimators.cc
//   ./a.out > cpp/tests/references/copa_reference.h
//
// Of random.hh, which needs Boost, nothing is used.
#include <cstdio>
#include <iostream>
#include <sstream>

#include "copa_acks.h"
#include "markoviancc.hh"

int main() {
  std::ostringstream said;  // the reference reports on standard output
  std::streambuf* const out = std::cout.rdbuf(said.rdbuf());
  MarkovianCC copa(0.5);
  copa.interpret_config_str("do_ss:auto:0.5");
  copa.init();
  CopaAcks acks;
  std::printf("// Written by copa_record.cc from github.com/venkatarun95/genericCC at 18299d6.\n");
  std::printf("#pragma once\n\nstruct CopaRecord {\n  double window_packets, gap_ms;\n};\n\n");
  std::printf("inline constexpr CopaRecord kCopaRecords[] = {\n");
  int sequence = 0;
  for (int i = 0; i < CopaAcks::kCount; ++i) {
    const CopaAck ack = acks.next();
    const double now = ack.now_us / 1e3, sent = (ack.now_us - ack.rtt_us) / 1e3;
    copa.set_timestamp(sent);
    for (uint32_t packet = 0; packet <= ack.lost; ++packet) copa.onPktSent(sequence++);
    copa.set_timestamp(now);
    copa.onACK(sequence, 0, sent);
    if (i % CopaAcks::kEvery == CopaAcks::kEvery - 1) {
      std::printf("    {%.6f, %.6f},\n", copa.get_the_window(), copa.get_intersend_time());
    }
  }
  std::printf("};\n");
  std::cout.rdbuf(out);
}
