// The two directions of a flow's path, and the flow's event loop.
#include <algorithm>

#include "netbuf/flow.h"

namespace netbuf {

void Flow::build_path(const FlowConfig& config, const std::vector<uint32_t>& link_uses) {
  const auto hops = [&](const std::vector<uint32_t>& path) {
    std::vector<Hop> result;
    for (const uint32_t link : path) {
      result.push_back({link, link_uses[link] == 1 && links_[link].never_drops() && links_[link].constant_rate()});
    }
    return result;
  };
  path_ = config.path;
  forward_ = hops(config.path);
  forward_hops_ = static_cast<uint32_t>(forward_.size());
  first_link_ = &links_[path_.front()];
  first_return_link_ = &links_[config.return_path.front()];
  backward_ = hops(config.return_path);
  backward_hops_ = static_cast<uint32_t>(backward_.size());
  forward_rings_.resize(forward_.size());
  backward_rings_.resize(backward_.size());
  rest_.assign(kFirstHop - kTimerHead + forward_.size() + backward_.size(), kNever);

  double slowest = std::numeric_limits<double>::infinity();
  bottleneck_ = path_.front();
  for (const uint32_t link : path_) {
    const double rate = links_[link].mean_rate_bps();
    if (rate < slowest) slowest = rate, bottleneck_ = link;
  }
}

uint32_t Flow::wire_bytes(PacketKind kind, uint32_t payload) const {
  if (is_data(kind)) [[likely]] return payload + profile_.data_overhead;
  if (kind == kReset) return profile_.reset_bytes;
  return kind == kSyn ? profile_.syn_bytes : profile_.ack_bytes;
}

uint32_t Flow::wire_bytes(const Ack& ack) const {
  if (ack.flags & kAckSynAck) return profile_.syn_bytes;
  return profile_.ack_bytes + ((ack.flags & kAckHasSack) ? profile_.sack_bytes[sack_ring_[ack.sack].count] : 0);
}

void Flow::count_fate(Link::Fate fate, bool is_data) {
  if (!is_data) return;
  ++(fate == Link::Fate::queue_drop ? counters.queue_drops : counters.random_losses);
}

void Flow::offer(Link& link, const Packet& packet, size_t hop) {
  Queued item;
  item.packet = packet;
  item.owner = index_;
  item.bytes = wire_bytes(packet.kind, packet.bytes);
  item.hop = static_cast<uint8_t>(hop);
  item.priority = static_cast<uint8_t>(priority_);
  item.is_ack = false;
  ++held_;
  held_data_ += is_data(packet.kind);
  link.offer(packet.time, item);
}

void Flow::resume(const Queued& item, Time arrival) {
  --held_;
  if (item.is_ack) {
    Ack ack = item.ack;
    ack.time = arrival;
    if (!wait_backward(ack, item.hop + size_t{1})) backward(ack, item.hop + size_t{1}, arrival);
  } else {
    Packet packet = item.packet;
    packet.time = arrival;
    held_data_ -= is_data(packet.kind);
    onward(packet, item.hop + size_t{1});
  }
  refresh_next();
}

void Flow::lost(const Queued& item, Link::Fate fate) {
  --held_;
  if (item.is_ack) return;
  held_data_ -= is_data(item.packet.kind);
  count_fate(fate, is_data(item.packet.kind));
}

bool Flow::finished() const {
  if (receiving_ != Receiving::closed || tcb.una != tcb.nxt || held_ > 0 || !rx_ring_.empty() || !ack_ring_.empty()) return false;
  const auto empty = [](const auto& ring) { return ring.empty(); };
  return std::all_of(forward_rings_.begin(), forward_rings_.end(), empty) && std::all_of(backward_rings_.begin(), backward_rings_.end(), empty);
}

void Flow::launch(uint32_t segment, uint16_t bytes, PacketKind kind) {
  if (first_link_->managed()) [[unlikely]] {
    return offer(*first_link_, {tcb.now, tcb.now, segment, bytes, kind}, 0);
  }
  const Link::Outcome outcome = first_link_->transmit(tcb.now, wire_bytes(kind, bytes), true);
  if (outcome.fate != Link::Fate::delivered) [[unlikely]] return count_fate(outcome.fate, is_data(kind));
  if (forward_hops_ == 1) {
    if (rx_ring_.empty()) rx_head_ = outcome.arrival;
    rx_ring_.push({outcome.arrival, tcb.now, segment, bytes, kind});
  } else {
    onward({outcome.arrival, tcb.now, segment, bytes, kind}, 1);
  }
}

void Flow::onward(Packet packet, size_t hop) {
  for (; hop != forward_hops_; ++hop) {
    Ring<Packet>& ring = forward_rings_[hop];
    if (!forward_[hop].folded && (packet.time > tcb.now || !ring.empty())) {
      if (ring.empty()) set_head(static_cast<uint8_t>(kFirstHop + hop), packet.time);
      ring.push(packet);
      return;
    }
    if (!cross(packet, hop)) return;
  }
  if (rx_ring_.empty()) rx_head_ = packet.time;
  rx_ring_.push(packet);
}

bool Flow::cross(Packet& packet, size_t hop) {
  Link& link = links_[forward_[hop].link];
  if (link.managed()) [[unlikely]] {
    offer(link, packet, hop);
    return false;
  }
  const Link::Outcome outcome = link.transmit(packet.time, wire_bytes(packet.kind, packet.bytes), true);
  packet.time = outcome.arrival;
  if (outcome.fate == Link::Fate::delivered) return true;
  count_fate(outcome.fate, is_data(packet.kind));
  return false;
}

// The ACK crosses hop at the time at: now, unless a managed link says beforehand.
void Flow::backward(Ack ack, size_t hop, Time at) {
  do {
    Link& link = hop == 0 ? *first_return_link_ : links_[backward_[hop].link];
    const uint32_t bytes = wire_bytes(ack);
    if (link.managed()) [[unlikely]] {
      ++held_;
      Queued item;
      item.ack = ack;
      item.owner = index_;
      item.bytes = bytes;
      item.hop = static_cast<uint8_t>(hop);
      item.priority = static_cast<uint8_t>(priority_);
      item.is_ack = true;
      return link.offer(at, item);
    }
    const Link::Outcome outcome = link.transmit(at, bytes, false);
    if (outcome.fate != Link::Fate::delivered) [[unlikely]] return;
    ack.time = at = outcome.arrival;
  } while (!wait_backward(ack, ++hop));
}

// Keeps an ACK that reaches hop (or the sender) at ack.time until then; false when it crosses hop at once.
bool Flow::wait_backward(const Ack& ack, size_t hop) {
  if (hop == backward_hops_) {
    if (ack_ring_.empty()) ack_head_ = ack.time;
    ack_ring_.push(ack);
    return true;
  }
  Ring<Ack>& ring = backward_rings_[hop];
  if (backward_[hop].folded || (ack.time <= tcb.now && ring.empty())) return false;
  if (ring.empty()) set_head(static_cast<uint8_t>(kFirstHop + forward_.size() + hop), ack.time);
  ring.push(ack);
  return true;
}

void Flow::set_head(uint8_t head, Time at) {
  Time& slot = rest_[head - kTimerHead];
  const Time old = slot;
  slot = at;
  if (at <= rest_next_) {
    rest_next_ = at;
  } else if (old == rest_next_) {
    refresh_rest();
  }
}

void Flow::refresh_rest() { rest_next_ = *std::min_element(rest_.begin(), rest_.end()); }

// A packet's arrival is scheduled when its transmission begins on the link before. Its transmission on an access link was
// scheduled when that of the packet before it began, or, if it found the link idle, when the ACK set out that let it go, or the
// timer was set. Of two packets whose transmissions begin together that one comes first whose cause is older.
Flow::Turn Flow::turn() const {
  const auto scheduled = [&](const Hop& hop, uint32_t bytes) { return next_ - links_[hop.link].delay() - links_[hop.link].transmission_time(bytes); };
  if (rx_head_ == next_) {
    const Packet& packet = rx_ring_.front();
    return {scheduled(forward_.back(), wire_bytes(packet.kind, packet.bytes)), 0, 0};
  }
  if (ack_head_ == next_) return {scheduled(backward_.back(), wire_bytes(ack_ring_.front())), 0, 0};
  const auto head = static_cast<size_t>(std::find(rest_.begin(), rest_.end(), next_) - rest_.begin()) + kTimerHead;
  if (head == kWakeupHead) return {next_ - 1, 0, 0};
  if (head == kDelayedAckHead) return {next_ - profile_.delayed_ack_timeout, 0, 0};
  if (head == kTimerHead) return {timer_deadline_ == next_ ? timer_set_ : 0, 0, 0};
  if (head < kFirstHop) return {0, 0, 0};
  const size_t hop = head - kFirstHop;
  if (hop >= forward_.size()) {
    const size_t back = hop - forward_.size();
    return {scheduled(backward_[back - 1], wire_bytes(backward_rings_[back].front())), 0, 0};
  }
  const Packet& packet = forward_rings_[hop].front();
  const Time begun = scheduled(forward_[hop - 1], wire_bytes(packet.kind, packet.bytes));
  if (hop > 1) return {begun, 0, 0};
  const Link &access = *first_link_, &last = links_[backward_.back().link];
  const Time full = access.transmission_time(tcb.mss + profile_.data_overhead);  // the packet before it, most likely
  const Time ack = last.delay() + last.transmission_time(profile_.ack_bytes);
  const Time since = access.busy_since(begun);
  if (since < begun) return {begun, begun - full, full > ack ? since : -since};
  if (packet.sent_at == timed_out_) return {begun, timed_out_set_, 0};
  return {begun, packet.kind == kSyn ? 0 : begun - ack, 0};
}

void Flow::run_next() {
  const Time now = next_;
  tcb.now = now;
  if (rx_head_ == now) {
    const Packet packet = rx_ring_.front();
    rx_ring_.pop();
    rx_head_ = rx_ring_.empty() ? kNever : rx_ring_.front().time;
    receive(packet);
  } else if (ack_head_ == now) {
    const Ack ack = ack_ring_.front();
    ack_ring_.pop();
    ack_head_ = ack_ring_.empty() ? kNever : ack_ring_.front().time;
    receive_ack(ack);
  } else {
    const auto head = static_cast<uint8_t>(std::find(rest_.begin(), rest_.end(), now) - rest_.begin() + kTimerHead);
    if (head >= kFirstHop) {
      size_t hop = head - kFirstHop;
      if (hop < forward_.size()) {
        Ring<Packet>& ring = forward_rings_[hop];
        Packet packet = ring.front();
        ring.pop();
        set_head(head, ring.empty() ? kNever : ring.front().time);
        if (cross(packet, hop)) onward(packet, hop + 1);
      } else {
        hop -= forward_.size();
        Ring<Ack>& ring = backward_rings_[hop];
        const Ack ack = ring.front();
        ring.pop();
        set_head(head, ring.empty() ? kNever : ring.front().time);
        backward(ack, hop, now);
      }
    } else if (head == kTimerHead) {
      set_head(head, timer_deadline_ > now ? timer_deadline_ : kNever);  // deadlines move: the head is a lower bound
      if (timer_deadline_ <= now) {
        timer_deadline_ = kNever;
        on_timer();
      }
    } else if (head == kDelayedAckHead) {
      set_head(head, delayed_ack_deadline_ > now ? delayed_ack_deadline_ : kNever);
      if (delayed_ack_deadline_ <= now) {
        delayed_ack_deadline_ = kNever;
        on_receiver_timer();
      }
    } else if (head == kWakeupHead) {
      set_head(head, kNever);
      try_send();
    } else {
      set_head(head, kNever);
      head == kAppHead ? on_app() : on_sink();
    }
  }
  refresh_next();
}

void Flow::schedule_wakeup(Time at) {
  if (at < rest_[kWakeupHead - kTimerHead]) set_head(kWakeupHead, at);
}

void Flow::set_timer(Time deadline) {
  timer_deadline_ = deadline;
  timer_set_ = tcb.now;
  if (deadline < rest_[0]) set_head(kTimerHead, deadline);
}

uint64_t Flow::packets_in_network() const {
  uint64_t packets = held_data_;
  const auto count = [&](const Ring<Packet>& ring) {
    for (uint32_t i = ring.head(); i != ring.tail(); ++i) packets += is_data(ring[i].kind);
  };
  count(rx_ring_);
  for (const auto& ring : forward_rings_) count(ring);
  return packets;
}

size_t Flow::memory_bytes() const {
  size_t bytes = sizeof *this + segments.memory_bytes() + sacked.memory_bytes() + out_of_order_.memory_bytes() +
                 rx_ring_.memory_bytes() + ack_ring_.memory_bytes() + sack_ring_.memory_bytes() +
                 rest_.capacity() * sizeof(Time) + (rate_marks_ ? rate_marks_->memory_bytes() : 0);
  for (const auto& ring : forward_rings_) bytes += sizeof ring + ring.memory_bytes();
  for (const auto& ring : backward_rings_) bytes += sizeof ring + ring.memory_bytes();
  return bytes;
}

}  // namespace netbuf
