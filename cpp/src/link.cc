#include "netbuf/link.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace netbuf {

Link::Link(const LinkConfig& config, Rng* rng)
    : loss_on_acks_(config.loss_on_acks),
      delay_(config.delay_ns),
      ns_per_byte_(config.rate_bps > 0 ? 8e9 / config.rate_bps : 0),
      limit_packets_(config.queue_limit_packets > 0 ? config.queue_limit_packets : kNoLimit),
      limit_bytes_(config.queue_limit_bytes > 0 ? config.queue_limit_bytes : kNoLimit),
      loss_(config.loss),
      rng_(rng),
      name_(config.name) {
  if (!config.trace_ns.empty()) {
    schedule_ = Schedule::opportunities;
    opportunity_left_ = Opportunities::kBytes;
    opportunities_ = std::make_shared<Opportunities>(config.trace_ns, config.trace_period_ns);
    packet_bytes_ = config.trace_packet_bytes;
  } else if (!config.schedule_time_ns.empty()) {
    schedule_ = Schedule::stepped;
    steps_ = std::make_shared<RateSteps>(config.schedule_time_ns, config.schedule_rate_bps, config.schedule_period_ns);
  }
  if (!config.loss_list.empty()) {
    lossy_ = true;
    loss_list_.assign(config.loss_list.rbegin(), config.loss_list.rend());
  }
  if (!config.ge.empty()) {
    gilbert_elliott_ = lossy_ = true;
    std::copy(config.ge.begin(), config.ge.end(), ge_);
  } else if (loss_ > 0) {
    lossy_ = true;
    until_loss_ = rng_->geometric(loss_);
  }
  if (Wire::changes(config)) {
    wire_ = std::make_unique<Wire>(config, rng_->next());
    lossy_ |= !config.loss_time_ns.empty();
  }
  duplicates_ = config.duplicate > 0;
  plain_ = !lossy_ && !wire_;
  alike_ = !wire_ && schedule_ == Schedule::constant && ns_per_byte_ > 0 && (loss_ == 0 || loss_list_.empty());
  simple_ = plain_ && alike_;
  if (!lossy_) until_loss_ = std::numeric_limits<uint64_t>::max();
  pure_delay_ = plain_ && schedule_ == Schedule::constant && ns_per_byte_ == 0;
}

void Link::take_out(Time now) {
  const uint32_t end = queue_.tail(), first = queue_.head();
  uint32_t i = first, last_bytes = 0;
  Time last_start = 0;
  Time waited = 0, start = kNever;
  int64_t bytes = 0;
  double squares = sojourn_s2_;  // summed packet by packet: the same however often it is asked for
  do {
    const Waiting& packet = queue_[i];
    const Time wait = packet.wait();
    waited += wait;
    squares += seconds(wait) * seconds(wait);
    last_start = packet.start;
    last_bytes = packet.bytes();
    bytes += last_bytes;
    start = ++i != end ? queue_[i].start : kNever;
  } while (start <= now);
  queue_.pop_to(i);
  next_start_ = start;
  sojourn_ns_ += waited;
  sojourn_s2_ = squares;
  queued_bytes_ -= bytes;
  begun_bytes_ = last_bytes;
  begun_at_ = last_start;
  stats_.bytes_out += bytes;
  stats_.packets_out += i - first;
}

uint32_t Link::look_for_room(Time now, uint32_t wire_bytes, uint32_t count) {
  drain(now);
  int64_t room = limit_packets_ - queue_.size();
  if (limit_bytes_ != kNoLimit) room = std::min(room, (limit_bytes_ - queued_bytes_) / wire_bytes);
  const auto taken = static_cast<uint32_t>(std::clamp<int64_t>(room, 0, count));
  stats_.queue_drops += count - taken;
  if (taken > 0) stats_.queue_max = std::max(stats_.queue_max, queue_.size() + taken);
  queue_.reserve(taken);
  looked_at_beyond_ = static_cast<uint32_t>(std::min<int64_t>(limit_packets_, stats_.queue_max));
  return taken;
}

Link::Outcome Link::transmit_if_room(Time now, uint32_t wire_bytes) {
  if (look_for_room(now, wire_bytes, 1) == 0) return {Fate::queue_drop, kNever};
  return transmit_later(now, wire_bytes);
}

Link::Outcome Link::transmit_at_once(Time now, uint32_t wire_bytes) {
  drain(now);
  begin(now, wire_bytes);
  const Time duration = transmission_time(wire_bytes);
  free_at_ = now + duration;
  busy_ns_ += duration;
  return {Fate::delivered, free_at_ + delay_};
}

