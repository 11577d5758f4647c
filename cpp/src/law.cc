#include "netbuf/law.h"

#include <algorithm>
#include <cmath>

#include "netbuf/reject.h"

namespace netbuf {

namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kLeastShare = 1e-6;         // of a law within its bounds: further out its tails are differences of nothing

double normal_tail(double z) { return 0.5 * std::erfc(z * M_SQRT1_2); }

constexpr double kFarOut = 30;               // deviations; the tail itself underflows at 38

// Its logarithm, far out by the series of Abramowitz and Stegun, 26.2.12.
double log_normal_tail(double z) {
  if (z < kFarOut) return std::log(normal_tail(z));
  const double w = 1 / (z * z);
  return -0.5 * z * z - std::log(z * std::sqrt(2 * M_PI)) + std::log1p(-w * (1 - w * (3 - w * (15 - 105 * w))));
}

// The z of normal_tail(z) = p: the approximation of Abramowitz and Stegun, 26.2.23, bettered twice by Halley's method.
double normal_tail_inverse(double p) {
  if (p <= 0) return kInfinite;
  if (p > 0.5) return p < 1 ? -normal_tail_inverse(1 - p) : -kInfinite;
  const double t = std::sqrt(-2 * std::log(p));
  double z = t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
  for (int i = 0; i < 2; ++i) {
    const double off = (normal_tail(z) - p) * std::sqrt(2 * M_PI) * std::exp(0.5 * z * z);
    z += 2 * off / (2 - z * off);
  }
  return z;
}

// The lower incomplete gamma function over the complete one (Abramowitz and Stegun, 6.5.29 and 6.5.31).
double gamma_share(double s, double x) {
  if (x <= 0) return 0;
  if (x == kInfinite) return 1;
  const double factor = std::exp(s * std::log(x) - x - std::lgamma(s));
  if (x < s + 1) {
    double term = 1 / s, sum = term;
    for (double n = s + 1; term > sum * 1e-16; ++n) sum += term *= x / n;
    return std::min(1.0, sum * factor);
  }
  double b = x + 1 - s, c = 1e300, d = 1 / b, fraction = d;
  for (int n = 1; n < 10'000; ++n) {
    const double a = -n * (n - s);
    b += 2;
    d = 1 / (a * d + b);
    c = b + a / c;
    fraction *= c * d;
    if (std::abs(c * d - 1) < 1e-16) break;
  }
  return std::clamp(1 - fraction * factor, 0.0, 1.0);
}

}  // namespace

struct Law::Shape {
  std::string_view name;
  double (*tail)(const LawConfig&, double x);            // S(x)
  double (*tail_inverse)(const LawConfig&, double p);    // x of S(x) = p
  double (*below)(const LawConfig&, double x);           // the part of the mean that lies below x
  double least_scale, most_scale;
  bool shaped;
};

