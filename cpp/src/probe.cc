#include "netbuf/probe.h"

namespace netbuf {

void Probe::act(Time now) {
  next_send_ += interval_;
  ++result_.sent;
  launch(now);
}

}  // namespace netbuf
