#include "netbuf/echoes.h"

#include <algorithm>

namespace netbuf {

namespace {
constexpr Time kSamples = 64;   // a round trip: fewer lag behind where queues lengthen it
}

void EchoedRoundTrips::push(uint32_t ack, Time now) {
  left_.push({now, kNever, ack, acks_});
  next_ack_ = ack + 1;
  next_left_ = now + (average_ == kNever ? kMillisecond : std::max(kMillisecond, average_ / kSamples));
}

void EchoedRoundTrips::reach(uint32_t ack, Time now) {
  do {
    left_[reached_++].arrived = now;
  } while (reached_ != left_.tail() && !before(ack, left_[reached_].ack));
  next_arrival_ = left_.front().arrived;
}

void EchoedRoundTrips::sample(Time sent_at, Time now, Time unit) {
  Left echoed{};
  do {
    echoed = left_.front();
    left_.pop();
    next_arrival_ = left_.head() != reached_ ? left_.front().arrived : kNever;
  } while (next_arrival_ <= sent_at);
  const Time round_trip = std::max(now - echoed.at, unit);
  // As many as the unit tells apart.
  const Time most = std::min<Time>(echoed.number - sampled_, (echoed.at - sampled_at_) / unit);
  sampled_ = echoed.number;
  sampled_at_ = echoed.at;
  if (round_trip <= average_) {
    average_ = round_trip;
    return;
  }
  double old = 1;
  for (Time n = std::clamp<Time>(most, 1, 64); n > 0; --n) old *= 0.875;
  average_ = round_trip - static_cast<Time>(old * static_cast<double>(round_trip - average_));
}

}  // namespace netbuf
