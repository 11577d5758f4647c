// A small packet sent now and then, to see how long it takes.
#pragma once
#include <queue>
#include <vector>

#include "netbuf/event_source.h"
#include "netbuf/path.h"

namespace netbuf {

struct ProbeResult {
  uint64_t sent = 0;
  std::vector<double> delays;    // seconds one way, of those that arrived
};

class Probe final : public EventSource {
 public:
  Probe(const ProbeConfig& config, uint32_t index, Network& network)
      : config_(config), owner_(kProbeOwner + index), network_(network), next_send_(config.start_ns) {}

  Time next() const override { return travelling_.empty() ? next_send_ : std::min(next_send_, travelling_.top().time); }
  void run(Time now) override;
  void resume(const Queued& item, Time arrival) { travelling_.push({arrival, item.packet.sent_at, item.hop + 1u}); }
  const ProbeResult& result() const { return result_; }

 private:
  struct Travelling {
    Time time, sent_at;                      // reaches hop then
    uint32_t hop;
    bool operator>(const Travelling& other) const { return time > other.time; }
  };
  void move(const Travelling& packet);

  ProbeConfig config_;
  uint32_t owner_;
  Network& network_;
  ProbeResult result_;
  std::priority_queue<Travelling, std::vector<Travelling>, std::greater<>> travelling_;
  Time next_send_;
};

}  // namespace netbuf
