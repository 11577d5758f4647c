#include "netbuf/link.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace netbuf {

Link::Link(const LinkConfig& config, Rng* rng)
    : delay_(config.delay_ns),
      ns_per_byte_(config.rate_bps > 0 ? 8e9 / config.rate_bps : 0),
      limit_packets_(config.queue_limit_packets > 0 ? config.queue_limit_packets : kNoLimit),
      limit_bytes_(config.queue_limit_bytes > 0 ? config.queue_limit_bytes : kNoLimit),
      loss_on_acks_(config.loss_on_acks),
      loss_(config.loss),
      rng_(rng),
      name_(config.name) {
  if (!config.trace_ns.empty()) {
    schedule_ = Schedule::opportunities;
    opportunity_left_ = kOpportunityBytes;
    tables_ = std::make_shared<Tables>(Tables{config.trace_ns, {}, config.trace_period_ns});
  } else if (!config.schedule_time_ns.empty()) {
    schedule_ = Schedule::stepped;
    tables_ = std::make_shared<Tables>(Tables{config.schedule_time_ns, config.schedule_rate_bps, config.schedule_period_ns});
  }
  if (!config.loss_list.empty()) {
    lossy_ = true;
    loss_list_.assign(config.loss_list.rbegin(), config.loss_list.rend());
  }
  if (!config.ge.empty()) {
    gilbert_elliott_ = lossy_ = true;
    std::copy(config.ge.begin(), config.ge.end(), ge_);
  } else if (loss_ > 0) {
    lossy_ = true;
    until_loss_ = rng_->geometric(loss_);
  }
  pure_delay_ = schedule_ == Schedule::constant && ns_per_byte_ == 0 && !lossy_;
}

void Link::take_out(Time now) {
  const uint32_t end = queue_.tail(), first = queue_.head();
  uint32_t i = first;
  Time waited = 0, start = kNever;
  int64_t bytes = 0;
  double squares = sojourn_s2_;  // summed packet by packet: the same however often it is asked for
  do {
    const uint64_t packed = queue_[i].packed;
    const auto wait = static_cast<Time>(packed >> kSizeBits);
    waited += wait;
    squares += seconds(wait) * seconds(wait);
    bytes += static_cast<int64_t>(packed & kSizeMask);
    start = ++i != end ? queue_[i].start : kNever;
  } while (start <= now);
  queue_.pop_to(i);
  next_start_ = start;
  sojourn_ns_ += waited;
  sojourn_s2_ = squares;
  queued_bytes_ -= bytes;
  stats_.bytes_out += bytes;
  stats_.packets_out += i - first;
}

bool Link::lose() {
  if (const uint64_t number = exposed_++; !loss_list_.empty() && loss_list_.back() == number) {
    loss_list_.pop_back();
    return true;
  }
  if (!gilbert_elliott_) {
    if (loss_ == 0 || until_loss_--) return false;
    until_loss_ = rng_->geometric(loss_);
    return true;
  }
  const bool lost = rng_->uniform() < ge_[bad_state_ ? 3 : 2];
  if (rng_->uniform() < ge_[bad_state_ ? 1 : 0]) bad_state_ = !bad_state_;
  return lost;
}

// Start of step or time of opportunity number index, counted on through the repetitions of the table.
Time Link::table_time(uint64_t index) const {
  const size_t n = tables_->times.size();
  if (index < n) return tables_->times[index];
  if (tables_->period == 0) return kNever;
  return static_cast<Time>(index / n) * tables_->period + tables_->times[index % n];
}

Time Link::schedule_departure(Time now, uint32_t wire_bytes, Time& start) {
  return schedule_ == Schedule::stepped ? stepped_departure(now, wire_bytes, start)
                                        : opportunity_departure(now, wire_bytes, start);
}

