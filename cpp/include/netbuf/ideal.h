// How long a sender's flow would take if it were alone: propagation there and back, and the longest that a link of the way there takes
// for its bytes: one of varying rate from when the handshake can be over, a round trip after the start, for no byte sets out before.
#pragma once
#include <vector>

#include "netbuf/link.h"

namespace netbuf {

class IdealTimes {
 public:
  // Links must outlive it.
  IdealTimes(const std::vector<FlowConfig>& senders, const std::vector<Link>& links);
  double seconds_of(uint32_t sender, int64_t size_bytes, Time start) const;

 private:
  std::vector<Time> base_rtt_;                         // by sender
  std::vector<double> base_rtt_s_, seconds_per_byte_;  // by sender; the latter of the slowest link of constant rate
  std::vector<std::vector<const Link*>> varying_;      // by sender: the links of the way there whose rate varies
};

// The switches that each sender's data cross, by their numbers.
std::vector<std::vector<uint32_t>> crossed_switches(const std::vector<FlowConfig>& senders, const std::vector<SwitchConfig>& switches);

}  // namespace netbuf
