// When a link serves nothing: the stretches of a varying rate,
// or between delivery opportunities, of at least some length.
#pragma once
#include <vector>

#include "netbuf/config.h"

namespace netbuf {

class Outages {
 public:
  struct Stretch {
    Time begin, end;                           // [begin, end); kNever: none
  };

  explicit Outages(const LinkConfig& config);  // those of at least config.outage_ns
  Stretch following(Time at) const;            // the first that ends after a time

 private:
  void add(Time begin, Time end);

  std::vector<Stretch> stretches_;             // of one repetition, in order; the first may begin in the one before
  Time least_, period_;                        // period 0: no repetition
};

}  // namespace netbuf
