// The agent's own: Nuwa, whose k, target and window an agent of the kind "receiver" sets (agents/receiver.cc).
#include "receiver_controls/nuwa.h"

namespace netbuf {
namespace {

const Entry<ReceiverControlRecord> entry{{
    .name = "agent",
    .meaning = "nuwa, whose k, target or window is what an environment's agent sets",
    .make = make_receiver<Nuwa>,
    .parameters = Nuwa::parameters(),
    .agent = true,
}};

}  // namespace
}  // namespace netbuf
