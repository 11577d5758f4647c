// Links whose queue is a discipline's. Packets pass from the discipline, through what the device holds, to the transmitter.
#include <algorithm>

#include "netbuf/link.h"

namespace netbuf {

struct Link::Managed final : DropSink {
  Managed(Link& owner, Host* host_, uint32_t index_, uint32_t device_limit_)
      : link(&owner), host(host_), index(index_), device_limit(device_limit_) {}

  Link* link;
  Host* host;
  uint32_t index, device_limit;
  std::unique_ptr<QueueDiscipline> discipline;
  Ring<Queued> device;
  Time next = kNever, since = 0;
  int64_t begun = 0;               // bytes of the packets whose transmission has begun
  double area = 0;                 // packet nanoseconds in the discipline, up to since

  void dropped(const Queued& item) override {
    ++link->stats_.queue_drops;
    host->lost(item, Fate::queue_drop);
  }
  void tick(Time now) {
    area += static_cast<double>(discipline->packets()) * static_cast<double>(now - since);
    since = now;
  }
  bool take(Time now, Queued& item) {
    tick(now);
    if (!discipline->dequeue(now, item)) return false;
    const Time waited = now - item.arrived;
    link->sojourn_ns_ += waited;
    link->sojourn_s2_ += seconds(waited) * seconds(waited);
    ++link->stats_.packets_out;
    link->stats_.bytes_out += item.bytes;
    return true;
  }
};

void Link::ManagedDeleter::operator()(Managed* managed) const { delete managed; }

void Link::manage(const Maker& make, const LinkConfig& config, uint32_t index, Host* host) {
  managed_.reset(new Managed(*this, host, index, static_cast<uint32_t>(config.device_packets)));
  DisciplineSetting setting{limit_packets_, limit_bytes_, mean_rate_bps(), {}, managed_.get(), rng_};
  managed_->discipline = make(setting);
}

void Link::offer(Time now, Queued& item) {
  Managed& m = *managed_;
  item.arrived = now;
  ++stats_.packets_in;
  m.tick(now);
  m.discipline->enqueue(now, item);
  stats_.queue_max = std::max(stats_.queue_max, m.discipline->packets());
  if (m.next == kNever || now >= m.next || m.device.size() < m.device_limit) serve(now);
}

bool Link::runs_last() const { return managed_->device_limit > 0; }
Time Link::next() const { return managed_->next; }

void Link::serve(Time now) {
  Managed& m = *managed_;
  const Time before = m.next;
  Queued item;
  Time next = kNever;
  for (;;) {
    if (m.device.empty() && m.discipline->packets() == 0) break;
    const Time begin = ready(now);
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
  while (m.device.size() < m.device_limit && m.take(now, item)) m.device.push(item);
  if (m.device.empty() && m.discipline->packets() == 0) next = kNever;
  m.next = next;
  if (next != before) m.host->rescheduled(m.index);
}

Time Link::ready(Time now) {
  const Time from = std::max(now, free_at_);
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

void Link::transmit_now(Time now, const Queued& item) {
  Managed& m = *managed_;
  Time start = now;
  const Time end = schedule_ == Schedule::constant ? now + transmission_time(item.bytes) : schedule_departure(now, item.bytes, start);
  free_at_ = end;
  busy_ns_ += end - start;
  m.begun += item.bytes;
  begun_bytes_ = item.bytes;
  if (lossy_ && (!item.is_ack || loss_on_acks_) && lose()) {
    ++stats_.random_losses;
    return m.host->lost(item, Fate::random_loss);
  }
  m.host->sent(item, end + delay_);
}

uint32_t Link::managed_packets() const { return managed_->discipline->packets(); }
int64_t Link::managed_bytes() const { return managed_->discipline->bytes(); }

LinkStats Link::managed_stats(Time now) {
  managed_->tick(now);
  LinkStats s = stats_;
  s.sojourn_sum = seconds(sojourn_ns_);
  s.sojourn_sum2 = sojourn_s2_;
  s.queue_integral = managed_->area * 1e-9;
  count_transmitted(s, now, managed_->begun, free_at_, free_at_);
  return s;
}

size_t Link::memory_bytes() const {
  size_t bytes = sizeof *this + queue_.memory_bytes();
  if (coming_) bytes += coming_bytes();
  if (managed_) bytes += sizeof(Managed) + managed_->discipline->memory_bytes() + managed_->device.memory_bytes();
  return bytes;
}

}  // namespace netbuf
