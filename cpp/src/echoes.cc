#include "netbuf/echoes.h"

#include <algorithm>
#include <array>

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

void EchoedRoundTrips::push(const Left& left) {
  left_.push(left);
  if (!awaits_) await();
  next_ack_ = left.reached_by + (left.says != Says::blocks);
  next_left_ = each_ > 0 ? (left.at / each_ + 1) * each_
                         : left.at + (average_ == kNever ? kMillisecond : std::max(kMillisecond, average_ / kSamples));
}

void EchoedRoundTrips::reach(uint32_t ack, Time now) {
  do {
    reach_one(now);
  } while (awaits_ && !before(ack, awaited_));
}

void EchoedRoundTrips::sample(Time sent_at, Time now, Time unit) {
  Left echoed{};
  do {
    echoed = left_.front();
    left_.pop();
    next_arrival_ = left_.head() != reached_ ? left_.front().arrived : kNever;
  } while (next_arrival_ <= sent_at);
  const Time round_trip = std::max<Time>(now / unit - echoed.at / unit, 1) * unit;
  // As many as the unit tells apart.
  const Time most = each_ > 0 ? 1 : std::min<Time>(echoed.number - sampled_, (echoed.at - sampled_at_) / unit);
  sampled_ = echoed.number;
  sampled_at_ = echoed.at;
  if (round_trip <= average_) {
    average_ = round_trip;
    return;
  }
  const double old = kLeft[static_cast<size_t>(std::clamp<Time>(most, 1, 64))];
  average_ = round_trip - static_cast<Time>(old * static_cast<double>(round_trip - average_));
}

}  // namespace netbuf
