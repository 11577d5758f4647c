// A distribution of positive quantities: periods and gaps in seconds, sizes in bytes.
//
// With S(x) the share of draws above x:
//   constant     scale
//   exponential  S = exp(-x / scale)                                mean scale
//   pareto       S = (scale / x)^shape from scale on                (Pareto I)
//   lognormal    ln x is normal, of mean scale and deviation shape
//   weibull      S = exp(-(x / scale)^shape)
//   points       values[i] is exceeded by 1 - cumulative[i], linear in between; a first share above 0 is a step
//   mixed        of parts, one of which is drawn by cumulative first
// Those with a scale are held within [low, high]: what lies outside is as if it were drawn again.
#pragma once
#include <limits>
#include <string>
#include <vector>

#include "netbuf/config.h"
#include "netbuf/rng.h"

namespace netbuf {

class Law {
 public:
  struct Shape;                              // a law without its bounds

  explicit Law(const LawConfig& config);

  double draw(Rng& rng) const;
  // What is left of a period of this law that has been going on for ever (its equilibrium distribution).
  double draw_rest(Rng& rng) const;
  Time draw_time(Rng& rng) const { return as_time(draw(rng)); }        // of seconds; at least a nanosecond
  Time draw_rest_time(Rng& rng) const { return as_time(draw_rest(rng)); }
  int64_t draw_bytes(Rng& rng) const;        // whole, at least 1
  // Of min(x, limit); infinite where the mean is.
  double mean(double limit = std::numeric_limits<double>::infinity()) const;
  double tail(double x) const;               // the share of draws of x or more
  double highest() const;                    // that a draw can be

  static void check(const LawConfig& config, const std::string& at);   // throws

 private:
  static Time as_time(double seconds);

  LawConfig config_;
  const Shape* shape_;                       // null: points or mixed
  double at_low_ = 1, at_high_ = 0;          // S there
  std::vector<Law> parts_;
};

}  // namespace netbuf
