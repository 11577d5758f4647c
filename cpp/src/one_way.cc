#include "netbuf/one_way.h"

namespace netbuf {

void OneWay::run(Time now) {
  if (travelling_.empty() || travelling_.top().time > now) return act(now);
  const Travelling packet = travelling_.top();
  travelling_.pop();
  move(packet.time, packet.sent_at, packet.hop);
}

void OneWay::launch(Time now) {
  ++on_way_;
  move(now, now, 0);
}

void OneWay::move(Time now, Time sent_at, uint32_t hop) {
  if (hop == path_.size()) {
    --on_way_;
    return received(sent_at, now);
  }
  Link& link = network_.links[path_[hop]];
  if (link.managed()) {
    Queued item;
    item.packet = {now, sent_at, 0, 0, 0, kWindowProbe, false};
    item.owner = owner_;
    item.bytes = bytes_;
    item.hop = static_cast<uint8_t>(hop);
    item.priority = priority_;
    item.is_ack = item.ecn = item.marked = item.l4s = false;
    return link.offer(now, item);
  }
  const Link::Outcome outcome = link.transmit(now, bytes_, true);
  if (outcome.fate == Link::Fate::delivered) return travel(outcome.arrival, sent_at, hop + 1);
  lose(outcome.fate);
}

}  // namespace netbuf
