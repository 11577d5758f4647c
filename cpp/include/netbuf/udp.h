// Sources of datagrams that heed nothing, whatever becomes of what they send: constant rate, on and off, random, replayed.
#pragma once
#include <algorithm>
#include <memory>
#include <vector>

#include "netbuf/one_way.h"
#include "netbuf/rng.h"

namespace netbuf {

// Cumulative.
struct UdpCounters {
  uint64_t sent = 0, received = 0, queue_drops = 0, random_losses = 0;
  uint64_t sent_bytes = 0, received_bytes = 0;
  double delay_sum = 0, delay_sum2 = 0;      // seconds one way, seconds^2, over those received
  Time delay_min = kNever, delay_max = 0;
};

class UdpSource : public OneWay {
 public:
  const UdpCounters& counters() const { return counters_; }

 protected:
  UdpSource(const UdpConfig& config, uint32_t index, Network& network)
      : OneWay(config.path, config.bytes, config.priority, index, network),
        stop_(config.stop_ns > 0 ? config.stop_ns : kNever) {}

  Time due() const final { return due_; }
  void set_due(Time at) { due_ = at >= stop_ ? kNever : at; }
  void send(Time now, uint32_t bytes) {
    counters_.sent_bytes += bytes;
    launch(now, bytes);
  }

  UdpCounters counters_;

 private:
  void received(Time sent_at, Time now, uint32_t bytes) final;
  void note_loss(Link::Fate fate) final;

  const Time stop_;
  Time due_ = kNever;
};

// The one that a configuration describes.
std::unique_ptr<UdpSource> make_udp_source(const UdpConfig& config, const StackProfile& profile, uint64_t seed,
                                           uint32_t index, Network& network);

}  // namespace netbuf
