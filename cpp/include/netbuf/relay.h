// A proxy: what one flow delivers, another sends on. What does not fit in between stays unread and closes the window.
// They fail together.
#pragma once
#include <cstdint>
#include <functional>

#include "netbuf/flow.h"

namespace netbuf {

// A flow and its name in the network.
struct Leg {
  Flow* flow;
  uint32_t index;
};

// Joins them; they must not move afterwards. woken is told of flows whose next event the relay has changed.
void make_relay(Leg upstream, Leg downstream, int64_t buffer_bytes, std::function<void(uint32_t)> woken);

}  // namespace netbuf
