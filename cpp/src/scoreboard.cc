#include "netbuf/scoreboard.h"

#include <algorithm>
#include <stdexcept>

namespace netbuf {

void Scoreboard::push(Time now, uint16_t bytes, bool fin, uint8_t transmissions) {
  if (bytes < tcb_.mss) short_segments_ = true;
  Segment& segment = segments.place();
  segment.sent_at = now;
  segment.bytes = bytes;
  segment.flags = 0;
  segment.transmissions = transmissions;
  segment.fin = fin;
}

void Scoreboard::mark_lost(uint32_t index) {
  Segment& segment = segments[index];
  if (segment.flags & kSacked) return;
  if (segment.flags & kLost) {
    if (!(segment.flags & kRetransmitted)) return;
  } else {
    ++tcb_.lost_out;
  }
  if (segment.flags & kRetransmitted) --tcb_.retrans_out;
  segment.flags = static_cast<uint8_t>((segment.flags | kLost) & ~kRetransmitted);
  ++tcb_.lost;
  wait(index);
  if (rate) rate->lost(tcb_, index);
}

void Scoreboard::mark_lost_once(uint32_t index) {
  Segment& segment = segments[index];
  if (segment.flags & (kSacked | kLost)) return;
  segment.flags |= kLost;
  ++tcb_.lost_out;
  ++tcb_.lost;
  if (!(segment.flags & kRetransmitted)) wait(index);
  if (rate) rate->lost(tcb_, index);
}

void Scoreboard::unmark_lost(uint32_t index) {
  Segment& segment = segments[index];
  if (!(segment.flags & kLost)) return;
  if (!(segment.flags & kRetransmitted)) --lost_pending_;
  --tcb_.lost_out;
  segment.flags = static_cast<uint8_t>(segment.flags & ~kLost);
}

void Scoreboard::mark_retransmitted(uint32_t index) {
  Segment& segment = segments[index];
  if (!(segment.flags & kRetransmitted)) {
    ++tcb_.retrans_out;
    if (segment.flags & kLost) --lost_pending_;
  }
  segment.flags |= kRetransmitted | kEverRetransmitted;
  if (!resent_ || !before(index, resent_below_)) resent_below_ = index + 1;
  resent_ = true;
}

void Scoreboard::forget_retransmission(uint32_t index) {
  Segment& segment = segments[index];
  if (!(segment.flags & kRetransmitted)) return;
  segment.flags = static_cast<uint8_t>(segment.flags & ~kRetransmitted);
  --tcb_.retrans_out;
  if (before(index, unsacked_hint_)) unsacked_hint_ = index;
  if (segment.flags & kLost) wait(index);
}

bool Scoreboard::next_lost(uint32_t& index) {
  if (lost_pending_ == 0) return false;
  if (before(lost_hint_, tcb_.una)) lost_hint_ = tcb_.una;
  for (; before(lost_hint_, tcb_.nxt); ++lost_hint_) {
    if (retransmit_limited_ && !before(lost_hint_, retransmit_below_)) return false;
    if ((segments[lost_hint_].flags & (kLost | kRetransmitted | kSacked)) == kLost) {
      index = lost_hint_;
      return true;
    }
  }
  throw std::logic_error("scoreboard: lost segments are counted but none is found");
}

bool Scoreboard::next_unsacked(uint32_t& index) {
  if (before(unsacked_hint_, tcb_.una)) unsacked_hint_ = tcb_.una;
  for (; before(unsacked_hint_, tcb_.nxt); ++unsacked_hint_) {
    if (retransmit_limited_ && !before(unsacked_hint_, retransmit_below_)) return false;
    if (segments[unsacked_hint_].flags & (kSacked | kRetransmitted)) continue;
    index = unsacked_hint_;
    return true;
  }
  return false;
}

// ---- acknowledgements

int64_t Scoreboard::acknowledge_in_order(uint32_t ack) {
  int64_t bytes = static_cast<int64_t>(ack - tcb_.una) * tcb_.mss;
  if (short_segments_) [[unlikely]] {
    bytes = 0;
    for (uint32_t i = tcb_.una; i != ack; ++i) bytes += segments[i].bytes;
  }
  tcb_.una = ack;
  segments.pop_to(ack);
  return bytes;
}

void Scoreboard::acknowledge(const Ack& ack, AckWork& work) {
  work.prior_una = tcb_.una;
  work.duplicate = ack.flags & kAckDuplicate;
  work.echo_sent = ack.echo_sent;
  if (!after(ack.ack, tcb_.una)) return;
  if (after(ack.ack, tcb_.nxt)) throw std::logic_error("acknowledgement of data that was never sent");
  work.una_advanced = true;
  work.acked = ack.ack - tcb_.una;
  if (tcb_.sacked_out > 0) [[unlikely]] note_filled(ack.ack, work);
  for (uint32_t i = tcb_.una; i != ack.ack; ++i) {
    const Segment& segment = segments[i];
    work.acked_bytes += segment.bytes;
    if (segment.flags == 0) [[likely]] {
      note_delivered(i, segment, work);
      if (work.oldest_sent < 0) work.oldest_sent = segment.sent_at;
      work.acked_original = true;
      continue;
    }
    if (segment.flags & kSacked) {
      --tcb_.sacked_out;
    } else {
      note_delivered(i, segment, work);
      if (!(segment.flags & kEverRetransmitted)) work.acked_original = true;
    }
    if (segment.flags & kEverRetransmitted) work.acked_retransmitted = true;
    if (segment.flags & kLost) {
      --tcb_.lost_out;
      if (!(segment.flags & kRetransmitted)) --lost_pending_;
    }
    if (segment.flags & kRetransmitted) {
      --tcb_.retrans_out;
      if (!(segment.flags & kSacked)) work.acked_retransmission = true;
    }
  }
  if (work.acked_retransmitted) work.newest_sent = -1;  // the others may have arrived long before the ACK that tells
  if (resent_ && !before(ack.ack, resent_below_)) resent_ = false;
  if (have_highest_sacked_ && !after(highest_sacked_, ack.ack)) have_highest_sacked_ = false;
  tcb_.una = ack.ack;
  segments.pop_to(ack.ack);
  if (rate) rate->forget(ack.ack);
  if (!sacked.empty()) sacked.trim(ack.ack);
}

// Whether a hole was filled by what had been sent once: it was reordered, not lost.
void Scoreboard::note_filled(uint32_t ack, AckWork& work) const {
  const uint32_t below = highest();
  for (uint32_t i = tcb_.una; i != ack && before(i, below); ++i) {
    if (!(segments[i].flags & (kSacked | kEverRetransmitted))) return note_late(i, below, work);
  }
}

void Scoreboard::acknowledge(const SackBlocks& blocks, AckWork& work, bool ends_retransmission) {
  if (blocks.has_duplicate) {
    work.duplicate_known = true;
    work.duplicate_segment = blocks.duplicate;
    if (blocks.count == 0) return;
  }
  work.sack_seen = true;
  const uint32_t below = highest();            // of what had arrived before
  // Blocks but the first repeat what the ACK before said: nothing new is in them.
  const auto reported = [previous = last_blocks_](const Range& block) {
    for (uint32_t i = 0; i < previous.count; ++i) {
      if (previous.block[i].begin == block.begin && previous.block[i].end == block.end) return true;
    }
    return false;
  };
  last_blocks_ = blocks;
  for (uint32_t k = 0; k < blocks.count; ++k) {
    uint32_t begin = blocks.block[k].begin, end = blocks.block[k].end;
    if (!after(end, tcb_.una) || reported(blocks.block[k])) continue;
    if (before(begin, tcb_.una)) begin = tcb_.una;
    sacked.add(begin, end, 0, [&](uint32_t from, uint32_t to) {
      for (uint32_t i = from; i != to; ++i) {
        Segment& segment = segments[i];
        note_delivered(i, segment, work);
        if (!(segment.flags & kEverRetransmitted)) {
          work.acked_original = true;
          if (before(i, below)) [[unlikely]] note_late(i, below, work);
        }
        if (segment.flags & kLost) {
          --tcb_.lost_out;
          if (!(segment.flags & kRetransmitted)) --lost_pending_;
        }
        segment.flags = static_cast<uint8_t>((segment.flags & ~kLost) | kSacked);
        if (ends_retransmission && (segment.flags & kRetransmitted)) forget_retransmission(i);
        ++tcb_.sacked_out;
        ++work.newly_sacked;
        if (!have_highest_sacked_ || !after(highest_sacked_, i + 1)) highest_sacked_ = i, have_highest_sacked_ = true;
      }
    });
  }
}

void Scoreboard::note_delivered(uint32_t index, const Segment& segment, AckWork& work) {
  ++work.delivered;
  work.delivered_bytes += segment.bytes;
  work.short_bytes += tcb_.mss - segment.bytes;
  if (!(segment.flags & kEverRetransmitted)) {
    if (segment.sent_at > work.newest_sent) work.newest_sent = segment.sent_at;
  }
  if (segment.sent_at >= work.latest_sent) {
    work.latest_sent = segment.sent_at;
    work.latest_segment = index;
    work.latest_retransmitted = segment.flags & kEverRetransmitted;
  }
  if (rate) rate->delivered(index, segment);
}

// ---- delivery rate samples

void RateSampler::lost(Tcb& tcb, uint32_t index) {
  if (!watcher_) return;
  const Mark& mark = marks_[index];
  RateSample sample;
  sample.prior_delivered = mark.delivered;
  sample.prior_lost = mark.lost;
  sample.sent_in_flight = mark.in_flight;
  sample.app_limited = mark.app_limited != 0;
  watcher_->on_lost(tcb, sample);
}

void RateSampler::mark(const Tcb& tcb, uint32_t segment) {
  // A new segment is counted when it has left.
  const uint32_t in_flight = tcb.in_flight() + (segment == tcb.nxt);
  marks_[segment] = {tcb.delivered_time, tcb.first_sent_time, tcb.delivered, tcb.app_limited, tcb.lost, in_flight};
}

void RateSampler::delivered(uint32_t index, const Segment& segment) {
  const Mark& mark = marks_[index];
  if (keeps_first_) {
    if (newest_.delivered != 0 && !after(mark.delivered, newest_.delivered)) return;
  } else if (have_ && segment.sent_at <= newest_sent_ &&
      (segment.sent_at != newest_sent_ || !after(index, newest_segment_))) {
    return;
  }
  have_ = true;
  newest_ = mark;
  newest_sent_ = segment.sent_at;
  newest_segment_ = index;
  newest_retransmitted_ = segment.flags & kEverRetransmitted;
}

double RateSampler::per_second(const RateSample& sample) {
  return static_cast<double>(sample.delivered) * 1e9 / static_cast<double>(std::max<Time>(sample.interval, 1));
}

void RateSampler::finish(Tcb& tcb, AckWork& work) {
  if (tcb.app_limited && after(tcb.delivered, tcb.app_limited)) tcb.app_limited = 0;
  if (have_) {
    tcb.first_sent_time = newest_sent_;
    send_phase_ = newest_sent_ - newest_.first_sent_time;
    ack_phase_ = tcb.now - newest_.delivered_time;
  } else if (!keeps_first_) {
    return;
  }
  have_ = false;
  work.rate.prior_delivered = newest_.delivered;
  work.rate.interval = std::max(send_phase_, ack_phase_);
  work.rate.app_limited = newest_.app_limited != 0;
  work.rate.retransmitted = newest_retransmitted_;
  work.rate.prior_lost = newest_.lost;
  work.rate.sent_in_flight = newest_.in_flight;
  work.rate.delivered = static_cast<int64_t>(tcb.delivered - newest_.delivered);
  if (work.rate.interval < tcb.min_rtt && !keeps_first_) {  // a rate beyond belief: a retransmission ACKed by the original's ACK
    work.rate.interval = 0;
    work.rate.delivered = -1;
    return;
  }
  // The last that the application did not limit, or a higher one that it did (tcp_rate_gen).
  if (!work.rate.app_limited || per_second(work.rate) >= estimate()) told_ = work.rate;
}

}  // namespace netbuf