namespace {

constexpr double kLeastScale = 1e-12, kMostScale = 1e15;

constexpr Law::Shape kShapes[] = {
    {"constant", [](const LawConfig& c, double x) { return x <= c.scale ? 1.0 : 0.0; },
     [](const LawConfig& c, double) { return c.scale; },
     [](const LawConfig& c, double x) { return x > c.scale ? c.scale : 0; }, 0, kMostScale, false},
    {"exponential", [](const LawConfig& c, double x) { return x > 0 ? std::exp(-x / c.scale) : 1; },
     [](const LawConfig& c, double p) { return -c.scale * std::log(p); },
     [](const LawConfig& c, double x) {
       return x == kInfinite ? c.scale : x > 0 ? c.scale - (c.scale + x) * std::exp(-x / c.scale) : 0;
     },
     kLeastScale, kMostScale, false},
    {"pareto", [](const LawConfig& c, double x) { return x > c.scale ? std::pow(c.scale / x, c.shape) : 1; },
     [](const LawConfig& c, double p) { return c.scale * std::pow(p, -1 / c.shape); },
     [](const LawConfig& c, double x) {
       if (x <= c.scale) return 0.0;
       if (x == kInfinite) return c.shape > 1 ? c.shape * c.scale / (c.shape - 1) : kInfinite;
       const double ratio = std::log(x / c.scale), slope = 1 - c.shape;
       return c.shape * c.scale * (slope == 0 ? ratio : std::expm1(slope * ratio) / slope);
     },
     kLeastScale, kMostScale, true},
    {"lognormal",
     [](const LawConfig& c, double x) { return x > 0 ? normal_tail((std::log(x) - c.scale) / c.shape) : 1; },
     [](const LawConfig& c, double p) { return std::exp(c.scale + c.shape * normal_tail_inverse(p)); },
     [](const LawConfig& c, double x) {
       if (x <= 0) return 0.0;
       const double log_mean = c.scale + 0.5 * c.shape * c.shape, mean = std::exp(log_mean);
       if (x == kInfinite) return mean;
       const double z = c.shape - (std::log(x) - c.scale) / c.shape;
       return mean < kInfinite && z < kFarOut ? mean * normal_tail(z) : std::exp(log_mean + log_normal_tail(z));
     },
     -100, 100, true},
    {"weibull",
     [](const LawConfig& c, double x) { return x > 0 ? std::exp(-std::pow(x / c.scale, c.shape)) : 1; },
     [](const LawConfig& c, double p) { return c.scale * std::pow(-std::log(p), 1 / c.shape); },
     [](const LawConfig& c, double x) {
       if (x <= 0) return 0.0;
       const double s = 1 + 1 / c.shape;
       return c.scale * std::exp(std::lgamma(s)) * gamma_share(s, std::pow(x / c.scale, c.shape));
     },
     kLeastScale, kMostScale, true},
};

const Law::Shape* find_shape(std::string_view kind) {
  for (const Law::Shape& shape : kShapes) {
    if (shape.name == kind) return &shape;
  }
  return nullptr;
}

void check_no_parts(const LawConfig& law, const std::string& at) {
  if (!law.parts.empty()) reject(at + ".parts", law.parts.size(), "none, unless mixed");
}

void check_no_values(const LawConfig& law, const std::string& at) {
  if (!law.values.empty()) reject(at + ".values", law.values.size(), "none, unless points");
}

void check_shares(const LawConfig& law, const std::string& at) {
  if (law.cumulative.empty()) reject(at + ".cumulative", "[]", "at least one share");
  for (size_t i = 0; i < law.cumulative.size(); ++i) {
    const double p = law.cumulative[i];
    if (!(p >= 0 && p <= 1) || (i > 0 && p < law.cumulative[i - 1])) {
      reject(at + ".cumulative", p, "in [0, 1], in ascending order");
    }
  }
  if (law.cumulative.back() != 1) reject(at + ".cumulative", law.cumulative.back(), "1 at its end");
}

void check_points(const LawConfig& law, const std::string& at) {
  check_no_parts(law, at);
  check_shares(law, at);
  if (law.values.size() != law.cumulative.size()) reject(at + ".values", law.values.size(), "as many as cumulative");
  for (size_t i = 0; i < law.values.size(); ++i) {
    if (!(law.values[i] >= 0 && law.values[i] <= kMostScale) || (i > 0 && law.values[i] < law.values[i - 1])) {
      reject(at + ".values", law.values[i], "in [0, 1e15], in ascending order");
    }
  }
}

void check_parts(const LawConfig& law, const std::string& at) {
  check_no_values(law, at);
  check_shares(law, at);
  if (law.parts.size() != law.cumulative.size()) reject(at + ".parts", law.parts.size(), "as many as cumulative");
  for (const LawConfig& part : law.parts) {
    if (!part.parts.empty()) reject(at + ".parts", part.parts.size(), "laws without parts");
    Law::check(part, at + ".parts");
  }
}

// Laws that are made of others, or of points.
constexpr struct {
  std::string_view name;
  void (*check)(const LawConfig& law, const std::string& at);
} kComposed[] = {{"points", check_points}, {"mixed", check_parts}};

}  // namespace

Law::Law(const LawConfig& config)
    : config_(config), shape_(find_shape(config.kind)), parts_(config.parts.begin(), config.parts.end()) {
  if (shape_) at_low_ = shape_->tail(config, config.low), at_high_ = shape_->tail(config, config.high);
}

Time Law::as_time(double seconds) {
  const double ns = seconds * 1e9 + 0.5;
  return ns < static_cast<double>(kNever) ? std::max<Time>(1, static_cast<Time>(ns)) : kNever;
}

int64_t Law::draw_bytes(Rng& rng) const {
  return static_cast<int64_t>(std::clamp(draw(rng) + 0.5, 1.0, static_cast<double>(int64_t{1} << 40)));
}

