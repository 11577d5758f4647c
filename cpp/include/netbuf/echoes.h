// Which acknowledgement a data packet's time stamp echoes (RFC 7323): the last one that had reached the sender when
// the packet left. Packets and ACKs do not carry it: what they would is put together again here from when they left
// and arrived. Only where a receiver asks.
#pragma once
#include <algorithm>
#include <cstdint>

#include "netbuf/ring.h"
#include "netbuf/types.h"

namespace netbuf {

// Round trips as a receiver knows them (tcp_rcv_rtt_measure_ts, tcp_rcv_rtt_update; Linux 6.18): from an ACK to the first
// packet whose time stamp echoes it. Less than the average is taken as it is, of more an eighth. Likewise put together
// here, of ACKs that are new: 64 a round trip at most, each for those between, or each with another time stamp.
class EchoedRoundTrips {
 public:
  // From now on each time stamp is a sample, as it is there: where ACKs queue, round trips change all the time.
  void look_at_each(Time unit) { each_ = unit; }
  // The receiver: an ACK leaves.
  void left(uint32_t ack, Time now) {
    ++acks_;
    if (now >= next_left_ && !before(ack, next_ack_)) push({now, kNever, ack, acks_});
  }
  // Likewise one that may acknowledge nothing new, but has SACK blocks, the path's of this number (its low bits).
  void left_with_blocks(uint32_t ack, uint16_t blocks, Time now) {
    ++acks_;
    if (now >= next_left_) push({now, kNever, ack + 1, acks_, Says::blocks, blocks});
  }
  // Likewise the answer to the SYN, or a copy of it, which ACKs of data are after. Returns which.
  uint32_t answered(Time now) {
    ++acks_;
    push({now, kNever, 1, acks_, Says::answer});
    next_ack_ = 1;
    return left_.tail() - 1;
  }
  // The sender: an ACK arrives.
  void arrived(uint32_t ack, Time now) {
    if (awaits_ && !before(ack, awaited_)) [[unlikely]] reach(ack, now);
  }
  void arrived_with_blocks(uint32_t ack, uint16_t blocks, Time now) {
    arrived(ack, now);
    while (awaits_ && left_[reached_].is(ack, blocks)) reach_one(now);
  }
  // Likewise such an answer. copy: its low bits.
  void answer_arrived(uint16_t copy, Time now) {
    while (awaits_ && static_cast<int16_t>(copy - reached_) >= 0) reach_one(now);
  }
  // The receiver: a packet comes, which may be a sample.
  bool echoes(Time sent_at) const { return sent_at >= next_arrival_; }
  void sample(Time sent_at, Time now, Time unit);  // unit: of time stamps; nothing less can be measured

  // Where there are no time stamps: what comes in order, up to this byte of the stream, when a window of so many bytes is
  // offered. That many take a round trip at least (tcp_rcv_rtt_measure), and the least counts.
  void in_order(int64_t upto, int64_t window, Time now) {
    if (sampled_at_ > 0 && upto < window_end_) return;
    if (sampled_at_ > 0) average_ = std::min(average_, std::max(now - sampled_at_, kMicrosecond));
    window_end_ = upto + window;
    sampled_at_ = now;
  }

  Time average() const { return average_; }        // kNever: there was no sample yet
  size_t memory_bytes() const { return left_.memory_bytes(); }

 private:
  enum class Says : uint8_t { plain, blocks, answer };
  struct Left {
    Time at, arrived;
    uint32_t reached_by, number;         // reached_by: any ACK of so much
    Says says = Says::plain;
    uint16_t blocks = 0;
    // Whether it is the ACK with these blocks, or was before it.
    bool is(uint32_t ack, uint16_t with) const {
      if (says == Says::answer) return true;
      return says == Says::blocks && reached_by == ack + 1 && static_cast<int16_t>(with - blocks) >= 0;
    }
  };
  void push(const Left& left) {
    left_.push(left);
    if (!awaits_) await();
    next_ack_ = left.reached_by + (left.says != Says::blocks);
    next_left_ = left.at + apart_;
    if (each_ > 0) [[unlikely]] next_left_ = (left.at / each_ + 1) * each_;
  }
  void reach(uint32_t ack, Time now) {
    do {
      reach_one(now);
    } while (awaits_ && !before(ack, awaited_));
  }
  void reach_one(Time now) {
    left_[reached_++].arrived = now;
    next_arrival_ = left_.front().arrived;
    await();
  }
  void await() {
    awaits_ = reached_ != left_.tail();
    if (awaits_) awaited_ = left_[reached_].reached_by;
  }

  Ring<Left> left_;                      // that no packet has echoed yet
  uint32_t reached_ = 0;                 // the first of these that has not arrived
  uint32_t awaited_ = 0;                 // what reaches it
  bool awaits_ = false;                  // there is one
  uint32_t acks_ = 0, sampled_ = 0;      // that have left, as far as sampled
  uint32_t next_ack_ = 0;                // that is looked at
  Time next_left_ = 0, next_arrival_ = kNever;
  Time average_ = kNever, sampled_at_ = 0;
  Time apart_ = kMillisecond;            // that are looked at, at least
  Time each_ = 0;                        // the unit of time stamps, if each counts
  int64_t window_end_ = 0;               // of the stream: a round trip is over
};

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
