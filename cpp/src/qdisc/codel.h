// CoDel's decision at the head of a queue (RFC 8289): shared by CoDel and by each queue of FQ-CoDel.
//
// The arithmetic is that of include/net/codel_impl.h (Linux) and
// src/traffic-control/model/codel-queue-disc.cc (ns-3.44): time in units of 1024 ns in 32 bits, 1/sqrt(count)
// in 16 bits improved by one Newton step at each change of count.
#pragma once
#include "netbuf/queue_discipline.h"

namespace netbuf {

inline constexpr Parameter kCodelParameters[] = {
    real("target_ms", 5, 0.01, 10'000, "acceptable standing delay, ms"),
    real("interval_ms", 100, 0.1, 100'000, "a slow round trip's worth, ms"),
    whole("mtu_bytes", 1514, 0, 65'536, "nothing is dropped while no more would be left; 1499 does as ns-3 does"),
    kEcnParameter,
    real("ce_threshold_ms", kAutomatic, 0, 10'000,
         "what waits longer is marked in any case, where its flow speaks ECN, ms; auto: not"),
};

class Codel {
 public:
  struct Setting {
    uint32_t target, interval;  // in units
    int64_t mtu_bytes;          // no drop that would leave no more than this
    bool ecn;
    uint32_t ce_threshold;      // UINT32_MAX: none
  };
  static Setting setting(const Parameters& parameters) {
    return {units(from_seconds(parameters["target_ms"] * 1e-3)), units(from_seconds(parameters["interval_ms"] * 1e-3)),
            parameters.as<int64_t>("mtu_bytes"), parameters.is("ecn"),
            parameters.automatic("ce_threshold_ms") ? UINT32_MAX
                                                    : units(from_seconds(parameters["ce_threshold_ms"] * 1e-3))};
  }

  // The next packet to send, after those that are dropped before it; false when none is left. A Store has
  // bool pop(Queued&), int64_t bytes() const, void drop(const Queued&) and DropSink& sink().
  template <class Store>
  bool dequeue(Time now, const Setting& setting, Store& store, Queued& item) {
    if (!next(now, setting, store, item)) return false;
    if (item.ecn && !item.marked && units(now - item.arrived) > setting.ce_threshold) mark(item, store.sink());
    return true;
  }

 private:
  template <class Store>
  bool next(Time now, const Setting& setting, Store& store, Queued& item) {
    const uint32_t time = units(now);
    bool have = store.pop(item);
    bool drop = above_for_an_interval(time, setting, store, have, now, item);
    if (!have) {
      dropping_ = false;
      return false;
    }
    if (dropping_) {
      if (!drop) dropping_ = false;
      while (dropping_ && !before(time, drop_next_)) {
        ++count_;
        newton_step();
        if (setting.ecn && mark(item, store.sink())) {
          drop_next_ = control_law(drop_next_, setting.interval);
          break;
        }
        store.drop(item);
        have = store.pop(item);
        if (above_for_an_interval(time, setting, store, have, now, item)) {
          drop_next_ = control_law(drop_next_, setting.interval);
        } else {
          dropping_ = false;
        }
      }
    } else if (drop) {
      if (!setting.ecn || !mark(item, store.sink())) {
        store.drop(item);
        have = store.pop(item);
        above_for_an_interval(time, setting, store, have, now, item);
      }
      dropping_ = true;
      // What kept the queue in check a little while ago is a better start than one drop an interval.
      const uint32_t dropped = count_ - last_count_;
      if (dropped > 1 && before(time - drop_next_, 16 * setting.interval)) {
        count_ = dropped;
        newton_step();
      } else {
        count_ = 1;
        inverse_sqrt_ = UINT16_MAX;
      }
      last_count_ = count_;
      drop_next_ = control_law(time, setting.interval);
    }
    return have;
  }

  static uint32_t units(Time t) { return static_cast<uint32_t>(t >> 10); }

  // Whether the packet at the head has waited too long, as all have for an interval.
  template <class Store>
  bool above_for_an_interval(uint32_t time, const Setting& setting, const Store& store, bool have, Time now,
                             const Queued& item) {
    if (!have || before(units(now - item.arrived), setting.target) || store.bytes() <= setting.mtu_bytes) {
      first_above_ = 0;
      return false;
    }
    if (!first_above_) {
      first_above_ = time + setting.interval;
      return false;
    }
    return after(time, first_above_);
  }

  // inverse_sqrt := inverse_sqrt (3 - count inverse_sqrt^2) / 2, in fixed point of 2^-32 (stored: the upper 16 bits).
  void newton_step() {
    const uint64_t x = uint64_t{inverse_sqrt_} << 16;
    const uint64_t square = x * x >> 32;
    const uint64_t factor = ((uint64_t{3} << 32) - count_ * square) >> 2;
    inverse_sqrt_ = static_cast<uint16_t>(static_cast<uint32_t>(factor * x >> 31) >> 16);
  }
  uint32_t control_law(uint32_t from, uint32_t interval) const {
    return from + static_cast<uint32_t>(uint64_t{interval} * (uint32_t{inverse_sqrt_} << 16) >> 32);
  }

  uint32_t count_ = 0, last_count_ = 0;      // drops since dropping began; where it began
  uint32_t first_above_ = 0, drop_next_ = 0;
  uint16_t inverse_sqrt_ = UINT16_MAX;       // of count
  bool dropping_ = false;
};

}  // namespace netbuf