double Law::draw(Rng& rng) const {
  const LawConfig& c = config_;
  if (shape_) {
    return std::clamp(shape_->tail_inverse(c, at_low_ - rng.uniform() * (at_low_ - at_high_)), c.low, c.high);
  }
  const double u = rng.uniform();
  const size_t i =
      static_cast<size_t>(std::upper_bound(c.cumulative.begin(), c.cumulative.end() - 1, u) - c.cumulative.begin());
  if (!parts_.empty()) return parts_[i].draw(rng);
  if (i == 0) return c.values[0];
  const double share = (u - c.cumulative[i - 1]) / (c.cumulative[i] - c.cumulative[i - 1]);
  return c.values[i - 1] + share * (c.values[i] - c.values[i - 1]);
}

// Its distribution function is mean(x) / mean().
double Law::draw_rest(Rng& rng) const {
  const double wanted = rng.uniform() * mean();
  double low = 0, high = 1;
  while (mean(high) < wanted && high < 1e15) low = high, high *= 2;
  for (int i = 0; i < 64; ++i) {
    const double middle = 0.5 * (low + high);
    (mean(middle) < wanted ? low : high) = middle;
  }
  return high;
}

double Law::mean(double limit) const {
  const LawConfig& c = config_;
  if (shape_) {
    if (limit <= c.low) return limit;
    const double to = std::min(limit, c.high), share = at_low_ - at_high_;
    const double above = to < kInfinite ? to * (shape_->tail(c, to) - at_high_) : 0;
    return (shape_->below(c, to) - shape_->below(c, c.low) + above) / share;
  }
  double sum = 0;
  for (size_t i = 0; i < c.cumulative.size(); ++i) {
    const double share = c.cumulative[i] - (i ? c.cumulative[i - 1] : 0);
    if (!parts_.empty()) {
      sum += share * parts_[i].mean(limit);
      continue;
    }
    const double to = std::min(c.values[i], limit), from = std::min(i ? c.values[i - 1] : c.values[0], limit);
    const double width = i ? c.values[i] - c.values[i - 1] : 0, part = width > 0 ? (to - from) / width : 1;
    sum += share * (part * 0.5 * (from + to) + (part < 1 ? (1 - part) * limit : 0));  // part: of the stretch below limit
  }
  return sum;
}

double Law::tail(double x) const {
  const LawConfig& c = config_;
  if (shape_) {
    if (x <= c.low) return 1;
    return x <= c.high ? (shape_->tail(c, x) - at_high_) / (at_low_ - at_high_) : 0;
  }
  if (!parts_.empty()) {
    double sum = 0;
    for (size_t i = 0; i < parts_.size(); ++i) {
      sum += (c.cumulative[i] - (i ? c.cumulative[i - 1] : 0)) * parts_[i].tail(x);
    }
    return sum;
  }
  const size_t i = static_cast<size_t>(std::lower_bound(c.values.begin(), c.values.end(), x) - c.values.begin());
  if (i == 0) return 1;
  if (i == c.values.size()) return 0;
  const double part = (x - c.values[i - 1]) / (c.values[i] - c.values[i - 1]);
  return 1 - (c.cumulative[i - 1] + part * (c.cumulative[i] - c.cumulative[i - 1]));
}

double Law::highest() const {
  if (shape_) return std::min(config_.high, shape_->tail_inverse(config_, 0));
  if (parts_.empty()) return config_.values.back();
  double most = 0;
  for (const Law& part : parts_) most = std::max(most, part.highest());
  return most;
}

void Law::check(const LawConfig& law, const std::string& at) {
  for (const auto& composed : kComposed) {
    if (composed.name == law.kind) return composed.check(law, at);
  }
  const Shape* shape = find_shape(law.kind);
  if (!shape) reject(at + ".kind", law.kind, "constant, exponential, pareto, lognormal, weibull, points or mixed");
  check_no_parts(law, at);
  check_no_values(law, at);
  if (!(law.scale >= shape->least_scale && law.scale <= shape->most_scale)) {
    std::ostringstream valid;
    valid << "in [" << shape->least_scale << ", " << shape->most_scale << "]";
    reject(at + ".scale", law.scale, valid.str());
  }
  if (shape->shaped && !(law.shape >= 0.01 && law.shape <= 100)) reject(at + ".shape", law.shape, "in [0.01, 100]");
  if (!(law.low >= 0 && law.low <= law.high)) reject(at + ".low", law.low, "0 or more, at most high");
  if (shape->tail(law, law.low) - shape->tail(law, law.high) < kLeastShare) {
    reject(at + ".low", law.low, "a bound that, with high, leaves a millionth of the law");
  }
}

}  // namespace netbuf
