// HyStart++ (RFC 9406): slow start slows down to a quarter where the round trip rises, goes on where it falls again, and
// is over after five such rounds.
//
// It is for the first slow start alone, as 4.3 recommends. Constants are those that 4.3 recommends.
#pragma once
#include <algorithm>

#include "netbuf/tcp.h"

namespace netbuf {

inline constexpr Parameter kHyStartPlusPlusParameter = {
    "hystart_plus_plus", "slow start by HyStart++ (RFC 9406); auto: as the scenario says (hystart = rfc9406)",
    kAutomatic, 0, 1, Parameter::Kind::truth, uint8_t{1} << static_cast<unsigned>(Stack::linux_kernel)};

class HyStartPlusPlus {
 public:
  explicit HyStartPlusPlus(const Parameters& given)
      : everywhere_(!given.automatic(kHyStartPlusPlusParameter.name)),
        on_(everywhere_ && given.is(kHyStartPlusPlusParameter.name)) {}

  void start(const Tcb& tcb) {
    if (!everywhere_) on_ = tcb.hystart_plus_plus;
    window_end_ = tcb.nxt;
  }
  bool on() const { return on_; }
  // Whether slow start is its own: the first, until ssthresh is known.
  bool rules(const Tcb& tcb) const { return on_ && tcb.ssthresh == kInfiniteWindow; }

  // By how many packets the window grows for as many that are acknowledged. Without pacing an ACK stands for at most
  // kBurst packets.
  // Only where it rules.
  uint32_t growth(const Tcb& tcb, uint32_t acked) {
    if (tcb.pacing_rate <= 0) acked = std::min(acked, kBurst);
    if (!conservative_) return acked;
    credit_ += acked;
    const uint32_t grown = credit_ / kGrowthDivisor;
    credit_ %= kGrowthDivisor;
    return grown;
  }

  // Every ACK; rtt: its sample, negative if it has none. It may set ssthresh.
  void observe(Tcb& tcb, Time rtt) {
    if (!rules(tcb)) return;
    if (after(tcb.una, window_end_)) begin_round(tcb);
    if (rtt < 0 || !rules(tcb)) return;
    round_rtt_ = std::min(round_rtt_, rtt);
    if (++samples_ < kSamples) return;
    if (!conservative_) {
      if (last_rtt_ == kNever) return;
      const Time threshold = std::max(kLeastRise, std::min(last_rtt_ / kRiseDivisor, kMostRise));
      if (round_rtt_ < last_rtt_ + threshold) return;
      conservative_ = true;
      baseline_ = round_rtt_;
      rounds_ = credit_ = 0;
    } else if (round_rtt_ < baseline_) {  // the rise was a passing one
      conservative_ = false;
    }
  }

  bool conservative() const { return conservative_; }

 private:
  static constexpr Time kLeastRise = 4 * kMillisecond, kMostRise = 16 * kMillisecond;
  static constexpr Time kRiseDivisor = 8;
  static constexpr uint32_t kSamples = 8, kGrowthDivisor = 4, kRounds = 5, kBurst = 8;

  void begin_round(Tcb& tcb) {
    window_end_ = tcb.nxt;
    last_rtt_ = round_rtt_;
    round_rtt_ = kNever;
    samples_ = 0;
    // The round in which the rise was seen counts.
    if (conservative_ && ++rounds_ >= kRounds) tcb.ssthresh = tcb.cwnd;
  }

  bool everywhere_, on_;                  // whether its parameter decides; whether it is there
  uint32_t window_end_ = 0;               // of the round: what was to be sent next when it began
  Time last_rtt_ = kNever, round_rtt_ = kNever;  // the least of the round before, and of this one
  uint32_t samples_ = 0;
  bool conservative_ = false;             // conservative slow start (CSS)
  Time baseline_ = kNever;                // the least of the round in which it began
  uint32_t rounds_ = 0, credit_ = 0;      // of conservative slow start: rounds; packets acknowledged, not yet grown by
};

}  // namespace netbuf
