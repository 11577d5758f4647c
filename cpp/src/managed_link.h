// What a link keeps whose queue is a discipline's.
#pragma once
#include <memory>

#include "netbuf/link.h"
#include "netbuf/outages.h"

namespace netbuf {

class SharedPort;

struct Link::Managed final : DropSink {
  Managed(Link& owner, Host* host_, uint32_t index_, const LinkConfig& config)
      : link(&owner), host(host_), index(index_), device_limit(static_cast<uint32_t>(config.device_packets)) {
    if (config.outage_ns == 0) return;
    outages = std::make_unique<Outages>(config);
    outage = outages->following(0);
    if (outage.begin <= 0) begin_outage();
  }

  Link* link;
  Host* host;
  uint32_t index, device_limit, port = 0;
  Medium* medium = nullptr;        // that transmits what is here; null: the link itself
  std::unique_ptr<QueueDiscipline> discipline;
  Ring<Queued> device;
  Time next = kNever, since = 0, stalled_until = 0;
  int64_t begun = 0;               // bytes of the packets whose transmission has begun
  double area = 0;                 // packet nanoseconds in the discipline, up to since
  std::unique_ptr<Outages> outages;  // that empty the queue
  Outages::Stretch outage{kNever, kNever};  // the next one
  Time out_until = 0;              // the end of the one before: what arrives before it is dropped
  SharedPort* deferred = nullptr;  // see defer(); null: whatever leaves is an event
  Time latest = kNever;            // deferred: when what leaves next has to be looked at

  void dropped(const Queued& item) override {
    ++link->stats_.queue_drops;
    host->lost(item, Fate::queue_drop);
  }
  void marked(const Queued&) override { ++link->stats_.marks; }
  void duplicated(const Queued& item) override {
    ++link->stats_.packets_in;
    host->altered(item, PacketEvent::duplicated);
  }
  void corrupted(const Queued& item) override {
    ++link->stats_.random_losses;
    host->altered(item, PacketEvent::corrupted);
  }
  void tick(Time now) { tick(now, *discipline); }
  template <class Discipline>
  void tick(Time now, const Discipline& waiting) {
    if (now == since) return;
    area += static_cast<double>(waiting.packets()) * static_cast<double>(now - since);
    since = now;
  }
  void begin_outage() {
    out_until = outage.end;
    outage = outages->following(outage.end);
  }
  // The outage begins: nothing that is here gets through. What has left the queue counts as lost, the rest as dropped.
  void empty(Time now) {
    begin_outage();
    tick(now);
    for (; !device.empty(); device.pop()) lose(device.front());
    Queued item;
    while (discipline->packets() > 0 && discipline->dequeue(now, item)) dropped(item);
    discipline->reset(now);
    next = kNever;
  }
  void lose(const Queued& item) {
    if (item.owner == kNobody) return;
    ++link->stats_.random_losses;
    host->lost(item, Fate::random_loss);
  }
  bool take(Time now, Queued& item) { return take(now, item, *discipline); }
  template <class Discipline>
  bool take(Time now, Queued& item, Discipline& waiting) {
    tick(now, waiting);
    if (!waiting.dequeue(now, item)) return false;
    const Time waited = now - item.arrived;
    link->sojourn_ns_ += waited;
    link->sojourn_s2_ += seconds(waited) * seconds(waited);
    ++link->stats_.packets_out;
    link->stats_.bytes_out += item.bytes;
    return true;
  }
  // False: nothing is left to send. A discipline is asked even where nothing waits: FQ-CoDel retires the queues that it
  // finds empty then.
  bool fill_device(Time now) {
    const auto may_go = [&] { return discipline->packets() == 0 || discipline->ready(now) <= now; };
    Queued item;
    while (device.size() < device_limit && may_go() && take(now, item)) device.push(item);
    return !device.empty() || discipline->packets() > 0;
  }
};

}  // namespace netbuf
