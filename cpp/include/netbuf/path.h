// The two directions of a connection's path. It carries packets and ACKs from link to link,
// and knows nothing of what they mean.
#pragma once
#include <deque>
#include <optional>
#include <vector>

#include "netbuf/config.h"
#include "netbuf/echoes.h"
#include "netbuf/flights.h"
#include "netbuf/host.h"
#include "netbuf/link.h"
#include "netbuf/packet_log.h"
#include "netbuf/stack.h"

namespace netbuf {

// What the connections of a world share.
struct Network {
  std::vector<Link> links;
  // How each link is crossed: by how many directions of connections, and from which link all of them come, if from one.
  struct Use {
    static constexpr uint32_t kNone = UINT32_MAX, kSeveral = kNone - 1;  // several: or as the first
    uint32_t count = 0, from = kNone;
  };
  std::vector<Use> uses;
  std::vector<uint8_t> lanes;        // of packets on their way from or to each link; 0: none yet
  Flights flights;
  Flights apart;                     // arrivals of data, where receivers are run apart (World::run_apart)
  Flights* arrivals = &flights;      // where those are kept
  uint64_t packets_received = 0;     // data, at all receivers
  int64_t delivered_bytes = 0;       // in order, to all receiving applications
  const Time* clock = nullptr;       // the world's
  std::deque<Host> hosts;
  std::optional<Profiles> profiles;
  PacketLog* log = nullptr;          // null: none is kept
};

class Path {
 public:
  Path(uint32_t flow, const FlowConfig& config, const StackProfile& profile, Network& network);
  Path(const Path&) = delete;
  Path& operator=(const Path&) = delete;

  // ---- what sets out
  // ecn: of kEcn; what is lost of it on a path that is one link without a discipline, nobody could have marked.
  void launch(Time now, uint32_t segment, uint16_t bytes, PacketKind kind, bool fin = false, uint64_t ecn = 0) {
    ++on_way_;
    if (!direct_) [[unlikely]] return launch_over_hops(now, segment, bytes, kind, fin, ecn);
    const Link::Outcome outcome = first_link_->transmit(now, wire_bytes(kind, bytes), true);
    if (outcome.fate != Link::Fate::delivered) [[unlikely]] return lose(outcome.fate, kind);
    Packet& packet = network_.arrivals->place(outcome.arrival, to_receiver_, receiver_lane_).packet;
    packet.sent_at = now;
    packet.segment = segment;
    packet.bytes = bytes;
    packet.kind = kind;
    packet.fin = fin;
  }
  // Full segments of data, one after the other; kind: of the last.
  void launch_burst(Time now, uint32_t segment, uint32_t count, uint16_t bytes, PacketKind kind) {
    if (!in_trains_ || !first_link_->spares(count) || count > kLongestTrain) [[unlikely]] {
      return launch_run(now, segment, count, bytes, kind);
    }
    const Link::Burst burst = first_link_->transmit_burst(now, count, bytes + profile_.data_overhead);
    first_link_->spare(burst.count);
    on_way_ += burst.count;
    if (burst.count < count) [[unlikely]] {
      queue_drops_ += count - burst.count;
      kind = kData;
      if (burst.count == 0) return;
    }
    place_train(burst.first, burst.spacing, burst.count, now, segment, bytes, kind);
  }
  void send_back(const Ack& ack) {                       // at ack.time
    ++on_way_;
    if (!direct_back_) [[unlikely]] return send_back_over_hops(ack);
    const Link::Outcome outcome = first_return_link_->transmit(ack.time, wire_bytes(ack), false);
    if (outcome.fate == Link::Fate::delivered) [[likely]] {
      Ack& flight = network_.flights.place(outcome.arrival, to_sender_, sender_lane_).ack;
      flight.echo_sent = ack.echo_sent;
      flight.ack = ack.ack;
      flight.window = ack.window;
      if (ack.flags) [[unlikely]] flight.flags = ack.flags, flight.sack = ack.sack;
    } else {
      --on_way_;
    }
  }
  uint16_t send_back(Ack ack, const SackBlocks& blocks);  // their number, its low bits