// As transmit_burst(), of a link that may be idle or full.
Link::Burst Link::transmit_any_burst(Time now, uint32_t count, uint32_t wire_bytes) {
  const Time duration = transmission_time(wire_bytes);
  const auto queue = [&](uint32_t waiting) {  // as many as find room
    if (!admits(wire_bytes, waiting)) [[unlikely]] waiting = look_for_room(now, wire_bytes, waiting);
    if (waiting == 1) {
      transmit_later(now, wire_bytes);
    } else if (waiting > 0) {
      if (queue_.empty()) next_start_ = free_at_;
      enqueue(now, waiting, wire_bytes, duration);
    }
    return waiting;
  };
  if (free_at_ > now) {
    const Time first = free_at_ + duration + delay_;
    return {first, duration, queue(count)};
  }
  drain(now);
  begin(now, wire_bytes);
  free_at_ = now + duration;
  busy_ns_ += duration;
  const Time first = free_at_ + delay_;
  return {first, duration, 1 + queue(count - 1)};
}

// transmit() of any link, whose queue is drained whenever a packet comes unless all are served alike.
Link::Outcome Link::transmit_any(Time now, uint32_t wire_bytes, bool is_data) {
  if (alike_ && !arrivals_first_) {
    const Outcome outcome = transmit_alike(now, wire_bytes);
    if (outcome.fate == Fate::queue_drop || !(is_data || loss_on_acks_) || spare(1) == 1) [[likely]] return outcome;
    return {Fate::random_loss, kNever};
  }
  drain(now - arrivals_first_);
  Time start = now;
  if (now < free_at_) {
    if (queue_.size() >= limit_packets_ || queued_bytes_ + wire_bytes > limit_bytes_) {
      ++stats_.queue_drops;
      return {Fate::queue_drop, kNever};
    }
    start = free_at_;
  }
  if (schedule_ == Schedule::opportunities) pass_opportunities(now);
  const Time end = schedule_ == Schedule::constant ? start + transmission_time(wire_bytes)
                                                   : schedule_departure(now, wire_bytes, start);
  free_at_ = end;
  busy_ns_ += end - start;
  if (start > now) {
    if (queue_.empty()) next_start_ = start;
    queue_.push({start, now, wire_bytes});
    queued_bytes_ += wire_bytes;
    stats_.queue_max = std::max(stats_.queue_max, queue_.size());
  } else {
    begin(now, wire_bytes);
  }
  if (!plain_) [[unlikely]] return propagate(start, end, is_data);
  return {Fate::delivered, end + delay_};
}

bool Link::lose(Time start) {
  if (!loss_list_.empty() && loss_list_.back() == exposed_++) {
    loss_list_.pop_back();
    return true;
  }
  if (!gilbert_elliott_) {
    if (loss_ == 0) return wire_ && wire_->loses(start);
    if (until_loss_--) return false;
    until_loss_ = rng_->geometric(loss_);
    return true;
  }
  const bool lost = rng_->uniform() < ge_[bad_state_ ? 3 : 2];
  if (rng_->uniform() < ge_[bad_state_ ? 1 : 0]) bad_state_ = !bad_state_;
  return lost;
}

uint32_t Link::spare_some(uint32_t most) {
  for (uint32_t i = 0; i < most; ++i) {
    if (!lose(free_at_)) continue;
    ++stats_.random_losses;
    return i;
  }
  return most;
}

Link::Outcome Link::propagate(Time start, Time end, bool is_data) {
  if (lossy_ && (is_data || loss_on_acks_) && lose(start)) {
    ++stats_.random_losses;
    return {Fate::random_loss, kNever};
  }
  return {Fate::delivered, wire_ ? wire_->arrival(start, end) : end + delay_};
}

Link::Outcome Link::transmit_in_turn(Time set_out, Time now, uint32_t wire_bytes, bool is_data) {
  drain(now - 1);
  arrivals_first_ = set_out < begun_at_ && schedule_ != Schedule::opportunities;
  const Outcome outcome = pure_delay_ ? transmit(now, wire_bytes, is_data) : transmit_any(now, wire_bytes, is_data);
  arrivals_first_ = 0;
  return outcome;
}

Time Link::set_out(Time arrival, uint32_t wire_bytes) {
  const Time left = arrival - delay_;
  if (schedule_ != Schedule::stepped) return left - transmission_time(wire_bytes);
  while (!across_steps_.empty() && across_steps_.front().end < left) across_steps_.pop();
  if (!across_steps_.empty() && across_steps_.front().end == left) return across_steps_.front().start;
  return left - static_cast<Time>(wire_bytes * (8e9 / std::max(1.0, steps_->rate_bps(std::max<Time>(0, left)))) + 0.5);
}

