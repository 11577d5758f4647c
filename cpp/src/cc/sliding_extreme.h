// The least or the largest of the values of a sliding window of time, exactly: values that a later one makes
// irrelevant are forgotten, so that what is kept is in order and its oldest is the extreme. The last value
// stays, however old it is.
#pragma once
#include <algorithm>
#include <functional>

#include "netbuf/ring.h"
#include "netbuf/types.h"

namespace netbuf {

// Beyond(a, b): b is forgotten when a arrives after it.
template <class Beyond>
class SlidingExtreme {
 public:
  bool empty() const { return values_.empty(); }
  Time get() const { return values_.front().value; }  // of what was added last at the latest

  // Adds the value of now; the window ends there and reaches back over window.
  void add(Time now, Time value, Time window) {
    while (!values_.empty() && Beyond()(value, values_.back().value)) values_.pop_back();
    values_.push({now, value});
    while (values_.size() > 1 && values_.front().at < now - window) values_.pop();
  }

  void clear() { values_.clear(); }

 private:
  struct Value {
    Time at, value;
  };
  Ring<Value> values_;
};

using SlidingMin = SlidingExtreme<std::less<Time>>;
using SlidingMax = SlidingExtreme<std::greater<Time>>;

}  // namespace netbuf
