// The links of a world with the queues that manage them: made alike for virtual time and for the emulator.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "netbuf/link.h"
#include "netbuf/shared_buffer.h"

namespace netbuf {

// Appends links and switches; managed is told of each link that has events of its own, in order, before it is made so;
// of those on a medium (medium.h) build_media() tells.
// The links must not move afterwards.
void build_links(const WorldConfig& config, Rng* rng, Link::Host* host, std::vector<Link>& links,
                 std::vector<std::unique_ptr<SharedBuffer>>& switches, const std::function<void(uint32_t)>& managed,
                 const std::function<PacketEnds(const Queued&)>& ends = {});

}  // namespace netbuf
