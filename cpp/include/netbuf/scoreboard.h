// What has been sent and not yet acknowledged: which segments are lost, retransmitted, or have arrived out of order.
#pragma once
#include <memory>

#include "netbuf/packet.h"
#include "netbuf/ranges.h"
#include "netbuf/ring.h"
#include "netbuf/tcp.h"

namespace netbuf {

enum SegmentFlags : uint8_t {
  kSacked = 1,
  kLost = 2,           // inferred lost and not yet retransmitted, or its retransmission inferred lost
  kRetransmitted = 4,  // a retransmission is in flight
  kEverRetransmitted = 8,
};

struct Segment {
  Time sent_at;        // latest transmission
  uint16_t bytes;
  uint8_t flags;
  uint8_t transmissions;
  bool fin;            // the stream ends with it
  uint8_t reserved[3];
};
static_assert(sizeof(Segment) == 16);

// What one ACK brought, on its way through the sender.
struct AckWork : AckEvent {
  uint32_t prior_una = 0;
  bool sack_seen = false;        // the ACK carried SACK blocks
  uint32_t newly_sacked = 0;
  uint32_t short_bytes = 0;      // by how much what was delivered falls short of whole segments (ns-3, finite streams)
  int64_t delivered_bytes = 0;   // newly acknowledged, cumulatively or selectively
  bool acked_retransmitted = false;   // cumulatively acknowledged a segment that had been retransmitted
  bool acked_original = false;   // cumulatively acknowledged one that was sent once (after trouble: F-RTO, undo)
  Time newest_sent = -1;         // transmission time of the newest never-retransmitted segment delivered
  Time oldest_sent = -1;         // likewise the oldest, cumulatively acknowledged only
  bool acked_retransmission = false;  // cumulatively acknowledged one whose retransmission counted as in flight
  Time echo_sent = -1;           // when the segment was sent whose time stamp is echoed
  Time latest_sent = -1;         // transmission time of the latest transmission delivered, for RACK (RFC 8985)
  uint32_t latest_segment = 0;
  bool latest_retransmitted = false;
  // Something that was sent once arrived late: the lowest such segment, and where what had arrived ended.
  bool reordered = false;
  bool repeated = false;         // without SACK: a duplicate ACK, which counts as an arrival
  bool duplicate_known = false;  // a D-SACK told which segment arrived twice
  uint32_t reordered_segment = 0, reordered_below = 0, duplicate_segment = 0;
};

// Delivery rate samples (draft-cheng-iccrg-delivery-rate-estimation): the delivery state when each segment was sent.
// keeps_first, as ns-3's TcpRateOps: of the first segment that was sent after more had been delivered than the one
// before it, also for later ACKs that bring no such segment.
class RateSampler {
 public:
  explicit RateSampler(bool keeps_first) : keeps_first_(keeps_first) {}
  void push() { marks_.push(Mark{}); }
  void mark(const Tcb& tcb, uint32_t segment);
  void delivered(uint32_t index, const Segment& segment);
  void forget(uint32_t una) { marks_.pop_to(una); }
  void finish(Tcb& tcb, AckWork& work);  // the sample of an ACK
  size_t memory_bytes() const { return marks_.memory_bytes(); }
  void lost(Tcb& tcb, uint32_t index);
  void watch(CongestionControl* control) { watcher_ = control; }  // it is told of losses
  double estimate() const { return per_second(told_); }  // packets a second, as TCP_INFO tells it; 0: none yet

 private:
  struct Mark {
    Time delivered_time, first_sent_time;
    uint32_t delivered;
    uint32_t app_limited;
    uint32_t lost, in_flight;
  };
  static double per_second(const RateSample& sample);
  Ring<Mark> marks_;
  Mark newest_{};
  Time newest_sent_ = 0;
  uint32_t newest_segment_ = 0;
  bool have_ = false, newest_retransmitted_ = false, keeps_first_;
  Time send_phase_ = 0, ack_phase_ = 0;
  CongestionControl* watcher_ = nullptr;
  RateSample told_{.delivered = 0};
};

class Scoreboard {
 public:
  explicit Scoreboard(Tcb& tcb) : tcb_(tcb) {}
  Scoreboard(const Scoreboard&) = delete;
  Scoreboard& operator=(const Scoreboard&) = delete;

