#include "netbuf/echoes.h"

#include <algorithm>
#include <array>
#include <utility>

namespace netbuf {

namespace {
constexpr Time kSamples = 64;   // a round trip: fewer lag behind where queues lengthen it

// What so many samples leave of an average.
constexpr auto kLeft = [] {
  std::array<double, 65> left{1};
  for (size_t n = 1; n < left.size(); ++n) left[n] = left[n - 1] * 0.875;
  return left;
}();
}


void EchoedRoundTrips::sample(Time sent_at, Time now, Time unit) {
  uint32_t next = left_.head();
  do {
    ++next;
    next_arrival_ = next != reached_ ? left_[next].arrived : kNever;
  } while (next_arrival_ <= sent_at);
  const Left& echoed = left_[next - 1];
  const uint32_t number = std::exchange(sampled_, echoed.number);
  const Time at = std::exchange(sampled_at_, echoed.at);
  left_.pop_to(next);
  const Time round_trip = std::max<Time>(now / unit - sampled_at_ / unit, 1) * unit;
  if (round_trip == average_) [[likely]] return;
  if (round_trip < average_) {
    average_ = round_trip;
  } else {
    // As many as the unit tells apart.
    const Time most = each_ > 0 ? 1 : std::min<Time>(sampled_ - number, (sampled_at_ - at) / unit);
    const double old = kLeft[static_cast<size_t>(std::clamp<Time>(most, 1, 64))];
    average_ = round_trip - static_cast<Time>(old * static_cast<double>(round_trip - average_));
  }
  apart_ = std::max(kMillisecond, average_ / kSamples);
}

}  // namespace netbuf
