// A window by what a receiver measures: so many times what the highest receive rate lately fills in the longest
// round trip lately, without the queueing delay on the way here. What others queue on the way back is thereby
// part of the round trip; what waits here is not. The longest: data on the way back let ACKs through in bunches,
// so that round trips differ, and a window that fills the mean of them leaves the link idle between bunches
// (Zhang, Shenker and Clark, "Observations on the dynamics of a congestion control algorithm: the effects of
// two-way traffic", SIGCOMM 1991).
//
// A queue that is too short for it shows by losses: those that come with a queue (and not losses of a wireless link,
// which come without one) put a ceiling above the window, which rises again in time. A loss is a segment that was sent
// again, not one that is missing as yet: packets may overtake each other.
#pragma once
#include <algorithm>

#include "netbuf/receive_rate.h"
#include "netbuf/receiver_control.h"

namespace netbuf {

class MeasuredProduct {
 public:
  // A packet; queue and least_rtt: what is known of the queueing delay and of the round trip, s;
  // window: in force, bytes.
  void add(const Arrival& arrival, double queue, double least_rtt, double window) {
    rate_.add(arrival.now, arrival.bytes);
    if (arrival.rtt >= 0) {
      rtt_ = arrival.rtt;
      if (arrival.now - slot_ > std::max(kSlot, rtt_ / 2)) [[unlikely]] {
        std::copy_backward(longest_, longest_ + kSlots - 1, longest_ + kSlots);
        longest_[0] = 0;
        slot_ = arrival.now;
        around_ = *std::max_element(longest_, longest_ + kSlots);
      }
      longest_[0] = std::max(longest_[0], seconds(arrival.rtt) - queue);
      around_ = std::max(around_, longest_[0]);
    }
    if (arrival.now - turned_ > 2 * rtt_) [[unlikely]] {
      before_ = worst_;
      worst_ = 0;
      turned_ = arrival.now;
    }
    worst_ = std::max(worst_, queue);
    queued_ = kQueued * least_rtt;
    if (arrival.repeated && arrival.now - cut_ > rtt_ && std::max(worst_, before_) >= queued_) [[unlikely]] {
      ceiling_ = kKeep * std::min(ceiling_, window);
      cut_ = arrival.now;
    }
  }

  // What the window becomes with these bytes, of which it grows by as many at most.
  double window(Time now, double gain, double extra, double before, double bytes) {
    if (around_ < 0) return before;
    const double rise = std::max(worst_, before_) < queued_ ? kFastRise : kRise;
    ceiling_ = std::min(ceiling_ * (1 + rise * std::min(1.0, seconds(now - risen_))), kNone);
    risen_ = now;
    return std::min({before + bytes, gain * rate_.highest() * around_ + extra, ceiling_});
  }

 private:
  static constexpr uint32_t kSlots = 4;           // of time in which the longest round trip is looked for
  static constexpr Time kSlot = 125 * kMillisecond;
  static constexpr double kQueued = 0.25;         // of the least round trip: a queue
  // Of the window that lost; a second, with a queue and without.
  static constexpr double kKeep = 0.85, kRise = 0.3, kFastRise = 3;
  static constexpr double kNone = 1e12;

  ReceiveRate rate_;
  double around_ = -1, longest_[kSlots] = {};     // s; negative: unknown
  double ceiling_ = kNone;                        // bytes
  double queued_ = 0;                             // s: from then on it is a queue
  // s: the longest queueing delay of these two round trips, and of those before.
  double worst_ = 0, before_ = 0;
  // A receiver's clock may be negative.
  Time rtt_ = 0, slot_ = -kNever, turned_ = -kNever, cut_ = -kNever, risen_ = -kNever;
};

}  // namespace netbuf
