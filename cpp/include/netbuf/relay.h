// A proxy: what one flow delivers, another sends on. What does not fit in between stays unread and closes the window.
#pragma once
#include <cstdint>
#include <deque>
#include <vector>

#include "netbuf/flow.h"

namespace netbuf {

// Joins flows[upstream] to flows[downstream]; flows must not move afterwards. Flows whose next event a relay has
// changed are appended to woken.
void make_relay(std::deque<Flow>& flows, uint32_t upstream, uint32_t downstream, int64_t buffer_bytes, std::vector<uint32_t>& woken);

}  // namespace netbuf
