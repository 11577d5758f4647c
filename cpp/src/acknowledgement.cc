// The sender takes in an acknowledgement: RTT samples, counters, congestion control.
#include <algorithm>

#include "netbuf/sender.h"

namespace netbuf {

void Sender::receive(const Ack& ack) {
  tcb.now = ack.time;
  if ((ack.flags & ~kAckHasSack) != 0 || time_wait_until_ != kNever) [[unlikely]] return receive_special(ack);
  process(ack);
}

void Sender::process(const Ack& ack) {
  if (counters.acks++ == 0) first_ack_ = tcb.now;
  counters.last_ack = tcb.now;
  AckWork work;
  work.prior_in_flight = tcb.in_flight();
  const bool untroubled = tcb.state == CaState::open && (tcb.sacked_out | tcb.lost_out | tcb.retrans_out) == 0;
  if (untroubled && ack.flags == 0 && !board.rate && after(ack.ack, tcb.una)) [[likely]] {
    board.acknowledge_in_order(ack, work);
  } else {
    board.acknowledge(ack, work);
    if (ack.flags & kAckHasSack) board.acknowledge(path_.take_blocks(ack), work, profile_.sack_ends_retransmission);
  }
  una_bytes_ += work.acked_bytes;
  counters.acked_bytes += work.delivered_bytes;
  if (ack.window != kUnlimitedWindow) note_window(ack.window);
  if (work.delivered > 0) {
    tcb.delivered += work.delivered;
    tcb.delivered_time = tcb.now;
    counters.segments_acked += work.delivered;
    note_rtt(work);
    if (board.rate) board.rate->finish(tcb, work);
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
  if (owns_window_) {
    cc_->control(tcb, work);
  } else if (may_grow()) {
    cc_->increase_window(tcb, work);
  }
  try_send();
}

void Sender::note_rtt(AckWork& work) {
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
  counters.rtt_sum += rtt;
}

}  // namespace netbuf
