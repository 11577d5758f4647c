#include "netbuf/world.h"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>

#include "netbuf/relay.h"

namespace netbuf {

World::World(const WorldConfig& config, uint64_t seed) : rng_(seed) {
  validate(config);
  profile_ = &stack_profile(config.stack);
  if (config.mss || config.min_rto_ns || config.delayed_ack_packets) {
    own_profile_ = std::make_unique<StackProfile>(stack_profile(config));
    profile_ = own_profile_.get();
  }
  build_links(config);
  link_uses_.assign(config.links.size(), 0);
  const auto use = [&](const FlowConfig& flow, uint32_t times) {
    for (const uint32_t link : flow.path) link_uses_[link] += times;
    for (const uint32_t link : flow.return_path) link_uses_[link] += times;
  };
  for (const FlowConfig& flow : config.flows) use(flow, 1);
  for (const TrafficConfig& traffic : config.traffic) {
    for (const FlowConfig& sender : traffic.senders) use(sender, 2);  // several flows of one sender share its links
  }
  for (const ProbeConfig& probe : config.probes) {
    for (const uint32_t link : probe.path) link_uses_[link] += 2;
  }
  flows_.reserve(config.flows.size());
  for (const FlowConfig& flow : config.flows) {
    const auto index = static_cast<uint32_t>(flows_.size());
    if (flow.controlled) agents_.push_back(index);
    flows_.emplace_back(index, flow, config, *profile_, links_, link_uses_, &rng_);
  }
  for (uint32_t i = 0; i < flows_.size(); ++i) {
    const FlowConfig& flow = config.flows[i];
    if (flow.relay_from >= 0) make_relay(flows_, static_cast<uint32_t>(flow.relay_from), i, flow.relay_buffer_bytes, woken_);
  }
  for (const ProbeConfig& probe : config.probes) probes_.push_back({probe, {}, {}, probe.start_ns});
  if (!config.traffic.empty()) {
    WorldConfig common = config;
    common.links.clear();
    common.flows.clear();
    for (ArrivalsConfig& arrivals : common.traffic.front().arrivals) arrivals = {};
    for (FlowConfig& sender : common.traffic.front().senders) {
      sender.app = "sized";
      sender.stop_ns = 0;
    }
    template_.push_back(std::move(common));
    traffic_.emplace(config.traffic.front(), seed);
    for (const FlowConfig& sender : config.traffic.front().senders) {
      double rtt = 0, slowest = std::numeric_limits<double>::infinity();
      for (const auto* path : {&sender.path, &sender.return_path}) {
        for (const uint32_t link : *path) rtt += seconds(links_[link].delay());
      }
      for (const uint32_t link : sender.path) slowest = std::min(slowest, links_[link].mean_rate_bps());
      base_rtt_s_.push_back(rtt);
      crossed_.emplace_back();
      for (uint32_t i = 0; i < switches_.size(); ++i) {
        const std::vector<uint32_t>& ports = config.switches[i].ports;
        const auto is_port = [&](uint32_t link) { return std::find(ports.begin(), ports.end(), link) != ports.end(); };
        if (std::any_of(sender.path.begin(), sender.path.end(), is_port)) crossed_.back().push_back(switches_[i].get());
      }
      seconds_per_byte_.push_back(8 / slowest);
    }
  }
  first_flow_ = static_cast<uint32_t>(managed_links_.size() + probes_.size() + (traffic_ ? 1 : 0));
  if (config.stack == Stack::ns3) order_ties(config);
  ordered_ = config.stack == Stack::ns3 && !managed_links_.empty();
  if (ordered_) {
    for (const FlowConfig& flow : config.flows) links_[flow.path.front()].remember_busy_periods();
    for (const TrafficConfig& traffic : config.traffic) {
      for (const FlowConfig& sender : traffic.senders) links_[sender.path.front()].remember_busy_periods();
    }
  }
  build_tree();
}

void World::build_links(const WorldConfig& config) {
  links_.reserve(config.links.size());
  for (const LinkConfig& link : config.links) links_.emplace_back(link, &rng_);
  managed_.assign(links_.size(), 0);
  std::vector<std::pair<uint32_t, uint32_t>> ports(links_.size(), {UINT32_MAX, 0});  // switch and port of each link
  for (uint32_t s = 0; s < config.switches.size(); ++s) {
    const SwitchConfig& sw = config.switches[s];
    switches_.push_back(std::make_unique<SharedBuffer>(sw));
    if (switches_.back()->agent_controlled()) agent_switches_.push_back(s);
    for (uint32_t port = 0; port < sw.ports.size(); ++port) ports[sw.ports[port]] = {s, port};
  }
  for (uint32_t i = 0; i < links_.size(); ++i) {
    LinkConfig link = config.links[i];
    const auto [s, port] = ports[i];
    Link::Maker make;
    if (s != UINT32_MAX) {
      make = [&, s, port](const DisciplineSetting& setting) { return switches_[s]->make_port(port, setting.sink); };
    } else if (!link.discipline.empty() || link.device_packets > 0) {
      if (link.discipline.empty()) link.discipline = "droptail";
      make = [&](const DisciplineSetting& setting) { return make_discipline(link.discipline, link.discipline_parameters, setting); };
    } else {
      continue;
    }
    managed_[i] = static_cast<uint32_t>(managed_links_.size());
    managed_links_.push_back(i);
    links_[i].manage(make, link, i, this);
  }
}

void World::order_ties(const WorldConfig& config) {
  const uint32_t bytes = profile_->mss + profile_->data_overhead;
  for (const FlowConfig& flow : config.flows) {
    for (size_t i = 1; i < flow.path.size(); ++i) {
      const Link& before = links_[flow.path[i - 1]];
      links_[flow.path[i]].order_ties(before.delay() + before.transmission_time(bytes), bytes);
    }
  }
}

void World::build_tree() {
  const size_t sources = first_flow_ + flows_.size() + slots_.size();
  const size_t leaves = std::bit_ceil(std::max<size_t>(2, sources));
  tree_.assign(2 * leaves, Entry{kNever, 0});
  for (uint32_t i = 0; i < sources; ++i) tree_[leaves + i] = {next_of(i), i};
  for (size_t node = leaves - 1; node > 0; --node) {
    const Entry &left = tree_[2 * node], &right = tree_[2 * node + 1];
    tree_[node] = right.time < left.time ? right : left;
  }
}

Time World::next_of(uint32_t source) const {
  if (source >= first_flow_) {
    const uint32_t index = source - first_flow_;
    if (index < flows_.size()) return flows_[index].next();
    const Slot& slot = *slots_[index - flows_.size()];
    return slot.flow ? slot.flow->next() : kNever;
  }
  if (source < managed_links_.size()) return links_[managed_links_[source]].next();
  source -= static_cast<uint32_t>(managed_links_.size());
  return source < probes_.size() ? probes_[source].next() : traffic_->next();
}

void World::check_until(Time until) const {
  if (until >= now_ && until < kNever) return;
  throw std::invalid_argument("until_ns = " + std::to_string(until) + ": must be in [" + std::to_string(now_) + ", 2^61)");
}

void World::run(Time until) {
  check_until(until);
  if (first_flow_ > 0) {
    while (tree_[1].time <= until) {
      now_ = tree_[1].time;
      run_source(tree_[1].source);
    }
  } else if (flows_.size() == 1) {
    flows_[0].run(until);
    update(0);
  } else {
    while (tree_[1].time <= until) {
      const uint32_t i = tree_[1].source;
      flows_[i].run_next();
      update(i, flows_[i].next());
      if (!woken_.empty()) update_woken();
    }
  }
  now_ = until;
}

bool World::run_to_agent_ack(Time until) {
  check_until(until);
  while (tree_[1].time <= until) {
    const uint32_t source = tree_[1].source;
    now_ = tree_[1].time;
    const uint32_t index = source - first_flow_;
    const bool agent = source >= first_flow_ && index < flows_.size() && flows_[index].controlled();
    const uint64_t acks = agent ? flows_[index].counters.acks : 0;
    run_source(source);
    if (agent && flows_[index].counters.acks != acks) return true;
  }
  now_ = until;
  return false;
}

void World::run_source(uint32_t source) {
  if (source >= first_flow_) {
    if (ordered_ && tied(source)) return run_tied();
    run_flow(source - first_flow_);
    update(source);
  } else if (source < managed_links_.size()) {
    Link& link = links_[managed_links_[source]];
    // What arrives at this very moment still finds the queue as it was: a device takes its next packet after that (ns-3).
    if (link.has_device() && tied(source)) {
      update(source, kNever);
      while (tree_[1].time == now_) run_source(tree_[1].source);
    }
    if (link.next() <= now_) link.serve(now_);
    update(source);
  } else if (const auto probe = source - static_cast<uint32_t>(managed_links_.size()); probe < probes_.size()) {
    run_probe(probes_[probe], probe);
    update(source);
  } else {
    open_flow();
    update(source);
  }
  if (!touched_.empty()) update_touched();
  if (!woken_.empty()) update_woken();
}

// Whether something else is due when this source is, whose turn it is.
bool World::tied(uint32_t source) const {
  for (size_t node = tree_.size() / 2 + source; node > 1; node /= 2) {
    if (tree_[node ^ 1].time == now_) return true;
  }
  return false;
}

void World::run_tied() {
  std::vector<std::pair<Flow::Turn, uint32_t>> due;
  while (tree_[1].time == now_ && tree_[1].source >= first_flow_) {
    const uint32_t source = tree_[1].source;
    due.emplace_back(flow(source - first_flow_).turn(), source);
    update(source, kNever);
  }
  std::sort(due.begin(), due.end());
  for (const auto& [turn, source] : due) {
    if (next_of(source) == now_) run_flow(source - first_flow_);
    update(source);
    if (!touched_.empty()) update_touched();
    if (!woken_.empty()) update_woken();
  }
}

void World::run_flow(uint32_t index) {
  Flow& f = flow(index);
  const uint64_t packets = f.counters.packets_received;
  const int64_t bytes = f.counters.delivered_bytes;
  f.run_next();
  packets_received_ += f.counters.packets_received - packets;
  delivered_bytes_ += f.counters.delivered_bytes - bytes;
  if (index >= flows_.size()) after_flow(*slots_[index - flows_.size()], index);
}

void World::after_flow(Slot& slot, uint32_t index) {
  Flow& f = *slot.flow;
  if (!slot.completed) {
    if (f.completed_at() == kNever) return;
    slot.completed = true;
    const OpenedFlow& opened = opened_[slot.opened];
    const Completion done{slot.opened, f.completed_at() - opened.start, ideal_s(opened.sender, opened.size_bytes)};
    completions_.push_back(done);
    for (SharedBuffer* sw : crossed_[opened.sender]) sw->note_completion(now_, opened.priority, seconds(done.fct), done.ideal_s);
  }
  if (f.finished()) forget(slot, index);
}

void World::forget(Slot& slot, uint32_t index) {
  OpenedFlow& opened = opened_[slot.opened];
  opened.received_bytes = slot.flow->counters.delivered_bytes;
  opened.slot = OpenedFlow::kForgotten;
  count(forgotten_, *slot.flow);
  slot.flow.reset();
  free_slots_.push_back(index - static_cast<uint32_t>(flows_.size()));
}

void World::open_flow() {
  const FlowArrival arrival = traffic_->pop();
  if (free_slots_.empty()) {
    free_slots_.push_back(static_cast<uint32_t>(slots_.size()));
    slots_.push_back(std::make_unique<Slot>());
    if (first_flow_ + flows_.size() + slots_.size() > tree_.size() / 2) build_tree();
  }
  const uint32_t number = free_slots_.back();
  free_slots_.pop_back();
  Slot& slot = *slots_[number];
  const auto index = static_cast<uint32_t>(flows_.size()) + number;
  FlowConfig& config = template_.front().traffic.front().senders[arrival.sender];
  config.start_ns = arrival.start;
  config.size_bytes = arrival.size_bytes;
  config.priority = arrival.priority;
  slot.opened = static_cast<uint32_t>(opened_.size());
  slot.completed = false;
  opened_.push_back({arrival.start, arrival.sender, arrival.priority, arrival.size_bytes, 0, number});
  slot.flow.emplace(index, config, template_.front(), *profile_, links_, link_uses_, &rng_);
  update(first_flow_ + index);
}

void World::sent(const Queued& item, Time arrival) {
  if (item.owner >= kProbeOwner) {
    const uint32_t index = item.owner - kProbeOwner;
    probes_[index].travelling.push({arrival, item.packet.sent_at, item.hop + 1u});
    touched_.push_back(static_cast<uint32_t>(managed_links_.size()) + index);
    return;
  }
  flow(item.owner).resume(item, arrival);
  touched_.push_back(first_flow_ + item.owner);
}

void World::lost(const Queued& item, Link::Fate fate) {
  if (item.owner >= kProbeOwner) return;
  flow(item.owner).lost(item, fate);
}

void World::update_touched() {
  for (const uint32_t source : touched_) {
    const size_t index = source - first_flow_;
    if (source >= first_flow_ && index >= flows_.size()) {
      Slot& slot = *slots_[index - flows_.size()];
      if (slot.flow && slot.completed && slot.flow->finished()) forget(slot, static_cast<uint32_t>(index));
    }
    update(source);
  }
  touched_.clear();
}

void World::update_woken() {
  for (const uint32_t index : woken_) update(first_flow_ + index);
  woken_.clear();
}

void World::set_window(uint32_t index, double bytes) {
  flows_[index].agent_window(now_, bytes);
  update(first_flow_ + index);
  update_touched();
  update_woken();
}

// ---- probes

void World::run_probe(Probe& probe, uint32_t index) {
  if (!probe.travelling.empty() && probe.travelling.top().time <= now_) {
    const Probe::Travelling packet = probe.travelling.top();
    probe.travelling.pop();
    return move_probe(probe, index, packet);
  }
  probe.next_send += probe.config.interval_ns;
  ++probe.result.sent;
  move_probe(probe, index, {now_, now_, 0});
}

void World::move_probe(Probe& probe, uint32_t index, Probe::Travelling packet) {
  if (packet.hop == probe.config.path.size()) {
    probe.result.delays.push_back(seconds(packet.time - packet.sent_at));
    return;
  }
  Link& link = links_[probe.config.path[packet.hop]];
  if (link.managed()) {
    Queued item;
    item.packet = {now_, packet.sent_at, 0, 0, kWindowProbe};
    item.owner = kProbeOwner + index;
    item.bytes = probe.config.bytes;
    item.hop = static_cast<uint8_t>(packet.hop);
    item.priority = static_cast<uint8_t>(probe.config.priority);
    item.is_ack = false;
    return link.offer(now_, item);
  }
  const Link::Outcome outcome = link.transmit(now_, probe.config.bytes, true);
  if (outcome.fate == Link::Fate::delivered) probe.travelling.push({outcome.arrival, packet.sent_at, packet.hop + 1});
}

// ---- results

double World::ideal_s(uint32_t sender, int64_t size_bytes) const {
  return base_rtt_s_[sender] + static_cast<double>(size_bytes) * seconds_per_byte_[sender];
}

int64_t World::received_bytes(const OpenedFlow& flow) const {
  return flow.slot == OpenedFlow::kForgotten ? flow.received_bytes : slots_[flow.slot]->flow->counters.delivered_bytes;
}

TrafficTotals World::traffic_totals() const {
  TrafficTotals sum = forgotten_;
  for (const auto& slot : slots_) {
    if (slot->flow) count(sum, *slot->flow);
  }
  return sum;
}

void World::count(TrafficTotals& totals, const Flow& flow) const {
  const FlowCounters& c = flow.counters;
  totals.connected += flow.tcb.established;
  totals.packets_sent += c.packets_sent;
  totals.packets_retransmitted += c.packets_retransmitted;
  totals.packets_received += c.packets_received;
  totals.timeouts += c.timeouts;
  totals.queue_drops += c.queue_drops;
  totals.random_losses += c.random_losses;
  totals.delivered_bytes += c.delivered_bytes;
}

uint64_t World::data_packets_in_network() const {
  uint64_t packets = 0;
  for (const auto& slot : slots_) packets += slot->flow ? slot->flow->packets_in_network() : 0;
  return packets;
}

size_t World::memory_bytes() const {
  size_t bytes = sizeof *this + tree_.capacity() * sizeof(Entry);
  for (const Link& link : links_) bytes += link.memory_bytes();
  for (const Flow& flow : flows_) bytes += flow.memory_bytes();
  for (const auto& sw : switches_) bytes += sw->memory_bytes();
  for (const auto& slot : slots_) bytes += sizeof(Slot) + (slot->flow ? slot->flow->memory_bytes() : 0);
  bytes += opened_.capacity() * sizeof(OpenedFlow) + completions_.capacity() * sizeof(Completion);
  return bytes;
}

}  // namespace netbuf
