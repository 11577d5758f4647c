#include "netbuf/app.h"

namespace netbuf {

namespace {

// Writes during on periods, at a rate or as fast as TCP takes it; starts with an on period.
class OnOff final : public Source {
 public:
  OnOff(const FlowConfig& config, uint32_t mss, Rng* rng)
      : on_(config.on_ns), off_(config.off_ns), random_(config.random_on_off), mss_(mss), rng_(rng),
        start_(config.start_ns), packet_gap_(config.app_rate_bps > 0 ? mss * 8e9 / config.app_rate_bps : 0) {}

  Offer offer(Time now, int64_t sent) override {
    if (phase_end_ < 0) begin(std::max(now, start_), true);
    while (now >= phase_end_) {
      if (writing_) written_ = packet_gap_ > 0 ? written_at(phase_end_) : sent;
      begin(phase_end_, !writing_);
    }
    if (!writing_) return {written_, phase_end_, false};
    if (packet_gap_ == 0) return {kEndless, phase_end_, false};
    const int64_t packets = packets_by(now);
    const Time next = phase_start_ + static_cast<Time>(static_cast<double>(packets) * packet_gap_) + 1;
    return {phase_written_ + packets * mss_, std::min(next, phase_end_), false};
  }

 private:
  int64_t packets_by(Time now) const {
    return 1 + static_cast<int64_t>(static_cast<double>(now - phase_start_) / packet_gap_);
  }
  int64_t written_at(Time end) const { return phase_written_ + packets_by(end - 1) * mss_; }
  void begin(Time at, bool writing) {
    const Time mean = writing ? on_ : off_;
    const Time length = random_ ? std::max<Time>(1, static_cast<Time>(rng_->exponential(static_cast<double>(mean)))) : mean;
    phase_start_ = at;
    phase_end_ = at + std::max<Time>(1, length);
    writing_ = writing;
    phase_written_ = written_;
  }

  Time on_, off_;
  bool random_, writing_ = false;
  int64_t mss_;
  Rng* rng_;
  Time start_, phase_start_ = 0, phase_end_ = -1;
  double packet_gap_;
  int64_t written_ = 0, phase_written_ = 0;
};

}  // namespace

std::unique_ptr<Source> make_source(const FlowConfig& config, uint32_t mss, Rng* rng) {
  if (config.app == "on_off") return std::make_unique<OnOff>(config, mss, rng);
  return nullptr;
}

}  // namespace netbuf
