// A link: a queue, transmission at a constant, stepped or trace-driven rate, random loss, propagation delay.
// Of a first-in first-out queue a packet's departure is known when it arrives, so that such a link needs no events of
// its own. A managed link keeps its packets in a queue discipline, and has an event whenever it can send the next one.
#pragma once
#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "netbuf/capacity.h"
#include "netbuf/config.h"
#include "netbuf/event_source.h"
#include "netbuf/packet_log.h"
#include "netbuf/queue_discipline.h"
#include "netbuf/ring.h"
#include "netbuf/rng.h"
#include "netbuf/wire.h"

namespace netbuf {

struct LinkStats {
  uint64_t packets_out = 0;     // dequeued so far
  int64_t bytes_out = 0;        // likewise, those that a device still holds included
  uint32_t queue_max = 0;       // packets
  uint64_t packets_in = 0;      // arrivals, dropped or not
  double bytes_sent = 0;        // transmitted so far, of the packet in service the part that is
  double used_bits = 0;         // that the rate could have carried while the link transmitted
  uint64_t queue_drops = 0, random_losses = 0;
  uint64_t marks = 0;           // packets marked here (ECN)
  double sojourn_sum = 0, sojourn_sum2 = 0;  // seconds, seconds^2 of waiting, over packets_out
  double queue_integral = 0;                 // packet seconds
  double busy = 0;                           // seconds of transmission so far
};

class Medium;

class alignas(64) Link final : public EventSource {
 public:
  enum class Fate : uint8_t { delivered, queue_drop, random_loss };
  struct Outcome {
    Fate fate;
    Time arrival;  // at the far end
  };

  // Whom a managed link tells what has become of the packets that it was offered.
  class Host {
   public:
    virtual void sent(const Queued& item, Time arrival) = 0;  // on its way to the far end
    virtual void lost(const Queued& item, Fate fate) = 0;
    virtual void altered(const Queued&, PacketEvent) {}       // duplicated or corrupted as it came
    virtual void rescheduled(uint32_t link) = 0;              // next() has changed, other than by run()

   protected:
    ~Host() = default;
  };

  Link(const LinkConfig& config, Rng* rng);

  // A packet of wire_bytes arrives at time now; calls come in order of time.
  [[gnu::always_inline]] Outcome transmit(Time now, uint32_t wire_bytes, bool is_data) {
    if (pure_delay_) {
      ++stats_.packets_out;
      stats_.bytes_out += wire_bytes;
      return {Fate::delivered, now + delay_};
    }
    if (!simple_) [[unlikely]] return transmit_any(now, wire_bytes, is_data);
    return transmit_alike(now, wire_bytes);
  }

  // As transmit() of each of several of the same size, of a link without a limit: when the first arrives.
  Time pass(Time now, uint32_t count, uint32_t wire_bytes) {
    stats_.packets_out += count;
    stats_.bytes_out += int64_t{count} * wire_bytes;
    return now + delay_;
  }

  // Where the outcome of what comes from one link is known before it comes (Path::foresees): foresee() is as transmit() of a
  // packet that arrives at a time at, perhaps after now. It counts from when it arrives. Calls for what comes from one link
  // are in order of arrival, and unless the rate is unlimited all comes from that one.
  struct Coming;
  Coming* expect(uint32_t from);
  Outcome foresee(Coming& coming, Time at, uint32_t wire_bytes, bool is_data, Time now);

  // Of several packets of the same size that arrive at once, and as transmit() of each: so many come through, the first
  // then, and the others one spacing after the other. The rest finds the queue full. Only where all are served alike
  // (uniform()).
  struct Burst {
    Time first, spacing;
    uint32_t count;
  };
  [[gnu::always_inline]] Burst transmit_burst(Time now, uint32_t count, uint32_t wire_bytes) {
    if (free_at_ <= now || queue_.empty() || !admits(wire_bytes, count)) [[unlikely]] {
      return transmit_any_burst(now, count, wire_bytes);
    }
    const Time duration = transmission_time(wire_bytes), first = free_at_ + duration + delay_;
    enqueue(now, count, wire_bytes, duration);
    return {first, duration, count};
  }
  // Packets of one size take equally long, and nobody asks when the link was busy. Which of them are lost at random is asked
  // of spare(), in their order.
  bool uniform() const { return alike_ && !busy_starts_; }
  // Whether it surely loses none of so many.
  bool spares(uint32_t count) const { return count <= until_loss_; }
  // Of so many packets of data that have come through the queue, those before the first that random loss hits, which is
  // counted here; of what is behind it nothing is known yet.
  uint32_t spare(uint32_t most) {
    if (!spares(most)) [[unlikely]] return spare_some(most);
    until_loss_ -= most;
    return most;
  }

