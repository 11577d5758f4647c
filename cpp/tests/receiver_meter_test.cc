// Headers become what the simulator's receivers know.
#include "netbuf/receiver_meter.h"

#include <vector>

#include "check.h"

namespace netbuf {
namespace {

constexpr uint32_t kStart = 0xfffff000u;   // sequence numbers wrap soon
constexpr Time kNow = 1000 * kSecond;

std::vector<uint8_t> packet(uint32_t seq, uint32_t ack, uint32_t payload, uint32_t stamp, uint32_t echo,
                            uint8_t flags = 16, uint16_t window = 0, bool scaled = false, bool holes = false) {
  std::vector<uint8_t> p(20 + 20 + 12 + (scaled ? 4 : 0) + (holes ? 12 : 0) + payload);
  const auto put = [&](size_t at, uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) p[at + static_cast<size_t>(i)] = static_cast<uint8_t>(value >> 8 * (bytes - 1 - i));
  };
  p[0] = 0x45;
  put(2, static_cast<uint32_t>(p.size()), 2);
  p[9] = 6;
  put(20, 40000, 2), put(22, 5001, 2), put(24, seq, 4), put(28, ack, 4);
  p[32] = static_cast<uint8_t>((p.size() - 20 - payload) / 4 << 4);
  p[33] = flags;
  put(34, window, 2);
  size_t at = 40;
  p[at] = p[at + 1] = 1, p[at + 2] = 8, p[at + 3] = 10;
  put(at + 4, stamp, 4), put(at + 8, echo, 4);
  at += 12;
  if (scaled) p[at] = 1, p[at + 1] = 3, p[at + 2] = 3, p[at + 3] = 7, at += 4;
  if (holes) p[at] = p[at + 1] = 1, p[at + 2] = 5, p[at + 3] = 10;
  return p;
}

// What it was told.
struct Listener final : ReceiverControl {
  explicit Listener(std::vector<Arrival>& heard) : heard_(heard) { counts_network_ = true; }
  int64_t initial_window() const override { return 20'000; }
  int64_t window(const Arrival& arrival) override {
    heard_.push_back(arrival);
    return 30'000;
  }
  std::vector<Arrival>& heard_;
};

std::vector<Arrival>* listening = nullptr;
const Entry<ReceiverControlRecord> entry{{
    .name = "listener of the meter's tests",
    .meaning = "",
    .make = [](const ReceiverSetting&) -> std::unique_ptr<ReceiverControl> {
      return std::make_unique<Listener>(*listening);
    },
}};

struct Met {
  explicit Met(Time unit = kMillisecond, Time offset = 0, double drift = 0) {
    listening = &heard;
    FlowConfig config;
    config.receiver = "listener of the meter's tests";
    config.timestamp_ns = unit;
    config.clock_offset_ns = offset;
    config.clock_drift_ppm = drift;
    meter = std::make_unique<ReceiverMeter>(config, 1000);
    data(kNow, packet(kStart - 1, 0, 0, stamp(kNow - 20 * kMillisecond, unit), 0, 2, 65535, true));
    answer(kNow, packet(7, kStart, 0, stamp(kNow, unit), 0, 18, 60'000, true));
  }
  static uint32_t stamp(Time t, Time unit) { return static_cast<uint32_t>(t / unit); }
  void data(Time now, const std::vector<uint8_t>& p) { meter->data(now, p.data(), static_cast<uint32_t>(p.size())); }
  void answer(Time now, const std::vector<uint8_t>& p) {
    meter->answer(now, p.data(), static_cast<uint32_t>(p.size()));
  }
  std::vector<Arrival> heard;
  std::unique_ptr<ReceiverMeter> meter;
};

TEST(packets_in_order_are_delivered_and_measured) {
  Met m;
  CHECK_EQ(m.meter->clamp_bytes(), 20'000);
  CHECK_EQ(m.meter->advertised_bytes(), -1);
  for (uint32_t i = 0; i < 10; ++i) {   // over the wrap
    m.data(kNow + i * kMillisecond,
           packet(kStart + i * 1000, 8, 1000, Met::stamp(kNow - 20 * kMillisecond, kMillisecond) + i, 5));
  }
  CHECK_EQ(m.meter->counters().delivered_bytes, 10'000);
  CHECK_EQ(m.meter->counters().packets_received, 10u);
  CHECK_EQ(m.heard.size(), 10u);
  CHECK_EQ(m.heard[3].delivered_bytes, 3000);
  CHECK_EQ(m.heard[3].now, kNow + 3 * kMillisecond);
  CHECK_EQ(m.heard[3].missing, 0u);
  CHECK_EQ(m.heard[3].rtt, -1);
  CHECK_EQ(m.meter->clamp_bytes(), 30'000);
}

TEST(holes_are_missing_and_held_until_they_are_filled) {
  Met m;
  const auto send = [&](uint32_t segment, uint32_t stamp) {
    m.data(kNow, packet(kStart + segment * 1000, 8, 1000, stamp, 5));
  };
  send(0, 100), send(3, 101), send(5, 101), send(3, 102);   // 1, 2 and 4 are missing; a copy of 3
  CHECK_EQ(m.meter->counters().segments_missing, 3u);
  CHECK_EQ(m.meter->counters().segments_repeated, 1u);
  CHECK_EQ(m.meter->held_bytes(), 2000);
  CHECK_EQ(m.meter->clamp_bytes(), 32'000);
  CHECK(m.heard[3].repeated);
  send(1, 99);
  CHECK(m.heard.back().late && !m.heard.back().repeated);
  CHECK_EQ(m.meter->counters().delivered_bytes, 2000);
  send(2, 103);
  CHECK_EQ(m.meter->counters().delivered_bytes, 4000);
  CHECK_EQ(m.meter->held_bytes(), 1000);
  send(4, 104);
  CHECK_EQ(m.meter->counters().delivered_bytes, 6000);
  CHECK_EQ(m.meter->held_bytes(), 0);
  send(0, 105);   // old
  CHECK_EQ(m.meter->counters().delivered_bytes, 6000);
  CHECK_EQ(m.meter->counters().received_bytes, 8000);
}

TEST(a_stretch_over_held_ones_counts_them_once) {
  Met m;
  m.data(kNow, packet(kStart + 2000, 8, 1000, 1, 5));
  m.data(kNow, packet(kStart + 4000, 8, 1000, 1, 5));
  m.data(kNow, packet(kStart, 8, 5000, 1, 5));
  CHECK_EQ(m.meter->counters().delivered_bytes, 5000);
  CHECK_EQ(m.meter->held_bytes(), 0);
}

TEST(the_first_echo_of_an_answer_is_a_round_trip) {
  for (const Time unit : {kMillisecond, kMicrosecond}) {
    Met m(unit);
    const uint32_t left = Met::stamp(kNow + kMillisecond, unit);
    m.answer(kNow + kMillisecond, packet(8, kStart, 0, left, 1, 16, 500));
    m.data(kNow + 41 * kMillisecond, packet(kStart, 8, 1000, 1, left));
    m.data(kNow + 42 * kMillisecond, packet(kStart + 1000, 8, 1000, 1, left));
    CHECK_EQ(m.heard[0].rtt, 40 * kMillisecond);
    CHECK_EQ(m.heard[1].rtt, -1);
    const uint32_t with_holes = Met::stamp(kNow + 50 * kMillisecond, unit);
    m.answer(kNow + 50 * kMillisecond, packet(8, kStart + 2000, 0, with_holes, 1, 16, 500, false, true));
    m.data(kNow + 90 * kMillisecond, packet(kStart + 2000, 8, 1000, 1, with_holes));
    CHECK_EQ(m.heard[2].rtt, -1);
  }
}

TEST(answers_tell_what_is_advertised) {
  Met m;
  m.answer(kNow, packet(8, kStart, 0, 1, 1, 16, 100));
  CHECK_EQ(m.meter->advertised_bytes(), 100 << 7);
  m.data(kNow, packet(kStart, 8, 1000, 1, 1));
  CHECK_EQ(m.meter->advertised_bytes(), (100 << 7) - 1000);
  CHECK_EQ(m.heard[0].window_bytes, 100 << 7);
  m.answer(kNow, packet(8, kStart + 1000, 0, 1, 1, 16, 10));   // taken back
  CHECK_EQ(m.meter->advertised_bytes(), 10 << 7);
}

TEST(a_receivers_clock_may_be_off_and_drift) {
  Met m(kMillisecond, -5 * kSecond, 1000);
  m.data(kNow + 10 * kSecond, packet(kStart, 8, 1000, 1, 1));
  CHECK_EQ(m.heard[0].now, kNow + 5 * kSecond + 10 * kMillisecond);
}

TEST(what_is_no_whole_packet_of_tcp_is_nothing) {
  Met m;
  std::vector<uint8_t> whole = packet(kStart, 8, 1000, 1, 1);
  for (uint32_t length = 0; length < 52; ++length) m.meter->data(kNow, whole.data(), length);
  whole[9] = 17;
  m.data(kNow, whole);
  whole[9] = 6;
  whole[20 + 20 + 3] = 0;   // an option without length
  m.data(kNow, whole);
  CHECK_EQ(m.meter->counters().packets_received, 1u);
  CHECK_EQ(m.meter->counters().stamps_missing, 1u);
  CHECK(m.heard.empty());
}

}  // namespace
}  // namespace netbuf
