// How LEDBAT and LEDBAT++ tell queueing from the path's own delay (RFC 6817, 2.4.2 and 3.1.1): the base delay
// is the least of the last minutes, the present one the least of the last few samples. Of round trips: a
// sender sees nothing else.
#pragma once
#include <algorithm>
#include <vector>

#include "netbuf/tcp.h"

namespace netbuf {

class DelayHistory {
 public:
  DelayHistory(uint32_t minutes, uint32_t samples) : base_(minutes, kNever), current_(samples, kNever) {}

  void add(Time now, Time rtt) {
    const Time minute = now / (60 * kSecond);
    for (; minute_ < minute; ++minute_) {
      base_[next_minute_] = kNever;  // the oldest goes
      next_minute_ = (next_minute_ + 1) % base_.size();
    }
    Time& latest = base_[(next_minute_ + base_.size() - 1) % base_.size()];
    latest = std::min(latest, rtt);
    current_[next_sample_] = rtt;
    next_sample_ = (next_sample_ + 1) % current_.size();
  }
  bool known() const { return base() < kNever; }
  Time base() const { return *std::min_element(base_.begin(), base_.end()); }
  Time queueing() const { return std::max<Time>(*std::min_element(current_.begin(), current_.end()) - base(), 0); }

 private:
  std::vector<Time> base_, current_;
  size_t next_minute_ = 0, next_sample_ = 0;
  Time minute_ = 0;
};

}  // namespace netbuf
