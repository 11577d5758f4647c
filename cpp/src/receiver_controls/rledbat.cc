// rLEDBAT: the receiver runs LEDBAT++ and limits the sender, any TCP sender, by the window that it advertises:
// traffic that makes way for others.
//
// Sources: RFC 9840 (rLEDBAT: round-trip times from the receiver's own time stamps as packets echo them, losses by
// packets that are sent again, halving once a round trip, no window taken back); draft-irtf-iccrg-ledbat-plus-plus (the
// target of 60 ms, the gain, the decrease in proportion to the window, slow start at the gain, slowdowns to two
// segments for two round trips, nine times as long apart as they take). The congestion window here is the draft's, in
// bytes; increases and decreases of a round trip are spread over what arrives in it.
#include <cmath>
#include <limits>

#include "netbuf/one_way_delay.h"
#include "netbuf/receiver_control.h"

namespace netbuf {
namespace {

constexpr double kLargestWindow = 1 << 30;   // RFC 7323, 2.3
constexpr double kFirstSegments = 2;         // of the draft, 4.3
constexpr uint32_t kFilter = 4;              // samples of which the least is the round-trip time
constexpr double kLeastGainDivisor = 16;     // of the draft: the gain is 1 / min(16, ceil(2 target / base))
constexpr double kStartShare = 0.75;         // of the target, at which the first slow start ends
constexpr Time kSlowdownInterval = 9;        // times as long as the last one took

class Rledbat final : public ReceiverControl {
 public:
  explicit Rledbat(const ReceiverSetting& setting)
      : target_(setting.parameters["target_ms"] * 1e-3),
        constant_(setting.parameters["constant"]),
        base_(from_seconds(setting.parameters["base_window_s"])),
        mss_(setting.mss),
        most_(setting.buffer_bytes > 0 ? std::min(kLargestWindow, static_cast<double>(setting.buffer_bytes))
                                       : kLargestWindow),
        window_(kFirstSegments * mss_),
        slowdowns_(setting.parameters.is("slowdowns")) {
    counts_network_ = true;
    limit();
  }

  int64_t initial_window() const override { return static_cast<int64_t>(window_); }

  int64_t window(const Arrival& arrival) override {
    if (arrival.rtt >= 0) note_rtt(arrival);
    if (arrival.repeated && arrival.now >= reduced_until_ && phase_ != Phase::slow) {
      ssthresh_ = window_ = std::max(window_ / 2, 2 * mss_);
      phase_ = Phase::steady;
      reduced_until_ = arrival.now + rtt_;
    }
    if (samples_ > 0) act(arrival);
    limit();
    return static_cast<int64_t>(window_);
  }

 private:
  enum class Phase : uint8_t { start, steady, slow, refill };

  void note_rtt(const Arrival& arrival) {
    recent_[samples_++ % kFilter] = arrival.rtt;
    rtt_ = *std::min_element(recent_, recent_ + std::min(samples_, kFilter));
    if (base_.add(arrival.now, arrival.rtt, arrival.bytes)) {
      gain_ = 1 / std::min(kLeastGainDivisor, std::ceil(2 * target_ / seconds(std::max<Time>(base_.least(), 1))));
    }
  }

  void act(const Arrival& arrival) {
    const double queue = seconds(rtt_ - base_.least()), bytes = arrival.bytes;
    switch (phase_) {
      case Phase::start:
      case Phase::refill:
        window_ += gain_ * bytes;
        if (phase_ == Phase::start ? queue <= kStartShare * target_ && window_ < ssthresh_ : window_ < ssthresh_) {
          return;
        }
        next_slowdown_ = phase_ == Phase::start ? arrival.now + 2 * rtt_
                                                : arrival.now + kSlowdownInterval * (arrival.now - slowed_);
        phase_ = Phase::steady;
        return;
      case Phase::steady: {
        const double share = bytes / window_;   // of a round trip
        window_ += share * (queue <= target_ ? gain_ * mss_
                                             : std::max(gain_ * mss_ - constant_ * window_ * (queue / target_ - 1),
                                                        -window_ / 2));
        if (!slowdowns_ || arrival.now < next_slowdown_) return;
        phase_ = Phase::slow;
        ssthresh_ = window_;
        window_ = 2 * mss_;
        slowed_ = arrival.now;
        slow_until_ = arrival.now + 2 * rtt_;
        return;
      }
      case Phase::slow:
        if (arrival.now >= slow_until_) phase_ = Phase::refill;
    }
  }

  void limit() { window_ = std::clamp(window_, std::min(2 * mss_, most_), most_); }

  const double target_, constant_;
  WindowedLeast base_;
  const double mss_, most_;
  double window_, ssthresh_ = kLargestWindow, gain_ = 1 / kLeastGainDivisor;
  const bool slowdowns_;
  Phase phase_ = Phase::start;
  Time recent_[kFilter] = {}, rtt_ = 0, slowed_ = 0, slow_until_ = 0;
  // Passed already, on a clock that may be negative.
  Time reduced_until_ = std::numeric_limits<Time>::min(), next_slowdown_ = std::numeric_limits<Time>::min();
  uint32_t samples_ = 0;
};

const Entry<ReceiverControlRecord> entry{{
    .name = "rledbat",
    .meaning = "LEDBAT++ run by the receiver, which makes way for others (RFC 9840)",
    .make = make_receiver<Rledbat>,
    .parameters = {real("target_ms", 60, 0.5, 2000, "queueing delay, from round-trip times, to stay below, ms"),
                   real("constant", 1, 0, 100, "how strongly a delay beyond the target shrinks the window"),
                   real("base_window_s", 600, 1, 10'000,
                        "for so long the least round-trip time is that of an empty queue, s"),
                   truth("slowdowns", true, "the window falls to two segments now and then, to see the empty queue")},
}};

}  // namespace
}  // namespace netbuf
