// Packets that go one way over a path of links, answered by nobody: what probes and datagrams have in common.
#pragma once
#include <queue>
#include <vector>

#include "netbuf/event_source.h"
#include "netbuf/path.h"

namespace netbuf {

class OneWay : public EventSource {
 public:
  // index: among all that send one way; packets are known by it in queue disciplines.
  OneWay(const std::vector<uint32_t>& path, uint32_t bytes, uint32_t priority, uint32_t index, Network& network)
      : path_(path),
        bytes_(bytes),
        priority_(static_cast<uint8_t>(priority)),
        owner_(kOneWayOwner + index),
        in_turn_(network.profiles && network.profiles->usual().orders_ties),  // an emulator's network has none
        clock_(*network.clock),
        log_(network.log) {
    for (const uint32_t link : path) links_.push_back(&network.links[link]);
  }

  Time next() const final { return travelling_.empty() ? due() : std::min(due(), travelling_.top().time); }
  void run(Time now) final;
  // What managed links have done with its packets.
  void resume(const Queued& item, Time arrival) { travel(arrival, item.packet.sent_at, item.hop + 1u, item.bytes); }
  void lost(const Queued& item, Link::Fate fate) { lose(fate, item.bytes, link_of(item)); }
  void altered(const Queued& item, PacketEvent event);  // duplicated or corrupted
  uint32_t link_of(const Queued& item) const { return path_[item.hop]; }  // that manages it
  uint64_t packets_in_network() const { return on_way_; }

 protected:
  void launch(Time now) { launch(now, bytes_); }  // a packet sets out
  void launch(Time now, uint32_t bytes);

 private:
  struct Travelling {
    Time time, sent_at;  // reaches hop then
    uint64_t number;     // in the order of their last departures: of those that arrive at one instant
    uint32_t hop, bytes;
    bool operator>(const Travelling& other) const {
      return time != other.time ? time > other.time : number > other.number;
    }
  };
  virtual Time due() const = 0;              // of the next thing that it does by itself; kNever: none
  virtual void act(Time now) = 0;            // does it
  virtual void received(Time sent_at, Time now, uint32_t bytes) = 0;
  virtual void note_loss(Link::Fate) {}
  void lose(Link::Fate fate, uint32_t bytes, uint32_t link);
  [[gnu::cold, gnu::noinline]] void log(PacketEvent event, Time at, Time sent_at, uint32_t bytes,
                                        uint32_t link = PacketLog::kNoLink);
  void travel(Time time, Time sent_at, uint32_t hop, uint32_t bytes) {
    travelling_.push({time, sent_at, departures_++, hop, bytes});
  }
  void move(Time now, Time sent_at, uint32_t hop, uint32_t bytes);

  const std::vector<uint32_t> path_;
  const uint32_t bytes_;                     // on the wire, of packets whose size is not their own
  const uint8_t priority_;
  const uint32_t owner_;
  const bool in_turn_;                       // events of one instant take turns
  const Time& clock_;                        // the world's
  PacketLog* const log_;                     // null: none is kept
  std::vector<Link*> links_;                 // of path_
  uint64_t departures_ = 0, on_way_ = 0;
  std::priority_queue<Travelling, std::vector<Travelling>, std::greater<>> travelling_;
};

}  // namespace netbuf