Time Link::schedule_departure(Time now, uint32_t wire_bytes, Time& start) {
  return schedule_ == Schedule::stepped ? stepped_departure(now, wire_bytes, start)
                                        : opportunity_departure(now, wire_bytes, start);
}

// In an outage transmission begins with the next positive rate.
Time Link::stepped_departure(Time now, uint32_t wire_bytes, Time& start) {
  if (free_at_ >= kNever) return start = kNever;
  start = steps_->first_positive(std::max(now, free_at_), cursor_);
  if (start >= kNever) return kNever;
  const RateSteps::Transmission packet = keeps_rates_ ? steps_->transmit_at_first_rate(start, wire_bytes, cursor_)
                                                      : steps_->transmit(start, wire_bytes, cursor_);
  if (keeps_rates_ && packet.end >= steps_->time(cursor_ + 1)) [[unlikely]] {
    while (!across_steps_.empty() && across_steps_.front().end + delay_ < now) across_steps_.pop();
    across_steps_.push({start, packet.end});
  }
  used_bits_ += packet.bits;
  never_sent_bits_ = packet.left;
  return packet.end;
}

// Skips the opportunities that passed while nothing could be sent.
void Link::seek_opportunity(Time now) {
  if ((now <= free_at_ && cursor_ != 0) || opportunities_->time(cursor_) >= now) return;
  cursor_ = std::max(cursor_, opportunities_->before(now));
  opportunity_left_ = Opportunities::kBytes;
}

// For a packet that arrives now. Opportunities come before arrivals of the same instant, as in Mahimahi's link shell
// (LinkQueue::read_packet): what one delivers and a path of whole milliseconds brings back is never in time for another.
void Link::pass_opportunities(Time now) {
  if (free_at_ > now || opportunities_->time(cursor_) > now) return;
  cursor_ = opportunities_->before(now + 1);
  opportunity_left_ = Opportunities::kBytes;
}

// As Mahimahi's link shell does: what an opportunity has left serves the packets that wait at that moment, and is
// lost when none does. A packet leaves the queue with the first opportunity that it uses, and the link, at once,
// with the last that it needs.
Time Link::opportunity_departure(Time now, uint32_t wire_bytes, Time& start) {
  const auto next = [this] { ++cursor_, opportunity_left_ = Opportunities::kBytes; };
  if (opportunity_left_ == 0) next();
  start = std::max(now, opportunities_->time(cursor_));
  int64_t need = wire_bytes + packet_bytes_;
  while (need > opportunity_left_) need -= opportunity_left_, next();
  opportunity_left_ -= need;
  return std::max(now, opportunities_->time(cursor_));
}

// ---- what can be foreseen

// Packets on their way here whose departure is known. They are taken into account when somebody looks, as they arrive.
struct Link::Coming {
  struct Packet {
    Time at, start;
    uint32_t bytes;
    bool lost;
  };
  uint32_t from;
  Ring<Packet> packets = {};
  Time free_at = 0;  // as far as they have arrived
};

size_t Link::coming_bytes() const {
  size_t bytes = coming_.capacity() * sizeof(void*);
  for (const auto& coming : coming_) bytes += sizeof *coming + coming->packets.memory_bytes();
  return bytes;
}
void Link::ComingDeleter::operator()(Coming* coming) const { delete coming; }

Link::Coming* Link::expect(uint32_t from) {
  for (const auto& coming : coming_) {
    if (coming->from == from) return coming.get();
  }
  return coming_.emplace_back(new Coming{from}).get();
}

Link::Outcome Link::foresee(Coming& coming, Time at, uint32_t wire_bytes, bool is_data, Time now) {
  Ring<Coming::Packet>& packets = coming.packets;
  if (packets.full()) [[unlikely]] settle(coming, now);
  if (pure_delay_) {
    packets.place() = {at, at, wire_bytes, false};
    return {Fate::delivered, at + delay_};
  }
  const Time start = std::max(at, free_at_);
  free_at_ = start + transmission_time(wire_bytes);
  const bool lost = lossy_ && (is_data || loss_on_acks_) && lose(start);
  packets.place() = {at, start, wire_bytes, lost};
  return lost ? Outcome{Fate::random_loss, kNever} : Outcome{Fate::delivered, free_at_ + delay_};
}