  // ---- where receivers are run apart (World::run_apart): packets that set out at once are a train (kTrainBit)
  //
  // For how long at least nobody learns of an ACK that sets out, and what its link does with it depends on ACKs alone; 0:
  // somebody may at once, or packets come one by one anyway.
  Time least_ack_delay() const;
  uint32_t first_link_back() const { return index_of(backward_.front()); }
  void travel_in_trains(uint32_t mss) { in_trains_ = mss == profile_.mss && first_link_->uniform(); }
  Time spacing() const { return first_link_->transmission_time(profile_.mss + profile_.data_overhead); }
  uint32_t ack_step() const { return profile_.delayed_ack_packets; }  // of a train of ACKs, segments, and how long after
  Time ack_spacing() const { return ack_step() * spacing(); }
  // Such a train, the first of them then and of so many segments, without flags.
  void answer(Time now, Time echo_sent, uint32_t segment, uint32_t count) {
    if (!first_return_link_->unlimited()) [[unlikely]] return answer_one_by_one(now, echo_sent, segment, count);
    on_way_ += count;
    const Time first = first_return_link_->pass(now, count, profile_.ack_bytes);
    const Time spacing = count > 1 ? ack_spacing() : 0;
    network_.flights.place_train(first, spacing, count, ack_step(), to_sender_, sender_lane_, [=](Flight& flight) {
      flight.ack.echo_sent = echo_sent;
      flight.ack.ack = segment;
      flight.ack.window = kUnlimitedWindow;
    });
  }

  // ---- what arrives, by Flight::stage
  void arrived(uint32_t count = 1) { on_way_ -= count; }  // at the receiver or at the sender
  void cross_forward(Packet& packet);
  void cross_backward(Ack& ack);
  SackBlocks take_blocks(const Ack& ack);                // those that came with it; once

  // ---- what managed links have done with its packets
  void resume(const Queued& item, Time arrival);         // it reaches the next hop then
  void lost(const Queued& item, Link::Fate fate);
  void altered(const Queued& item, PacketEvent event);   // duplicated or corrupted
  void log_arrival(const Flight& flight);                // at either end
  void forget();                                         // its links keep nothing of its connection, which is over

  // When an arrival was scheduled: as the transmission on the link before began.
  Time scheduled(const Packet& packet) const;
  Time scheduled(const Ack& ack) const;
  // Of one that comes from the first link: when the transmission before it began, most likely, when the ACK that let it
  // go set out, and how the first link has been busy (for the order of ties).
  struct Departure {
    Time packet_before, ack, busy_since;
    bool slow;                                           // a packet takes longer than the ACK does
  };
  Departure departure(const Packet& packet) const;

  void always_ecn(uint64_t ect) { all_ecn_ = ect; }      // handshake, ACKs and what is sent again can be marked too
  void count_marks() { counts_marks_ = true; }           // ACKs tell marks by their number
  bool empty() const { return on_way_ == 0; }            // nothing is on its way
  bool delivers_bunches() const;                         // packets may reach the receiver at the same instant
  bool delays_acks() const;                              // they may wait for each other on the way back
  uint64_t queue_drops() const { return queue_drops_; }  // data
  uint64_t random_losses() const { return random_losses_; }
  uint64_t duplicates() const { return duplicates_; }    // copies that links have made of data
  uint32_t bottleneck() const { return bottleneck_; }    // the slowest link of the way there
  const std::vector<uint32_t>& links() const { return links_; }
  size_t memory_bytes() const;

 private:
  struct Hop {
    Link* link;
    Link::Coming* coming;        // not null: its outcome is known at the link before
    uint32_t waiting;            // packets on their way to it
    bool last;                   // of its route
    bool in_turn;                // events of one instant take turns there
    uint8_t lane;
  };

  // Where hops begin: those of one route stand together, so that packets keep the one that they set out on.
  struct Route {
    Time from;
    uint32_t forward, backward;
  };

