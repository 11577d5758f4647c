// What BBR is made with (bbr.h): its constants, and its parameters in the kernel's units.
#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

#include "cc/linux_window.h"

namespace netbuf {
namespace bbr {

inline constexpr uint32_t kBwScale = 24;                 // bandwidth: packets per microsecond << 24
inline constexpr uint64_t kBwUnit = uint64_t{1} << kBwScale;
inline constexpr uint32_t kScale = 8;                    // gains and ratios << 8
inline constexpr uint32_t kUnit = 1u << kScale;

inline constexpr uint32_t kCycleLength = 8;              // phases of the PROBE_BW gain cycle
inline constexpr uint32_t kCycleRand = 7;                // it starts anywhere but in the draining phase
inline constexpr uint32_t kMinTsoRate = 1'200'000;       // bit/s: bursts of two packets only above
// Long-term bandwidth: what a policer lets through.
inline constexpr uint32_t kLtIntervalMinRtts = 4;
inline constexpr uint32_t kLtLossThresh = 50;            // lost / delivered << 8
inline constexpr uint32_t kLtBwRatio = kUnit / 8;
inline constexpr uint32_t kLtBwDiff = 4000 / 8;          // bytes/s
inline constexpr uint32_t kLtBwMaxRtts = 48;
// ACK aggregation.
inline constexpr uint32_t kAckEpochAckedResetThresh = 1u << 20;

inline constexpr uint32_t kInitialCwnd = 10;
inline constexpr int kPacingShift = 10;                  // a burst: what the pacing rate sends in 2^-10 s
// On short paths more: the largest burst, halved for every 512 us of RTT.
inline constexpr int kTsoRttLog = 9;
inline constexpr uint32_t kGsoMaxSize = 65536 - 321;     // bytes, less the largest header

inline uint32_t gain(double value) { return static_cast<uint32_t>(value * kUnit); }

// What it is made with, in the kernel's units.
struct Setting {
  explicit Setting(const Parameters& p)
      : high_gain(static_cast<uint32_t>(std::ceil(p["high_gain"] * kUnit))),
        drain_gain(gain(p["drain_gain"])),
        cwnd_gain(gain(p["cwnd_gain"])),
        pacing_gain{gain(p["probe_gain"]), gain(p["yield_gain"])},
        full_bw_thresh(gain(p["full_bw_growth"])),
        full_bw_count(p.as<uint32_t>("full_bw_rounds")),
        bw_rtts(p.as<uint32_t>("bw_window_rounds")),
        min_rtt_window(static_cast<uint32_t>(p["min_rtt_window_s"] * kHz)),
        probe_rtt_mode(static_cast<uint32_t>(p["probe_rtt_ms"] * kHz / 1000)),
        cwnd_min_target(p.as<uint32_t>("min_window_packets")),
        extra_acked_rtts(p.as<uint32_t>("extra_acked_rounds")),
        extra_acked_max_us(static_cast<uint32_t>(p["extra_acked_max_ms"] * 1000)),
        rate_scale(static_cast<uint64_t>(1'000'000 / 100) * (100 - p.as<uint64_t>("pacing_margin_percent"))),
        policer_detection(p.is("policer_detection")) {}

  uint32_t cycle_gain(uint32_t phase) const { return phase < 2 ? pacing_gain[phase] : kUnit; }

  uint32_t high_gain, drain_gain, cwnd_gain, pacing_gain[2];  // kUnit = 1
  uint32_t full_bw_thresh, full_bw_count;
  uint32_t bw_rtts;                               // the bandwidth filter's window, round trips
  uint32_t min_rtt_window, probe_rtt_mode;        // jiffies
  uint32_t cwnd_min_target;                       // packets
  uint32_t extra_acked_rtts, extra_acked_max_us;
  uint64_t rate_scale;                            // microseconds a second, less the pacing margin
  bool policer_detection;
};

// extra_acked_rounds: its default.
inline std::vector<Parameter> parameters(double extra_acked_rounds) {
  return {
      real("high_gain", 2.885, 1, 10, "of pacing and window in STARTUP; 2 / ln 2 doubles the rate every round trip"),
      real("drain_gain", 0.3466, 0.01, 1, "of pacing in DRAIN; 1 / high_gain empties the queue in a round trip"),
      real("cwnd_gain", 2, 1, 10, "of the window in PROBE_BW, bandwidth-delay products"),
      real("probe_gain", 1.25, 1, 4,
           "of pacing in the first phase of PROBE_BW's eight, which looks for more bandwidth"),
      real("yield_gain", 0.75, 0.1, 1, "of pacing in the second, which empties the queue"),
      real("full_bw_growth", 1.25, 1, 4, "growth of the bandwidth in a round trip below which the path may be full"),
      whole("full_bw_rounds", 3, 1, 1000, "round trips with less that end STARTUP"),
      whole("bw_window_rounds", 10, 1, 10'000, "round trips whose largest delivery rate is the bandwidth"),
      real("min_rtt_window_s", 10, 0.1, 10'000, "for so long a smallest round-trip time holds, s"),
      real("probe_rtt_ms", 200, 4, 10'000, "length of PROBE_RTT, ms"),
      whole("min_window_packets", 4, 1, 10'000, "least window, and that of PROBE_RTT"),
      whole("extra_acked_rounds", extra_acked_rounds, 1, 10'000,
            "round trips over which the aggregation of ACKs is looked at"),
      real("extra_acked_max_ms", 100, 0, 1000,
           "window for aggregated ACKs, at most what the bandwidth sends in so many ms"),
      whole("pacing_margin_percent", 1, 0, 50, "pacing stays below the bandwidth by so much"),
      truth("policer_detection", true,
            "long-term bandwidth where two intervals in a row lose much at equal throughput")};
}

}  // namespace bbr
}  // namespace netbuf
