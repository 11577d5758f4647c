// xoshiro256++ (Blackman and Vigna, 2019), seeded by splitmix64: one generator a world.
#pragma once
#include <cmath>
#include <cstdint>

namespace netbuf {

class Rng {
 public:
  explicit Rng(uint64_t seed = 0) {
    for (uint64_t& word : state_) {
      seed += 0x9e3779b97f4a7c15;
      uint64_t z = seed;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
      z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
      word = z ^ (z >> 31);
    }
  }

  uint64_t next() {
    const uint64_t result = rotate(state_[0] + state_[3], 23) + state_[0];
    const uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = rotate(state_[3], 45);
    return result;
  }

  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }  // [0, 1)
  uint32_t below(uint32_t n) { return static_cast<uint32_t>((next() >> 32) * n >> 32); }
  double exponential(double mean) { return -mean * std::log1p(-uniform()); }

  // Successes before the first failure of probability p: how many packets pass before the next loss.
  uint64_t geometric(double p) {
    if (p >= 1) return 0;
    const double n = std::log1p(-uniform()) / std::log1p(-p);
    return n < 9e18 ? static_cast<uint64_t>(n) : uint64_t{9'000'000'000'000'000'000};
  }

 private:
  static uint64_t rotate(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
  uint64_t state_[4];
};

}  // namespace netbuf
