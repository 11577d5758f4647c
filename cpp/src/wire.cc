#include "netbuf/wire.h"

#include <cmath>

namespace netbuf {

namespace {

constexpr double kMostJitter = 100e9;        // ns: of distributions without an end
// Fractions of the roots of 2 and 3.
constexpr uint64_t kJitterStream = 0x6a09e667f3bcc908, kLossStream = 0xbb67ae8584caa73b;

}  // namespace

struct JitterLaw {
  std::string_view name;
  double (*draw)(Jitter&);

  static const JitterLaw* find(std::string_view name) {
    static constexpr JitterLaw kLaws[] = {
        {"uniform", [](Jitter& j) { return j.scale_ * (1 - j.tail()); }},
        {"exponential", [](Jitter& j) { return -j.scale_ * std::log(j.tail()); }},
        {"normal", [](Jitter& j) { return j.mean_ + j.scale_ * j.normal(); }},
        {"pareto", [](Jitter& j) { return j.scale_ * (std::pow(j.tail(), j.exponent_) - 1); }},
    };
    for (const JitterLaw& law : kLaws) {
      if (law.name == name) return &law;
    }
    return nullptr;
  }
};

bool known_jitter(const std::string& distribution) { return distribution.empty() || JitterLaw::find(distribution); }

Jitter::Jitter(const JitterConfig& config, uint64_t seed)
    : draw_(config.distribution.empty() ? nullptr : JitterLaw::find(config.distribution)->draw),
      scale_(config.scale_ns),
      mean_(config.mean_ns),
      exponent_(-1 / config.shape),
      correlation_(config.correlation),
      innovation_(std::sqrt(1 - config.correlation * config.correlation)),
      rng_(seed ^ kJitterStream) {}

// Box and Muller (1958): two at a time.
double Jitter::normal() {
  double e;
  if (have_spare_) {
    have_spare_ = false;
    e = spare_;
  } else {
    const double radius = std::sqrt(-2 * std::log1p(-rng_.uniform())), angle = 6.283185307179586 * rng_.uniform();
    spare_ = radius * std::sin(angle);
    have_spare_ = true;
    e = radius * std::cos(angle);
  }
  z_ = begun_ ? correlation_ * z_ + innovation_ * e : e;
  begun_ = true;
  return z_;
}

double Jitter::tail() {
  if (correlation_ == 0) return 1 - rng_.uniform();
  return std::max(0x1p-60, 0.5 * std::erfc(normal() * 0.7071067811865476));
}

Time Jitter::sample() { return static_cast<Time>(std::clamp(draw_(*this), 0.0, kMostJitter) + 0.5); }

bool Wire::changes(const LinkConfig& config) {
  return !config.delay_time_ns.empty() || !config.loss_time_ns.empty() || !config.jitter.distribution.empty();
}

Wire::Wire(const LinkConfig& config, uint64_t seed)
    : delays_(config.delay_time_ns, config.delay_step_ns, config.delay_period_ns),
      losses_(config.loss_time_ns, config.loss_step, config.loss_period_ns),
      delay_(config.delay_ns),
      delays_reorder_(config.delay_reorders),
      reorders_(reorders(config)),
      jitter_(config.jitter, seed),
      rng_(seed ^ kLossStream) {}

bool Wire::loses(Time start) {
  if (losses_.empty()) return false;
  const double p = losses_.at(start);
  return p > 0 && (p >= 1 || rng_.uniform() < p);
}

}  // namespace netbuf
