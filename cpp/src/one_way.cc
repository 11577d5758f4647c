#include "netbuf/one_way.h"

namespace netbuf {

void OneWay::run(Time now) {
  if (travelling_.empty() || travelling_.top().time > now) return act(now);
  const Travelling packet = travelling_.top();
  travelling_.pop();
  move(packet.time, packet.sent_at, packet.hop, packet.bytes);
}

void OneWay::launch(Time now, uint32_t bytes) {
  ++on_way_;
  if (log_) [[unlikely]] log(PacketEvent::sent, now, now, bytes);
  move(now, now, 0, bytes);
}

void OneWay::lose(Link::Fate fate, uint32_t bytes, uint32_t link) {
  --on_way_;
  note_loss(fate);
  if (log_) {
    const bool dropped = fate == Link::Fate::queue_drop;
    log(dropped ? PacketEvent::queue_drop : PacketEvent::random_loss, clock_, clock_, bytes, link);
  }
}

void OneWay::altered(const Queued& item, PacketEvent event) {
  if (log_) log(event, clock_, item.packet.sent_at, item.bytes, link_of(item));
  if (event == PacketEvent::duplicated) {
    ++on_way_;
  } else {
    --on_way_;
    note_loss(Link::Fate::random_loss);
  }
}

void OneWay::log(PacketEvent event, Time at, Time sent_at, uint32_t bytes, uint32_t link) {
  PacketRow row{};
  row.time = at;
  row.stamp = sent_at;
  row.owner = owner_;
  row.link = link;
  row.wire_bytes = bytes;
  row.event = event;
  row.kind = PacketLog::kDatagram;
  log_->add(row);
}

void OneWay::move(Time now, Time sent_at, uint32_t hop, uint32_t bytes) {
  if (hop == links_.size()) {
    --on_way_;
    if (log_) [[unlikely]] log(PacketEvent::received, now, sent_at, bytes);
    return received(sent_at, now, bytes);
  }
  Link& link = *links_[hop];
  if (link.managed()) {
    Queued item;
    item.packet = {now, sent_at, 0, 0, 0, kWindowProbe, false};
    item.owner = owner_;
    item.bytes = bytes;
    item.hop = static_cast<uint8_t>(hop);
    item.priority = priority_;
    item.is_ack = item.ecn = item.marked = item.l4s = false;
    return link.offer(now, item);
  }
  const Link::Outcome outcome = in_turn_ && hop > 0
                                    ? link.transmit_in_turn(links_[hop - 1]->set_out(now, bytes), now, bytes, true)
                                    : link.transmit(now, bytes, true);
  if (outcome.fate == Link::Fate::delivered) return travel(outcome.arrival, sent_at, hop + 1, bytes);
  lose(outcome.fate, bytes, path_[hop]);
}

}  // namespace netbuf
