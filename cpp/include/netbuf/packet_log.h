// A log of packets, where a world keeps one: when each sets out and arrives, and where it is lost. Worlds without a log
// do not ask for it at every packet: with one, each packet leaves the ways that are short and is looked at by itself.
#pragma once
#include <vector>

#include "netbuf/packet.h"

namespace netbuf {

enum class PacketEvent : uint8_t { sent, received, queue_drop, random_loss, duplicated, corrupted };

// A row of the log. All that is not known is 0.
struct PacketRow {
  Time time;
  Time stamp;            // of a packet its own time stamp, of an ACK the one that it echoes
  uint32_t owner;        // the flow, or kOneWayOwner + index of the probe or source of datagrams
  uint32_t link;         // where it was lost, copied or corrupted; kNoLink elsewhere
  uint32_t segment;      // its number; of an ACK that of the next one expected
  uint32_t window;       // of an ACK
  uint32_t wire_bytes, payload;
  uint32_t sack[6];      // first segments and ends of the blocks
  PacketEvent event;
  uint8_t is_ack;
  uint8_t kind;          // PacketKind, kDatagram
  uint8_t flags;         // of an ACK AckFlags, of data 1: the stream ends with it; of a SYN HandshakeOption, see kAgreed
  uint8_t ecn;           // 1 ECT, 2 CE, 4 CWR, 8 ECT(1)
  uint8_t sack_blocks;
};

class PacketLog {
 public:
  static constexpr uint32_t kNoLink = UINT32_MAX;
  static constexpr uint8_t kDatagram = 255;
  static constexpr uint8_t kAgreed = 8;    // a SYN's row has the options that it offers, and times so much those in use
  static constexpr size_t kMostRows = size_t{1} << 24;  // later events are only counted

  void add(const PacketRow& row) { rows_.size() < kMostRows ? rows_.push_back(row) : void(++left_out_); }
  const std::vector<PacketRow>& rows() const { return rows_; }
  uint64_t left_out() const { return left_out_; }

 private:
  std::vector<PacketRow> rows_;
  uint64_t left_out_ = 0;
};

}  // namespace netbuf
