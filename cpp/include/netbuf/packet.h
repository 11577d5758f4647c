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

struct Packet {
  Time time;            // when it reaches the stage in whose ring it lies
  Time sent_at;         // its time stamp
  uint32_t segment;     // index
  uint16_t bytes;       // payload
  PacketKind kind;
};
static_assert(sizeof(Packet) == 24);

enum AckFlags : uint32_t {
  kAckHasSack = 1,
  kAckSynAck = 2,
  kAckDuplicate = 4,   // reports a duplicate segment (D-SACK, RFC 2883)
  kAckWindow = 8,      // answers a window probe, or tells of a window that has opened
  kAckFin = 16,        // the receiver's FIN: it has everything and closes too
};

struct Ack {
  Time time;
  uint32_t ack;         // next segment expected
  uint32_t window;      // bytes from there on; kUnlimitedWindow when it never limits
  uint32_t flags;
  uint32_t sack;        // index into the flow's SACK ring when kAckHasSack
  Time echo_sent;       // when the segment was sent whose time stamp is echoed (RFC 7323)
};
static_assert(sizeof(Ack) == 32);
inline constexpr uint32_t kUnlimitedWindow = UINT32_MAX;

struct Range {
  uint32_t begin, end;  // segments [begin, end)
};
struct SackBlocks {
  Range block[3];
  uint32_t count;
};

}  // namespace netbuf
