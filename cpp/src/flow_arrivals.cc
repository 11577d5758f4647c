#include "netbuf/flow_arrivals.h"

#include <algorithm>

#include "netbuf/relay.h"

namespace netbuf {

namespace {

std::vector<Time> request_delays(const std::vector<FlowConfig>& senders, const std::vector<Link>& links) {
  std::vector<Time> delays;
  for (const FlowConfig& sender : senders) {
    Time& delay = delays.emplace_back(0);
    if (!sender.relay.empty()) continue;     // whose legs begin when a request has let them
    for (const uint32_t link : sender.return_path) delay += links[link].delay();
  }
  return delays;
}

}  // namespace

FlowArrivals::FlowArrivals(const WorldConfig& config, uint64_t seed, uint32_t first, Network& network,
                           const std::vector<std::unique_ptr<SharedBuffer>>& switches, Rng* rng, Host& host)
    : first_(first),
      network_(network),
      rng_(rng),
      host_(host),
      template_(config),
      traffic_(config.traffic.front(), seed, request_delays(config.traffic.front().senders, network.links)),
      ideal_(config.traffic.front().senders, network.links) {
  template_.links.clear();
  template_.flows.clear();
  template_.hosts.clear();
  for (ArrivalsConfig& arrivals : template_.traffic.front().arrivals) arrivals = {};
  const auto prepare = [&](FlowConfig& flow) {
    flow.app = "sized";
    flow.stop_ns = 0;
    if (flow.own_control) return;
    flow.own_control = [make = prepare_congestion_control(flow.cc, config.stack, flow.cc_parameters)](Stack) { return make(); };
  };
  for (FlowConfig& sender : template_.traffic.front().senders) {
    prepare(sender);
    std::for_each(sender.relay.begin(), sender.relay.end(), prepare);
  }
  for (const auto& crossed : crossed_switches(config.traffic.front().senders, config.switches)) {
    crossed_.emplace_back();
    for (const uint32_t i : crossed) crossed_.back().push_back(switches[i].get());
  }
}

uint32_t FlowArrivals::open(FlowConfig& config, const FlowArrival& arrival, Time start, bool relayed) {
  if (free_slots_.empty()) {
    free_slots_.push_back(static_cast<uint32_t>(slots_.size()));
    slots_.push_back(std::make_unique<Slot>());
  }
  const uint32_t number = free_slots_.back();
  free_slots_.pop_back();
  Slot& slot = *slots_[number];
  config.start_ns = start;
  config.size_bytes = arrival.size_bytes;
  config.priority = arrival.priority;
  slot.opened = static_cast<uint32_t>(opened_.size());
  slot.completed = false;
  slot.relayed = relayed;
  slot.stream = arrival.stream;
  slot.user = arrival.user;
  slot.told = relayed || !traffic_.listens(arrival.stream);
  slot.flow.emplace(first_ + number, config, template_, network_, rng_);
  return number;
}

// Over a relay both legs begin when a client's request would have let them (IdealTimes). Who sends data opens connections here.
void FlowArrivals::run(Time) {
  const FlowArrival arrival = traffic_.pop();
  FlowConfig& config = template_.traffic.front().senders[arrival.sender];
  if (config.relay.empty()) [[likely]] {
    const uint32_t number = open(config, arrival, arrival.start, false);
    opened_.push_back({arrival.start, arrival.sender, arrival.priority, arrival.size_bytes, 0, number});
    return host_.opened(first_ + number, *slots_[number]->flow);
  }
  FlowConfig& relay = config.relay.front();
  const uint32_t up = open(config, arrival, arrival.start + ideal_.sender_opens(arrival.sender), true);
  const uint32_t down = open(relay, arrival, arrival.start + ideal_.relay_opens(arrival.sender), false);
  opened_.push_back({arrival.start, arrival.sender, arrival.priority, arrival.size_bytes, 0, down});
  make_relay({&*slots_[up]->flow, first_ + up}, {&*slots_[down]->flow, first_ + down}, relay.relay_buffer_bytes,
             [this](uint32_t index) { host_.woken_by_relay(index); });
  for (const uint32_t number : {std::min(up, down), std::max(up, down)}) {
    host_.opened(first_ + number, *slots_[number]->flow);
  }
}

void FlowArrivals::after_event(uint32_t index, Time now) {
  Slot& slot = *slots_[index - first_];
  Flow& flow = *slot.flow;
  if (flow.sender.failed()) [[unlikely]] note_failure(slot);
  if (!slot.completed) {
    if (flow.completed_at() == kNever) {
      if (flow.sender.failed()) {
        if (!slot.told) [[unlikely]] note_end(slot, now);
        if (flow.finished()) forget(index);
      }
      return;
    }
    slot.completed = true;
    if (!slot.told) [[unlikely]] note_end(slot, now);
    if (!slot.relayed) {
      const OpenedFlow& opened = opened_[slot.opened];
      const Completion done{slot.opened, flow.completed_at() - opened.start,
                            ideal_s(opened.sender, opened.size_bytes, opened.start)};
      completions_.push_back(done);
      for (SharedBuffer* sw : crossed_[opened.sender]) {
        sw->note_completion(now, opened.priority, seconds(done.fct), done.ideal_s);
      }
    }
  }
  if (flow.finished()) forget(index);
}

// A flow over a relay fails as a whole.
void FlowArrivals::note_failure(Slot& slot) {
  OpenedFlow& opened = opened_[slot.opened];
  if (!opened.failed) opened.failed = true, ++failed_;
}

void FlowArrivals::note_end(Slot& slot, Time now) {
  slot.told = true;
  traffic_.ended(slot.stream, slot.user, now, !slot.completed);
  host_.awaited();
}

void FlowArrivals::forget(uint32_t index) {
  Slot& slot = *slots_[index - first_];
  if (!slot.relayed) {
    OpenedFlow& opened = opened_[slot.opened];
    opened.received_bytes = slot.flow->receiver.counters().delivered_bytes;
    opened.slot = OpenedFlow::kForgotten;
  }
  count(forgotten_, slot);
  slot.flow->path.forget();
  slot.flow.reset();
  free_slots_.push_back(index - first_);
  host_.forgotten(index);
}

int64_t FlowArrivals::received_bytes(const OpenedFlow& flow) const {
  return flow.slot == OpenedFlow::kForgotten ? flow.received_bytes
                                             : slots_[flow.slot]->flow->receiver.counters().delivered_bytes;
}

TrafficTotals FlowArrivals::totals() const {
  TrafficTotals sum = forgotten_;
  sum.failed = failed_;
  for (const auto& slot : slots_) {
    if (slot->flow) count(sum, *slot);
  }
  return sum;
}

void FlowArrivals::count(TrafficTotals& totals, const Slot& slot) {
  const Flow& flow = *slot.flow;
  const FlowCounters c = flow.counters();
  totals.packets_sent += c.packets_sent;
  totals.packets_retransmitted += c.packets_retransmitted;
  totals.packets_received += c.packets_received;
  totals.timeouts += c.timeouts;
  totals.syn_timeouts += c.syn_timeouts;
  totals.queue_drops += c.queue_drops;
  totals.random_losses += c.random_losses;
  totals.marks += c.marks;
  totals.mark_responses += c.mark_responses;
  if (slot.relayed) return;
  totals.connected += flow.sender.tcb.established;
  totals.received_bytes += c.received_bytes;
  totals.delivered_bytes += c.delivered_bytes;
}

uint64_t FlowArrivals::data_packets_in_network() const {
  uint64_t packets = 0;
  for (const auto& slot : slots_) packets += slot->flow ? slot->flow->packets_in_network() : 0;
  return packets;
}

size_t FlowArrivals::memory_bytes() const {
  size_t bytes = opened_.capacity() * sizeof(OpenedFlow) + completions_.capacity() * sizeof(Completion);
  for (const auto& slot : slots_) bytes += sizeof(Slot) + (slot->flow ? slot->flow->memory_bytes() - sizeof(Flow) : 0);
  return bytes;
}

}  // namespace netbuf
