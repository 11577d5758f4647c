// How fast data arrive: the highest rate over a short horizon lately, in steps of time of the receiver's clock.
// A silence longer than the horizon counts as long as the horizon: in an outage there is nothing to measure,
// and nothing is forgotten.
#pragma once
#include <algorithm>

#include "netbuf/types.h"

namespace netbuf {

class ReceiveRate {
 public:
  void add(Time now, double bytes) {
    if (now - last_ > kHorizon) [[unlikely]] skip(now);
    last_ = now;
    while (now >= end_) [[unlikely]] turn();
    sum_ += bytes;
    parts_[at_] += bytes;
    if (sum_ > most_) most_ = sum_;
  }
  // Bytes per second; 0 before anything arrived.
  double highest() const { return most_ / seconds(kHorizon); }

 private:
  static constexpr Time kStep = 10 * kMillisecond, kHorizon = 3 * kStep;
  static constexpr uint32_t kParts = kHorizon / kStep, kMemory = 20;  // steps

  void skip(Time now) {
    end_ = started_ ? end_ + (now - last_ - kHorizon) : now + kStep;
    started_ = true;
  }
  void turn() {
    end_ += kStep;
    sums_[turn_] = sum_;
    turn_ = turn_ + 1 == kMemory ? 0 : turn_ + 1;
    at_ = at_ + 1 == kParts ? 0 : at_ + 1;
    sum_ -= parts_[at_];
    parts_[at_] = 0;
    most_ = std::max(sum_, *std::max_element(sums_, sums_ + kMemory));
  }

  double sum_ = 0, most_ = 0;              // bytes of the horizon; the most of them lately
  Time last_ = -kNever, end_ = 0;
  uint32_t at_ = 0, turn_ = 0;
  bool started_ = false;
  double parts_[kParts] = {}, sums_[kMemory] = {};
};

}  // namespace netbuf