  // Takes note of what has left the queue up to and including now.
  void drain(Time now) {
    if (next_start_ <= now) take_out(now);
  }
  // Likewise, and of what has arrived.
  void note(Time now) {
    for (const auto& coming : coming_) settle(*coming, now);
    drain(now);
  }

  // ---- managed links
  using Maker = std::function<std::unique_ptr<QueueDiscipline>(const DisciplineSetting&)>;
  void manage(const Maker& make, const LinkConfig& config, uint32_t index, Host* host);
  bool managed() const { return managed_ != nullptr; }
  bool paces() const;                      // flows whose host's it is (QueueDiscipline::paces)
  void offer(Time now, Queued& item);      // a packet arrives; transmit() is for links that are not managed
  Time next() const override;              // when the next packet can be sent; kNever: not before the next offer
  void run(Time now) override;
  // From now on its packets leave when somebody looks, which comes to the same as far as nobody but those that it tells sees
  // what waits here or draws from its generator of random numbers; false: it has events all the same.
  bool defer();
  void catch_up(Time now);                 // of one that is deferred: what leaves up to and including now has left
  void stall(Time now, Time until);        // nothing leaves before
  void forget(uint32_t owner);             // QueueDiscipline::forget; any link
  Time backlog_end(Time now) const;        // when what waits here will have left
  bool runs_last() const override;         // a device takes its next packet when all else has happened (ns-3)

  // ---- managed links whose packets a medium transmits: offer() tells it of them, and it asks for them
  void attach(Medium* medium, uint32_t port);
  Time sendable(Time now);                 // when the next packet may leave the queue; kNever: none waits
  bool draw(Time now, Queued& item);       // takes it; false: none is left
  void occupy(Time start, Time end);       // the medium transmits for this link
  void deliver(const Queued& item, Time start, Time end);  // transmitted: it propagates from end on
  void abandon(const Queued& item);        // the medium has tried in vain

  // As transmit(), of a packet that set out on the link before at that time. ns-3 handles events of the same instant in
  // the order in which they were scheduled: a packet that arrives just when a transmission ends still finds the next one
  // waiting, and so perhaps a full queue, if it set out before that transmission began. Opportunities take no time and
  // have an order of their own.
  Outcome transmit_in_turn(Time set_out, Time now, uint32_t wire_bytes, bool is_data);
  // When a packet set out that arrives from here at a time.
  Time set_out(Time arrival, uint32_t wire_bytes);
  // From now on its queue is drained whenever a packet comes (transmit_any()): for transmit_in_turn(), which asks whose
  // transmission has begun. Comes to the same otherwise.
  void keep_drained() { simple_ = alike_ = false; }
  void keep_rates() { keeps_rates_ = true; }  // a packet is sent at the rate at which it began
  // Remembers when its last busy periods began, for the order of ties at the next hop.
  void remember_busy_periods() { busy_starts_ = std::make_unique<BusyStarts>(); }
  Time busy_since(Time at) const { return busy_starts_ ? busy_starts_->before(at) : at; }  // of the period at is in
  Time transmission_time(uint32_t wire_bytes) const { return static_cast<Time>(wire_bytes * ns_per_byte_ + 0.5); }
  Time delay() const { return delay_; }     // the least, where it changes; without jitter

  // Another limit of its queue, of packets that come from now on; 0: none. What waits stays.
  void resize_queue(int64_t packets);

  LinkStats stats(Time now);  // notes first
  double offered_bits(Time now) const;       // what the rate could have carried by now; infinity when unlimited
  double carry_s(Time from, double bits) const;  // how long it would take to carry so many from then on, alone
  uint32_t queue_packets() const { return managed_ ? managed_packets() : queue_.size(); }
  int64_t queue_bytes() const { return managed_ ? managed_bytes() : queued_bytes_; }
  double sojourn_sum() const { return seconds(sojourn_ns_); }
  const LinkStats& counters() const { return stats_; }
  // When all that it transmits will have left; of a managed link what it has begun with.
  Time free_at() const { return free_at_; }
  // Bytes of the packets that free_at() is about, and of all before.
  int64_t taken_bytes() const { return managed_ ? begun_bytes() : stats_.bytes_out + queued_bytes_; }
  const std::string& name() const { return name_; }
  double rate_bps(Time at) const;   // infinity when unlimited, mean rate of delivery opportunities
  double mean_rate_bps() const;     // over the period of a varying rate, or until its last step
  bool never_drops() const { return !managed_ && limit_packets_ == kNoLimit && limit_bytes_ == kNoLimit; }
  // What comes to it, and when, decides all that it does, without chance.
  bool steady() const { return plain_ && constant_rate() && !managed_ && !duplicates_; }
  bool constant_rate() const { return schedule_ == Schedule::constant; }
  bool changes() const { return wire_ != nullptr; }   // its delay or its loss
  bool reorders() const { return wire_ && wire_->reorders(); }
  bool loses() const { return lossy_; }               // at random
  bool spaces(uint32_t least_bytes) const;            // of that size and more no two arrive at the same instant
  // Whether packets that come at the same instant arrive at different ones, and whether some may arrive together.
  bool unlimited() const { return pure_delay_; }
  // Whether packets may wait for each other, or for the time at which they may leave.
  bool delays() const { return managed_ || wire_ || schedule_ != Schedule::constant || ns_per_byte_ > 0; }
  bool bunches() const { return schedule_ == Schedule::opportunities || (wire_ && !wire_->reorders()); }
  bool duplicates() const { return duplicates_; }
  size_t memory_bytes() const;
  template <class Hot>
  void add_to(Hot& hot) const {              // what every packet needs
    hot.add(this, 192);
    hot.add(managed_.get(), 192);
  }

