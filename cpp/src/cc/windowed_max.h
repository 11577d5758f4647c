// The largest of the values seen in a sliding window, from three samples only (Kathleen Nichols' filter,
// lib/win_minmax.c in Linux): the best, and the best since the best, and the best since that one, kept a
// quarter of a window apart.
#pragma once
#include <cstdint>

namespace netbuf {

class WindowedMax {
 public:
  uint64_t get() const { return first_.value; }

  void reset(uint32_t time, uint64_t value) { first_ = second_ = third_ = {time, value}; }

  void update(uint32_t window, uint32_t time, uint64_t value) {
    const Sample sample{time, value};
    if (value >= first_.value || time - third_.time > window) {
      reset(time, value);
      return;
    }
    if (value >= second_.value) second_ = third_ = sample;
    else if (value >= third_.value) third_ = sample;

    const uint32_t age = time - first_.time;
    if (age > window) {
      shift(sample);
      if (time - first_.time > window) shift(sample);
    } else if (second_.time == first_.time && age > window / 4) {
      second_ = third_ = sample;
    } else if (third_.time == second_.time && age > window / 2) {
      third_ = sample;
    }
  }

 private:
  struct Sample {
    uint32_t time = 0;
    uint64_t value = 0;
  };

  void shift(const Sample& sample) {
    first_ = second_;
    second_ = third_;
    third_ = sample;
  }

  Sample first_, second_, third_;
};

}  // namespace netbuf
