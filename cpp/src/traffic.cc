#include "netbuf/traffic.h"

#include <algorithm>

namespace netbuf {

Traffic::Traffic(const TrafficConfig& config, uint64_t seed, const std::vector<Time>& delays) {
  Rng seeds(seed ^ 0x7261666669637472);  // another stream than the world's own
  arrivals_.reserve(config.arrivals.size());
  for (const ArrivalsConfig& arrivals : config.arrivals) {
    const ArrivalsRecord& record = Catalogue<ArrivalsRecord>::get(arrivals.kind, "kind");
    arrivals_.push_back(record.make(arrivals, config, seeds.next(), delays));
    listens_.push_back(record.listens);
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
  FlowArrival flow = arrivals_[first_]->pop();
  flow.stream = static_cast<uint32_t>(first_);
  refresh();
  return flow;
}

std::vector<PageLoad> Traffic::pages() const {
  std::vector<PageLoad> all;
  for (const auto& one : arrivals_) {
    if (const std::vector<PageLoad>* pages = one->pages()) all.insert(all.end(), pages->begin(), pages->end());
  }
  std::stable_sort(all.begin(), all.end(), [](const PageLoad& a, const PageLoad& b) {
    return a.start + a.load < b.start + b.load;
  });
  return all;
}

}  // namespace netbuf
