// The Python module netbuf_gym._core, by subject.
#pragma once
#include <nanobind/nanobind.h>

#include "interpreter.h"
#include "netbuf/batch.h"

namespace netbuf {

void bind_catalogues(nanobind::module_& m);   // congestion controls, queue disciplines, kinds of agents
void bind_interpreter(nanobind::module_& m);  // whose turn it is
void bind_config(nanobind::module_& m);       // the description of a world
// Congestion controls of the user's: in Python, and in C++.
void bind_controls(nanobind::module_& m, nanobind::class_<FlowConfig>& flow);
void bind_own_controls(nanobind::module_& m, nanobind::class_<FlowConfig>& flow);
void bind_policies(nanobind::module_& m, nanobind::class_<FlowConfig>& flow);  // trained senders in integers
using SharedWorld = Shared<World>;
using SharedBatch = Shared<Batch>;
void bind_worlds(nanobind::module_& m);       // World and Batch
void bind_rows(nanobind::module_& m);         // rows of agents: telemetry, vectors and histories
void bind_episodes(nanobind::module_& m);     // ends of decisions and episodes
void bind_networks(nanobind::module_& m);     // networks of learners
void bind_kernel(nanobind::module_& m);       // what the live plant asks of the kernel
// What can be read of a link, a switch and a source of datagrams wherever they are.
// Made in two steps where somebody may wait for what is read: a reading, and then Python's objects.
struct LinkReading {
  explicit LinkReading(Link& link, Time now)
      : name(link.name()),
        stats(link.stats(now)),
        offered_bits(link.offered_bits(now)),
        packets(link.queue_packets()),
        bytes(link.queue_bytes()) {}
  std::string name;
  LinkStats stats;
  double offered_bits;
  uint32_t packets;
  int64_t bytes;
};
struct SwitchReading {
  struct Queue {
    uint32_t port, queue;
    QueueCounters counters;
    uint32_t packets;
    double mean;
    uint32_t p99, max;
  };
  SwitchReading(const SharedBuffer& sw, Time now);
  Time time;
  int64_t capacity;
  double occupancy, mean, p99, max;  // shares of the capacity
  std::vector<Queue> queues;
};
nanobind::dict link_stats(const LinkReading& link);
nanobind::dict switch_stats(const SwitchReading& sw);
nanobind::dict udp_stats(const UdpCounters& source);
void bind_live(nanobind::module_& m);         // the emulator, and connections of the kernel's
// What can be read of a world: as methods of a World, and of a Batch for the world of an index.
void bind_readings(nanobind::module_& m, nanobind::class_<SharedWorld>& world, nanobind::class_<SharedBatch>& batch);

}  // namespace netbuf
