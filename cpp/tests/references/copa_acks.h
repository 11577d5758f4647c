// The ACKs that Copa's reference code and ours are both fed: an RTT that is nearly the least again and again, then one
// with a queue that never goes away, then many losses, then quiet. Times are whole microseconds.
#pragma once
#include <cstdint>

struct CopaAck {
  int64_t now_us, rtt_us;
  uint32_t lost;  // packets that this ACK shows to be lost; it acknowledges one other
};

class CopaAcks {
 public:
  static constexpr int kCount = 8000, kEvery = 40;  // ACKs, and how many of them there are to a record

  CopaAck next() {
    const int phase = i_ * 4 / kCount;
    const int64_t step = i_ % 400, triangle = step < 200 ? step : 400 - step;
    int64_t queue_us = triangle * (phase == 1 ? 150 : 40) + draw(300);
    if (phase == 1) queue_us += 15'000;
    const uint32_t chance = phase == 1 ? 5 : phase == 2 ? 400 : 1;
    const uint32_t lost = draw(1000) < chance ? 1 + static_cast<uint32_t>(draw(2)) : 0;
    now_us_ += 700 + draw(1000);
    ++i_;
    return {now_us_, 40'000 + queue_us, lost};
  }

 private:
  int64_t draw(int64_t below) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int64_t>(state_ >> 33) % below;
  }

  uint64_t state_ = 9;
  int64_t now_us_ = 1'000'000;
  int i_ = 0;
};
