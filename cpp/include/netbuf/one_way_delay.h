// One-way queueing delay as a receiver can tell it from time stamps: the clocks of the hosts differ by an
// offset and drift apart, so that of (receive time - send time) only the excess over its least value in a
// window of time means anything.
//
// Raw excess: D_c = (R_t - Q_t) - (R_m - Q_m), Q and R the send and receive times, m the packet of least R - Q in the
// window (Nuwa, eq. 1, with the sign that its use needs). Kalman filter over [1/B, Q_d], D_c = dM / B + Q_d + noise, dM
// the packet's size less that of m (Nuwa, eq. 2 to 4). The variance of the noise is estimated as in Google congestion
// control (draft-ietf-rmcat-gcc-02, 5.3; Carlucci et al., 2016): a forgetful mean of squared residuals, those beyond
// three deviations cut. Groups of packets are single packets here, and the residual is what a packet's excess differs
// by from the last one's: against the estimate a queue that builds up would pass for noise, and the estimate stand
// still. By how much the queue moves from packet to packet is ours: as the time between packets does, on a slow link by
// milliseconds; a packet of another size than that of the least is taken to say more of 1/B. Time without arrivals does
// not age the window: nobody could have measured anything in it.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "netbuf/types.h"

namespace netbuf {

// Least value of the last window of time, to a tenth of the window.
class WindowedLeast {
 public:
  explicit WindowedLeast(Time window) : part_(std::max<Time>(1, window / kParts)) {}

  // True if the least has changed.
  bool add(Time now, Time value, uint32_t bytes) {
    const Time before = least_;
    if (now >= end_) [[unlikely]] turn(now);
    Part& part = parts_[at_];
    if (value < part.value) {
      part = {value, bytes};
      if (value < least_) least_ = value, bytes_ = bytes;
    }
    return least_ != before;
  }
  bool empty() const { return least_ == kNever; }
  Time least() const { return least_; }
  uint32_t bytes() const { return bytes_; }    // of the packet that had it

 private:
  static constexpr uint32_t kParts = 10;
  struct Part {
    Time value = kNever;
    uint32_t bytes = 0;
  };
  void turn(Time now) {
    end_ = now + part_;
    at_ = at_ == kParts ? 0 : at_ + 1;
    parts_[at_] = {};
    least_ = kNever;
    for (const Part& part : parts_) {
      if (part.value < least_) least_ = part.value, bytes_ = part.bytes;
    }
  }

  Time least_ = kNever, end_ = std::numeric_limits<Time>::min(), part_;
  uint32_t bytes_ = 0, at_ = 0;
  Part parts_[kParts + 1];
};

// Times in seconds where they are doubles.
class OneWayDelay {
 public:
  struct Setting {
    Time window;            // of the least value
    double state_noise;     // s^2 a packet: how fast the queue moves, at least
    double gaps = 2;        // and by a deviation of so many of the mean time between packets
  };
  explicit OneWayDelay(const Setting& setting)
      : base_(setting.window), state_noise_(setting.state_noise), gaps_(setting.gaps) {}

  // A packet with this time stamp arrives at now, the receiver's clock.
  void add(Time now, uint32_t stamp, Time unit, uint32_t bytes) {
    if (!started_) [[unlikely]] {
      started_ = true;
      sent_ = int64_t{stamp};
    } else {
      // What the receiver's clock makes of the time since the last packet tells how often the stamps have wrapped.
      const int32_t ahead = static_cast<int32_t>(stamp - static_cast<uint32_t>(sent_));
      sent_ += ahead;
      if (now - heard_ > kLongSilence) [[unlikely]] sent_ += wraps(now - heard_, ahead, unit);
      gap_ = std::max(kLeastGap, gap_ + kForget * (std::min(seconds(now - heard_), 4 * gap_) - gap_));
    }
    heard_ = now;
    // A stamp is up to a unit old when the packet leaves: half of one in the mean.
    const Time transit = now - sent_ * unit;
    const Time before = base_.least();
    if (base_.add(now, transit, bytes)) [[unlikely]] {
      if (before != kNever) queue_ = std::max(0.0, queue_ + seconds(before - base_.least()));
    }
    const double raw = seconds(transit - base_.least());
    measure_noise(raw - raw_);
    raw_ = raw;
    filter(raw_ - half(unit), static_cast<double>(bytes) - base_.bytes());
  }

  bool known() const { return started_; }
  double raw() const { return raw_; }          // D_c of the last packet
  double queue() const { return queue_; }      // Q_d
  double base() const { return seconds(base_.least()); }  // with the clocks' offset: means nothing but to itself

 private:
  static constexpr Time kLongSilence = 1000 * kSecond;
  static constexpr double kLeastNoise = 1e-7;  // s^2: (0.3 ms)^2
  static constexpr double kLeastGap = 1e-6;    // s

  double half(Time unit) const { return unit > kMicrosecond ? 0.5e-9 * static_cast<double>(unit) : 0; }
  int64_t wraps(Time silence, int32_t ahead, Time unit) const {
    constexpr int64_t kRound = int64_t{1} << 32;
    const int64_t missed = silence / unit - ahead;
    return (missed + kRound / 2) / kRound * kRound;
  }

  void measure_noise(double step) {            // of two packets
    noise_ = std::max(kLeastNoise, noise_ + kForget * (std::min(0.5 * step * step, 9 * noise_) - noise_));
  }

  void filter(double measured, double size_difference) {
    const double residual = measured - queue_ - (size_difference != 0 ? size_difference * per_byte_ : 0);
    const double moved = gaps_ * gap_;
    p_queue_ += size_difference == 0 ? std::max(state_noise_, moved * moved) : state_noise_;
    if (size_difference == 0 && p_both_ == 0) [[likely]] {
      const double gain = p_queue_ / (p_queue_ + noise_);
      queue_ += gain * residual;
      p_queue_ -= gain * p_queue_;
    } else {
      p_byte_ += kByteNoise;
      const double s_byte = size_difference * p_byte_ + p_both_, s_queue = size_difference * p_both_ + p_queue_;
      const double s = size_difference * s_byte + s_queue + noise_;
      const double gain_byte = s_byte / s, gain_queue = s_queue / s;
      per_byte_ = std::clamp(per_byte_ + gain_byte * residual, 0.0, 1e-3);
      queue_ += gain_queue * residual;
      p_byte_ -= gain_byte * s_byte;
      p_both_ -= gain_byte * s_queue;
      p_queue_ -= gain_queue * s_queue;
    }
    queue_ = std::max(queue_, 0.0);
  }

  static constexpr double kForget = 1.0 / 32;  // of the noise's variance and of the mean gap, a packet
  static constexpr double kByteNoise = 1e-19;  // (s/byte)^2 a packet: draft-ietf-rmcat-gcc-02's 1e-13 (ms/byte)^2

  WindowedLeast base_;
  double state_noise_, gaps_, gap_ = 1e-3, queue_ = 0, raw_ = 0, per_byte_ = 0, noise_ = 1e-6;
  double p_queue_ = 1e-7, p_both_ = 0, p_byte_ = 1e-10;
  int64_t sent_ = 0;        // of the last packet, in units, without wraps
  Time heard_ = 0;
  bool started_ = false;
};

}  // namespace netbuf
