#include "netbuf/probe.h"

namespace netbuf {

void Probe::run(Time now) {
  if (!travelling_.empty() && travelling_.top().time <= now) {
    const Travelling packet = travelling_.top();
    travelling_.pop();
    return move(packet);
  }
  next_send_ += config_.interval_ns;
  ++result_.sent;
  move({now, now, 0});
}

void Probe::move(const Travelling& packet) {
  if (packet.hop == config_.path.size()) {
    result_.delays.push_back(seconds(packet.time - packet.sent_at));
    return;
  }
  Link& link = network_.links[config_.path[packet.hop]];
  if (link.managed()) {
    Queued item;
    item.packet = {packet.time, packet.sent_at, 0, 0, 0, kWindowProbe, false};
    item.owner = owner_;
    item.bytes = config_.bytes;
    item.hop = static_cast<uint8_t>(packet.hop);
    item.priority = static_cast<uint8_t>(config_.priority);
    item.is_ack = false;
    return link.offer(packet.time, item);
  }
  const Link::Outcome outcome = link.transmit(packet.time, config_.bytes, true);
  if (outcome.fate == Link::Fate::delivered) travelling_.push({outcome.arrival, packet.sent_at, packet.hop + 1});
}

}  // namespace netbuf
