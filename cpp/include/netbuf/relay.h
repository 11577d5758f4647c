// A proxy: what one flow delivers, another sends on. What does not fit in between stays unread and closes the window.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>

#include "netbuf/flow.h"

namespace netbuf {

// Joins flows[upstream] to flows[downstream]; flows must not move afterwards. woken is told of flows whose next event the
// relay has changed.
void make_relay(std::deque<Flow>& flows, uint32_t upstream, uint32_t downstream, int64_t buffer_bytes, std::function<void(uint32_t)> woken);

}  // namespace netbuf
