// What passes the sender's end of a route, read from TCP headers:
// its segments and their acknowledgements, as the sender has them.
#pragma once
#include <cstdint>
#include <unordered_map>

#include "netbuf/ring.h"
#include "netbuf/types.h"

namespace netbuf {

// Of one packet's TCP header.
struct TapSeen {
  uint32_t ports = 0;              // of the route's sender << 16 | of its receiver
  uint32_t seq = 0, ack = 0;
  uint32_t payload = 0;            // bytes
  uint32_t sack_end = 0;           // of the block that the answer reports first: the newest
  bool tcp = false, syn = false, fin = false, reset = false, echo = false, sacked = false;  // echo: ECE

  bool data() const { return payload > 0; }
  // backward: from the receiver of the route to its sender. No TCP: nothing is seen.
  static TapSeen read(const uint8_t* packet, uint32_t length, bool backward);
};

// Cumulative. Packets are those with payload from the sender to the receiver,
// ACKs all answers without payload but the SYN's.
struct TapCounters {
  uint64_t packets_sent = 0, packets_retransmitted = 0, packets_received = 0, queue_drops = 0, random_losses = 0,
           acks = 0;
  uint64_t marks = 0;                              // of the packets received (ECN)
  int64_t sent_bytes = 0, received_bytes = 0;      // of payload, with what was sent again
  int64_t acked_bytes = 0;                         // newly, in order
  double in_flight_sum = 0;                        // bytes sent and not acknowledged, over ACKs
  uint64_t rtt_count = 0;
  Time rtt_sum = 0, rtt_min = kNever, rtt_last = kNever;  // of the newest segment that an answer acknowledges
  Time first_sent = 0, last_sent = 0, first_ack = 0, last_ack = 0;
};

class Tap {
 public:
  void sent(Time now, const TapSeen& seen);                // by the sender
  void received(const TapSeen& seen, bool marked = false); // by the receiver
  void dropped(const TapSeen& seen) { counters_.queue_drops += seen.data(); }
  void lost(const TapSeen& seen) { counters_.random_losses += seen.data(); }
  void answered(Time now, const TapSeen& seen);            // an answer reaches the sender
  const TapCounters& counters() const { return counters_; }
  int64_t in_flight_bytes() const;                         // sent and not acknowledged in order, over all connections
  Time interval_rtt_min = kNever;                          // since somebody set it so
  uint64_t data_reached() const { return counters_.packets_received; }

 private:
  struct Segment {
    uint32_t end;
    bool repeated, sacked;
    Time at;                       // when it was last sent
  };
  struct Connection {
    uint32_t una = 0, next = 0;
    Ring<Segment> segments;
  };

  void note_rtt(Time now, const Segment& segment);

  std::unordered_map<uint32_t, Connection> connections_;
  TapCounters counters_;
};

}  // namespace netbuf
