// What travels through a path.
#pragma once
#include <cstdint>

#include "netbuf/types.h"

namespace netbuf {

enum PacketKind : uint8_t {
  kData = 0,
  kPushedData = 1,     // the last of several sent at once (Linux sets PSH there)
  kSyn = 2,
  kHandshakeAck = 3,
  kWindowProbe = 4,
  kFinalAck = 5,       // acknowledges the receiver's FIN
  kReset = 6,          // the connection is forgotten
};
inline constexpr bool is_data(PacketKind kind) { return kind <= kPushedData; }
inline constexpr bool opens(PacketKind kind) { return kind == kSyn; }

// Flow and stage that something is on its way to, in one word. Of arrivals at the same instant the lower comes first: by flow,
// then by stage.
class Destination {
 public:
  constexpr Destination() = default;
  constexpr Destination(uint32_t flow, uint8_t stage) : word_(uint64_t{flow} << 8 | stage) {}
  // Of a packet's or ACK's word, which holds more beyond.
  static constexpr Destination of(uint64_t word) {
    Destination found;
    found.word_ = word & kMask;
    return found;
  }
  constexpr uint32_t flow() const { return static_cast<uint32_t>(word_ >> 8); }
  constexpr uint8_t stage() const { return static_cast<uint8_t>(word_); }
  constexpr uint64_t word() const { return word_; }
  constexpr auto operator<=>(const Destination&) const = default;

 private:
  static constexpr uint64_t kMask = (uint64_t{1} << 40) - 1;
  uint64_t word_ = 0;
};

// From sender to receiver.
struct Packet {
  Time time;            // when it reaches the stage that it is on its way to
  Time sent_at;         // its time stamp
  uint64_t to;          // a Destination's word; beyond it what ECN says of the packet; see kTrainBit
  uint32_t segment;     // index
  uint16_t bytes;       // payload
  PacketKind kind;
  bool fin;             // the stream ends with it

  Destination destination() const { return Destination::of(to); }
  uint32_t flow() const { return destination().flow(); }
  uint8_t stage() const { return destination().stage(); }
};

enum AckFlags : uint8_t {
  kAckHasSack = 1,
  kAckSynAck = 2,
  kAckDuplicate = 4,   // reports a duplicate segment (D-SACK, RFC 2883)
  kAckWindow = 8,      // answers a window probe, or tells of a window that has opened
  kAckFin = 16,        // the receiver's FIN: it has everything and closes too
  kAckRequest = 32,    // the receiving application asks for more
  kAckUntrue = 128,    // of a receiver that misbehaves: it may acknowledge what was never sent, or a part of a segment
  // ECE: something that it acknowledges was marked, or was since the sender last gave way (RFC 3168, 8257).
  kAckEcho = 64,
  kAckReset = kAckSynAck | kAckFin,  // two that never go together: there is no such connection
};

// From receiver to sender.
struct Ack {
  Time time;
  Time echo_sent;       // when the segment was sent whose time stamp is echoed (RFC 7323); see kMarkCount
  uint64_t to : 40;     // as a packet's
  uint64_t flags : 8;
  uint64_t sack : 16;   // when kAckHasSack: index into the path's SACK ring, its low bits
  uint32_t ack;         // next segment expected
  uint32_t window;      // bytes from there on; kUnlimitedWindow when it never limits

  uint8_t stage() const { return Destination::of(to).stage(); }
};
inline constexpr uint32_t kUnlimitedWindow = UINT32_MAX;
inline bool is_syn_ack(const Ack& ack) { return (ack.flags & kAckSynAck) && ack.flags != kAckReset; }

// Either, on its way. What both have in common stands in the same places.
union Flight {
  Packet packet;
  Ack ack;
};
static_assert(sizeof(Packet) == 32 && sizeof(Ack) == 32 && sizeof(Flight) == 32);

// Packets of data that were sent at once, or ACKs without flags that answer them, are on their way as one where receivers are
// run apart (World::run_apart): in the highest bits of the word `to` of the first how many come after it, each so many segments
// on and so much later as its path says. kind: of the last.
inline constexpr int kTrainBit = 48;
inline constexpr uint32_t kLongestTrain = 1u << (64 - kTrainBit);
inline uint32_t followers(const Packet& packet) { return static_cast<uint32_t>(packet.to >> kTrainBit); }
inline uint32_t followers(const Ack& ack) { return ack.flags == 0 ? static_cast<uint32_t>(ack.sack) : 0; }

// Where it arrives next: at the receiver, at the sender, or at a link of the path or return path, counted from here.
enum Stage : uint8_t { kAtReceiver = 0, kAtSender = 1, kAtForwardHop = 2, kAtBackwardHop = 128 };
inline constexpr size_t kMaxHops = 100;  // a direction

// Explicit congestion notification (RFC 3168), in a packet's `to` beyond its destination.
// Links that cannot mark do not ask.
inline constexpr uint64_t kEcnCapable = uint64_t{1} << 40;   // ECT
inline constexpr uint64_t kEcnMarked = uint64_t{1} << 41;    // CE
inline constexpr uint64_t kEcnReduced = uint64_t{1} << 42;   // CWR: the sender has given way
inline constexpr uint64_t kEcnL4s = uint64_t{1} << 43;       // beside kEcnCapable: ECT(1) in place of ECT(0) (RFC 9331)
inline constexpr uint64_t kEcn = kEcnCapable | kEcnMarked | kEcnReduced | kEcnL4s;

// Accurate ECN (RFC 9768): every ACK carries the number of marked packets that have come, modulo 8, as the header's
// three bits do. In an Ack these stand in place of the last nanoseconds of the time stamp.
inline constexpr Time kMarkCount = 7;

struct Range {
  uint32_t begin, end;  // segments [begin, end)
};
struct SackBlocks {
  Range block[3];
  uint8_t count;
  bool has_duplicate;            // D-SACK (RFC 2883): a segment that has arrived again
  uint32_t duplicate;
};

}  // namespace netbuf
