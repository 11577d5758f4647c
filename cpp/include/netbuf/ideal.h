// How long a sender's flow would take if it were alone: propagation there and back, and the longest that a link of the
// way there takes for its bytes: one of varying rate from when the handshake can be over, a round trip after the start,
// for no byte sets out before. Over a relay, from its client's SYN: twice there and back on either leg, and a link of varying
// rate from when the first byte can be there.
#pragma once
#include <vector>

#include "netbuf/link.h"

namespace netbuf {

class IdealTimes {
 public:
  // Links must outlive it.
  IdealTimes(const std::vector<FlowConfig>& senders, const std::vector<Link>& links);
  double seconds_of(uint32_t sender, int64_t size_bytes, Time start) const;
  // How long after its client's SYN a relayed flow's legs begin: from the relay when the SYN is there, from the sender when
  // the relay's own SYN is, which follows the client's request.
  Time relay_opens(uint32_t sender) const { return ways_[sender].relay_opens; }
  Time sender_opens(uint32_t sender) const { return ways_[sender].sender_opens; }

 private:
  struct Varying {
    const Link* link;
    Time reached;                            // after the start, by the first byte at the earliest
  };
  struct Way {
    Time relay_opens = 0, sender_opens = 0;
    double rtt = 0, seconds_per_byte = 0;    // the latter of the slowest link of constant rate
    std::vector<Varying> varying;            // the links of the way there whose rate varies
  };

  std::vector<Way> ways_;                    // by sender
};

// A sender, and the leg from its relay where it has one.
std::vector<const FlowConfig*> legs_of(const FlowConfig& sender);

// The switches that each sender's data cross, by their numbers.
std::vector<std::vector<uint32_t>> crossed_switches(const std::vector<FlowConfig>& senders,
                                                    const std::vector<SwitchConfig>& switches);

}  // namespace netbuf