 private:
  struct Managed;
  struct BusyStarts {
    void push(Time start) { starts[count++ % std::size(starts)] = start; }
    Time before(Time at) const {  // the last start up to then; at itself when it is long forgotten
      for (uint32_t i = count; i > 0 && i + std::size(starts) > count; --i) {
        const Time start = starts[(i - 1) % std::size(starts)];
        if (start <= at) return start;
      }
      return at;
    }
    Time starts[16];
    uint32_t count = 0;
  };
  static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
  enum class Schedule : uint8_t { constant, stepped, opportunities };
  // A packet in the queue: when its transmission begins and it leaves, how long it waits until then, and its size.
  class Waiting {
   public:
    Waiting() = default;
    Waiting(Time start, Time arrival, uint32_t bytes)
        : start(start), packed_(static_cast<uint64_t>(start - arrival) << kSizeBits | bytes) {}
    Time wait() const { return static_cast<Time>(packed_ >> kSizeBits); }
    uint32_t bytes() const { return static_cast<uint32_t>(packed_ & ((1 << kSizeBits) - 1)); }
    // A wait beyond 47 bits has wrapped, and so does this.
    Time arrival() const {
      return static_cast<Time>((static_cast<uint64_t>(start) - (packed_ >> kSizeBits)) & (UINT64_MAX >> kSizeBits));
    }

    Time start;

   private:
    static constexpr int kSizeBits = 17;  // leaves 47 bits of waiting time: 39 hours
    uint64_t packed_;
  };
  [[gnu::noinline]] void take_out(Time now);
  // ---- a simple link: first in, first out, at a constant rate, without loss or a delay that changes; alike_: or with loss that
  // is either scripted or drawn
  //
  // A packet's times are known as it arrives, and what has left the queue meanwhile decides nothing but whether there is
  // room, and shows in nothing but statistics. So its queue is drained where somebody reads them (note()), where a packet
  // finds the link idle, and where with it the queue as it was last drained, and what came since, would be longer than the
  // queue ever was, or than it may be: while it is not, the packet finds room, and queue_max stays.
  // Invariant: looked_at_beyond_ <= limit_packets_, stats_.queue_max, and so many have room in the ring.
  bool admits(uint32_t wire_bytes, uint32_t count) const {
    return queue_.size() + count <= looked_at_beyond_ &&
           queued_bytes_ <= limit_bytes_ - static_cast<int64_t>(count) * wire_bytes;
  }
  // So many of them find room, which they have in the ring, too.
  [[gnu::noinline]] uint32_t look_for_room(Time now, uint32_t wire_bytes, uint32_t count);
  [[gnu::noinline]] Outcome transmit_if_room(Time now, uint32_t wire_bytes);
  [[gnu::noinline]] Burst transmit_any_burst(Time now, uint32_t count, uint32_t wire_bytes);
  void enqueue(Time now, uint32_t count, uint32_t wire_bytes, Time duration) {  // several that find room, behind others
    Time start = free_at_;
    queue_.extend_reserved(count, [&](Waiting& packet) {
      packet = {start, now, wire_bytes};
      start += duration;
    });
    queued_bytes_ += static_cast<int64_t>(count) * wire_bytes;
    busy_ns_ += count * duration;
    free_at_ = start;
  }
  Outcome transmit_later(Time now, uint32_t wire_bytes) {
    const Time start = free_at_, duration = transmission_time(wire_bytes);
    if (queue_.empty()) next_start_ = start;
    queue_.place_reserved() = {start, now, wire_bytes};
    queued_bytes_ += wire_bytes;
    free_at_ = start + duration;
    busy_ns_ += duration;
    return {Fate::delivered, free_at_ + delay_};
  }
  [[gnu::noinline]] Outcome transmit_at_once(Time now, uint32_t wire_bytes);
  void begin(Time now, uint32_t wire_bytes) {  // its transmission, as it arrives
    ++stats_.packets_out;
    stats_.bytes_out += wire_bytes;
    begun_bytes_ = wire_bytes;
    begun_at_ = now;
    if (busy_starts_) [[unlikely]] busy_starts_->push(now);
  }
  [[gnu::noinline]] Outcome transmit_any(Time now, uint32_t wire_bytes, bool is_data);
  Outcome transmit_alike(Time now, uint32_t wire_bytes) {
    if (free_at_ <= now) return transmit_at_once(now, wire_bytes);
    if (!admits(wire_bytes, 1)) [[unlikely]] return transmit_if_room(now, wire_bytes);
    return transmit_later(now, wire_bytes);
  }
  void settle(Coming& coming, Time now);
  void serve(Time now);
  [[gnu::noinline]] void serve_device(Time now);
  void run_deferred(Time now);
  void offer_deferred(Time now, const Queued& item);
  void serve_and_tell(Time now);           // where whoever calls does not ask for next()
  bool lose(Time start);                   // the packet whose transmission begins then
  [[gnu::noinline]] uint32_t spare_some(uint32_t most);
  // A packet that was transmitted meets random loss, or a delay that changes.
  [[gnu::noinline]] Outcome propagate(Time start, Time end, bool is_data);
  Time schedule_departure(Time now, uint32_t wire_bytes, Time& start);
  Time stepped_departure(Time now, uint32_t wire_bytes, Time& start);
  Time opportunity_departure(Time now, uint32_t wire_bytes, Time& start);
  void seek_opportunity(Time now);
  void pass_opportunities(Time now);
  void count_transmitted(LinkStats& s, Time now, int64_t begun, Time end, Time free_at) const;
  Time ready(Time now);                    // from when on a transmission can begin; now, or later
  void transmit_now(Time now, const Queued& item);
  bool caught_by_outage(Time now, const Queued& item);
  int64_t begun_bytes() const;             // of the packets whose transmission has begun
  uint32_t managed_packets() const;
  uint32_t device_packets() const;         // that have left a discipline and not begun; 0 where there is none
  int64_t managed_bytes() const;
  LinkStats managed_stats(Time now);
  size_t coming_bytes() const;