void Link::settle(Coming& coming, Time now) {
  Ring<Coming::Packet>& packets = coming.packets;
  for (; !packets.empty() && packets.front().at <= now; packets.pop()) {
    const Coming::Packet& packet = packets.front();
    drain(packet.at);
    if (packet.start > packet.at) {
      if (queue_.empty()) next_start_ = packet.start;
      queue_.push({packet.start, packet.at, packet.bytes});
      queued_bytes_ += packet.bytes;
      stats_.queue_max = std::max(stats_.queue_max, queue_.size());
    } else {
      begin(packet.at, packet.bytes);
    }
    stats_.random_losses += packet.lost;
    const Time duration = transmission_time(packet.bytes);
    busy_ns_ += duration;
    coming.free_at = packet.start + duration;
  }
}

// ---- statistics

LinkStats Link::stats(Time now) {
  if (managed_) return managed_stats(now);
  note(now);
  LinkStats s = stats_;
  s.packets_in = s.packets_out + queue_.size() + s.queue_drops;
  s.sojourn_sum = seconds(sojourn_ns_);
  s.sojourn_sum2 = sojourn_s2_;
  Time waited = 0;  // so far, by those still in the queue
  for (uint32_t i = queue_.head(); i != queue_.tail(); ++i) {
    waited += std::max<Time>(0, now - queue_[i].arrival());
  }
  s.queue_integral = s.sojourn_sum + seconds(waited);
  const Time free_at = coming_.empty() ? free_at_ : coming_.front()->free_at;
  count_transmitted(s, now, s.bytes_out, queue_.empty() ? free_at : next_start_, free_at);
  return s;
}

// begun: bytes of the packets whose transmission has begun; end: of the last of these;
// free_at: of all that have been accepted.
void Link::count_transmitted(LinkStats& s, Time now, int64_t begun, Time end, Time free_at) const {
  s.busy = seconds(busy_ns_ - std::clamp<Time>(free_at - now, 0, busy_ns_));  // less what is still to be served
  s.bytes_sent = static_cast<double>(begun);
  const auto unsent = [&](double bytes) { s.bytes_sent -= std::clamp(bytes, 0.0, static_cast<double>(begun_bytes_)); };
  switch (schedule_) {
    case Schedule::constant:
      if (ns_per_byte_ > 0) unsent(static_cast<double>(end - now) / ns_per_byte_);
      s.used_bits = ns_per_byte_ > 0 ? s.busy * (8e9 / ns_per_byte_) : s.bytes_sent * 8;
      break;
    case Schedule::stepped:
      if (keeps_rates_ && end < kNever) {
        const double whole = static_cast<double>(std::max<Time>(1, end - begun_at_));
        unsent(static_cast<double>(begun_bytes_) * static_cast<double>(end - now) / whole);
      } else {
        unsent((steps_->bits(now, end) + (end < kNever ? 0 : never_sent_bits_)) / 8);
      }
      s.used_bits = used_bits_ - steps_->bits(now, free_at);
      break;
    case Schedule::opportunities: {
      if (!managed_) s.bytes_sent += static_cast<double>(queued_bytes_ + queue_.size() * packet_bytes_);
      const uint64_t passed = opportunities_->before(now + 1);  // all after these are used, up to the one at the cursor
      if (cursor_ >= passed) {
        s.bytes_sent -=
            static_cast<double>(static_cast<int64_t>(cursor_ + 1 - passed) * Opportunities::kBytes - opportunity_left_);
      }
      const auto begun_packets = static_cast<double>(s.packets_out - device_packets());
      s.used_bits = (s.bytes_sent + begun_packets * static_cast<double>(packet_bytes_)) * 8;
      break;
    }
  }
}

double Link::mean_rate_bps() const { return schedule_ == Schedule::stepped ? steps_->mean_bps() : rate_bps(0); }

double Link::rate_bps(Time at) const {
  switch (schedule_) {
    case Schedule::stepped: return steps_->rate_bps(at);
    case Schedule::opportunities: return opportunities_->mean_bps();
    case Schedule::constant: break;
  }
  return ns_per_byte_ > 0 ? 8e9 / ns_per_byte_ : std::numeric_limits<double>::infinity();
}

double Link::offered_bits(Time now) const {
  switch (schedule_) {
    case Schedule::stepped: return steps_->bits(0, now);
    case Schedule::opportunities: return opportunities_->bits(now);
    case Schedule::constant: break;
  }
  return rate_bps(0) * seconds(now);
}

double Link::carry_s(Time from, double bits) const {
  switch (schedule_) {
    case Schedule::stepped: return steps_->carry_s(from, bits);
    case Schedule::opportunities: return opportunities_->carry_s(from, bits);
    case Schedule::constant: break;
  }
  return bits / rate_bps(0);
}

}  // namespace netbuf
