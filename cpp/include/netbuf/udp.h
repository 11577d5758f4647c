// A source of datagrams that heeds nothing: constant rate, or on and off, whatever becomes of what it sends.
#pragma once
#include <algorithm>

#include "netbuf/one_way.h"
#include "netbuf/rng.h"

namespace netbuf {

// Cumulative.
struct UdpCounters {
  uint64_t sent = 0, received = 0, queue_drops = 0, random_losses = 0;
  double delay_sum = 0, delay_sum2 = 0;      // seconds one way, seconds^2, over those received
  Time delay_min = kNever, delay_max = 0;
};

// The gap between packets is bytes / rate, to the nearest nanosecond, as ns-3's UdpClient and OnOffApplication have it.
// A source that is always on sends its first packet when it starts; one with periods sends a packet when it has been on
// for as long as its bits take, and what is left of an on period that ends before that counts in the next one; with
// ns-3's profile the bits of payload that it was long enough for, whole ones, as OnOffApplication does.
class UdpSource final : public OneWay {
 public:
  UdpSource(const UdpConfig& config, const StackProfile& profile, uint64_t seed, uint32_t index, Network& network);

  const UdpCounters& counters() const { return counters_; }

 private:
  Time due() const override { return due_; }
  void act(Time now) override;
  void received(Time sent_at, Time now) override;
  void note_loss(Link::Fate fate) override;
  void begin(Time at);                       // an on period
  void plan();
  Time sends_at() const;                     // after the start of the on period

  const Time on_, off_, stop_;
  const bool random_;
  const Time gap_;
  const uint32_t counted_bits_;              // of payload, in a packet; 0: time is counted
  const double bits_per_ns_;                 // of payload
  Rng rng_;
  UdpCounters counters_;
  Time phase_start_ = 0, phase_on_ = 0, phase_off_ = 0;  // the on period, and the rest after it
  Time on_before_ = 0;                       // time spent on before it
  Time since_ = 0;                           // the last packet or, if later, the start of the on period
  double bits_before_ = 0;                   // of the next packet, from on periods before it
  Time due_ = kNever;
  bool sends_ = false;                       // when it is due; otherwise an on period begins
};

}  // namespace netbuf
