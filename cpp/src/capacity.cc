#include "netbuf/capacity.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace netbuf {

RateSteps::RateSteps(std::vector<Time> times, std::vector<double> rates_bps, Time period)
    : times_(std::move(times)), rates_(std::move(rates_bps)), period_(period), round_(0) {
  constexpr Work kBeyond = static_cast<Work>(1) << 120;
  double carried = 0;
  for (size_t i = 0; i < times_.size(); ++i) {
    carried_.push_back(carried);
    const Time length = i + 1 < times_.size() ? times_[i + 1] - times_[i] : period_ > 0 ? period_ - times_[i] : 0;
    carried += rates_[i] * seconds(length);
    const Work per_ns = units_.emplace_back(units(rates_[i]));
    if (per_ns > 0 && static_cast<Work>(length) > kBeyond / per_ns) {
      round_ = kBeyond;
    } else {
      round_ = std::min(kBeyond, round_ + per_ns * static_cast<Work>(length));
    }
  }
  carried_.push_back(carried);
}

Time RateSteps::time(uint64_t index) const {
  const size_t n = times_.size();
  if (index < n) return times_[index];
  if (period_ == 0 || index / n > static_cast<uint64_t>(kNever / period_)) return kNever;
  return static_cast<Time>(index / n) * period_ + times_[index % n];
}

uint64_t RateSteps::step(Time at) const {
  const uint64_t round = period_ > 0 ? static_cast<uint64_t>(at / period_) : 0;
  const Time phase = at - static_cast<Time>(round) * period_;
  const auto next = std::upper_bound(times_.begin(), times_.end(), phase);
  return round * times_.size() + static_cast<uint64_t>(next - times_.begin()) - 1;
}

Time RateSteps::first_positive(Time at, uint64_t& cursor) const {
  while (time(cursor + 1) <= at) ++cursor;
  while (rates_[within(cursor)] <= 0) {
    ++cursor;
    at = std::max(at, time(cursor));
    if (at >= kNever) return kNever;
  }
  return at;
}

RateSteps::Transmission RateSteps::transmit_on(Time start, Work need, uint64_t& cursor) const {
  const size_t n = times_.size();
  const uint64_t first = cursor;
  double bits = 0;
  for (;; ++cursor) {
    const Time from = cursor == first ? start : time(cursor);
    if (from >= kNever) return {kNever, bits, std::ldexp(static_cast<double>(need), -kFraction) * 1e-9};
    if (cursor != first && cursor % n == 0 && round_ < need) {  // repetitions that are used up from end to end
      const auto rounds = static_cast<uint64_t>((need - 1) / round_);
      need -= rounds * round_;
      bits += static_cast<double>(rounds) * carried_.back();
      cursor += rounds * n - 1;
      continue;
    }
    const Work per_ns = units_[cursor % n];
    if (per_ns == 0) continue;
    const Work whole = need / per_ns, rest = need - whole * per_ns;  // nanoseconds
    const auto length = static_cast<Work>(time(cursor + 1) - from);
    if (whole < length || (whole == length && rest == 0)) {
      const auto duration = static_cast<Time>(whole + (2 * rest >= per_ns));
      return {from + duration, bits + rates_[cursor % n] * seconds(duration)};
    }
    need -= per_ns * length;
    bits += rates_[cursor % n] * seconds(static_cast<Time>(length));
  }
}

double RateSteps::mean_bps() const {
  const Time end = period_ ? period_ : times_.back();
  if (end == 0) return rates_.back();
  double bits = 0;
  for (size_t i = 0; i < times_.size(); ++i) {
    bits += rates_[i] * seconds((i + 1 < times_.size() ? times_[i + 1] : end) - times_[i]);
  }
  return bits > 0 ? bits / seconds(end) : rates_.back();
}

double RateSteps::bits(Time from, Time to) const {
  if (to <= from) return 0;
  const size_t n = times_.size();
  double sum = 0;
  for (uint64_t index = step(from); from < to;) {
    if (period_ > 0 && index % n == 0 && to - from >= period_ && from == time(index)) {  // whole repetitions
      const Time rounds = (to - from) / period_;
      sum += static_cast<double>(rounds) * carried_.back();
      from += rounds * period_;
      index += static_cast<uint64_t>(rounds) * n;
      continue;
    }
    const Time end = std::min(to, time(index + 1));
    sum += rates_[index % n] * seconds(end - from);
    from = end;
    ++index;
  }
  return sum;
}

double RateSteps::carry_s(Time start, double bits) const {
  const size_t n = times_.size();
  double repetitions_s = 0;  // whole ones, left out
  Time from = start;
  for (uint64_t index = step(start);; ++index) {
    const Time end = time(index + 1);
    const double rate = rates_[index % n];
    if (rate > 0 && (end >= kNever || bits <= rate * seconds(end - from))) {
      return repetitions_s + seconds(from - start) + bits / rate;
    }
    if (end >= kNever) return std::numeric_limits<double>::infinity();
    bits -= rate * seconds(end - from);
    from = end;
    if (period_ > 0 && (index + 1) % n == 0 && carried_.back() < bits) {
      const double rounds = std::ceil(bits / carried_.back()) - 1;
      bits -= rounds * carried_.back();
      repetitions_s += rounds * seconds(period_);
    }
  }
}

Opportunities::Opportunities(std::vector<Time> times, Time period) : times_(std::move(times)), period_(period) {}

uint64_t Opportunities::before(Time at) const {
  if (at <= 0) return 0;
  const auto round = static_cast<uint64_t>((at - 1) / period_);  // the last that has begun before it
  const Time phase = at - static_cast<Time>(round) * period_;    // 1 to a period
  const auto within = [this](Time t) {
    return static_cast<uint64_t>(std::lower_bound(times_.begin(), times_.end(), t) - times_.begin());
  };
  return round * times_.size() + within(phase);
}

double Opportunities::bits(Time to) const { return static_cast<double>(before(to + 1)) * (kBytes * 8); }

double Opportunities::carry_s(Time from, double bits) const {
  const double needed = std::max(1.0, std::ceil(bits / (kBytes * 8)));
  const auto n = static_cast<double>(times_.size());
  const double last = static_cast<double>(before(from + 1)) + needed - 1, round = std::floor(last / n);
  return round * seconds(period_) + seconds(times_[static_cast<size_t>(last - round * n)] - from);
}

}  // namespace netbuf
