// The window is what an environment's agent sets (steered_window.h).
#include "cc/steered_window.h"

namespace netbuf {
namespace {

class Agent final : public SteeredWindow {
 public:
  void take_in(Tcb& tcb, const AckEvent& ack) override { take(*this, tcb, ack); }
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
