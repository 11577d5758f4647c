// Ports of switches that are looked at late.
//
// What leaves a queue, and when, follows from what has come, and shows at this switch alone, until it arrives at the far end.
// So it need not be an event: packets leave, each at its time, before the next comes, before somebody reads the switch
// (catch_up()), and before the first of them can arrive anywhere.
#include <algorithm>

#include "managed_link.h"
#include "qdisc/shared_port.h"

namespace netbuf {

bool Link::defer() {
  Managed& m = *managed_;
  auto* const port = dynamic_cast<SharedPort*>(m.discipline.get());
  if (!port || !port->alone() || !constant_rate() || lossy_ || wire_ || m.outages || m.medium || m.device_limit > 0) return false;
  m.deferred = port;
  m.latest = m.next == kNever ? kNever : m.next + delay_;
  return true;
}

void Link::catch_up(Time now) {
  Managed& m = *managed_;
  SharedPort& port = *m.deferred;
  while (m.next <= now) {
    Queued item;
    if (m.take(m.next, item, port)) {
      begun_at_ = m.next;
      begun_bytes_ = item.bytes;
      m.begun += item.bytes;
      free_at_ = m.next + transmission_time(item.bytes);
      busy_ns_ += free_at_ - m.next;
      m.host->sent(item, free_at_ + delay_);
    }
    m.next = port.packets() > 0 ? free_at_ : kNever;
  }
}

void Link::run_deferred(Time now) {
  Managed& m = *managed_;
  catch_up(now);
  m.latest = m.next == kNever ? kNever : m.next + delay_;
}

void Link::offer_deferred(Time now, const Queued& item) {
  Managed& m = *managed_;
  SharedPort& port = *m.deferred;
  catch_up(now);
  m.tick(now, port);
  port.enqueue(now, item);
  const uint32_t packets = port.packets();
  stats_.queue_max = std::max(stats_.queue_max, packets);
  if (m.next == kNever) {
    if (packets == 0) return;
    m.next = std::max(now, free_at_);
    catch_up(now);
    if (m.next == kNever) return;
  }
  if (m.next + delay_ >= m.latest) return;
  m.latest = m.next + delay_;
  m.host->rescheduled(m.index);
}

}  // namespace netbuf
