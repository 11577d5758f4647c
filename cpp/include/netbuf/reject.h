// Refusing a value of a configuration, and the bounds that several of its parts share.
#pragma once
#include <cmath>
#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <string>

#include "netbuf/types.h"

namespace netbuf {

template <class T>
[[noreturn]] void reject(const std::string& field, const T& value, const std::string& valid) {
  std::ostringstream message;
  message << field << " = " << value << ": must be " << valid;
  throw std::invalid_argument(message.str());
}

// Of any time in a configuration, so that sums of them cannot overflow.
inline constexpr Time kLongest = 10'000'000 * kSecond;
inline constexpr int64_t kLargest = int64_t{1} << 40;   // of a flow, a quantum, a buffer
inline constexpr uint32_t kMaxQueues = 64;              // a switch's priorities

inline bool valid_rate(double bps) { return std::isfinite(bps) && (bps == 0 || bps >= 1); }

}  // namespace netbuf
