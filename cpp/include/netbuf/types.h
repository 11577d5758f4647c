// Units and small constants shared by the whole core: time is integer nanoseconds of virtual time.
#pragma once
#include <cstdint>
#include <limits>

namespace netbuf {

using Time = int64_t;  // nanoseconds since the start of the world

inline constexpr Time kNever = std::numeric_limits<int64_t>::max() / 4;
inline constexpr Time kMicrosecond = 1'000;
inline constexpr Time kMillisecond = 1'000'000;
inline constexpr Time kSecond = 1'000'000'000;

inline constexpr double seconds(Time t) { return static_cast<double>(t) * 1e-9; }
inline constexpr Time from_seconds(double s) { return static_cast<Time>(s * 1e9 + (s < 0 ? -0.5 : 0.5)); }

// A time-out doubled so many times (below 63), at most `limit`, however long it was.
inline constexpr Time doubled_timeout(Time timeout, uint32_t times, Time limit) {
  return timeout > (limit >> times) ? limit : timeout << times;
}

// Serial-number comparison of segment indices, which may wrap (RFC 1982).
inline constexpr bool before(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b) < 0; }
inline constexpr bool after(uint32_t a, uint32_t b) { return before(b, a); }

}  // namespace netbuf
