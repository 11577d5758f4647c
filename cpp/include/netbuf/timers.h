// The timers of one connection. At one instant they take turns in this order.
#pragma once
#include <algorithm>
#include <cstdint>

#include "netbuf/types.h"

namespace netbuf {

enum class Alarm : uint8_t {
  retransmission,  // of the sender, or of its SYN or window probe
  acknowledgement, // a delayed ACK; or nobody has answered the receiver's SYN/ACK or FIN
  wakeup,          // the sender tries to send (pacing, recovery)
  application,     // the sending application is asked; start and stop
  reading,         // the receiving application can read on
};

// When a timer goes off that is set at `set` for `deadline`, by a clock that ticks every `tick` (0: on time).
// Linux' wheel: at the first tick after whole ticks have gone by, so that it is never early; from 63 ticks on its
// slots are 8 ticks, from 504 on 64.
inline Time goes_off(Time set, Time deadline, Time tick) {
  if (!tick || deadline == kNever) return deadline;
  const Time ticks = std::max<Time>(0, (deadline - set + tick - 1) / tick);
  int level = 0;
  while (level < 24 && ticks >= Time{63} << level) level += 3;
  return ((((set / tick + ticks) >> level) + 1) << level) * tick;
}

// Those whose deadlines move with every packet are lower bounds: their owner looks at the deadline when they go off.
class Timers {
 public:
  Time next() const { return next_; }
  Time at(Alarm alarm) const { return at_[index(alarm)]; }
  Alarm first() const { return static_cast<Alarm>(std::find(at_, at_ + kCount, next_) - at_); }

  void set(Alarm alarm, Time at) {
    Time& slot = at_[index(alarm)];
    const Time old = slot;
    slot = at;
    if (at <= next_) {
      next_ = at;
    } else if (old == next_) {
      next_ = *std::min_element(at_, at_ + kCount);
    }
  }
  void set_no_later(Alarm alarm, Time at) {
    if (at < at_[index(alarm)]) set(alarm, at);
  }

 private:
  static constexpr size_t kCount = 5;
  static constexpr size_t index(Alarm alarm) { return static_cast<size_t>(alarm); }
  Time next_ = kNever, at_[kCount] = {kNever, kNever, kNever, kNever, kNever};
};

}  // namespace netbuf