  Time next_route_at() const;
  bool foresees(uint32_t from, uint32_t to, bool in_order) const;
  uint8_t lane_between(uint32_t from, uint32_t to);
  // Out of line, so that the short way needs none of their registers.
  [[gnu::noinline]] void launch_over_hops(Time now, uint32_t segment, uint16_t bytes, PacketKind kind, bool fin,
                                          uint64_t ecn);
  [[gnu::noinline]] void send_back_over_hops(const Ack& ack);
  [[gnu::noinline]] void launch_run(Time now, uint32_t segment, uint32_t count, uint16_t bytes, PacketKind kind);
  [[gnu::noinline]] void answer_one_by_one(Time now, Time echo_sent, uint32_t segment, uint32_t count);
  // Before a packet or ACK sets out: whether it takes another route than the last, or is logged.
  template <class Item>
  void look_at(const Item& item) {
    if (item.time >= plain_until_) [[unlikely]] look_closely(item);
  }
  template <class Item>
  [[gnu::cold, gnu::noinline]] void look_closely(const Item& item);
  void lose(Link::Fate fate, PacketKind kind);
  // Seldom asked for, and out of the way of what is asked for each packet.
  [[gnu::cold, gnu::noinline]] void log(PacketEvent event, const Packet& packet, Time at,
                                        uint32_t link = PacketLog::kNoLink);
  [[gnu::cold, gnu::noinline]] void log(PacketEvent event, const Ack& ack, Time at, uint32_t link = PacketLog::kNoLink);
  [[gnu::cold, gnu::noinline]] void log(PacketEvent event, const Queued& item);
  uint32_t index_of(const Hop& hop) const { return static_cast<uint32_t>(hop.link - network_.links.data()); }
  // Crosses hop at its time, which is now, or which a managed link says beforehand (now: -1), and all that need not be
  // waited for.
  void forward(Packet& packet, size_t hop, Time now);
  void backward(Ack& ack, size_t hop, Time now);
  Link::Outcome transmit(const Hop& crossed, Time now, uint32_t bytes, bool is_data) const;  // no managed link
  bool wait_forward(Packet& packet, size_t hop, Time now);
  bool wait_backward(Ack& ack, size_t hop, Time now);
  [[gnu::always_inline]] void place_train(Time first, Time spacing, uint32_t count, Time now, uint32_t segment,
                                          uint16_t bytes, PacketKind kind) {
    network_.arrivals->place_train(first, spacing, count, 1, to_receiver_, receiver_lane_, [=](Flight& flight) {
      flight.packet.sent_at = now;
      flight.packet.segment = segment;
      flight.packet.bytes = bytes;
      flight.packet.kind = kind;
      flight.packet.fin = false;
    });
  }
  void offer(Link& link, const Packet& packet, size_t hop);
  void offer(Link& link, const Ack& ack, size_t hop);
  void reach(Packet& packet, size_t stage, uint8_t& lane) {
    const Destination to(flow_, static_cast<uint8_t>(stage));
    packet.to = (packet.to & kEcn) | to.word();
    (stage == kAtReceiver ? *network_.arrivals : network_.flights).place(packet.time, to, lane).packet = packet;
  }
  void reach(Ack& ack, size_t stage, uint8_t& lane) {
    const Destination to(flow_, static_cast<uint8_t>(stage));
    ack.to = to.word();
    network_.flights.place(ack.time, to, lane).ack = ack;
  }
  uint32_t wire_bytes(PacketKind kind, uint32_t payload) const {
    if (is_data(kind)) [[likely]] return payload + profile_.data_overhead;
    if (kind == kReset) return profile_.reset_bytes;
    return kind == kSyn ? profile_.syn_bytes : profile_.ack_bytes;
  }
  uint32_t wire_bytes(const Ack& ack) const {
    if (ack.flags & kAckSynAck) [[unlikely]] {
      return is_syn_ack(ack) ? profile_.syn_ack_bytes : profile_.reset_bytes;
    }
    if (ack.flags & kAckHasSack) [[unlikely]] {
      return profile_.ack_bytes + profile_.sack_bytes[block_count(blocks_index(ack))];
    }
    return profile_.ack_bytes;
  }
  uint32_t block_count(uint32_t index) const { return before(index, blocks_.tail()) ? blocks_[index].count : 0; }
  uint32_t blocks_index(const Ack& ack) const {
    return blocks_.head() + static_cast<uint16_t>(ack.sack - static_cast<uint16_t>(blocks_.head()));
  }

  // ACKs with SACK blocks that a late one may be behind (of 2^16 numbers).
  static constexpr uint32_t kLateAcks = 16'384;

  // What every packet needs: a cache line.
  Network& network_;
  Link *first_link_, *first_return_link_;
  const StackProfile& profile_;
  Destination to_receiver_, to_sender_;
  uint32_t flow_, on_way_ = 0;
  bool direct_, direct_back_;        // one link that keeps no packets of its own
  bool in_trains_ = false;           // they are, and receivers are run apart
  bool ack_overtakes_;               // on the way back
  uint8_t receiver_lane_ = 0, sender_lane_ = 1, priority_;
  bool counts_marks_ = false;

 public:
  EchoedRoundTrips round_trips;      // what packets' time stamps tell the receiver

 private:
  uint64_t all_ecn_ = 0;
  std::vector<Hop> forward_, backward_;
  std::vector<Route> routes_;
  const Route* route_;               // that packets set out on
  Time plain_until_;                 // all take it until then, and none is logged
  Ring<SackBlocks> blocks_;
  uint64_t queue_drops_ = 0, random_losses_ = 0, duplicates_ = 0;
  uint32_t bottleneck_;
  std::vector<uint32_t> links_;
};

}  // namespace netbuf
