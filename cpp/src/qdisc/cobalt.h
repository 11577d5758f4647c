// COBALT, the rule of each of CAKE's queues: CoDel's law of drops at the head (RFC 8289) whose count decays by the same
// law in place of being forgotten, and BLUE, which drops at random where a queue has overflowed and CoDel is too mild.
//
// Sources: Hoeiland-Joergensen, Taht and Morton, "Piece of CAKE", LANMAN 2018, 2.3; Feng, Shin, Kandlur and Saha, "The
// BLUE active queue management algorithms", ToN 10(4), 2002; behaviour of net/sched/sch_cake.c (Linux 6.18). Square
// roots are exact.
#pragma once
#include <algorithm>
#include <cmath>

#include "netbuf/queue_discipline.h"

namespace netbuf {

class Cobalt {
 public:
  struct Setting {
    Time target, interval;
    Time mtu_time;                        // a full packet's transmission: four of them always may wait
    bool ecn;
  };
  enum class Verdict : uint8_t { send, drop };

  // Of the packet at the head; it may be marked.
  Verdict judge(Time now, const Setting& setting, Queued& item, Rng& rng, DropSink& sink) {
    const Time sojourn = now - item.arrived;
    Time late = now - drop_next_;
    bool due = count_ > 0 && late >= 0;
    if (sojourn > setting.target && sojourn > 4 * setting.mtu_time) {
      if (!dropping_) {
        dropping_ = true;
        drop_next_ = control(now, setting);
      }
      count_ = std::max(count_, 1u);
    } else {
      dropping_ = false;
    }
    Verdict verdict = Verdict::send;
    if (due && dropping_) {
      if (!setting.ecn || !mark(item, sink)) verdict = Verdict::drop;
      ++count_;
      drop_next_ = control(drop_next_, setting);
      late = now - drop_next_;
    } else {
      for (; due; due = count_ > 0 && late >= 0) {
        --count_;
        drop_next_ = control(drop_next_, setting);
        late = now - drop_next_;
      }
    }
    if (probability_ > 0 && verdict == Verdict::send && rng.uniform() < probability_) verdict = Verdict::drop;
    if (count_ == 0) {
      drop_next_ = now + setting.interval;  // until then it is not at rest
    } else if (late > 0 && verdict == Verdict::send) {
      drop_next_ = now;
    }
    return verdict;
  }

  // A packet of the queue had to go, for all are full.
  void overflowed(Time now, const Setting& setting) {
    if (now - blue_changed_ > setting.target) {
      probability_ = std::min(1.0, probability_ + kUp);
      blue_changed_ = now;
    }
    dropping_ = true;
    drop_next_ = now;
    count_ = std::max(count_, 1u);
  }
  // The queue was found empty.
  void emptied(Time now, const Setting& setting) {
    if (probability_ > 0 && now - blue_changed_ > setting.target) {
      probability_ = std::max(0.0, probability_ - kDown);
      blue_changed_ = now;
    }
    dropping_ = false;
    if (count_ > 0 && now >= drop_next_) {
      --count_;
      drop_next_ = control(drop_next_, setting);
    }
  }
  bool at_rest(Time now) const { return probability_ == 0 && count_ == 0 && now >= drop_next_; }

 private:
  static constexpr double kUp = 1.0 / 256, kDown = 1.0 / 4096;

  Time control(Time from, const Setting& setting) const {
    return from + static_cast<Time>(static_cast<double>(setting.interval) / std::sqrt(std::max(count_, 1u)));
  }

  uint32_t count_ = 0;
  bool dropping_ = false;
  Time drop_next_ = 0, blue_changed_ = 0;
  double probability_ = 0;                // BLUE's
};

}  // namespace netbuf
