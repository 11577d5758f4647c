// Links, slowly and obviously correctly: every packet is looked at whenever something is asked, steps are walked one by
// one, in integers, and opportunities are played one after the other.
#pragma once
#include <deque>
#include <vector>

#include "netbuf/link.h"
#include "worlds.h"

namespace slow {

using namespace netbuf;

struct Accepted {
  Time arrived, start, end;
  uint32_t bytes;
};

// The steps of a rate, as a LinkConfig has them; whole bit/s.
class Steps {
 public:
  explicit Steps(const LinkConfig& config) : config_(config) {}

  void at(Time t, int64_t& rate, Time& next) const {
    const auto& times = config_.schedule_time_ns;
    const Time period = config_.schedule_period_ns;
    for (Time base = period ? t / period * period : 0;; base += period) {
      for (size_t i = 0; i < times.size(); ++i) {
        const bool last = i + 1 == times.size();
        next = !last ? base + times[i + 1] : period ? base + period : kNever;
        rate = static_cast<int64_t>(config_.schedule_rate_bps[i]);
        if (t < next) return;
      }
    }
  }
  Time begin(Time t) const {
    int64_t rate;
    for (Time next; t < kNever; t = next) {
      at(t, rate, next);
      if (rate > 0) break;
    }
    return t;
  }
  // When bits times 10^9 have been carried, to the nearest nanosecond, halves up.
  Time end(Time t, __int128 need) const {
    while (t < kNever) {
      int64_t rate;
      Time next;
      at(t, rate, next);
      const __int128 room = static_cast<__int128>(rate) * (next - t);
      if (rate > 0 && need <= room) return t + static_cast<Time>((2 * need + rate) / (2 * static_cast<__int128>(rate)));
      need -= room;
      t = next;
    }
    return kNever;
  }
  double bits(Time from, Time to) const {
    __int128 sum = 0;
    while (from < to) {
      int64_t rate;
      Time next;
      at(from, rate, next);
      sum += static_cast<__int128>(rate) * (std::min(to, next) - from);
      from = next;
    }
    return static_cast<double>(sum) * 1e-9;
  }

 private:
  const LinkConfig& config_;
};

// Lindley's recursion: a packet waits for as long as its predecessor's wait and service outlast the gap between them.
class Queue {
 public:
  explicit Queue(const LinkConfig& config) : config_(config), steps_(config_) {}

  bool arrive(Time now, uint32_t bytes, Time& departs) {
    int64_t waiting = 0, waiting_bytes = 0;
    for (const Accepted& p : packets_) {
      if (p.start > now) ++waiting, waiting_bytes += p.bytes;
    }
    const bool busy = !packets_.empty() && packets_.back().end > now;
    if (busy && config_.queue_limit_packets > 0 && waiting + 1 > config_.queue_limit_packets) return false;
    if (busy && config_.queue_limit_bytes > 0 && waiting_bytes + bytes > config_.queue_limit_bytes) return false;
    Time wait = 0;
    if (!packets_.empty()) {
      const Accepted& last = packets_.back();
      wait = std::max<Time>(0, (last.start - last.arrived) + (last.end - last.start) - (now - last.arrived));
    }
    const Time start = stepped() ? steps_.begin(now + wait) : now + wait;
    departs = service_end(start, bytes);
    packets_.push_back({now, start, departs, bytes});
    return true;
  }

  void compare(Link& link, Time now) const {
    uint64_t out = 0, queued = 0;
    int64_t bytes = 0, queued_bytes = 0;
    Time waited = 0, integral = 0;
    double squares = 0, sent = 0;
    for (const Accepted& p : packets_) {
      if (p.start <= now) {
        ++out, bytes += p.bytes, waited += p.start - p.arrived;
        squares += seconds(p.start - p.arrived) * seconds(p.start - p.arrived);
        sent += p.end <= now ? p.bytes : part(p, now);
      } else {
        ++queued, queued_bytes += p.bytes;
      }
      integral += std::min(p.start, now) - p.arrived;
    }
    const LinkStats s = link.stats(now);
    CHECK_EQ(s.packets_out, out);
    CHECK_EQ(s.bytes_out, bytes);
    CHECK_EQ(link.queue_packets(), queued);
    CHECK_EQ(link.queue_bytes(), queued_bytes);
    CHECK_EQ(s.sojourn_sum, seconds(waited));
    CHECK_NEAR(s.sojourn_sum2, squares, 1e-9 * (1 + squares));
    CHECK_NEAR(s.queue_integral, seconds(integral), 1e-9 * (1 + seconds(integral)));
    CHECK_NEAR(s.bytes_sent, sent, 1e-6 + 2e-9 * fastest() / 8);
  }
  const std::vector<Accepted>& packets() const { return packets_; }

 private:
  bool stepped() const { return !config_.schedule_time_ns.empty(); }
  Time service_end(Time start, uint32_t bytes) const {
    if (stepped()) return start >= kNever ? kNever : steps_.end(start, static_cast<__int128>(bytes) * 8'000'000'000);
    return start + (config_.rate_bps > 0 ? static_cast<Time>(bytes * (8e9 / config_.rate_bps) + 0.5) : 0);
  }
  double part(const Accepted& p, Time now) const {  // bytes of it that have left by now
    if (stepped()) return std::min<double>(p.bytes, steps_.bits(p.start, now) / 8);
    return p.bytes * (seconds(now - p.start) / seconds(p.end - p.start));
  }
  double fastest() const {
    double rate = config_.rate_bps;
    for (const double one : config_.schedule_rate_bps) rate = std::max(rate, one);
    return rate;
  }

  LinkConfig config_;
  Steps steps_;
  std::vector<Accepted> packets_;
};

// Mahimahi's link shell: at each opportunity 1504 bytes leave, of the packet in transit and then of those that came before
// it, each with its device's header; what is left is lost. kNever: the queue was full.
inline std::vector<Time> shell(const LinkConfig& config, const std::vector<Time>& arrivals,
                               const std::vector<uint32_t>& sizes) {
  std::vector<Time> departures(arrivals.size(), kNever);
  std::deque<size_t> queue;
  size_t next = 0, in_transit = SIZE_MAX;
  int64_t left = 0;
  const size_t n = config.trace_ns.size();
  for (size_t k = 0; next < arrivals.size() || !queue.empty() || left > 0; ++k) {
    const Time at = static_cast<Time>(k / n) * config.trace_period_ns + config.trace_ns[k % n];
    for (; next < arrivals.size() && arrivals[next] < at; ++next) {
      if (config.queue_limit_packets == 0 || static_cast<int64_t>(queue.size()) < config.queue_limit_packets) {
        queue.push_back(next);
      }
    }
    for (int64_t budget = 1504; budget > 0;) {
      if (left == 0) {
        if (queue.empty()) break;
        in_transit = queue.front();
        left = sizes[in_transit] + config.trace_packet_bytes;
        queue.pop_front();
      }
      const int64_t used = std::min(budget, left);
      budget -= used;
      left -= used;
      if (left == 0) departures[in_transit] = at;
    }
  }
  return departures;
}

}  // namespace slow
