// Links whose queue is a discipline's. Packets pass from the discipline,
// through what the device holds, to the transmitter.
#include "managed_link.h"

#include <algorithm>

#include "netbuf/medium.h"
#include "netbuf/netem.h"

namespace netbuf {

void Link::ManagedDeleter::operator()(Managed* managed) const { delete managed; }

void Link::manage(const Maker& make, const LinkConfig& config, uint32_t index, Host* host) {
  managed_.reset(new Managed(*this, host, index, config));
  DisciplineSetting setting{limit_packets_, limit_bytes_, mean_rate_bps(), {}, managed_.get(), rng_};
  managed_->discipline = make(setting);
  if (has_netem(config)) managed_->discipline = add_netem(std::move(managed_->discipline), config, rng_->next(), managed_.get());
}

void Link::offer(Time now, Queued& item) {
  Managed& m = *managed_;
  item.arrived = now;
  ++stats_.packets_in;
  if (m.deferred) return offer_deferred(now, item);
  if (now < m.out_until) [[unlikely]] return m.dropped(item);
  if (schedule_ == Schedule::opportunities) {
    if (m.next <= now) serve(now);
    if (m.device.empty() && m.discipline->packets() == 0) pass_opportunities(now);
  }
  m.tick(now);
  m.discipline->enqueue(now, item);
  stats_.queue_max = std::max(stats_.queue_max, m.discipline->packets());
  if (m.next == kNever || now >= m.next || m.device.size() < m.device_limit) serve_and_tell(now);
}

bool Link::runs_last() const { return managed_->device_limit > 0; }
Time Link::next() const {
  const Managed& m = *managed_;
  return m.deferred ? m.latest : std::min(m.next, m.outage.begin);
}

void Link::run(Time now) {
  if (managed_->deferred) return run_deferred(now);
  if (now >= managed_->outage.begin) [[unlikely]] managed_->empty(now);
  serve(now);
}

void Link::serve_and_tell(Time now) {
  Managed& m = *managed_;
  if (m.medium) [[unlikely]] {
    if (m.medium->offered(now, m.port)) m.host->rescheduled(m.index);
    return;
  }
  const Time before = m.next;
  serve(now);
  if (m.next != before) m.host->rescheduled(m.index);
}

inline Time Link::ready(Time now) {
  const Time from = std::max({now, free_at_, managed_->stalled_until});
  if (schedule_ == Schedule::constant) return from;
  if (schedule_ == Schedule::opportunities) {
    seek_opportunity(now);
    const uint64_t at = opportunity_left_ > 0 ? cursor_ : cursor_ + 1;
    return std::max(from, opportunities_->time(at));
  }
  if (free_at_ >= kNever) return kNever;
  uint64_t step = cursor_;
  return steps_->first_positive(from, step);
}

inline void Link::transmit_now(Time now, const Queued& item) {
  Managed& m = *managed_;
  Time start = now;
  if (m.outages && caught_by_outage(now, item)) return;
  const Time end = schedule_ == Schedule::constant ? now + transmission_time(item.bytes)
                                                   : schedule_departure(now, item.bytes, start);
  free_at_ = end;
  busy_ns_ += end - start;
  m.begun += item.bytes;
  begun_bytes_ = item.bytes;
  begun_at_ = start;
  if (lossy_ && (!item.is_ack || loss_on_acks_) && lose(start)) return m.lose(item);
  m.host->sent(item, wire_ ? wire_->arrival(start, end) : end + delay_);
}

void Link::serve(Time now) {
  Managed& m = *managed_;
  if (m.device_limit > 0) [[unlikely]] return serve_device(now);
  Queued item;
  Time next = kNever;
  while (m.discipline->packets() > 0) {
    const Time begin = std::max(ready(now), m.discipline->ready(now));
    if (begin > now) {
      next = begin;
      break;
    }
    if (!m.take(now, item)) break;
    transmit_now(now, item);
  }
  m.next = next;
}

// Likewise where packets wait in a device, too.
void Link::serve_device(Time now) {
  Managed& m = *managed_;
  Queued item;
  Time next = kNever;
  for (;;) {
    if (m.device.empty() && m.discipline->packets() == 0) break;
    const Time begin = std::max(ready(now), m.device.empty() ? m.discipline->ready(now) : now);
    if (begin > now) {
      next = begin;
      break;
    }
    if (!m.device.empty()) {
      item = m.device.front();
      m.device.pop();
    } else if (!m.take(now, item)) {
      break;
    }
    transmit_now(now, item);
  }
  if (!m.fill_device(now)) next = kNever;
  m.next = next;
}

void Link::stall(Time now, Time until) {
  managed_->stalled_until = until;
  serve_and_tell(now);
}

Time Link::backlog_end(Time now) const {
  if (!managed_) return free_at_;
  const double waiting =
      static_cast<double>(managed_bytes()) * (ns_per_byte_ > 0 ? ns_per_byte_ : 8e9 / mean_rate_bps());
  return std::max({now, free_at_, managed_->stalled_until}) + static_cast<Time>(waiting);
}

void Link::attach(Medium* medium, uint32_t port) {
  managed_->medium = medium;
  managed_->port = port;
}

Time Link::sendable(Time now) {
  Managed& m = *managed_;
  if (m.discipline->packets() == 0) return kNever;
  return std::max({now, m.stalled_until, m.discipline->ready(now)});
}

bool Link::draw(Time now, Queued& item) { return managed_->take(now, item); }

void Link::occupy(Time start, Time end) {
  busy_ns_ += end - start;
  free_at_ = end;
}

void Link::deliver(const Queued& item, Time start, Time end) {
  managed_->begun += item.bytes;
  if (lossy_ && (!item.is_ack || loss_on_acks_) && lose(start)) return managed_->lose(item);
  managed_->host->sent(item, wire_ ? wire_->arrival(start, end) : end + delay_);
}

void Link::abandon(const Queued& item) { managed_->lose(item); }

void Link::resize_queue(int64_t packets) {
  limit_packets_ = packets > 0 ? packets : kNoLimit;
  looked_at_beyond_ = 0;
  if (managed_) managed_->discipline->resize(limit_packets_);
}

// A packet that the next outage catches in transmission is lost; the part of it that had been sent has used the link.
bool Link::caught_by_outage(Time now, const Queued& item) {
  Managed& m = *managed_;
  const uint64_t cursor = cursor_;
  const int64_t left = opportunity_left_;
  const double used_bits = used_bits_, never_sent_bits = never_sent_bits_;
  Time start = now;
  const Time out = m.outage.begin, end = schedule_departure(now, item.bytes, start);
  const bool caught = end > out;
  const double sent = caught && steps_ ? steps_->bits(start, out) / 8 : 0;
  int64_t taken = static_cast<int64_t>(sent);
  if (caught && opportunities_) {
    taken = static_cast<int64_t>(opportunities_->before(out) - cursor) * Opportunities::kBytes -
            (Opportunities::kBytes - left);
  }
  cursor_ = cursor;
  opportunity_left_ = left;
  used_bits_ = used_bits;
  never_sent_bits_ = never_sent_bits;
  if (!caught) return false;
  if (opportunities_) {
    cursor_ = opportunities_->before(out);
    opportunity_left_ = Opportunities::kBytes;
  }
  used_bits_ += sent * 8;
  busy_ns_ += out - start;
  free_at_ = out;
  begun_bytes_ = static_cast<uint32_t>(taken);
  m.begun += taken;
  m.lose(item);
  return true;
}

void Link::forget(uint32_t owner) {
  if (managed_) managed_->discipline->forget(owner);
}
bool Link::spaces(uint32_t least_bytes) const {
  return constant_rate() && transmission_time(least_bytes) > 0 && !changes() && !(managed_ && managed_->medium);
}
bool Link::paces() const { return managed_ && managed_->discipline->paces(); }
int64_t Link::begun_bytes() const { return managed_->begun; }
uint32_t Link::device_packets() const { return managed_ ? managed_->device.size() : 0; }
uint32_t Link::managed_packets() const { return managed_->discipline->packets(); }
int64_t Link::managed_bytes() const { return managed_->discipline->bytes(); }

LinkStats Link::managed_stats(Time now) {
  managed_->tick(now);
  LinkStats s = stats_;
  s.sojourn_sum = seconds(sojourn_ns_);
  s.sojourn_sum2 = sojourn_s2_;
  s.queue_integral = managed_->area * 1e-9;
  count_transmitted(s, now, managed_->begun, free_at_, free_at_);
  if (managed_->medium) s.used_bits = s.bytes_sent * 8;
  return s;
}

size_t Link::memory_bytes() const {
  size_t bytes = sizeof *this + queue_.memory_bytes() + across_steps_.memory_bytes() + coming_bytes();
  if (wire_) bytes += wire_->memory_bytes();
  if (managed_) bytes += sizeof(Managed) + managed_->discipline->memory_bytes() + managed_->device.memory_bytes();
  return bytes;
}

}  // namespace netbuf
