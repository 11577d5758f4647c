// What has been sent and not yet acknowledged: the scoreboard of losses and retransmissions, acknowledgement processing,
// RTT and delivery-rate samples.
#include <algorithm>
#include <stdexcept>

#include "netbuf/flow.h"

namespace netbuf {

// ---- scoreboard

void Flow::retransmit(uint32_t index) {
  Segment& segment = segments[index];
  if (!(segment.flags & kRetransmitted)) {
    ++tcb.retrans_out;
    if (segment.flags & kLost) --lost_pending_;
  }
  segment.flags |= kRetransmitted | kEverRetransmitted;
  transmit(index, true);
  recovery_->on_retransmitted(*this, index);
  if (closes_ && tcb.stack == Stack::ns3) {
    measure_tail();
    tcb.cwnd_limited = tcb.cwnd < tcb.bytes_in_flight() + tcb.mss;
  }
}

bool Flow::retransmit_next_lost() {
  uint32_t index;
  if (!next_lost(index)) return false;
  retransmit(index);
  return true;
}

bool Flow::next_lost(uint32_t& index) {
  if (lost_pending_ == 0) return false;
  if (before(lost_hint_, tcb.una)) lost_hint_ = tcb.una;
  for (; before(lost_hint_, tcb.nxt); ++lost_hint_) {
    if (retransmit_limited_ && !before(lost_hint_, retransmit_below_)) return false;
    if ((segments[lost_hint_].flags & (kLost | kRetransmitted | kSacked)) == kLost) {
      index = lost_hint_;
      return true;
    }
  }
  throw std::logic_error("scoreboard: lost segments are counted but none is found");
}

void Flow::mark_lost(uint32_t index) {
  Segment& segment = segments[index];
  if (segment.flags & kSacked) return;
  if (segment.flags & kLost) {
    if (!(segment.flags & kRetransmitted)) return;
  } else {
    ++tcb.lost_out;
  }
  if (segment.flags & kRetransmitted) --tcb.retrans_out;
  segment.flags = static_cast<uint8_t>((segment.flags | kLost) & ~kRetransmitted);
  ++tcb.lost;
  ++lost_pending_;
  if (lost_pending_ == 1 || before(index, lost_hint_)) lost_hint_ = index;
}

void Flow::mark_lost_once(uint32_t index) {
  Segment& segment = segments[index];
  if (segment.flags & (kSacked | kLost)) return;
  segment.flags |= kLost;
  ++tcb.lost_out;
  ++tcb.lost;
  if (segment.flags & kRetransmitted) return;
  ++lost_pending_;
  if (lost_pending_ == 1 || before(index, lost_hint_)) lost_hint_ = index;
}

void Flow::unmark_lost(uint32_t index) {
  Segment& segment = segments[index];
  if (!(segment.flags & kLost)) return;
  if (!(segment.flags & kRetransmitted)) --lost_pending_;
  --tcb.lost_out;
  segment.flags = static_cast<uint8_t>(segment.flags & ~kLost);
}

void Flow::forget_retransmission(uint32_t index) {
  Segment& segment = segments[index];
  if (!(segment.flags & kRetransmitted)) return;
  segment.flags = static_cast<uint8_t>(segment.flags & ~kRetransmitted);
  --tcb.retrans_out;
  if (before(index, unsacked_hint_)) unsacked_hint_ = index;
  if (segment.flags & kLost) {
    ++lost_pending_;
    if (lost_pending_ == 1 || before(index, lost_hint_)) lost_hint_ = index;
  }
}

// ---- acknowledgements

void Flow::receive_ack(const Ack& ack) {
  if (ack.flags & kAckSynAck) [[unlikely]] return establish(ack);
  if (time_wait_until_ != kNever) [[unlikely]] return answer_late(ack);
  if (ack.flags & kAckFin) [[unlikely]] return receive_fin(ack);
  if (ack.flags == kAckWindow && ack.ack == tcb.una) [[unlikely]] {  // tells of the window only
    note_window(ack.window);
    return try_send();
  }
  if (counters.acks++ == 0) first_ack_ = tcb.now;
  counters.last_ack = tcb.now;
  AckWork work;
  work.prior_in_flight = tcb.in_flight();
  const bool untroubled = tcb.state == CaState::open && (tcb.sacked_out | tcb.lost_out | tcb.retrans_out) == 0;
  if (untroubled && ack.flags == 0 && !rate_marks_ && after(ack.ack, tcb.una)) [[likely]] {
    acknowledge_in_order(ack, work);
  } else {
    acknowledge(ack, work);
  }
  if (ack.window != kUnlimitedWindow) note_window(ack.window);
  if (work.delivered > 0) {
    tcb.delivered += work.delivered;
    tcb.delivered_time = tcb.now;
    counters.segments_acked += work.delivered;
    note_rtt(work);
    if (rate_marks_) finish_rate_sample(work);
  }
  counters.in_flight_sum += tcb.in_flight();

  const bool undisturbed = untroubled && !recovery_takes_all_ && work.una_advanced && !work.sack_seen && !work.duplicate;
  if (!undisturbed) [[unlikely]] {
    recovery_->on_ack(*this, work);
    return;
  }
  backoff_ = 0;
  recovery_->on_clean_ack(*this, work);
  cc_->on_ack(tcb, work);
  if (cc_->owns_window()) {
    cc_->control(tcb, work);
  } else if (may_grow()) {
    cc_->increase_window(tcb, work);
  }
  try_send();
}

// Nothing was lost, retransmitted or reordered in what is outstanding: it was sent in the order in which it is
// acknowledged, each segment once.
void Flow::acknowledge_in_order(const Ack& ack, AckWork& work) {
  if (after(ack.ack, tcb.nxt)) throw std::logic_error("acknowledgement of data that was never sent");
  work.prior_una = tcb.una;
  work.echo_sent = ack.echo_sent;
  work.una_advanced = work.acked_original = true;
  work.acked = work.delivered = ack.ack - tcb.una;
  work.oldest_sent = segments[tcb.una].sent_at;
  work.latest_segment = ack.ack - 1;
  work.newest_sent = work.latest_sent = segments[work.latest_segment].sent_at;
  if (short_segments_) {
    for (uint32_t i = tcb.una; i != ack.ack; ++i) work.acked_bytes += segments[i].bytes;
    work.short_bytes = static_cast<uint32_t>(static_cast<int64_t>(work.acked) * tcb.mss - work.acked_bytes);
  } else {
    work.acked_bytes = static_cast<int64_t>(work.acked) * tcb.mss;
  }
  counters.acked_bytes += work.acked_bytes;
  una_bytes_ += work.acked_bytes;
  tcb.una = ack.ack;
  segments.pop_to(ack.ack);
}

void Flow::acknowledge(const Ack& ack, AckWork& work) {
  work.prior_una = tcb.una;
  work.duplicate = ack.flags & kAckDuplicate;
  work.echo_sent = ack.echo_sent;
  if (after(ack.ack, tcb.una)) {
    if (after(ack.ack, tcb.nxt)) throw std::logic_error("acknowledgement of data that was never sent");
    work.una_advanced = true;
    work.acked = ack.ack - tcb.una;
    for (uint32_t i = tcb.una; i != ack.ack; ++i) {
      const Segment& segment = segments[i];
      work.acked_bytes += segment.bytes;
      if (segment.flags == 0) [[likely]] {
        note_delivered(i, segment, work);
        if (work.oldest_sent < 0) work.oldest_sent = segment.sent_at;
        work.acked_original = true;
        counters.acked_bytes += segment.bytes;
        continue;
      }
      if (segment.flags & kSacked) {
        --tcb.sacked_out;
      } else {
        note_delivered(i, segment, work);
        counters.acked_bytes += segment.bytes;
        if (!(segment.flags & kEverRetransmitted)) work.acked_original = true;
      }
      if (segment.flags & kEverRetransmitted) work.acked_retransmitted = true;
      if (segment.flags & kLost) {
        --tcb.lost_out;
        if (!(segment.flags & kRetransmitted)) --lost_pending_;
      }
      if (segment.flags & kRetransmitted) {
        --tcb.retrans_out;
        if (!(segment.flags & kSacked)) work.acked_retransmission = true;
      }
    }
    if (work.acked_retransmitted) work.newest_sent = -1;  // the others may have arrived long before the ACK that tells
    if (have_highest_sacked_ && !after(highest_sacked_, ack.ack)) have_highest_sacked_ = false;
    una_bytes_ += work.acked_bytes;
    tcb.una = ack.ack;
    segments.pop_to(ack.ack);
    if (rate_marks_) rate_marks_->pop_to(ack.ack);
    if (!sacked.empty()) sacked.trim(ack.ack);
  }
  if (ack.flags & kAckHasSack) [[unlikely]] {
    work.sack_seen = true;
    // Blocks but the first repeat what the ACK before said: nothing new is in them.
    const auto reported = [previous = last_blocks_](const Range& block) {
      for (uint32_t i = 0; i < previous.count; ++i) {
        if (previous.block[i].begin == block.begin && previous.block[i].end == block.end) return true;
      }
      return false;
    };
    const SackBlocks blocks = last_blocks_ = sack_ring_[ack.sack];
    sack_ring_.pop_to(ack.sack + 1);
    for (uint32_t k = 0; k < blocks.count; ++k) {
      uint32_t begin = blocks.block[k].begin, end = blocks.block[k].end;
      if (!after(end, tcb.una) || reported(blocks.block[k])) continue;
      if (before(begin, tcb.una)) begin = tcb.una;
      sacked.add(begin, end, [&](uint32_t from, uint32_t to) {
        for (uint32_t i = from; i != to; ++i) {
          Segment& segment = segments[i];
          note_delivered(i, segment, work);
          counters.acked_bytes += segment.bytes;
          if (!(segment.flags & kEverRetransmitted)) work.acked_original = true;
          if (segment.flags & kLost) {
            --tcb.lost_out;
            if (!(segment.flags & kRetransmitted)) --lost_pending_;
          }
          segment.flags = static_cast<uint8_t>((segment.flags & ~kLost) | kSacked);
          if (tcb.stack == Stack::linux_kernel && (segment.flags & kRetransmitted)) forget_retransmission(i);
          ++tcb.sacked_out;
          ++work.newly_sacked;
          if (!have_highest_sacked_ || !after(highest_sacked_, i + 1)) highest_sacked_ = i, have_highest_sacked_ = true;
        }
      });
    }
  }
}

void Flow::note_delivered(uint32_t index, const Segment& segment, AckWork& work) {
  ++work.delivered;
  work.short_bytes += tcb.mss - segment.bytes;
  if (!(segment.flags & kEverRetransmitted)) {
    if (segment.sent_at > work.newest_sent) work.newest_sent = segment.sent_at;
  }
  if (segment.sent_at >= work.latest_sent) {
    work.latest_sent = segment.sent_at;
    work.latest_segment = index;
    work.latest_retransmitted = segment.flags & kEverRetransmitted;
  }
  if (rate_marks_) {
    const RateMark& mark = (*rate_marks_)[index];
    if (!have_mark_ || segment.sent_at > newest_mark_sent_ ||
        (segment.sent_at == newest_mark_sent_ && after(index, newest_mark_segment_))) {
      have_mark_ = true;
      newest_mark_ = mark;
      newest_mark_sent_ = segment.sent_at;
      newest_mark_segment_ = index;
      newest_mark_retransmitted_ = segment.flags & kEverRetransmitted;
    }
  }
}

void Flow::finish_rate_sample(AckWork& work) {
  if (tcb.app_limited && after(tcb.delivered, tcb.app_limited)) tcb.app_limited = 0;
  if (!have_mark_) return;
  have_mark_ = false;
  tcb.first_sent_time = newest_mark_sent_;
  const Time send_phase = newest_mark_sent_ - newest_mark_.first_sent_time;
  const Time ack_phase = tcb.now - newest_mark_.delivered_time;
  work.rate.prior_delivered = newest_mark_.delivered;
  work.rate.interval = std::max(send_phase, ack_phase);
  work.rate.app_limited = newest_mark_.app_limited != 0;
  work.rate.retransmitted = newest_mark_retransmitted_;
  work.rate.delivered = static_cast<int64_t>(tcb.delivered - newest_mark_.delivered);
  if (work.rate.interval < tcb.min_rtt) {  // a rate beyond belief: a retransmission ACKed by the original's ACK
    work.rate.interval = 0;
    work.rate.delivered = -1;
  }
}

void Flow::note_rtt(AckWork& work) {
  Time sent = work.newest_sent;
  if (sent < 0 && work.una_advanced) sent = work.echo_sent;  // retransmitted: the time stamp tells which copy arrived
  if (sent < 0) return;
  const Time rtt = tcb.now - sent;
  work.rtt = tcb.last_rtt = rtt;
  if (rtt < tcb.min_rtt) tcb.min_rtt = rtt;
  if (rtt < interval_rtt_min) {
    interval_rtt_min = rtt;
    rtt_min = std::min(rtt_min, rtt);
  }
  ++counters.rtt_count;
  counters.rtt_sum += static_cast<double>(rtt);
}

}  // namespace netbuf
