#include "netbuf/outages.h"

#include <algorithm>

namespace netbuf {

Outages::Outages(const LinkConfig& config) : least_(config.outage_ns), period_(config.schedule_period_ns) {
  if (!config.trace_ns.empty()) {  // from just after one opportunity to the next
    const std::vector<Time>& times = config.trace_ns;
    period_ = config.trace_period_ns;
    add(times.back() - period_ + 1, times.front());
    for (size_t i = 1; i < times.size(); ++i) add(times[i - 1] + 1, times[i]);
    return;
  }
  const std::vector<Time>& times = config.schedule_time_ns;
  const auto out = [&](size_t i) { return config.schedule_rate_bps[i] <= 0; };
  const size_t n = times.size();
  Time begin = 0;
  if (period_ > 0 && out(n - 1)) {             // goes on from the repetition before
    size_t first = n - 1;
    while (first > 0 && out(first - 1)) --first;
    begin = times[first] - period_;
  }
  bool lasts = begin < 0 || out(0);
  for (size_t i = 0; i < n; ++i) {
    if (out(i) && !lasts) begin = times[i];
    if (!out(i) && lasts) add(begin, times[i]);
    lasts = out(i);
  }
  if (lasts && period_ == 0) add(begin, kNever);
}

void Outages::add(Time begin, Time end) {
  if (end > begin && end - begin >= least_) stretches_.push_back({begin, end});
}

Outages::Stretch Outages::following(Time at) const {
  if (stretches_.empty() || at >= kNever) return {kNever, kNever};
  const Time round = period_ > 0 ? at / period_ * period_ : 0;
  const auto found = std::upper_bound(stretches_.begin(), stretches_.end(), at - round,
                                      [](Time t, const Stretch& s) { return t < s.end; });
  if (found != stretches_.end()) return {round + found->begin, std::min(kNever, round + found->end)};
  if (period_ == 0) return {kNever, kNever};
  return {round + period_ + stretches_.front().begin, round + period_ + stretches_.front().end};
}

}  // namespace netbuf
