// What is read of segments and their acknowledgements, and how lateness is counted.
#include "netbuf/tap.h"

#include <vector>

#include "check.h"
#include "netbuf/lateness.h"

namespace {

using namespace netbuf;

enum : uint8_t { kFin = 1, kSynFlag = 2, kRst = 4, kAckFlag = 16 };

std::vector<uint8_t> segment(uint32_t seq, uint32_t ack, uint32_t payload, uint8_t flags = kAckFlag,
                             bool backward = false) {
  std::vector<uint8_t> p(52 + payload);
  p[0] = 0x45;
  p[9] = 6;
  const auto put = [&](size_t at, uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) p[at + static_cast<size_t>(i)] = static_cast<uint8_t>(value >> 8 * (bytes - 1 - i));
  };
  put(20, backward ? 5001 : 40000, 2);
  put(22, backward ? 40000 : 5001, 2);
  put(24, seq, 4);
  put(28, ack, 4);
  p[32] = 8 << 4;                     // 32 bytes of header
  p[33] = flags;
  return p;
}

TapSeen forward(uint32_t seq, uint32_t payload, uint8_t flags = kAckFlag) {
  const auto p = segment(seq, 0, payload, flags);
  return TapSeen::read(p.data(), static_cast<uint32_t>(p.size()), false);
}
TapSeen back(uint32_t ack, uint8_t flags = kAckFlag, uint32_t payload = 0) {
  const auto p = segment(77, ack, payload, flags, true);
  return TapSeen::read(p.data(), static_cast<uint32_t>(p.size()), true);
}

TEST(headers_are_read) {
  const TapSeen data = forward(1000, 1448);
  CHECK(data.tcp && data.data() && !data.syn && !data.fin && !data.reset);
  CHECK_EQ(data.seq, 1000u);
  CHECK_EQ(data.payload, 1448u);
  CHECK_EQ(data.ports, 40000u << 16 | 5001u);
  const TapSeen ack = back(2448);
  CHECK_EQ(ack.ports, data.ports);
  CHECK_EQ(ack.ack, 2448u);
  CHECK(!ack.data());
  auto odd = segment(0, 0, 0);
  odd[32] = 4 << 4;                   // a header shorter than the least
  CHECK(!TapSeen::read(odd.data(), static_cast<uint32_t>(odd.size()), false).tcp);
  odd[32] = 15 << 4;                  // longer than the packet
  CHECK(!TapSeen::read(odd.data(), static_cast<uint32_t>(odd.size()), false).tcp);
  odd[9] = 17;
  CHECK(!TapSeen::read(odd.data(), static_cast<uint32_t>(odd.size()), false).tcp);
}

TEST(fragments_have_no_header_but_the_first) {
  auto p = segment(1000, 0, 100);
  p[6] = 0x20;                        // more to come
  CHECK(TapSeen::read(p.data(), static_cast<uint32_t>(p.size()), false).tcp);
  p[7] = 185;
  CHECK(!TapSeen::read(p.data(), static_cast<uint32_t>(p.size()), false).tcp);
  p[6] = 0x01, p[7] = 0;
  CHECK(!TapSeen::read(p.data(), static_cast<uint32_t>(p.size()), false).tcp);
}

Tap opened(uint32_t isn) {
  Tap tap;
  tap.sent(0, forward(isn - 1, 0, kSynFlag));
  tap.answered(10, back(isn, kSynFlag | kAckFlag));
  return tap;
}

TEST(round_trips_are_of_the_newest_segment_acknowledged) {
  for (const uint32_t isn : {1u, 0xfffffa00u}) {  // numbers may wrap
    Tap tap = opened(isn);
    tap.sent(100, forward(isn, 1000));
    tap.sent(200, forward(isn + 1000, 1000));
    CHECK_EQ(tap.in_flight_bytes(), 2000);
    tap.answered(1100, back(isn + 2000));         // a delayed ACK: of the last
    CHECK_EQ(tap.counters().rtt_count, 1u);
    CHECK_EQ(tap.counters().rtt_sum, 900);
    CHECK_EQ(tap.counters().acked_bytes, 2000);
    CHECK_EQ(tap.in_flight_bytes(), 0);
    tap.sent(2000, forward(isn + 2000, 1000));
    tap.sent(2001, forward(isn + 3000, 1000));
    tap.sent(3000, forward(isn + 2000, 1000));    // again
    tap.answered(3500, back(isn + 3000));         // of the first copy, after all
    CHECK_EQ(tap.counters().rtt_count, 1u);
    tap.answered(3501, back(isn + 4000));
    CHECK_EQ(tap.counters().rtt_count, 2u);
    CHECK_EQ(tap.counters().rtt_last, 1500);
    CHECK_EQ(tap.counters().packets_sent, 5u);
    CHECK_EQ(tap.counters().packets_retransmitted, 1u);
    CHECK_EQ(tap.counters().acks, 3u);
    tap.answered(3600, back(isn + 4000));         // a duplicate
    CHECK_EQ(tap.counters().acks, 4u);
    CHECK_EQ(tap.counters().acked_bytes, 4000);
    CHECK_EQ(tap.counters().rtt_min, 900);
  }
}

