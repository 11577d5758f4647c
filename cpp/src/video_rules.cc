// How a video client chooses bitrates.
//
// rate: the highest bitrate below a share of what the last chunks say of the path, the harmonic mean of their
// throughputs; the lowest before there are any. Sources: Jiang, Sekar and Zhang, "Improving fairness, efficiency, and
// stability in HTTP-based adaptive video streaming with FESTIVE", CoNEXT 2012, for the mean and a share of 0.85; Yin,
// Jindal, Sekar and Sinopoli, "A control-theoretic approach for dynamic adaptive video streaming over HTTP", SIGCOMM
// 2015, section 7.1, for the last five chunks.
//
// buffer: BBA-0, Huang, Johari, McKeown, Trunnell and Watson, "A buffer-based approach to rate adaptation: evidence
// from a large video streaming service", SIGCOMM 2014, section 4 and algorithm 1. The buffer maps to a rate, the
// lowest up to the reservoir, the highest from a cushion later on and linear in between; the bitrate stays until that
// rate has passed the next one.
#include <algorithm>

#include "netbuf/video.h"

namespace netbuf {
namespace {

class ThroughputRule final : public BitrateRule {
 public:
  explicit ThroughputRule(const VideoConfig& config) : window_(config.window_chunks), safety_(config.safety) {}

  size_t next(const State& state) const override {
    const size_t count = std::min<size_t>(window_, state.chunks.size());
    double inverse = 0;
    for (size_t i = state.chunks.size() - count; i < state.chunks.size(); ++i) {
      inverse += 1 / state.chunks[i].estimate_bps();
    }
    const double allowed = count > 0 ? safety_ * static_cast<double>(count) / inverse : 0;
    const auto above = std::upper_bound(state.ladder.begin(), state.ladder.end(), allowed) - state.ladder.begin();
    return static_cast<size_t>(std::max<std::ptrdiff_t>(above - 1, 0));
  }

 private:
  const uint32_t window_;
  const double safety_;
};

class BufferRule final : public BitrateRule {
 public:
  explicit BufferRule(const VideoConfig& config) : reservoir_(config.reservoir_ns), cushion_(config.cushion_ns) {}

  size_t next(const State& state) const override {
    const std::vector<double>& ladder = state.ladder;
    const size_t top = ladder.size() - 1;
    if (state.chunks.empty() || state.buffered <= reservoir_) return 0;
    if (state.buffered >= reservoir_ + cushion_) return top;
    const auto last = static_cast<size_t>(
        std::lower_bound(ladder.begin(), ladder.end(), state.chunks.back().bitrate_bps) - ladder.begin());
    const double share = static_cast<double>(state.buffered - reservoir_) / static_cast<double>(cushion_);
    const double rate = ladder.front() + share * (ladder.back() - ladder.front());
    if (rate >= ladder[std::min(last + 1, top)]) {
      const auto reached = std::lower_bound(ladder.begin(), ladder.end(), rate) - ladder.begin();  // the highest below
      return static_cast<size_t>(std::max<std::ptrdiff_t>(reached - 1, 0));
    }
    if (rate <= ladder[last > 0 ? last - 1 : 0]) {
      const auto above = static_cast<size_t>(std::upper_bound(ladder.begin(), ladder.end(), rate) - ladder.begin());
      return std::min(above, top);
    }
    return last;
  }

 private:
  const Time reservoir_, cushion_;
};

template <class Rule>
std::unique_ptr<BitrateRule> make_rule(const VideoConfig& config) {
  return std::make_unique<Rule>(config);
}

const Entry<BitrateRuleRecord> rate{
    {"rate", "a share of the harmonic mean of the last chunks' throughputs", make_rule<ThroughputRule>}};
const Entry<BitrateRuleRecord> buffer{
    {"buffer", "what the buffer holds, mapped to the ladder (BBA-0)", make_rule<BufferRule>}};

}  // namespace
}  // namespace netbuf
