// Duplicates and corruption before a queue, as Linux' sch_netem has them (tc-netem(8)): a share of the packets is
// queued twice, and a share is damaged.
#pragma once
#include <memory>

#include "netbuf/config.h"
#include "netbuf/queue_discipline.h"

namespace netbuf {

inline bool has_netem(const LinkConfig& link) { return link.duplicate > 0 || link.corrupt > 0; }

// The discipline with both before it. Copies are not copied again. What is corrupted takes its place in the queue and its time
// on the link, and nobody gets it.
std::unique_ptr<QueueDiscipline> add_netem(std::unique_ptr<QueueDiscipline> queue, const LinkConfig& link, uint64_t seed,
                                           DropSink* sink);

}  // namespace netbuf
