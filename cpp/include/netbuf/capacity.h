// What a link of varying rate can carry: rates that hold from step to step, or delivery opportunities. Both repeat with
// a period, are fixed once made (long tables are shared by all the worlds that use them), and count steps and
// opportunities on through the repetitions: number index is index % size() of repetition index / size().
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "netbuf/types.h"

namespace netbuf {

// Exact: bits times 10^9 in units of 2^-52, in which every rate of at least 1 bit/s is whole,
// held for whole nanoseconds.
__extension__ using Work = unsigned __int128;

// A stepped rate. A transmission that starts at a whole nanosecond ends at the one nearest to the moment at which the
// integral of the rate has reached the packet's bits, halves rounded up: as on a link of constant rate, packet by
// packet, so that a fraction of a nanosecond is not carried over to the next packet.
class RateSteps {
 public:
  RateSteps(std::vector<Time> times, std::vector<double> rates_bps, Time period);

  struct Transmission {
    Time end;                      // kNever: the rate is 0 for ever before that
    double bits;                   // that the rate could have carried from start to end: the packet's, to the rounding
    double left = 0;               // bits that never leave
  };
  // Of a packet that starts at a time when the rate is above 0; cursor: the step of start, and then of the end.
  Transmission transmit(Time start, uint32_t bytes, uint64_t& cursor) const {
    const size_t at = within(cursor);
    const double rate = rates_[at];
    const Work need = work(bytes), per_ns = units_[at];
    const Time length = time(cursor + 1) - start;
    auto duration = static_cast<Time>(bytes * (8e9 / rate) + 0.5);  // to the last bit of a double; now exactly
    while (duration > 0 && (2 * static_cast<Work>(duration) - 1) * per_ns > 2 * need) --duration;
    while ((2 * static_cast<Work>(duration) + 1) * per_ns <= 2 * need) ++duration;
    if (duration < length || (duration == length && need <= per_ns * static_cast<Work>(duration))) [[likely]] {
      return {start + duration, rate * 1e-9 * static_cast<double>(duration)};
    }
    return transmit_on(start, need, cursor);
  }

  // Likewise, but at the rate of its start to the end, whatever the steps say meanwhile.
  Transmission transmit_at_first_rate(Time start, uint32_t bytes, uint64_t cursor) const {
    const auto duration = static_cast<Time>(bytes * (8e9 / rates_[within(cursor)]) + 0.5);
    return {start + duration, bits(start, start + duration)};
  }

  // The first moment from at on when the rate is above 0, kNever without one;
  // cursor, a step that has begun by then, is moved there.
  Time first_positive(Time at, uint64_t& cursor) const;
  Time time(uint64_t index) const;            // start of a step
  double rate_bps(Time at) const { return rates_[step(at) % rates_.size()]; }
  double mean_bps() const;                    // over the period, or until the last step
  double bits(Time from, Time to) const;      // what can be carried between them
  double carry_s(Time from, double bits) const;  // how long it takes to carry so many from then on

 private:
  size_t within(uint64_t index) const { return index < rates_.size() ? index : index % rates_.size(); }  // a period
  static Work work(uint32_t bytes) { return static_cast<Work>(bytes * uint64_t{8'000'000'000}) << kFraction; }
  static Work units(double rate_bps) {
    return static_cast<Work>(rate_bps < kFastest ? rate_bps * kUnitsPerBit : kFastest * kUnitsPerBit);
  }
  uint64_t step(Time at) const;               // that holds at a time
  // That does not end in the step in which it starts.
  Transmission transmit_on(Time start, Work need, uint64_t& cursor) const;

  static constexpr int kFraction = 52;
  static constexpr double kUnitsPerBit = 0x1p52, kFastest = 0x1p60;  // faster is instantaneous
  std::vector<Time> times_;
  std::vector<double> rates_;
  std::vector<Work> units_;      // the rates in work a nanosecond
  std::vector<double> carried_;  // bits from the start of a repetition to the start of each step, and of all
  Time period_;                  // 0: the last rate holds
  Work round_;                   // work of one repetition; the largest number when it is beyond all packets
};

// Moments at which up to kBytes may leave, as Mahimahi has them.
class Opportunities {
 public:
  static constexpr int64_t kBytes = 1504;

  Opportunities(std::vector<Time> times, Time period);

  Time time(uint64_t index) const {
    return static_cast<Time>(index / times_.size()) * period_ + times_[index % times_.size()];
  }
  uint64_t before(Time at) const;             // how many there are before it
  double mean_bps() const { return static_cast<double>(times_.size()) * kBytes * 8e9 / static_cast<double>(period_); }
  double bits(Time to) const;                 // what can be carried from the start up to and including then
  double carry_s(Time from, double bits) const;  // how long it takes to carry so many from then on

 private:
  std::vector<Time> times_;
  Time period_;
};

}  // namespace netbuf
