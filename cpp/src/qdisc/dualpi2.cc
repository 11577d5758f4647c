// DualPI2: packets of scalable senders (ECT(1), or marked before: L4S, RFC 9331) wait in a queue of their own that is
// served first and marks early, so that they hardly wait. What keeps the others' queue at its target also decides how
// often the first one marks, so that flows of both kinds get about the same rates.
//
//   p' += alpha (delay - target) + beta (delay - delay before), once an update
//   classic queue: drops, or marks, with p'^2; L4S queue: marks with k p', and whatever has waited too long there
//
// The classic queue's part of the link is kept by weighted round robin. Beyond k p' = 1 marks say nothing more: then
// both queues drop with p'^2, and the L4S queue marks all that is left.
//
// Sources: De Schepper, Briscoe and White, RFC 9332, 2023, with the defaults of its appendix A; De Schepper,
// Bondarenko, Tsang and Briscoe, "PI2: a linearized AQM for both classic and scalable TCP", CoNEXT 2016; behaviour and
// names of net/sched/sch_dualpi2.c (Linux 6.18): a step in the L4S queue instead of the appendix' ramp, decisions when
// packets leave, delays of the packets at the heads as they are at an update. Left out: a step counted in packets,
// classes chosen by filters, a limit of memory. On a slow link, where one packet takes longer than the step,
// whatever waits is marked: min_qlen_step spares packets that find a shorter queue.
#include <algorithm>

#include "netbuf/queue_discipline.h"

namespace netbuf {
namespace {

class DualPi2 final : public QueueDiscipline {
 public:
  explicit DualPi2(const DisciplineSetting& setting)
      : target_(setting.parameters["target_ms"] * 1e-3),
        alpha_(setting.parameters["alpha"]),
        beta_(setting.parameters["beta"]),
        coupling_(setting.parameters["coupling_factor"]),
        update_(from_seconds(setting.parameters["tupdate_ms"] * 1e-3)),
        step_(from_seconds(setting.parameters["step_thresh_ms"] * 1e-3)),
        min_step_packets_(setting.parameters.as<uint32_t>("min_qlen_step")),
        mtu_bytes_(setting.parameters.as<int64_t>("mtu_bytes")),
        classic_weight_(setting.parameters.as<int64_t>("classic_protection_percent")),
        drop_overload_(setting.parameters.is("drop_overload")),
        drop_early_(setting.parameters.is("drop_early")),
        ecn_(setting.parameters.is("ecn")),
        limit_packets_(setting.limit_packets),
        limit_bytes_(setting.limit_bytes),
        sink_(setting.sink),
        rng_(setting.rng),
        next_update_(update_) {
    reset_credit();
  }

  void enqueue(Time now, const Queued& item) override {
    catch_up(now);
    if (packets() >= limit_packets_ || bytes_ + item.bytes > limit_bytes_) return sink_->dropped(item);
    Queued kept = item;
    if (drop_early_ && chosen_to_drop(kept)) return sink_->dropped(item);
    kept.stepped = l4s_.size() >= min_step_packets_;
    (scalable(item) ? l4s_ : classic_).push(kept);
    bytes_ += item.bytes;
  }

  bool dequeue(Time now, Queued& item) override {
    catch_up(now);
    while (packets() > 0) {
      const int64_t credit = take(item);
      if (!drop_early_ && chosen_to_drop(item)) {
        sink_->dropped(item);
        continue;
      }
      if (scalable(item) && item.stepped && now - item.arrived > step_) mark_once(item);
      credit_ += credit;
      if (packets() == 0) reset_credit();
      return true;
    }
    reset_credit();
    return false;
  }

  uint32_t packets() const override { return l4s_.size() + classic_.size(); }
  int64_t bytes() const override { return bytes_; }
  size_t memory_bytes() const override { return sizeof *this + l4s_.memory_bytes() + classic_.memory_bytes(); }

 private:
  bool scalable(const Queued& item) const { return ecn_ && item.ecn && (item.l4s || item.marked); }
  void mark_once(Queued& item) {
    if (!item.marked) mark(item, *sink_);
  }

