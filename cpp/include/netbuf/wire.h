// Propagation that is more than a constant: delays and loss probabilities that change in steps, and jitter.
//
// A packet takes the delay, and the loss probability, of the moment when its transmission begins, as in ns-3.44, whose
// point-to-point channel reads its Delay attribute when a transmission starts: what is in flight keeps its
// delay, and a fall of the delay lets later packets overtake. In order, a packet that would overtake arrives
// together with the last before it.
//
// Jitter is added to that, and is never negative. With u in (0, 1), scale and mean in time:
//   uniform      scale u
//   exponential  -scale ln(1 - u)
//   normal       max(0, mean + scale z), z standard normal
//   pareto       scale ((1 - u)^(-1/shape) - 1)              (Lomax: a Pareto distribution that begins at 0)
// Correlated jitter takes z from a first-order autoregressive sequence z' = rho z + sqrt(1 - rho^2) e of normal
// variables, and u from their distribution function, so that each packet's jitter is still distributed as said.
#pragma once
#include <algorithm>
#include <vector>

#include "netbuf/config.h"
#include "netbuf/rng.h"

namespace netbuf {

// Values that hold from one time to the next; asked for at times that mostly rise.
template <class Value>
class Steps {
 public:
  Steps() = default;
  Steps(std::vector<Time> times, std::vector<Value> values, Time period)
      : times_(std::move(times)), values_(std::move(values)), period_(period) {}

  bool empty() const { return times_.empty(); }
  Value at(Time time) {
    if (time < from_ || time >= until_) seek(time);
    return value_;
  }
  size_t memory_bytes() const { return times_.capacity() * sizeof(Time) + values_.capacity() * sizeof(Value); }

 private:
  void seek(Time time) {
    const Time round = period_ > 0 ? time / period_ * period_ : 0;
    const auto next = std::upper_bound(times_.begin(), times_.end(), time - round);
    from_ = round + *(next - 1);
    until_ = next != times_.end() ? round + *next : period_ > 0 ? round + period_ : std::numeric_limits<Time>::max();
    value_ = values_[static_cast<size_t>(next - times_.begin()) - 1];
  }

  std::vector<Time> times_;
  std::vector<Value> values_;
  Time period_ = 0, from_ = 0, until_ = 0;   // the value holds in [from_, until_)
  Value value_{};
};

class Jitter {
 public:
  Jitter(const JitterConfig& config, uint64_t seed);
  Time next() { return draw_ ? sample() : 0; }  // of the next packet, at least 0

 private:
  friend struct JitterLaw;
  Time sample();
  double normal();                           // of mean 0 and variance 1, correlated
  double tail();                             // 1 - u, above 0

  double (*draw_)(Jitter&);                  // ns; null: there is none
  double scale_, mean_, exponent_, correlation_, innovation_;
  double z_ = 0, spare_ = 0;
  bool begun_ = false, have_spare_ = false;
  Rng rng_;
};
bool known_jitter(const std::string& distribution);  // or empty

class Wire {
 public:
  // What such a link has beyond a constant delay and loss; whether it has anything.
  static bool changes(const LinkConfig& config);
  static bool reorders(const LinkConfig& config) { return config.delay_reorders || config.jitter.reorder; }

  Wire(const LinkConfig& config, uint64_t seed);

  // When a packet arrives whose transmission takes from start to end.
  // Once for each packet, in the order of transmission.
  Time arrival(Time start, Time end) {
    Time at = end + (delays_.empty() ? delay_ : delays_.at(start));
    if (!delays_reorder_) at = last_departure_ = std::max(last_departure_, at);
    at += jitter_.next();
    if (!reorders_) at = last_arrival_ = std::max(last_arrival_, at);
    return at;
  }
  bool loses(Time start);                    // a packet whose transmission begins then
  bool reorders() const { return reorders_; }
  size_t memory_bytes() const { return sizeof *this + delays_.memory_bytes() + losses_.memory_bytes(); }

 private:
  Steps<Time> delays_;
  Steps<double> losses_;
  Time delay_, last_departure_ = 0, last_arrival_ = 0;
  bool delays_reorder_, reorders_;
  Jitter jitter_;
  Rng rng_;                                  // of losses: jitter's is its own, so that neither changes the other
};

}  // namespace netbuf
