// How long a sender's flow would take if it were alone: propagation there and back, and the longest that a link of the
// way there takes for its bytes: one of varying rate from when the handshake can be over, a round trip after the start,
// for no byte sets out before. Over a relay, from its client's SYN: twice there and back on either leg.
#pragma once
#include <vector>

#include "netbuf/link.h"

namespace netbuf {

class IdealTimes {
 public:
  // Links must outlive it.
  IdealTimes(const std::vector<FlowConfig>& senders, const std::vector<Link>& links);
  double seconds_of(uint32_t sender, int64_t size_bytes, Time start) const;
  // Propagation there and back of the leg to a relay, and of the one from it; without a relay the latter is the whole.
  Time first_leg(uint32_t sender) const { return ways_[sender].first; }
  Time last_leg(uint32_t sender) const { return ways_[sender].last; }

 private:
  struct Way {
    Time delays = 0;                         // before the first byte can set out
    Time first = 0, last = 0;
    double rtt = 0, seconds_per_byte = 0;    // the latter of the slowest link of constant rate
    std::vector<const Link*> varying;        // the links of the way there whose rate varies
  };

  std::vector<Way> ways_;                    // by sender
};

// A sender, and the leg from its relay where it has one.
std::vector<const FlowConfig*> legs_of(const FlowConfig& sender);

// The switches that each sender's data cross, by their numbers.
std::vector<std::vector<uint32_t>> crossed_switches(const std::vector<FlowConfig>& senders,
                                                    const std::vector<SwitchConfig>& switches);

}  // namespace netbuf
