#include "netbuf/traffic.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace netbuf {

namespace {

// Exponentially distributed; the longest there is when it would be longer.
Time random_gap(Rng& rng, double mean_ns) {
  const double gap = rng.exponential(mean_ns);
  return gap < static_cast<double>(kNever) ? static_cast<Time>(gap) : kNever;
}

}  // namespace

Traffic::Generator::Generator(const ArrivalsConfig& config, const TrafficConfig& traffic, uint64_t seed)
    : config_(config),
      priority_below_(traffic.priority_below),
      senders_(static_cast<uint32_t>(traffic.senders.size())),
      rng_(seed),
      stop_(config.stop_ns) {
  if (config_.kind == "list") {
    if (!config_.list_start_ns.empty()) next_ = config_.list_start_ns.front();
  } else if (config_.kind == "incast") {
    burst_.resize(senders_);
    std::iota(burst_.begin(), burst_.end(), 0u);
    const auto mean = static_cast<double>(config_.interval_ns);
    schedule(config_.start_ns + (config_.random ? random_gap(rng_, mean) : 0));
  } else {
    schedule(config_.start_ns + random_gap(rng_, 1e9 / config_.rate_per_s));
  }
}

int64_t Traffic::Generator::draw_size() {
  const std::vector<double>&p = config_.cumulative, &size = config_.size_bytes;
  const double u = rng_.uniform();
  const size_t i = static_cast<size_t>(std::upper_bound(p.begin(), p.end() - 1, u) - p.begin());
  if (i == 0) return std::max<int64_t>(1, std::llround(size[0]));
  const double share = (u - p[i - 1]) / (p[i] - p[i - 1]);
  return std::max<int64_t>(1, std::llround(size[i - 1] + share * (size[i] - size[i - 1])));
}

FlowArrival Traffic::Generator::pop() {
  FlowArrival flow{next_, 0, 0, 0};
  if (config_.kind == "list") {
    const size_t i = position_++;
    flow = {next_, config_.list_sender[i], config_.list_priority[i], config_.list_size[i]};
    next_ = position_ < config_.list_start_ns.size() ? config_.list_start_ns[position_] : kNever;
    return flow;
  }
  if (config_.kind == "incast") {
    const size_t chosen = position_ + rng_.below(static_cast<uint32_t>(senders_ - position_));
    std::swap(burst_[position_], burst_[chosen]);
    flow.sender = burst_[position_];
    flow.size_bytes = std::llround(config_.size_bytes[0]);
    if (++position_ == config_.fan_in) {
      position_ = 0;
      const auto mean = static_cast<double>(config_.interval_ns);
      schedule(next_ + (config_.random ? std::max<Time>(1, random_gap(rng_, mean)) : config_.interval_ns));
    }
  } else {
    flow.sender = rng_.below(senders_);
    flow.size_bytes = draw_size();
    schedule(next_ + random_gap(rng_, 1e9 / config_.rate_per_s));
  }
  while (flow.priority < priority_below_.size() && flow.size_bytes >= priority_below_[flow.priority]) ++flow.priority;
  return flow;
}

Traffic::Traffic(const TrafficConfig& config, uint64_t seed) {
  Rng seeds(seed ^ 0x7261666669637472);  // another stream than the world's own
  generators_.reserve(config.arrivals.size());
  for (const ArrivalsConfig& arrivals : config.arrivals) generators_.emplace_back(arrivals, config, seeds.next());
  refresh();
}

void Traffic::refresh() {
  next_ = kNever;
  for (size_t i = 0; i < generators_.size(); ++i) {
    if (generators_[i].next() < next_) next_ = generators_[i].next(), first_ = i;
  }
}

FlowArrival Traffic::pop() {
  const FlowArrival flow = generators_[first_].pop();
  refresh();
  return flow;
}

}  // namespace netbuf
