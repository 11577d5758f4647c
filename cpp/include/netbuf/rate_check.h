// Whether a link of the emulator kept to its rate by the wall clock. While a link is saturated, what it carries is
// known from its schedule: what was written between the first and the last packet of such a time is compared with what
// the schedule would have carried between the two moments at which they were written. A link is saturated while every
// packet finds it busy; one that stood idle for no longer than the next packet may have waited to be read counts as
// saturated too, since it may have had that packet.
#pragma once
#include <algorithm>
#include <cstdint>

#include "netbuf/link.h"

namespace netbuf {

struct RateKept {
  double busy_s = 0;   // wall-clock time that was measured
  double error_s = 0;  // over it, the integral of the relative error: negative where less was carried than could be
  double error() const { return error_s / busy_s; }  // of the rates; NaN: nothing was measured
};

class RateCheck {
 public:
  // In shorter times the wake-ups at their ends would be what is measured.
  static constexpr Time kShortest = 100 * kMillisecond;

  // A packet's place in what its link has carried.
  struct Mark {
    uint32_t link = UINT32_MAX, period = 0;
    int64_t bytes = 0;             // that the link has taken since its start, this packet's included
    Time left = 0;                 // when the packet had left the link, by the link's clock
  };

  // The link begins with a packet after it has been idle; unread: how long the packet may have waited before it was
  // read. Whether the link counts as saturated.
  bool take(Time idle, Time unread) {
    if (idle <= unread) return true;
    ++period_;
    return false;
  }
  uint32_t period() const { return period_; }

  // The packet was written; late: by how much.
  void write(const Link& link, const Mark& mark, Time late) {
    const Moment moment{mark.bytes, mark.left + late};
    if (!any_ || mark.period != measured_) {
      if (any_ && static_cast<int32_t>(mark.period - measured_) < 0) return;  // overtaken
      sum_ = kept(link);
      any_ = true;
      measured_ = mark.period;
      first_ = last_ = moment;
    } else if (moment.bytes > last_.bytes && moment.at > last_.at) {
      last_ = moment;
    }
  }

  RateKept kept(const Link& link) const {
    RateKept sum = sum_;
    if (last_.at - first_.at < kShortest) return sum;
    const double could = link.offered_bits(last_.at) - link.offered_bits(first_.at);
    if (could <= 0) return sum;
    const double busy = seconds(last_.at - first_.at);
    sum.busy_s += busy;
    sum.error_s += busy * (static_cast<double>(last_.bytes - first_.bytes) * 8 / could - 1);
    return sum;
  }

 private:
  struct Moment {
    int64_t bytes = 0;
    Time at = 0;
  };
  uint32_t period_ = 0, measured_ = 0;
  bool any_ = false;
  Moment first_, last_;
  RateKept sum_;                   // of the periods before
};

}  // namespace netbuf