  struct ManagedDeleter {
    void operator()(Managed* managed) const;
  };
  struct ComingDeleter {
    void operator()(Coming* coming) const;
  };
  std::unique_ptr<Managed, ManagedDeleter> managed_;
  Schedule schedule_ = Schedule::constant;
  bool pure_delay_ = false, plain_, lossy_ = false, loss_on_acks_, gilbert_elliott_ = false, bad_state_ = false,
       duplicates_ = false, keeps_rates_ = false, simple_, alike_;
  uint32_t looked_at_beyond_ = 0;       // queue length, see admits()
  Time next_start_ = kNever;            // of the head of the queue
  Time free_at_ = 0, delay_;
  // Packets that pass before the next loss: very many where nothing is lost; where losses are scripted or come in bursts it is
  // not known beforehand, and this is 0. Beside a script Bernoulli's alone (not alike_).
  uint64_t until_loss_ = 0;
  Ring<Waiting> queue_;
  double ns_per_byte_;
  int64_t limit_packets_, limit_bytes_, queued_bytes_ = 0;
  Time busy_ns_ = 0, sojourn_ns_ = 0;
  Time begun_at_ = 0;                   // when the transmission began that began last
  uint32_t begun_bytes_ = 0;            // of its packet
  double sojourn_s2_ = 0;
  std::unique_ptr<BusyStarts> busy_starts_;
  LinkStats stats_;                     // up to its first three, three cache lines are what every packet needs
  Time arrivals_first_ = 0;             // 1: before departures of the same instant
  std::vector<uint64_t> loss_list_;     // scripted losses still to come, last first
  uint64_t exposed_ = 0;                // packets that random loss might have hit
  double loss_ = 0, ge_[4] = {0, 0, 0, 0};
  uint64_t cursor_ = 0;                 // step or opportunity in use
  int64_t opportunity_left_ = 0;        // bytes left of the current opportunity
  int64_t packet_bytes_ = 0;            // that each packet takes of opportunities beside its own
  double used_bits_ = 0;                // stepped: by all that has been accepted
  double never_sent_bits_ = 0;          // of a packet that an endless outage has caught
  std::shared_ptr<const RateSteps> steps_;
  struct Transmission {
    Time start, end;
  };
  Ring<Transmission> across_steps_;      // keeps_rates_: of packets that may be on their way, those during which it changed
  std::shared_ptr<const Opportunities> opportunities_;
  std::vector<std::unique_ptr<Coming, ComingDeleter>> coming_;  // what is foreseen, by the link that it comes from
  std::unique_ptr<Wire> wire_;          // propagation that is not constant
  Rng* rng_;
  std::string name_;
};

}  // namespace netbuf
