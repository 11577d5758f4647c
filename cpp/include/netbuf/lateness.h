// How late things were: a histogram over a wide range, to 1/16 of the value.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "netbuf/types.h"

namespace netbuf {

class Lateness {
 public:
  void add(Time due, Time done) {
    const Time late = done > due ? done - due : 0;
    ++counts_[bin(static_cast<uint64_t>(late))];
    ++count_;
    sum_ += static_cast<double>(late);
    if (late > max_) max_ = late;
  }
  uint64_t count() const { return count_; }
  double mean_s() const { return count_ ? sum_ * 1e-9 / static_cast<double>(count_) : 0; }
  double max_s() const { return seconds(max_); }
  // The least bound that a share p of them keeps to.
  double percentile_s(double p) const {
    if (count_ == 0) return 0;
    const double enough = p * static_cast<double>(count_);
    double seen = 0;
    for (uint32_t i = 0; i < kBins; ++i) {
      seen += static_cast<double>(counts_[i]);
      if (seen >= enough && seen > 0) return std::min(static_cast<double>(upper(i)) * 1e-9, max_s());
    }
    return max_s();
  }

 private:
  static constexpr uint32_t kSub = 4, kBins = 64 << kSub;
  static uint32_t bin(uint64_t value) {
    if (value < 1u << kSub) return static_cast<uint32_t>(value);
    const uint32_t log = 63 - static_cast<uint32_t>(std::countl_zero(value));
    return ((log - kSub + 1) << kSub) + static_cast<uint32_t>((value >> (log - kSub)) & ((1u << kSub) - 1));
  }
  static uint64_t upper(uint32_t bin) {
    if (bin < 1u << kSub) return bin;
    const uint32_t shift = (bin >> kSub) - 1;
    return ((uint64_t{1} << kSub) + (bin & ((1u << kSub) - 1)) + 1) << shift;
  }

  std::array<uint64_t, kBins> counts_{};
  uint64_t count_ = 0;
  double sum_ = 0;
  Time max_ = 0;
};

}  // namespace netbuf