  // The next packet by weighted round robin; returns what the classic queue's credit changes by if it is sent. Credit
  // changes only while both wait: the queue whose turn it is pays the other one's weight for each byte.
  int64_t take(Queued& item) {
    const bool both = l4s_.size() > 0 && classic_.size() > 0;
    const bool from_l4s = l4s_.size() > 0 && (!both || credit_ <= 0);
    Ring<Queued>& queue = from_l4s ? l4s_ : classic_;
    item = queue.front();
    queue.pop();
    bytes_ -= item.bytes;
    if (!both) return 0;
    return (from_l4s ? classic_weight_ : classic_weight_ - 100) * item.bytes;
  }
  void reset_credit() { credit_ = mtu_bytes_ * (2 * classic_weight_ - 100); }

  bool roll(double probability) { return rng_->uniform() < probability; }
  bool roll_twice() { return roll(probability_) && roll(probability_); }

  // Whether it goes; else it may have been marked. A queue of next to nothing is left alone.
  bool chosen_to_drop(Queued& item) {
    if (bytes_ < 2 * mtu_bytes_) return false;
    const double marking = coupling_ * probability_;
    const bool overload = marking > 1;
    if (!scalable(item)) {
      if (!roll_twice()) return false;
      if (overload || !ecn_ || !item.ecn) return true;
      mark_once(item);
      return false;
    }
    if (overload && drop_overload_ && roll_twice()) return true;
    if (overload || roll(marking)) mark_once(item);
    return false;
  }

  // Queues do not change between calls: the updates that fell due meanwhile can be made up for now.
  void catch_up(Time now) {
    while (next_update_ <= now) {
      const double probability = probability_, delay = delay_;
      update(next_update_);
      next_update_ += update_;
      if (packets() == 0 && probability == probability_ && delay == delay_ && next_update_ <= now) {
        // Nor would any of the others change a thing.
        next_update_ += (now - next_update_) / update_ * update_ + update_;
      }
    }
  }

  static Time waited(const Ring<Queued>& queue, Time now) { return queue.size() > 0 ? now - queue.front().arrived : 0; }

  void update(Time now) {
    const double delay = seconds(std::max(waited(l4s_, now), waited(classic_, now)));
    const double most = drop_overload_ ? 1 : 1 / coupling_;
    probability_ += alpha_ * (delay - target_) + beta_ * (delay - delay_);
    probability_ = std::clamp(probability_, 0.0, most);
    delay_ = delay;
  }

  const double target_, alpha_, beta_, coupling_;
  const Time update_, step_;
  const uint32_t min_step_packets_;
  const int64_t mtu_bytes_, classic_weight_;
  const bool drop_overload_, drop_early_, ecn_;
  const int64_t limit_packets_, limit_bytes_;
  DropSink* sink_;
  Rng* rng_;

  Ring<Queued> l4s_, classic_;
  int64_t bytes_ = 0;        // of both
  double probability_ = 0;   // p'
  double delay_ = 0;         // at the last update, s
  Time next_update_;
  int64_t credit_ = 0;       // of the classic queue, percent bytes; above 0: it is its turn
};

const Entry<DisciplineRecord> entry{{
    .name = "dualpi2",
    .meaning = "dual queue coupled AQM (RFC 9332): one queue for L4S, marked early and served first,"
               " one for the rest, kept at a target delay",
    .make = make<DualPi2>,
    .parameters =
        {real("target_ms", 15, 0.01, 10'000, "delay that the classic queue is kept at, ms"),
         real("tupdate_ms", 16, 0.1, 10'000, "time between two updates of the probability, ms"),
         real("alpha", 0.16, 0, 1'000, "weight of the delay's deviation, 1/s"),
         real("beta", 3.2, 0, 1'000, "weight of the delay's change, 1/s"),
         whole("coupling_factor", 2, 1, 255, "k: L4S is marked with k times the root of the classic probability"),
         real("step_thresh_ms", 1, 0, 10'000, "L4S packets that wait longer are marked in any case, ms"),
         whole("min_qlen_step", 0, 0, 1'000'000, "only if they found as many L4S packets waiting"),
         whole("classic_protection_percent", 10, 0, 100, "the classic queue's part of the link while both queues wait"),
         truth("drop_overload", true, "where marks say nothing more, L4S is dropped too; else only by a full queue"),
         truth("drop_early", false, "packets are chosen as they arrive, not as they leave"),
         whole("mtu_bytes", 1514, 1, 65'536, "nothing is chosen while less than two of them wait"), kEcnParameter},
}};

}  // namespace
}  // namespace netbuf
