// What a receiver makes of time stamps: clocks that differ and drift, coarse stamps, wraps, routes that change.
#include "netbuf/one_way_delay.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "check.h"
#include "netbuf/rng.h"

using namespace netbuf;

namespace {

// Packets of 1448 bytes every 1.2 ms, in a queue that swells and empties every two seconds,
// over a path whose delay changes.
struct Course {
  Time unit = kMicrosecond, offset = 50 * kMillisecond, first = 0;
  double drift = 50e-6;
  Time changes_at = kNever, change = 0;
  double noise_ms = 0.2;

  // Median of |estimate - truth| from then on, s.
  double error(Time from, Time until) const {
    OneWayDelay delay({10 * kSecond, 0.1e-6});
    Rng rng(7);
    std::vector<double> errors;
    for (Time sent = 0; sent < until; sent += 1'200'000) {
      const double queue = 30e-3 * (1 - std::cos(seconds(sent) * 3.14159));
      const double jitter = noise_ms * 1e-3 * rng.uniform();
      const Time arrived = sent + 20 * kMillisecond + (sent >= changes_at ? change : 0) + from_seconds(queue + jitter);
      const Time clock = arrived + offset + static_cast<Time>(drift * static_cast<double>(arrived));
      delay.add(clock, static_cast<uint32_t>((first + sent) / unit), unit, 1448);
      if (sent >= from) errors.push_back(std::fabs(delay.queue() - queue));
    }
    std::nth_element(errors.begin(), errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2), errors.end());
    return errors[errors.size() / 2];
  }
};

}  // namespace

TEST(delay_is_known_to_2_ms_under_offset_and_drift) {
  for (const double drift : {-50e-6, 0.0, 50e-6}) {
    for (const Time offset : {-50 * kMillisecond, 50 * kMillisecond, 1'000'000 * kSecond}) {
      Course fine, coarse;
      fine.drift = coarse.drift = drift;
      fine.offset = coarse.offset = offset;
      coarse.unit = kMillisecond;
      CHECK_LT(fine.error(5 * kSecond, 120 * kSecond), 2e-3);
      CHECK_LT(coarse.error(5 * kSecond, 120 * kSecond), 3e-3);
    }
  }
}

TEST(delay_is_known_again_within_15_s_of_a_route_change) {
  for (const Time change : {-15 * kMillisecond, 30 * kMillisecond}) {
    for (const Time unit : {kMicrosecond, kMillisecond}) {
      Course course;
      course.unit = unit;
      course.changes_at = 40 * kSecond;
      course.change = change;
      CHECK_LT(course.error(55 * kSecond, 90 * kSecond), unit == kMicrosecond ? 2e-3 : 3e-3);
      if (change > 0) CHECK_GT(course.error(41 * kSecond, 43 * kSecond), 20e-3);  // until then it passes for a queue
    }
  }
}

TEST(stamps_may_wrap) {
  for (const Time unit : {kMicrosecond, kMillisecond}) {
    Course course;
    course.unit = unit;
    course.first = ((int64_t{1} << 32) - 10'000) * unit;
    CHECK_LT(course.error(5 * kSecond, 60 * kSecond), 3e-3);
  }
  // And more than once in a silence.
  OneWayDelay delay({10 * kSecond, 0.1e-6});
  Time sent = 0;
  for (int i = 0; i < 2000; ++i, sent += i == 1000 ? 10'000 * kSecond : kMillisecond) {
    delay.add(sent + 20 * kMillisecond + (i % 10) * kMillisecond, static_cast<uint32_t>(sent / kMicrosecond),
              kMicrosecond, 1448);
    CHECK_NEAR(delay.raw(), (i % 10) * 1e-3, 1e-5);
  }
}

TEST(silence_does_not_age_what_was_measured) {
  OneWayDelay delay({10 * kSecond, 0.1e-6});
  const auto packet = [&](Time sent, Time transit) {
    delay.add(sent + transit, static_cast<uint32_t>(sent / kMicrosecond), kMicrosecond, 1448);
  };
  for (Time t = 0; t < 5 * kSecond; t += kMillisecond) packet(t, 20 * kMillisecond);
  packet(600 * kSecond, 80 * kMillisecond);
  CHECK_NEAR(delay.raw(), 60e-3, 1e-6);
}

TEST(a_larger_packet_takes_longer_without_a_queue) {
  // 8 us a byte; every tenth packet is large, the others small: the filter learns 1/B, and sees no queue.
  OneWayDelay delay({10 * kSecond, 1e-9});
  double worst = 0;
  for (int i = 0; i < 20'000; ++i) {
    const uint32_t bytes = i % 10 == 0 ? 1448 : 100;
    const Time sent = i * 2 * kMillisecond;
    delay.add(sent + 20 * kMillisecond + bytes * Time{1000}, static_cast<uint32_t>(sent / kMicrosecond), kMicrosecond,
              bytes);
    if (i > 10'000) worst = std::max(worst, delay.queue());
  }
  CHECK_LT(worst, 0.4e-3);                                 // of 1.35 ms that a large one takes longer
}

TEST(a_queue_that_moves_with_every_packet_is_followed) {
  // A link of 1 Mbit/s: packets 12 ms apart, and a queue that swings by 120 ms within a second.
  double median[2];
  for (const bool follows : {false, true}) {
    OneWayDelay delay({10 * kSecond, 0.1e-6, follows ? 2.0 : 0.0});
    std::vector<double> errors;
    for (Time sent = 0; sent < 60 * kSecond; sent += 12 * kMillisecond) {
      const double queue = 60e-3 * (1 - std::cos(seconds(sent) * 6.28318));
      delay.add(sent + 20 * kMillisecond + from_seconds(queue), static_cast<uint32_t>(sent / kMicrosecond),
                kMicrosecond, 1448);
      if (sent > 5 * kSecond) errors.push_back(std::fabs(delay.queue() - queue));
    }
    std::nth_element(errors.begin(), errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2), errors.end());
    median[follows] = errors[errors.size() / 2];
  }
  CHECK_LT(median[true], 2e-3);
  CHECK_GT(median[false], 15e-3);
}
