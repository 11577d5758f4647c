#include "netbuf/openings.h"

namespace netbuf {

Openings::Openings(const WorldConfig& config, const StackProfile& profile, uint64_t seed, uint32_t first, Network& network,
                   const std::vector<std::unique_ptr<SharedBuffer>>& switches, Rng* rng, Host& host)
    : first_(first),
      network_(network),
      profile_(profile),
      rng_(rng),
      host_(host),
      template_(config),
      traffic_(config.traffic.front(), seed),
      ideal_(config.traffic.front().senders, network.links) {
  template_.links.clear();
  template_.flows.clear();
  for (ArrivalsConfig& arrivals : template_.traffic.front().arrivals) arrivals = {};
  for (FlowConfig& sender : template_.traffic.front().senders) {
    sender.app = "sized";
    sender.stop_ns = 0;
  }
  for (const auto& crossed : crossed_switches(config.traffic.front().senders, config.switches)) {
    crossed_.emplace_back();
    for (const uint32_t i : crossed) crossed_.back().push_back(switches[i].get());
  }
}

void Openings::run(Time) {
  const FlowArrival arrival = traffic_.pop();
  if (free_slots_.empty()) {
    free_slots_.push_back(static_cast<uint32_t>(slots_.size()));
    slots_.push_back(std::make_unique<Slot>());
  }
  const uint32_t number = free_slots_.back();
  free_slots_.pop_back();
  Slot& slot = *slots_[number];
  FlowConfig& config = template_.traffic.front().senders[arrival.sender];
  config.start_ns = arrival.start;
  config.size_bytes = arrival.size_bytes;
  config.priority = arrival.priority;
  slot.opened = static_cast<uint32_t>(opened_.size());
  slot.completed = false;
  opened_.push_back({arrival.start, arrival.sender, arrival.priority, arrival.size_bytes, 0, number});
  slot.flow.emplace(first_ + number, config, template_, profile_, network_, rng_);
  host_.opened(first_ + number, *slot.flow);
}

void Openings::after_event(uint32_t index, Time now) {
  Slot& slot = *slots_[index - first_];
  Flow& flow = *slot.flow;
  if (!slot.completed) {
    if (flow.completed_at() == kNever) return;
    slot.completed = true;
    const OpenedFlow& opened = opened_[slot.opened];
    const Completion done{slot.opened, flow.completed_at() - opened.start, ideal_s(opened.sender, opened.size_bytes, opened.start)};
    completions_.push_back(done);
    for (SharedBuffer* sw : crossed_[opened.sender]) sw->note_completion(now, opened.priority, seconds(done.fct), done.ideal_s);
  }
  if (!flow.finished()) return;
  OpenedFlow& opened = opened_[slot.opened];
  opened.received_bytes = flow.receiver.counters().delivered_bytes;
  opened.slot = OpenedFlow::kForgotten;
  count(forgotten_, flow);
  slot.flow.reset();
  free_slots_.push_back(index - first_);
  host_.forgotten(index);
}

int64_t Openings::received_bytes(const OpenedFlow& flow) const {
  return flow.slot == OpenedFlow::kForgotten ? flow.received_bytes : slots_[flow.slot]->flow->receiver.counters().delivered_bytes;
}

TrafficTotals Openings::totals() const {
  TrafficTotals sum = forgotten_;
  for (const auto& slot : slots_) {
    if (slot->flow) count(sum, *slot->flow);
  }
  return sum;
}

void Openings::count(TrafficTotals& totals, const Flow& flow) {
  const FlowCounters c = flow.counters();
  totals.connected += flow.sender.tcb.established;
  totals.packets_sent += c.packets_sent;
  totals.packets_retransmitted += c.packets_retransmitted;
  totals.packets_received += c.packets_received;
  totals.timeouts += c.timeouts;
  totals.queue_drops += c.queue_drops;
  totals.random_losses += c.random_losses;
  totals.received_bytes += c.received_bytes;
  totals.delivered_bytes += c.delivered_bytes;
}

uint64_t Openings::data_packets_in_network() const {
  uint64_t packets = 0;
  for (const auto& slot : slots_) packets += slot->flow ? slot->flow->packets_in_network() : 0;
  return packets;
}

size_t Openings::memory_bytes() const {
  size_t bytes = opened_.capacity() * sizeof(OpenedFlow) + completions_.capacity() * sizeof(Completion);
  for (const auto& slot : slots_) bytes += sizeof(Slot) + (slot->flow ? slot->flow->memory_bytes() - sizeof(Flow) : 0);
  return bytes;
}

}  // namespace netbuf
