// The highest rate at which data have arrived lately, and the window that is made of it.
#include "netbuf/receive_rate.h"

#include <cmath>

#include "netbuf/config.h"
#include "receiver_controls/nuwa.h"
#include "worlds.h"

using namespace netbuf;

namespace {

constexpr double kSegment = 1448;

// A segment every gap, from then until a time; the time of the next.
Time feed(ReceiveRate& rate, Time from, Time until, Time gap) {
  for (; from < until; from += gap) rate.add(from, kSegment);
  return from;
}

std::unique_ptr<ReceiverControl> agents_control() {
  FlowConfig config;
  config.receiver = "agent";
  return make_receiver_control(config, 1448);
}

// A receiver that the agent's gain limits: 1448 bytes a millisecond, 20 ms there, 20 ms back, and a queue.
struct Gained {
  std::unique_ptr<ReceiverControl> control;
  Nuwa& nuwa;
  Time sent = 0;

  explicit Gained(double gain, double k)
      : control(agents_control()), nuwa(static_cast<Nuwa&>(*control)) {
    nuwa.set_gain(gain);
    nuwa.set_k(k);
  }
  int64_t packet(Time queue) {
    sent += kMillisecond;
    Arrival arrival{sent + 20 * kMillisecond + queue, kMicrosecond, static_cast<uint32_t>(sent / kMicrosecond), 1448,
                    -1, 0, 0, 60'000, 0, false};
    if (sent / kMillisecond % 10 == 0) arrival.rtt = 40 * kMillisecond + queue;
    return control->window(arrival);
  }
};

}  // namespace

TEST(the_rate_is_what_30_ms_brought_at_most) {
  ReceiveRate rate;
  CHECK_EQ(rate.highest(), 0);
  Time now = feed(rate, 3 * kSecond, 4 * kSecond, kMillisecond);
  CHECK_NEAR(rate.highest(), 1000 * kSegment, 21 * kSegment);
  now = feed(rate, now, now + 80 * kMillisecond, kMillisecond / 2);
  CHECK_NEAR(rate.highest(), 2000 * kSegment, 41 * kSegment);
  // A lower rate shows once the higher one is a quarter of a second old, not before.
  now = feed(rate, now, now + 180 * kMillisecond, 4 * kMillisecond);
  CHECK_NEAR(rate.highest(), 2000 * kSegment, 41 * kSegment);
  feed(rate, now, now + 100 * kMillisecond, 4 * kMillisecond);
  CHECK_NEAR(rate.highest(), 250 * kSegment, 21 * kSegment);
}

TEST(packets_of_one_moment_count_as_those_of_30_ms) {
  ReceiveRate rate;
  for (int i = 0; i < 30; ++i) rate.add(kSecond, kSegment);
  CHECK_NEAR(rate.highest(), 30 * kSegment / 0.03, 1);
}

TEST(a_silence_is_no_longer_than_30_ms) {
  for (const Time silence : {60 * kMillisecond, kSecond, 3600 * kSecond}) {
    ReceiveRate rate;
    const Time now = feed(rate, -5 * kSecond, -4 * kSecond, kMillisecond);   // clocks may be behind
    const double before = rate.highest();
    rate.add(now + silence, kSegment);
    CHECK_EQ(rate.highest(), before);
    feed(rate, now + silence, now + silence + 300 * kMillisecond, 10 * kMillisecond);
    CHECK_LT(rate.highest(), 0.2 * before);                                  // what has been heard since counts
  }
}

TEST(a_gain_makes_the_window_of_rate_and_round_trip) {
  for (const double gain : {0.5, 1.0, 2.0}) {
    Gained one(gain, 4);
    one.nuwa.set_window(20 * kSegment);
    for (int i = 0; i < 500; ++i) one.packet(0);
    CHECK_NEAR(one.nuwa.window_bytes(), gain * 1.448e6 * 0.04 + 4 * kSegment, gain * 2.1 * kSegment);
    // A queue on the way here adds nothing.
    for (int i = 0; i < 3000; ++i) one.packet(30 * kMillisecond);
    CHECK_NEAR(one.nuwa.window_bytes(), gain * 1.448e6 * 0.04 + 4 * kSegment, gain * 2.1 * kSegment);
  }
}

TEST(a_gain_lets_the_window_grow_by_what_arrives) {
  Gained one(16, 8);
  one.nuwa.set_window(20 * kSegment);
  double allowed = one.nuwa.window_bytes();
  for (int i = 0; i < 1000; ++i) {
    one.packet(0);
    allowed += kSegment;
    CHECK_LE(one.nuwa.window_bytes(), allowed);
  }
  CHECK_GT(one.nuwa.window_bytes(), 10 * 40 * kSegment);
  const double before = one.nuwa.window_bytes();
  one.sent += 100 * kSecond;
  one.packet(0);
  CHECK_LE(one.nuwa.window_bytes(), before + 2 * kSegment);
}

TEST(a_gain_needs_the_queue_emptied_too) {
  Gained one(1, 0);
  one.nuwa.set_window(20 * kSegment);
  bool drained = false;
  for (int i = 0; i < 1000; ++i) one.packet(0);
  for (int i = 0; i < 4000; ++i) one.packet(30 * kMillisecond);
  CHECK(!one.nuwa.draining());
  for (int i = 0; i < 3000 && !drained; ++i) {
    const int64_t window = one.packet(30 * kMillisecond);
    drained = one.nuwa.draining();
    if (drained) CHECK_LT(window, 20 * 1448);
  }
  CHECK(drained);
}
