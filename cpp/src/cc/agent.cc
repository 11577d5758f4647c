// The agent's own window: cwnd is what the agent last set. Neither ACKs nor losses move it; only a time-out does, in the sender,
// to one segment (until the agent speaks again). ssthresh is kept as RFC 5681 would have it, for the agent to look at.
#include <algorithm>

#include "netbuf/tcp.h"

namespace netbuf {
namespace {

class Agent final : public CongestionControl {
 public:
  Agent() { owns_window_ = true; }

  void increase_window(Tcb&, const AckEvent&) override {}

  int64_t ssthresh(Tcb& tcb) override {
    return std::max<int64_t>(2 * tcb.mss, static_cast<int64_t>(tcb.in_flight()) * tcb.mss / 2);
  }

  int64_t undo_window(Tcb& tcb, int64_t) override { return tcb.cwnd; }
};

const Entry<CongestionControlRecord> entry{{
    .name = "agent",
    .meaning = "the window is what an environment's agent sets",
    .linux_kernel = make<Agent>,
    .ns3 = make<Agent>,
    .agent = true,
}};

}  // namespace
}  // namespace netbuf
