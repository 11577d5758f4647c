// What has events of its own in a world, beside the packets on their way and the timers of connections.
#pragma once
#include "netbuf/types.h"

namespace netbuf {

class EventSource {
 public:
  virtual ~EventSource() = default;
  virtual Time next() const = 0;             // of its next event; kNever: none
  virtual void run(Time now) = 0;            // handles it
  virtual bool runs_last() const { return false; }  // of all that is due at one instant
};

}  // namespace netbuf
