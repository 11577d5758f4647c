// What is told of a shared-buffer switch over a decision interval, of a simulated one and of the emulator's alike.
#pragma once
#include <string>
#include <vector>

#include "netbuf/shared_buffer.h"

namespace netbuf {

// Cumulative, of the world that the switch is in.
struct SwitchSeen {
  Time time = 0;
  uint64_t packets_received = 0;   // data, at their receivers
  uint64_t flows_started = 0;
  int64_t delivered_bytes = 0;     // in order, to all receiving applications
};

// Of the whole switch, of each queue, and when a flow last completed.
std::vector<std::string> switch_fields(uint32_t queues);
void write_switch(const SharedBuffer& sw, const SwitchSeen& start, const SwitchSeen& now, double* out);

// Of each queue, beside those, for agents that set the scheduler and have tables of flows.
std::vector<std::string> switch_lever_fields(uint32_t queues);
void write_switch_levers(const SharedBuffer& sw, double* out);

}  // namespace netbuf
