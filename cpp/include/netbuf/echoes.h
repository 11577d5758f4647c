// Which acknowledgement a data packet's time stamp echoes (RFC 7323): the last one that had reached the sender when
// the packet left. Packets and ACKs do not carry it: what they would is put together again here from when they left
// and arrived. Only where a receiver asks. ACKs with holes or duplicates to report echo nothing that could be told
// apart, and so do packets after them.
#pragma once
#include <cstdint>

#include "netbuf/ring.h"
#include "netbuf/types.h"

namespace netbuf {

class Echoes {
 public:
  // The receiver: an ACK leaves that acknowledges up to here, each once.
  void left(uint32_t ack, Time now) { left_.push({now, ack}); }

  // The sender: an ACK arrives. plain: it has nothing else to report.
  void arrived(uint32_t ack, bool plain, Time now) {
    while (!left_.empty() && before(left_.front().ack, ack)) left_.pop();
    const bool known = plain && !left_.empty() && left_.front().ack == ack;
    arrived_.push({now, known ? left_.front().at : -1});
    if (known) left_.pop();
  }

  // The receiver: when the ACK left that this packet is the first to echo; negative: it is not, or nobody knows.
  Time first_echo(Time sent_at) {
    Time left = -1;
    for (; !arrived_.empty() && arrived_.front().at <= sent_at; arrived_.pop()) left = arrived_.front().left;
    return left;
  }
  size_t memory_bytes() const { return sizeof *this + left_.memory_bytes() + arrived_.memory_bytes(); }

 private:
  struct Left {
    Time at;
    uint32_t ack;
  };
  struct Arrived {
    Time at, left;
  };
  Ring<Left> left_;
  Ring<Arrived> arrived_;
};

}  // namespace netbuf