TEST(segments_acknowledged_selectively_are_round_trips_once) {
  Tap tap = opened(1);
  for (uint32_t i = 0; i < 4; ++i) tap.sent(100 * i, forward(1 + 1000 * i, 1000));
  TapSeen sack = back(1);
  sack.sacked = true;
  sack.sack_end = 2001;                           // the first is missing
  tap.answered(1100, sack);
  CHECK_EQ(tap.counters().rtt_sum, 1000);
  tap.answered(1101, sack);
  sack.sack_end = 4001;
  tap.answered(1400, sack);
  CHECK_EQ(tap.counters().rtt_count, 2u);
  CHECK_EQ(tap.counters().rtt_last, 1100);
  tap.sent(1500, forward(1, 1000));               // again
  tap.answered(2700, back(4001));
  CHECK_EQ(tap.counters().rtt_count, 3u);
  CHECK_EQ(tap.counters().rtt_last, 2700 - 200);  // the third, of which no SACK told: the newest of those not known yet
}

TEST(acknowledgements_of_what_was_never_sent_count_for_nothing) {
  Tap tap = opened(1);
  tap.sent(5, forward(1, 100));
  tap.answered(10, back(5000));
  CHECK_EQ(tap.counters().acked_bytes, 0);
  tap.answered(11, back(101 + 1));                // of the FIN too
  CHECK_EQ(tap.counters().acked_bytes, 100);
  tap.answered(12, TapSeen{});
  CHECK_EQ(tap.counters().acks, 2u);
}

TEST(connections_come_and_go) {
  Tap tap = opened(1);
  tap.sent(5, forward(1, 100));
  tap.sent(6, forward(101, 0, kRst));
  CHECK_EQ(tap.in_flight_bytes(), 0);
  tap.sent(7, forward(101, 100));                 // of none that is known
  CHECK_EQ(tap.counters().packets_sent, 1u);
  tap.received(forward(1, 100));
  tap.dropped(forward(1, 100));
  tap.dropped(forward(1, 0));
  tap.lost(forward(1, 100));
  CHECK_EQ(tap.counters().packets_received, 1u);
  CHECK_EQ(tap.counters().received_bytes, 100);
  CHECK_EQ(tap.counters().queue_drops, 1u);
  CHECK_EQ(tap.counters().random_losses, 1u);
}

TEST(a_receiver_may_end_a_connection) {
  Tap tap = opened(1);
  tap.sent(5, forward(1, 100));
  CHECK_EQ(tap.in_flight_bytes(), 100);
  tap.answered(9, back(1, kRst | kAckFlag));
  CHECK_EQ(tap.in_flight_bytes(), 0);
  tap.sent(10, forward(101, 100));                // of none that is known
  CHECK_EQ(tap.counters().packets_sent, 1u);
}

TEST(in_flight_is_averaged_over_acknowledgements_alone) {
  Tap tap = opened(1);
  tap.sent(5, forward(1, 100));
  tap.answered(9, back(1, kAckFlag, 10));         // data of its own
  CHECK_EQ(tap.counters().acks, 0u);
  CHECK_EQ(tap.counters().in_flight_sum, 0.0);
  tap.answered(10, back(1));
  CHECK_EQ(tap.counters().acks, 1u);
  CHECK_EQ(tap.counters().in_flight_sum, 100.0);
}

TEST(lateness_by_percentile) {
  Lateness late;
  CHECK_EQ(late.percentile_s(0.5), 0.0);
  for (Time i = 1; i <= 1000; ++i) late.add(i * kSecond, i * kSecond + i * kMicrosecond);
  CHECK_EQ(late.count(), 1000u);
  CHECK_NEAR(late.percentile_s(0.5), 500e-6, 500e-6 / 16);
  CHECK_NEAR(late.percentile_s(0.99), 990e-6, 990e-6 / 16);
  CHECK_NEAR(late.percentile_s(1), 1e-3, 1e-12);
  CHECK_NEAR(late.max_s(), 1e-3, 1e-12);
  CHECK_NEAR(late.mean_s(), 500.5e-6, 1e-12);
  Lateness early;
  early.add(10, 5);
  CHECK_EQ(early.max_s(), 0.0);
}

}  // namespace
