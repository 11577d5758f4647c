// Drives a queue discipline directly: arrivals at one end, a server of fixed rate at the other, and accounts of both.
#pragma once
#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <vector>

#include "netbuf/queue_discipline.h"

struct Server final : netbuf::DropSink {
  using Time = netbuf::Time;

  Server(const char* name, std::map<std::string, double> parameters, double rate_bps, int64_t limit_packets = 1000,
         int64_t limit_bytes = std::numeric_limits<int64_t>::max(), uint64_t seed = 1)
      : rng(seed), rate(rate_bps), limit_packets(limit_packets), limit_bytes(limit_bytes) {
    queue = netbuf::make_discipline(name, parameters, {limit_packets, limit_bytes, rate_bps, {}, this, &rng, [this](const netbuf::Queued& item) {
                                       const uint64_t host = host_of.contains(item.owner) ? host_of[item.owner] : 1000 + item.owner;
                                       return netbuf::PacketEnds{host, item.owner + 1000};
                                     }});
  }

  void dropped(const netbuf::Queued& item) override {
    ++drops;
    dropped_bytes += item.bytes;
    ++drops_of[item.owner];
    drop_times.push_back(now);
  }
  void marked(const netbuf::Queued&) override { ++marks; }
  // A packet of an owner at time t; time never runs backwards.
  void arrive(Time t, uint32_t owner = 0, uint32_t bytes = 1500) {
    run(t);
    now = t;
    netbuf::Queued item{};
    item.packet.segment = static_cast<uint32_t>(arrived);
    item.arrived = t;
    item.owner = owner;
    item.bytes = bytes;
    item.ecn = ecn;
    item.l4s = l4s;
    item.priority = priority;
    ++arrived;
    arrived_bytes += bytes;
    queue->enqueue(t, item);
    within_limits = within_limits && queue->packets() <= limit_packets && queue->bytes() <= limit_bytes;
    longest = std::max(longest, queue->packets());
    if (idle || held) serve(t);
  }
  // All that the server does up to and including time t.
  void run(Time t) {
    while (!idle && free_at <= t) serve(free_at);
    now = std::max(now, t);
  }
  // Arrivals of one owner at a constant rate (Poisson if random) over [from, to).
  void load(Time from, Time to, double bps, bool random = false, uint32_t owner = 0, uint32_t bytes = 1500) {
    const double gap = bytes * 8e9 / bps;
    for (double t = static_cast<double>(from); t < static_cast<double>(to);
         t += random ? arrivals.exponential(gap) : gap) {
      arrive(static_cast<Time>(t), owner, bytes);
    }
  }
  double mean_sojourn() const { return sent ? sojourn / static_cast<double>(sent) : 0; }  // seconds
  void forget() {
    sent = drops = 0;
    sojourn = longest_sojourn = 0;
    drop_times.clear();
    sent_of.clear();
    drops_of.clear();
    sojourn_of.clear();
  }
  bool conserved() const {
    return arrived_bytes == sent_bytes + dropped_bytes + queue->bytes() &&
           total_sent + total_drops() + queue->packets() == arrived;
  }
  uint64_t total_drops() const { return arrived - total_sent - queue->packets(); }

  std::unique_ptr<netbuf::QueueDiscipline> queue;
  netbuf::Rng rng, arrivals{99};
  double rate;
  int64_t limit_packets, limit_bytes;
  Time now = 0, free_at = 0;
  bool idle = true, held = false, within_limits = true;
  bool ecn = false;             // whether arrivals can be marked
  bool l4s = false;             // with ecn: whether they are ECT(1)
  uint8_t priority = 0;         // of arrivals
  std::map<uint32_t, uint64_t> host_of;  // where owners' packets come from; the others have hosts of their own
  uint64_t marks = 0;
  uint64_t arrived = 0, sent = 0, total_sent = 0, drops = 0;
  int64_t arrived_bytes = 0, sent_bytes = 0, dropped_bytes = 0;
  uint32_t longest = 0;
  double sojourn = 0, longest_sojourn = 0;
  std::vector<Time> drop_times;
  std::map<uint32_t, uint64_t> sent_of, drops_of;
  std::map<uint32_t, double> sojourn_of;
  std::function<void(const netbuf::Queued&)> on_sent;

 private:
  void serve(Time t) {
    now = t;
    netbuf::Queued item;
    const Time ready = queue->packets() > 0 ? queue->ready(t) : t;
    held = ready > t;             // nothing may leave yet
    if (held) {
      free_at = ready;
      idle = false;
      return;
    }
    idle = !queue->dequeue(t, item);
    if (idle) return;
    free_at = t + static_cast<Time>(item.bytes * 8e9 / rate + 0.5);
    const double waited = netbuf::seconds(t - item.arrived);
    sojourn += waited;
    longest_sojourn = std::max(longest_sojourn, waited);
    sojourn_of[item.owner] += waited;
    ++sent;
    ++total_sent;
    ++sent_of[item.owner];
    sent_bytes += item.bytes;
    if (on_sent) on_sent(item);
  }
};

// Random bursts of packets of several owners, sizes and ECN codepoints; whether nothing was lost track of nor a limit
// passed.
inline bool survives_anything(const char* name, const std::map<std::string, double>& parameters, int64_t limit_packets,
                              int64_t limit_bytes, uint64_t seed) {
  Server server(name, parameters, 10e6, limit_packets, limit_bytes, seed);
  netbuf::Rng rng(seed + 1000), codepoints(seed + 2000);
  double t = 0;
  bool good = true;
  uint64_t reported = 0;
  for (int i = 0; i < 20'000 && good; ++i) {
    t += rng.exponential(rng.uniform() < 0.01 ? 100e6 : 0.7e6);
    server.ecn = codepoints.below(2) > 0;
    server.l4s = server.ecn && codepoints.below(2) > 0;
    server.arrive(static_cast<netbuf::Time>(t), rng.below(8), 40 + rng.below(1461));
    reported = server.drops;
    good = server.within_limits && server.conserved() && reported == server.total_drops();
  }
  server.run(static_cast<netbuf::Time>(t) + 10'000 * netbuf::kSecond);
  return good && server.conserved() && server.queue->packets() == 0 && server.queue->bytes() == 0 && server.idle;
}