  Ring<Segment> segments;        // una .. nxt
  std::unique_ptr<RateSampler> rate;             // where the congestion control wants samples

  void push(Time now, uint16_t bytes, bool fin, uint8_t transmissions);
  bool untroubled() const {      // nothing was lost, retransmitted or reordered in what is outstanding
    return tcb_.state == CaState::open && !resent_ && (tcb_.sacked_out | tcb_.lost_out | tcb_.retrans_out) == 0;
  }
  // Of what is untroubled: it was sent in the order in which it is acknowledged, each segment once. The bytes.
  int64_t acknowledge_in_order(uint32_t ack);
  void acknowledge(const Ack& ack, AckWork& work);    // una moves to the ACK
  void acknowledge(const SackBlocks& blocks, AckWork& work, bool ends_retransmission);

  void mark_lost(uint32_t segment);              // also a retransmission that is lost in turn
  void mark_lost_once(uint32_t segment);         // leaves a retransmission in flight as it is (ns-3)
  void unmark_lost(uint32_t segment);
  void mark_retransmitted(uint32_t segment);
  void forget_retransmission(uint32_t segment);  // no longer in flight
  bool next_lost(uint32_t& segment);             // the lowest lost segment that is not on its way again; false: none
  bool next_unsacked(uint32_t& segment);  // RFC 6675's third rule: one that may be on its way, below what arrived
  uint32_t waiting() const { return lost_pending_; }  // lost segments that are not on their way again
  // Lost segments at or above this index wait (ns-3 resends only below the highest SACK).
  void limit_retransmissions(bool limited, uint32_t below) { retransmit_limited_ = limited, retransmit_below_ = below; }
  bool highest_sacked(uint32_t& index) const { return index = highest_sacked_, have_highest_sacked_; }
  // After the highest that arrived.
  uint32_t highest() const { return sacked.empty() ? tcb_.una : sacked.ranges().back().end; }
  bool has_short_segments() const { return short_segments_; }
  template <class Hot>
  void add_to(Hot& hot) const {
    if (!segments.empty()) hot.add(&segments.front(), 256);
  }
  size_t memory_bytes() const {
    return segments.memory_bytes() + sacked.memory_bytes() + (rate ? sizeof *rate + rate->memory_bytes() : 0);
  }

 private:
  void note_delivered(uint32_t index, const Segment& segment, AckWork& work);
  void note_filled(uint32_t ack, AckWork& work) const;
  static void note_late(uint32_t index, uint32_t below, AckWork& work) {
    if (work.reordered && !before(index, work.reordered_segment)) return;
    work.reordered = true;
    work.reordered_segment = index;
    work.reordered_below = below;
  }
  void wait(uint32_t segment) {
    ++lost_pending_;
    if (lost_pending_ == 1 || before(segment, lost_hint_)) lost_hint_ = segment;
  }

  Tcb& tcb_;
  uint32_t lost_hint_ = 0, lost_pending_ = 0;    // no segment below the hint waits for retransmission; how many wait
  uint32_t resent_below_ = 0;
  bool resent_ = false;          // below that something was retransmitted that is outstanding, whatever has come of it
  bool retransmit_limited_ = false, have_highest_sacked_ = false, short_segments_ = false;
  uint32_t unsacked_hint_ = 0;                   // every segment below it has arrived or is on its way again
  uint32_t retransmit_below_ = 0, highest_sacked_ = 0;

 public:
  RangeSet sacked;               // above una

 private:
  SackBlocks last_blocks_{};
};

}  // namespace netbuf
