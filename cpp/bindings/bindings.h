// The Python module netbuf_gym._core, by subject.
#pragma once
#include <nanobind/nanobind.h>

#include "interpreter.h"
#include "netbuf/batch.h"

namespace netbuf {

void bind_catalogues(nanobind::module_& m);   // congestion controls, queue disciplines, kinds of agents
void bind_interpreter(nanobind::module_& m);  // whose turn it is
void bind_config(nanobind::module_& m);       // the description of a world
void bind_controls(nanobind::module_& m, nanobind::class_<FlowConfig>& flow);  // congestion controls of the user's
using SharedWorld = Shared<World>;
using SharedBatch = Shared<Batch>;
void bind_worlds(nanobind::module_& m);       // World and Batch
void bind_rows(nanobind::module_& m);         // rows of agents: telemetry, vectors and histories
void bind_kernel(nanobind::module_& m);       // what the live plant asks of the kernel
// What can be read of a link, a switch and a source of datagrams wherever they are.
nanobind::dict link_stats(Link& link, Time now);
nanobind::dict switch_stats(const SharedBuffer& sw, Time now);
nanobind::dict udp_stats(const UdpSource& source);
void bind_live(nanobind::module_& m);         // the emulator, and connections of the kernel's
// What can be read of a world: as methods of a World, and of a Batch for the world of an index.
void bind_readings(nanobind::module_& m, nanobind::class_<SharedWorld>& world, nanobind::class_<SharedBatch>& batch);

}  // namespace netbuf
