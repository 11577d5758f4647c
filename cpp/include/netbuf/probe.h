// A small packet sent now and then, to see how long it takes.
#pragma once
#include <vector>

#include "netbuf/one_way.h"

namespace netbuf {

struct ProbeResult {
  uint64_t sent = 0;
  std::vector<double> delays;    // seconds one way, of those that arrived
};

class Probe final : public OneWay {
 public:
  Probe(const ProbeConfig& config, uint32_t index, Network& network)
      : OneWay(config.path, config.bytes, config.priority, index, network),
        interval_(config.interval_ns),
        next_send_(config.start_ns) {}

  const ProbeResult& result() const { return result_; }

 private:
  Time due() const override { return next_send_; }
  void act(Time now) override;
  void received(Time sent_at, Time now, uint32_t) override { result_.delays.push_back(seconds(now - sent_at)); }

  const Time interval_;
  Time next_send_;
  ProbeResult result_;
};

}  // namespace netbuf