Time Link::stepped_departure(Time now, uint32_t wire_bytes, Time& start) {
  if (free_at_ >= kNever) return start = kNever;
  start = std::max(now, free_at_);
  const size_t n = tables_->times.size();
  while (table_time(cursor_ + 1) <= start) ++cursor_;
  while (tables_->rates[cursor_ % n] <= 0) {  // an outage: transmission begins with the next positive rate
    ++cursor_;
    start = std::max(start, table_time(cursor_));
    if (start >= kNever) return start = kNever;
  }
  const auto duration = static_cast<Time>(wire_bytes * (8e9 / tables_->rates[cursor_ % n]) + 0.5);
  arrivals_first_ = lead_ > duration;
  return start + duration;
}

// Skips the opportunities that passed while the queue was empty.
void Link::seek_opportunity(Time now) {
  if ((now <= free_at_ && cursor_ != 0) || table_time(cursor_) >= now) return;
  const size_t n = tables_->times.size();
  const Time period = tables_->period;
  const uint64_t round = period ? static_cast<uint64_t>(now / period) : 0;
  const Time phase = now - static_cast<Time>(round) * period;
  const auto at = std::lower_bound(tables_->times.begin(), tables_->times.end(), phase);
  cursor_ = std::max<uint64_t>(cursor_, round * n + static_cast<uint64_t>(at - tables_->times.begin()));
  while (table_time(cursor_ - 1) >= now) --cursor_;  // an opportunity at the very end of the period before
  opportunity_left_ = kOpportunityBytes;
}

// As Mahimahi's link shell does: what an opportunity has left serves the packets that wait at that moment, and is
// lost when none does. Transmission is instantaneous at the last opportunity that the packet needed.
Time Link::opportunity_departure(Time now, uint32_t wire_bytes, Time& start) {
  seek_opportunity(now);
  int64_t need = wire_bytes;
  while (need > opportunity_left_) {
    need -= opportunity_left_;
    ++cursor_;
    opportunity_left_ = kOpportunityBytes;
  }
  opportunity_left_ -= need;
  const Time at = table_time(cursor_);
  start = std::max(at, now);
  return start;
}

LinkStats Link::stats(Time now) {
  if (managed_) return managed_stats(now);
  drain(now);
  LinkStats s = stats_;
  s.packets_in = s.packets_out + queue_.size() + s.queue_drops;
  s.sojourn_sum = seconds(sojourn_ns_);
  s.sojourn_sum2 = sojourn_s2_;
  Time waited = 0;  // so far, by those still in the queue
  for (uint32_t i = queue_.head(); i != queue_.tail(); ++i) {
    const uint64_t arrived = static_cast<uint64_t>(queue_[i].start) - (queue_[i].packed >> kSizeBits);
    // Waiting times beyond 47 bits have wrapped; on a folded link some will only arrive later.
    waited += std::max<Time>(0, now - static_cast<Time>(arrived & (UINT64_MAX >> kSizeBits)));
  }
  s.queue_integral = s.sojourn_sum + seconds(waited);
  s.busy = seconds(busy_ns_ - std::clamp<Time>(free_at_ - now, 0, busy_ns_));  // less what is still to be served
  return s;
}

double Link::mean_rate_bps() const {
  if (schedule_ != Schedule::stepped) return rate_bps(0);
  const std::vector<Time>& times = tables_->times;
  const Time end = tables_->period ? tables_->period : times.back();
  if (end == 0) return tables_->rates.back();
  double bits = 0;
  for (size_t i = 0; i < times.size(); ++i) bits += tables_->rates[i] * seconds((i + 1 < times.size() ? times[i + 1] : end) - times[i]);
  return bits > 0 ? bits / seconds(end) : tables_->rates.back();
}

double Link::rate_bps(Time now) const {
  switch (schedule_) {
    case Schedule::stepped: {
      uint64_t index = cursor_;
      while (table_time(index + 1) <= now) ++index;
      return tables_->rates[index % tables_->times.size()];
    }
    case Schedule::opportunities:
      return static_cast<double>(tables_->times.size()) * kOpportunityBytes * 8e9 / static_cast<double>(tables_->period);
    case Schedule::constant: break;
  }
  return ns_per_byte_ > 0 ? 8e9 / ns_per_byte_ : std::numeric_limits<double>::infinity();
}

}  // namespace netbuf
