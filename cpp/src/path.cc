#include "netbuf/path.h"

#include <algorithm>
#include <limits>

namespace netbuf {

namespace {

constexpr uint32_t kLeastPacket = 40;  // bytes: headers without options or payload

PacketEvent event_of(Link::Fate fate) {
  return fate == Link::Fate::queue_drop ? PacketEvent::queue_drop : PacketEvent::random_loss;
}

}  // namespace

Path::Path(uint32_t flow, const FlowConfig& config, const StackProfile& profile, Network& network)
    : network_(network),
      profile_(profile),
      to_receiver_(flow, kAtReceiver),
      to_sender_(flow, kAtSender),
      flow_(flow),
      priority_(static_cast<uint8_t>(config.priority)),
      links_(config.path) {
  const auto add_hops = [&](std::vector<Hop>& hops, const std::vector<uint32_t>& path) {
    hops.reserve(hops.size() + path.size());
    bool in_order = config.routes.empty();  // so far
    for (size_t i = 0; i < path.size(); ++i) {
      Link& link = network_.links[path[i]];
      const bool folded = i > 0 && foresees(path[i - 1], path[i], in_order);
      in_order &= !link.reorders();
      const uint8_t lane = i == 0 || folded ? uint8_t{0} : lane_between(path[i - 1], path[i]);
      Link::Coming* const coming = folded ? link.expect(path[i - 1]) : nullptr;
      hops.push_back({&link, coming, 0, false, profile.orders_ties && i > 0 && !folded, lane});
    }
    hops.back().last = true;
  };
  const auto add_route = [&](Time from, const std::vector<uint32_t>& path, const std::vector<uint32_t>& return_path) {
    routes_.push_back({from, static_cast<uint32_t>(forward_.size()), static_cast<uint32_t>(backward_.size())});
    add_hops(forward_, path);
    add_hops(backward_, return_path);
  };
  add_route(0, config.path, config.return_path);
  for (const RouteConfig& later : config.routes) add_route(later.from_ns, later.path, later.return_path);
  first_link_ = forward_.front().link;
  first_return_link_ = backward_.front().link;
  route_ = routes_.data();
  plain_until_ = network_.log ? 0 : next_route_at();

  ack_overtakes_ = !config.routes.empty() ||
                   std::any_of(config.return_path.begin(), config.return_path.end(), [&](uint32_t link) {
                     return network_.links[link].reorders() || network_.links[link].duplicates();
                   });
  direct_ = forward_.size() == 1 && !first_link_->managed() && !network_.log;
  direct_back_ = backward_.size() == 1 && !first_return_link_->managed() && !network_.log;

  double slowest = std::numeric_limits<double>::infinity();
  bottleneck_ = config.path.front();
  for (const uint32_t link : config.path) {
    const double rate = network_.links[link].mean_rate_bps();
    if (rate < slowest) slowest = rate, bottleneck_ = link;
  }
}

// Whether what comes from one link is known to leave the next as soon as the first lets it go, where nothing is dropped: if
// all that comes is asked for in order of time, and in the order that it would have there by itself, or if the order does
// not matter, at an unlimited rate. It is so of one direction of a connection (in_order: none of its packets has overtaken
// another before), and of what comes from one link alone, packet by packet. Several of one instant would take their turns
// anew (Flights), several connections draw their losses in turn, and ns-3's order is its own.
bool Path::foresees(uint32_t from, uint32_t to, bool in_order) const {
  const Network::Use& use = network_.uses[to];
  const Link &before = network_.links[from], &link = network_.links[to];
  if (!link.never_drops() || !link.constant_rate() || link.changes()) return false;
  if (use.count == 1 && in_order) return true;
  return (use.from == from || link.unlimited()) && before.spaces(kLeastPacket) && !link.loses() &&
         !network_.profiles->usual().orders_ties;
}

// What many share keeps the order: packets of one lane come from the same busy link, or are on their way to it.
uint8_t Path::lane_between(uint32_t from, uint32_t to) {
  uint8_t& lane = network_.lanes[network_.uses[from].count > network_.uses[to].count ? from : to];
  if (lane == 0) lane = network_.flights.add_lane();
  return lane;
}

Time Path::next_route_at() const { return route_ == &routes_.back() ? kNever : route_[1].from; }

template <class Item>
void Path::look_closely(const Item& item) {
  while (next_route_at() <= item.time) ++route_;
  if (network_.log) {
    log(PacketEvent::sent, item, item.time);
  } else {
    plain_until_ = next_route_at();
  }
}

void Path::forget() {
  for (const std::vector<Hop>* hops : {&forward_, &backward_}) {
    for (const Hop& hop : *hops) hop.link->forget(flow_);
  }
}

void Path::lose(Link::Fate fate, PacketKind kind) {
  --on_way_;
  if (is_data(kind)) ++(fate == Link::Fate::queue_drop ? queue_drops_ : random_losses_);
}

// ---- forward

void Path::launch_over_hops(Time now, uint32_t segment, uint16_t bytes, PacketKind kind, bool fin, uint64_t ecn) {
  Packet packet{now, now, to_receiver_.word() | ecn, segment, bytes, kind, fin};
  look_at(packet);
  forward(packet, route_->forward, now);
}

// launch_burst() where no trains are made, or random loss may divide them.
void Path::launch_run(Time now, uint32_t segment, uint32_t count, uint16_t bytes, PacketKind kind) {
  if (!direct_ || !first_link_->uniform()) [[unlikely]] {
    for (; count > 0; --count) launch(now, segment++, bytes, count == 1 ? kind : kData);
    return;
  }
  const Link::Burst burst = first_link_->transmit_burst(now, count, bytes + profile_.data_overhead);
  const bool in_trains = in_trains_ && count <= kLongestTrain;
  on_way_ += burst.count;
  Time first = burst.first;
  for (uint32_t rest = burst.count;;) {  // up to the next that is lost
    const uint32_t through = first_link_->spare(rest);
    if (!in_trains) {
      network_.arrivals->place_run(first, burst.spacing, through, to_receiver_, receiver_lane_, [&](Flight& flight) {
        Packet& packet = flight.packet;
        packet.sent_at = now;
        packet.segment = segment++;
        packet.bytes = bytes;
        packet.kind = --count == 0 ? kind : kData;
        packet.fin = false;
      });
    } else if (through > 0) {
      place_train(first, burst.spacing, through, now, segment, bytes, through == count ? kind : kData);
      segment += through;
      count -= through;
    }
    if (through == rest) [[likely]] break;
    lose(Link::Fate::random_loss, kData);
    ++segment;
    --count;
    first += (through + 1) * burst.spacing;
    rest -= through + 1;
  }
  if (count > 0) [[unlikely]] queue_drops_ += count;
}

inline Link::Outcome Path::transmit(const Hop& crossed, Time now, uint32_t bytes, bool is_data) const {
  Link& link = *crossed.link;
  if (crossed.coming) return link.foresee(*crossed.coming, now, bytes, is_data, *network_.clock);
  if (crossed.in_turn) [[unlikely]] {
    Link& before = *(&crossed)[-1].link;
    return link.transmit_in_turn(before.set_out(now, bytes), now, bytes, is_data);
  }
  return link.transmit(now, bytes, is_data);
}

void Path::forward(Packet& packet, size_t hop, Time now) {
  do {
    const Hop& crossed = forward_[hop];
    Link& link = *crossed.link;
    if (link.managed()) [[unlikely]] return offer(link, packet, hop);
    const Link::Outcome outcome = transmit(crossed, packet.time, wire_bytes(packet.kind, packet.bytes), true);
    if (outcome.fate != Link::Fate::delivered) [[unlikely]] {
      lose(outcome.fate, packet.kind);
      if (network_.log) [[unlikely]] log(event_of(outcome.fate), packet, packet.time, index_of(crossed));
      return;
    }
    packet.time = outcome.arrival;
  } while (!wait_forward(packet, ++hop, now));
}

// Keeps a packet that reaches hop (or the receiver) at packet.time until then; false when it crosses hop at once.
bool Path::wait_forward(Packet& packet, size_t hop, Time now) {
  if (forward_[hop - 1].last) {
    reach(packet, kAtReceiver, receiver_lane_);
    return true;
  }
  Hop& next = forward_[hop];
  if (next.coming || (packet.time <= now && next.waiting == 0)) return false;
  ++next.waiting;
  reach(packet, kAtForwardHop + hop, next.lane);
  return true;
}

void Path::cross_forward(Packet& packet) {
  const size_t hop = packet.stage() - size_t{kAtForwardHop};
  Hop& crossed = forward_[hop];
  --crossed.waiting;
  if (crossed.link->managed()) return offer(*crossed.link, packet, hop);
  forward(packet, hop, packet.time);
}

void Path::offer(Link& link, const Packet& packet, size_t hop) {
  Queued item;
  item.packet = packet;
  item.owner = flow_;
  item.bytes = wire_bytes(packet.kind, packet.bytes);
  item.hop = static_cast<uint8_t>(hop);
  item.priority = priority_;
  item.is_ack = false;
  item.ecn = ((packet.to | all_ecn_) & kEcnCapable) != 0;
  item.l4s = ((packet.to | all_ecn_) & kEcnL4s) != 0;
  item.marked = (packet.to & kEcnMarked) != 0;
  link.offer(packet.time, item);
}

// ---- backward

uint16_t Path::send_back(Ack ack, const SackBlocks& blocks) {
  ack.flags |= kAckHasSack;
  const auto number = static_cast<uint16_t>(blocks_.tail());
  ack.sack = number;
  blocks_.push(blocks);
  send_back(ack);
  return number;
}

void Path::answer_one_by_one(Time now, Time echo_sent, uint32_t segment, uint32_t count) {
  for (; count > 0; --count, now += ack_spacing(), segment += ack_step()) {
    send_back(Ack{now, echo_sent, 0, 0, 0, segment, kUnlimitedWindow});
  }
}

void Path::send_back_over_hops(const Ack& ack) {
  look_at(ack);
  Ack moving = ack;
  backward(moving, route_->backward, ack.time);
}

// Where ACKs overtake each other, the blocks of some that are late are kept for them; of later ones they are lost.
SackBlocks Path::take_blocks(const Ack& ack) {
  const uint32_t index = blocks_index(ack);
  if (!ack_overtakes_) [[likely]] {
    const SackBlocks blocks = blocks_[index];
    blocks_.pop_to(index + 1);
    return blocks;
  }
  const SackBlocks blocks = before(index, blocks_.tail()) ? blocks_[index] : SackBlocks{};
  if (blocks_.size() > kLateAcks) blocks_.pop_to(blocks_.tail() - kLateAcks);
  return blocks;
}

void Path::backward(Ack& ack, size_t hop, Time now) {
  do {
    const Hop& crossed = backward_[hop];
    Link& link = *crossed.link;
    if (link.managed()) [[unlikely]] return offer(link, ack, hop);
    const uint32_t bytes = wire_bytes(ack);
    const Link::Outcome outcome = transmit(crossed, ack.time, bytes, false);
    if (outcome.fate != Link::Fate::delivered) [[unlikely]] {
      --on_way_;
      if (network_.log) [[unlikely]] log(event_of(outcome.fate), ack, ack.time, index_of(crossed));
      return;
    }
    ack.time = outcome.arrival;
  } while (!wait_backward(ack, ++hop, now));
}

void Path::offer(Link& link, const Ack& ack, size_t hop) {
  Queued item;
  item.ack = ack;
  item.owner = flow_;
  item.bytes = wire_bytes(ack);
  item.hop = static_cast<uint8_t>(hop);
  item.priority = priority_;
  item.is_ack = true;
  item.ecn = all_ecn_ != 0;
  item.marked = false;
  item.l4s = (all_ecn_ & kEcnL4s) != 0;
  item.counts_marks = counts_marks_;
  link.offer(ack.time, item);
}

// Keeps an ACK that reaches hop (or the sender) at ack.time until then; false when it crosses hop at once.
bool Path::wait_backward(Ack& ack, size_t hop, Time now) {
  if (backward_[hop - 1].last) {
    reach(ack, kAtSender, sender_lane_);
    return true;
  }
  Hop& next = backward_[hop];
  if (next.coming || (ack.time <= now && next.waiting == 0)) return false;
  ++next.waiting;
  reach(ack, kAtBackwardHop + hop, next.lane);
  return true;
}

void Path::cross_backward(Ack& ack) {
  const size_t hop = ack.stage() - size_t{kAtBackwardHop};
  --backward_[hop].waiting;
  backward(ack, hop, ack.time);
}

// ---- managed links

void Path::resume(const Queued& item, Time arrival) {
  if (item.is_ack) {
    Ack ack = item.ack;
    ack.time = arrival;
    if (!wait_backward(ack, item.hop + size_t{1}, -1)) backward(ack, item.hop + size_t{1}, -1);
  } else {
    Packet packet = item.packet;
    packet.time = arrival;
    if (item.marked) packet.to |= kEcnMarked;
    if (!wait_forward(packet, item.hop + size_t{1}, -1)) forward(packet, item.hop + size_t{1}, -1);
  }
}

void Path::lost(const Queued& item, Link::Fate fate) {
  if (network_.log) log(event_of(fate), item);
  if (item.is_ack) {
    --on_way_;
  } else {
    lose(fate, item.packet.kind);
  }
}

void Path::altered(const Queued& item, PacketEvent event) {
  if (event == PacketEvent::duplicated) {
    ++on_way_;
    if (!item.is_ack && is_data(item.packet.kind)) ++duplicates_;
    if (network_.log) log(event, item);
  } else {
    if (network_.log) log(event, item);
    item.is_ack ? void(--on_way_) : lose(Link::Fate::random_loss, item.packet.kind);
  }
}

// ---- the log

void Path::log(PacketEvent event, const Packet& packet, Time at, uint32_t link) {
  PacketRow row{};
  row.time = at;
  row.stamp = packet.sent_at;
  row.owner = flow_;
  row.link = link;
  row.segment = packet.segment;
  row.wire_bytes = wire_bytes(packet.kind, packet.bytes);
  row.payload = packet.bytes;
  row.event = event;
  row.kind = packet.kind;
  row.flags = packet.kind == kSyn
                  ? static_cast<uint8_t>(profile_.syn_options | profile_.options * PacketLog::kAgreed)
                  : packet.fin;
  row.ecn = static_cast<uint8_t>(((packet.to | all_ecn_) & kEcn) >> 40);
  network_.log->add(row);
}

void Path::log(PacketEvent event, const Ack& ack, Time at, uint32_t link) {
  PacketRow row{};
  row.time = at;
  row.stamp = ack.echo_sent;
  row.owner = flow_;
  row.link = link;
  row.segment = ack.ack;
  row.window = ack.window;
  row.wire_bytes = wire_bytes(ack);
  row.event = event;
  row.is_ack = 1;
  row.flags = static_cast<uint8_t>(ack.flags);
  row.ecn = static_cast<uint8_t>(all_ecn_ >> 40);
  if (const uint32_t index = blocks_index(ack); (ack.flags & kAckHasSack) && before(index, blocks_.tail())) {
    const SackBlocks& blocks = blocks_[index];
    for (uint32_t i = 0; i < blocks.count && i < std::size(blocks.block); ++i) {
      row.sack[2 * i] = blocks.block[i].begin;
      row.sack[2 * i + 1] = blocks.block[i].end;
    }
    row.sack_blocks = blocks.count;
  }
  network_.log->add(row);
}

void Path::log(PacketEvent event, const Queued& item) {
  const uint32_t link = index_of((item.is_ack ? backward_ : forward_)[item.hop]);
  item.is_ack ? log(event, item.ack, *network_.clock, link) : log(event, item.packet, *network_.clock, link);
}

void Path::log_arrival(const Flight& flight) {
  const uint8_t stage = flight.packet.stage();
  if (stage == kAtReceiver) log(PacketEvent::received, flight.packet, flight.packet.time);
  else if (stage == kAtSender) log(PacketEvent::received, flight.ack, flight.ack.time);
}

// ---- what becomes of spacing

// A link without a limit keeps the spacing of what comes: of its sender, which sends several at once.
bool Path::delivers_bunches() const {
  bool bunches = true;           // so far, on this route
  for (const Hop& hop : forward_) {
    bunches = (bunches && hop.link->unlimited()) || hop.link->bunches();
    if (hop.last && bunches) return true;
    bunches |= hop.last;
  }
  return false;
}

bool Path::delays_acks() const {
  return std::any_of(backward_.begin(), backward_.end(), [](const Hop& hop) { return hop.link->delays(); });
}

Time Path::least_ack_delay() const {
  const bool steady = direct_ && direct_back_ && first_link_->spaces(kLeastPacket) && first_return_link_->steady();
  return steady && !first_link_->duplicates() ? first_return_link_->delay() : 0;
}

// ---- the order of ties

Time Path::scheduled(const Packet& packet) const {
  const size_t before =
      packet.stage() == kAtReceiver ? forward_.size() - 1 : packet.stage() - size_t{kAtForwardHop} - 1;
  const Link& link = *forward_[before].link;
  return packet.time - link.delay() - link.transmission_time(wire_bytes(packet.kind, packet.bytes));
}

Time Path::scheduled(const Ack& ack) const {
  const size_t before = ack.stage() == kAtSender ? backward_.size() - 1 : ack.stage() - size_t{kAtBackwardHop} - 1;
  const Link& link = *backward_[before].link;
  return ack.time - link.delay() - link.transmission_time(wire_bytes(ack));
}

Path::Departure Path::departure(const Packet& packet) const {
  const Link &access = *first_link_, &last = *backward_.back().link;
  const Time begun = scheduled(packet);
  const Time full = access.transmission_time(profile_.mss + profile_.data_overhead);
  const Time ack = last.delay() + last.transmission_time(profile_.ack_bytes);
  return {begun - full, begun - ack, access.busy_since(begun), full > ack};
}

size_t Path::memory_bytes() const {
  return blocks_.memory_bytes() + round_trips.memory_bytes() + (forward_.capacity() + backward_.capacity()) * sizeof(Hop) +
         links_.capacity() * sizeof(uint32_t);
}

}  // namespace netbuf
