// Links whose queue is a discipline's. Packets pass from the discipline,
// through what the device holds, to the transmitter.
#include <algorithm>

#include "netbuf/link.h"
#include "netbuf/medium.h"
#include "netbuf/netem.h"
#include "netbuf/outages.h"
#include "qdisc/shared_port.h"

namespace netbuf {

struct Link::Managed final : DropSink {
  Managed(Link& owner, Host* host_, uint32_t index_, const LinkConfig& config)
      : link(&owner), host(host_), index(index_), device_limit(static_cast<uint32_t>(config.device_packets)) {
    if (config.outage_ns == 0) return;
    outages = std::make_unique<Outages>(config);
    outage = outages->following(0);
    if (outage.begin <= 0) begin_outage();
  }

  Link* link;
  Host* host;
  uint32_t index, device_limit, port = 0;
  Medium* medium = nullptr;        // that transmits what is here; null: the link itself
  std::unique_ptr<QueueDiscipline> discipline;
  Ring<Queued> device;
  Time next = kNever, since = 0, stalled_until = 0;
  int64_t begun = 0;               // bytes of the packets whose transmission has begun
  double area = 0;                 // packet nanoseconds in the discipline, up to since
  std::unique_ptr<Outages> outages;  // that empty the queue
  Outages::Stretch outage{kNever, kNever};  // the next one
  Time out_until = 0;              // the end of the one before: what arrives before it is dropped
  SharedPort* deferred = nullptr;  // see defer(); null: whatever leaves is an event
  Time latest = kNever;            // deferred: when what leaves next has to be looked at

  void dropped(const Queued& item) override {
    ++link->stats_.queue_drops;
    host->lost(item, Fate::queue_drop);
  }
  void marked(const Queued&) override { ++link->stats_.marks; }
  void duplicated(const Queued& item) override {
    ++link->stats_.packets_in;
    host->altered(item, PacketEvent::duplicated);
  }
  void corrupted(const Queued& item) override {
    ++link->stats_.random_losses;
    host->altered(item, PacketEvent::corrupted);
  }
  void tick(Time now) { tick(now, *discipline); }
  template <class Discipline>
  void tick(Time now, const Discipline& waiting) {
    if (now == since) return;
    area += static_cast<double>(waiting.packets()) * static_cast<double>(now - since);
    since = now;
  }
  void begin_outage() {
    out_until = outage.end;
    outage = outages->following(outage.end);
  }
  // The outage begins: nothing that is here gets through. What has left the queue counts as lost, the rest as dropped.
  void empty(Time now) {
    begin_outage();
    tick(now);
    for (; !device.empty(); device.pop()) lose(device.front());
    Queued item;
    while (discipline->packets() > 0 && discipline->dequeue(now, item)) dropped(item);
    discipline->reset(now);
    next = kNever;
  }
  void lose(const Queued& item) {
    if (item.owner == kNobody) return;
    ++link->stats_.random_losses;
    host->lost(item, Fate::random_loss);
  }
  bool take(Time now, Queued& item) { return take(now, item, *discipline); }
  template <class Discipline>
  bool take(Time now, Queued& item, Discipline& waiting) {
    tick(now, waiting);
    if (!waiting.dequeue(now, item)) return false;
    const Time waited = now - item.arrived;
    link->sojourn_ns_ += waited;
    link->sojourn_s2_ += seconds(waited) * seconds(waited);
    ++link->stats_.packets_out;
    link->stats_.bytes_out += item.bytes;
    return true;
  }
  // False: nothing is left to send. A discipline is asked even where nothing waits: FQ-CoDel retires the queues that it
  // finds empty then.
  bool fill_device(Time now) {
    const auto may_go = [&] { return discipline->packets() == 0 || discipline->ready(now) <= now; };
    Queued item;
    while (device.size() < device_limit && may_go() && take(now, item)) device.push(item);
    return !device.empty() || discipline->packets() > 0;
  }
};

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
  if (m.deferred) [[likely]] return offer_deferred(now, item);
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
  if (managed_->deferred) [[likely]] return run_deferred(now);
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

// ---- a port that is looked at late
//
// What leaves a queue, and when, follows from what has come, and shows at this switch alone, until it arrives at the far end.
// So it need not be an event: packets leave, each at its time, before the next comes, before somebody reads the switch
// (catch_up()), and before the first of them can arrive anywhere.

bool Link::defer() {
  Managed& m = *managed_;
  auto* const port = dynamic_cast<SharedPort*>(m.discipline.get());
  if (!port || !port->alone() || !constant_rate() || lossy_ || wire_ || m.outages || m.medium || m.device_limit > 0) return false;
  m.deferred = port;
  m.latest = m.next == kNever ? kNever : m.next + delay_;
  return true;
}

void Link::catch_up(Time now) {
  Managed& m = *managed_;
  SharedPort& port = *m.deferred;
  while (m.next <= now) {
    Queued item;
    if (m.take(m.next, item, port)) {
      begun_at_ = m.next;
      begun_bytes_ = item.bytes;
      m.begun += item.bytes;
      free_at_ = m.next + transmission_time(item.bytes);
      busy_ns_ += free_at_ - m.next;
      m.host->sent(item, free_at_ + delay_);
    }
    m.next = port.packets() > 0 ? free_at_ : kNever;
  }
}

void Link::run_deferred(Time now) {
  catch_up(now);
  const Managed& m = *managed_;
  managed_->latest = m.next == kNever ? kNever : m.next + delay_;
}

void Link::offer_deferred(Time now, const Queued& item) {
  Managed& m = *managed_;
  SharedPort& port = *m.deferred;
  catch_up(now);
  m.tick(now, port);
  port.enqueue(now, item);
  const uint32_t packets = port.packets();
  stats_.queue_max = std::max(stats_.queue_max, packets);
  if (m.next == kNever) {
    if (packets == 0) return;
    m.next = std::max(now, free_at_);
    catch_up(now);
    if (m.next == kNever) return;
  }
  if (m.next + delay_ >= m.latest) return;
  m.latest = m.next + delay_;
  m.host->rescheduled(m.index);
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
