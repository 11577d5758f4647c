// rLEDBAT's steps, one arrival at a time: draft-irtf-iccrg-ledbat-plus-plus, 4.1 to 4.5, and RFC 9840.
#include <cmath>

#include "netbuf/config.h"
#include "worlds.h"

using namespace netbuf;

namespace {

constexpr double kMss = 1448;
constexpr Time kBase = 40 * kMillisecond, kTarget = 60 * kMillisecond;

std::unique_ptr<ReceiverControl> rledbat(bool slowdowns) {
  FlowConfig config;
  config.receiver = "rledbat";
  config.receiver_parameters = {{"slowdowns", slowdowns}};
  return make_receiver_control(config, 1448);
}

struct Course {
  std::unique_ptr<ReceiverControl> control;
  Time now = kSecond;

  explicit Course(bool slowdowns = true) : control(rledbat(slowdowns)) {}
  int64_t packet(Time rtt, Time after = kMillisecond, bool repeated = false) {
    now += after;
    return control->window({now, kMillisecond, 0, 1448, rtt, 0, 0, 0, 0, repeated});
  }
  // Through the first slow start, which a queue beyond three quarters of the target ends, at some window or above.
  int64_t settle(double window) {
    int64_t reached = 0;
    do reached = packet(kBase);
    while (static_cast<double>(reached) < window);
    for (int i = 0; i < 4; ++i) reached = packet(kBase + kTarget - 10 * kMillisecond, 0);
    return reached;
  }
};

}  // namespace

TEST(slow_start_begins_at_two_segments_and_grows_by_the_gain) {
  // Gains of 1 / ceil(2 target / base), a sixteenth at least.
  for (const auto& [base, divisor] :
       {std::pair{kBase, 3.0}, {100 * kMillisecond, 2.0}, {kMillisecond, 16.0}, {300 * kMillisecond, 1.0}}) {
    Course one;
    CHECK_EQ(one.control->initial_window(), 2 * 1448);
    double window = 2 * kMss;
    for (int i = 0; i < 100; ++i) {
      window += kMss / divisor;
      CHECK_NEAR(static_cast<double>(one.packet(base)), window, 2);
    }
  }
}

TEST(the_first_slow_start_ends_at_three_quarters_of_the_target) {
  Course below, above;
  for (int i = 0; i < 50; ++i) below.packet(kBase), above.packet(kBase);
  int64_t before = 0;
  for (int i = 0; i < 6; ++i) {
    before = above.packet(kBase + 46 * kMillisecond);
    below.packet(kBase + 44 * kMillisecond);
  }
  CHECK_LT(above.packet(kBase + 46 * kMillisecond) - before, 30);  // a third of a segment a round trip
  const int64_t growing = below.packet(kBase + 44 * kMillisecond);
  CHECK_NEAR(static_cast<double>(below.packet(kBase + 44 * kMillisecond) - growing), kMss / 3, 2);
}

TEST(a_round_trip_adds_the_gain_or_takes_a_share_of_the_window) {
  // Of the draft's 4.2, spread over a round trip's packets: W += gain - (queue / target - 1) W, by no more than W / 2.
  for (const auto& [queue, expected] :
       {std::pair{kTarget / 2, 1.0 / 3}, {kTarget * 11 / 10, 1.0 / 3 - 0.1 * 60}, {3 * kTarget, -0.5 * 60}}) {
    Course one(false);
    one.settle(60 * kMss);
    for (int i = 0; i < 3; ++i) one.packet(kBase + queue, 0);  // the least of four samples
    const auto before = static_cast<double>(one.packet(kBase + queue, 0));
    const double change = static_cast<double>(one.packet(kBase + queue, 0)) - before;
    CHECK_NEAR(change * before / kMss / kMss, expected * (expected < 0 ? before / (60 * kMss) : 1),
               0.08 * std::fabs(expected) + 0.15);
  }
}

TEST(a_packet_sent_again_halves_the_window_once_a_round_trip) {
  Course one(false);
  const auto before = static_cast<double>(one.settle(60 * kMss));
  CHECK_NEAR(static_cast<double>(one.packet(kBase, 0, true)), before / 2, 2 * kMss);
  CHECK_GT(static_cast<double>(one.packet(kBase, 10 * kMillisecond, true)), before / 2 - 2 * kMss);
  one.packet(kBase, 200 * kMillisecond);
  CHECK_NEAR(static_cast<double>(one.packet(kBase, 0, true)), before / 4, 2 * kMss);
}

TEST(slowdowns_take_a_tenth_of_the_time) {
  Course one;
  const auto before = static_cast<double>(one.settle(60 * kMss));
  const Time ended = one.now;
  const auto wait_for = [&](auto&& condition) {
    while (!condition(static_cast<double>(one.packet(kBase + 10 * kMillisecond))) && one.now < ended + 100 * kSecond) {}
    return one.now;
  };
  const auto low = [](double window) { return window == 2 * kMss; };
  const Time first = wait_for(low);
  CHECK_NEAR(seconds(first - ended), 2 * 0.09, 0.1);  // two round trips after it
  const Time left = wait_for([&](double window) { return !low(window); });
  CHECK_NEAR(seconds(left - first), 2 * 0.05, 0.01);  // for two round trips
  const Time refilled = wait_for([&](double window) { return window >= before; });
  CHECK_LT(refilled, left + kSecond);                 // slow start to where it was
  const Time second = wait_for(low);
  CHECK_NEAR(seconds(second - refilled), 9 * seconds(refilled - first), 0.05 * 9);
}
