#include "netbuf/app.h"

#include "netbuf/reject.h"
#include "netbuf/rng.h"

namespace netbuf {

namespace {

// Writes during on periods, at a rate or as fast as TCP takes it; starts with an on period. Periods have lengths, or
// rests are given: times at which they begin and end in turn.
class OnOff final : public Source {
 public:
  OnOff(const FlowConfig& config, uint32_t mss, Rng* rng)
      : on_(config.on_ns), off_(config.off_ns), random_(config.random_on_off), mss_(mss), rng_(rng),
        start_(config.start_ns), rests_(config.rest_ns),
        packet_gap_(config.app_rate_bps > 0 ? mss * 8e9 / config.app_rate_bps : 0) {}

  Offer offer(Time now, int64_t taken) override {
    if (phase_end_ < 0) begin(std::max(now, start_), true);
    while (now >= phase_end_) {
      if (writing_) written_ = packet_gap_ > 0 ? written_at(phase_end_) : taken;
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
    phase_start_ = at;
    phase_written_ = written_;
    if (!rests_.empty()) {
      const auto next = std::upper_bound(rests_.begin(), rests_.end(), at);
      writing_ = (next - rests_.begin()) % 2 == 0;
      phase_end_ = next == rests_.end() ? kNever : *next;
      return;
    }
    const Time mean = writing ? on_ : off_;
    const Time length =
        random_ ? std::max<Time>(1, static_cast<Time>(rng_->exponential(static_cast<double>(mean)))) : mean;
    phase_end_ = at + std::max<Time>(1, length);
    writing_ = writing;
  }

  Time on_, off_;
  bool random_, writing_ = false;
  int64_t mss_;
  Rng* rng_;
  Time start_, phase_start_ = 0, phase_end_ = -1;
  const std::vector<Time> rests_;
  double packet_gap_;
  int64_t written_ = 0, phase_written_ = 0;
};

// Reads at a rate while there is something to read.
class SteadyReader final : public Sink {
 public:
  SteadyReader(double bytes_a_second, uint32_t mss) : ns_per_byte_(1e9 / bytes_a_second), chunk_(2 * int64_t{mss}) {}

  int64_t read(Time now, int64_t arrived) override {
    const auto due = static_cast<int64_t>(static_cast<double>(now - since_) / ns_per_byte_);
    if (due >= arrived - read_) {   // it catches up, and does not save what it could have read
      read_ = arrived;
      since_ = now;
    } else if (due > 0) {
      read_ += due;
      since_ += static_cast<Time>(static_cast<double>(due) * ns_per_byte_);
    }
    left_ = arrived - read_;
    return read_;
  }
  Time next(Time now) const override {
    if (left_ == 0) return kNever;
    return std::max(now, since_) + 1 + static_cast<Time>(static_cast<double>(std::min(left_, chunk_)) * ns_per_byte_);
  }

 private:
  const double ns_per_byte_;
  const int64_t chunk_;
  Time since_ = 0;
  int64_t read_ = 0, left_ = 0;
};

const Entry<Application> bulk{{
    .name = "bulk",
    .endless = true,
    .relays = true,
    .outruns = [](const FlowConfig& flow) {
      return flow.relay_from < 0 && flow.window_clamp_bytes == 0 && flow.receiver != "fixed";
    },
}};

const Entry<Application> sized{{
    .name = "sized",
    .sized = true,
    .check = [](const FlowConfig& flow, const std::string& at) {
      if (flow.size_bytes <= 0 || flow.size_bytes >= kEndless) {
        reject(at + ".size_bytes", flow.size_bytes, "positive and below 2^60");
      }
    },
}};

const Entry<Application> on_off{{
    .name = "on_off",
    .check = [](const FlowConfig& flow, const std::string& at) {
      if (flow.on_ns <= 0 || flow.on_ns > kLongest) reject(at + ".on_ns", flow.on_ns, "in [1, 1e16]");
    },
    .outruns = [](const FlowConfig& flow) { return flow.app_rate_bps == 0; },
    .source = [](const FlowConfig& flow, uint32_t mss, Rng* rng) -> std::unique_ptr<Source> {
      return std::make_unique<OnOff>(flow, mss, rng);
    },
}};

const Entry<Application> paused{{
    .name = "paused",
    .check = [](const FlowConfig& flow, const std::string& at) {
      const std::vector<Time>& rests = flow.rest_ns;
      bool rising = !rests.empty() && rests.size() % 2 == 0 && rests.front() >= 0 && rests.back() <= kLongest;
      for (size_t i = 1; i < rests.size(); ++i) rising &= rests[i - 1] < rests[i];
      if (!rising) reject(at + ".rest_ns", rests.size(), "rising times in [0, 1e16], two for each rest");
    },
    .outruns = [](const FlowConfig& flow) { return flow.app_rate_bps == 0; },
    .source = [](const FlowConfig& flow, uint32_t mss, Rng* rng) -> std::unique_ptr<Source> {
      return std::make_unique<OnOff>(flow, mss, rng);
    },
}};

}  // namespace

std::unique_ptr<Sink> reader_of(const FlowConfig& flow, uint32_t mss) {
  if (flow.read_bps == 0) return nullptr;
  return std::make_unique<SteadyReader>(flow.read_bps / 8, mss);
}

}  // namespace netbuf
