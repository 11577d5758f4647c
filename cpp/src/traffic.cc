#include "netbuf/traffic.h"

namespace netbuf {

Traffic::Traffic(const TrafficConfig& config, uint64_t seed) {
  Rng seeds(seed ^ 0x7261666669637472);  // another stream than the world's own
  arrivals_.reserve(config.arrivals.size());
  for (const ArrivalsConfig& arrivals : config.arrivals) {
    arrivals_.push_back(Catalogue<ArrivalsRecord>::get(arrivals.kind, "kind").make(arrivals, config, seeds.next()));
  }
  refresh();
}

void Traffic::refresh() {
  next_ = kNever;
  for (size_t i = 0; i < arrivals_.size(); ++i) {
    if (arrivals_[i]->next() < next_) next_ = arrivals_[i]->next(), first_ = i;
  }
}

FlowArrival Traffic::pop() {
  const FlowArrival flow = arrivals_[first_]->pop();
  refresh();
  return flow;
}

}  // namespace netbuf
