// The sender takes in an acknowledgement: RTT samples, counters, congestion control.
#include <algorithm>
#include <stdexcept>

#include "netbuf/sender.h"

namespace netbuf {

void Sender::receive(const Ack& ack) {
  tcb.now = ack.time;
  path_.round_trips.arrived(ack.ack, ack.time);
  if (ack.flags == 0 && traits_.takes_clean_acks && board.untroubled() && after(ack.ack, tcb.una)) [[likely]] {
    return process_clean(ack);
  }
  if ((ack.flags & ~kAckHasSack) != 0 || time_wait_until_ != kNever) [[unlikely]] return receive_special(ack);
  process(ack);
}

// What process() comes to while nothing is in trouble.
void Sender::process_clean(const Ack& ack) {
  if (after(ack.ack, tcb.nxt)) throw std::logic_error("acknowledgement of data that was never sent");
  const Time now = tcb.now;
  if (counters.acks++ == 0) first_ack_ = now;
  counters.last_ack = now;
  AckEvent event;
  event.una_advanced = true;
  event.prior_in_flight = tcb.nxt - tcb.una;
  event.acked = event.delivered = ack.ack - tcb.una;
  const Time oldest_sent = board.segments[tcb.una].sent_at, latest_sent = board.segments[ack.ack - 1].sent_at;
  event.acked_bytes = board.acknowledge_in_order(ack.ack);
  una_bytes_ += event.acked_bytes;
  counters.acked_bytes += event.acked_bytes;
  if (ack.window != kUnlimitedWindow) [[unlikely]] note_window(ack);
  tcb.delivered += event.delivered;
  tcb.delivered_time = now;
  counters.segments_acked += event.delivered;
  event.rtt = now - latest_sent;
  note_rtt(event.rtt);
  counters.in_flight_sum += tcb.nxt - tcb.una;
  backoff_ = 0;
  recovery_->on_clean_ack(*this, oldest_sent, latest_sent, ack.ack - 1);
  cc_->take_in(tcb, event);
  profile_.transmit(*this);
}

void Sender::process(const Ack& ack) {
  if (counters.acks++ == 0) first_ack_ = tcb.now;
  counters.last_ack = tcb.now;
  AckWork work;
  work.prior_in_flight = tcb.in_flight();
  work.echo = echo_;
  const bool untroubled = board.untroubled();
  board.acknowledge(ack, work);
  if (!profile_.time_stamps) [[unlikely]] work.echo_sent = -1;
  if (!profile_.sacks()) [[unlikely]] {
    // Not one that opens the window (FLAG_WIN_UPDATE).
    const bool opens = ack.window != kUnlimitedWindow && una_bytes_ + ack.window > window_right_;
    recovery_->count_arrivals(*this, work, ack.ack == tcb.una && tcb.packets_out() > 0 && !opens);
  }
  if (ack.flags & kAckHasSack) {
    path_.round_trips.arrived_with_blocks(ack.ack, static_cast<uint16_t>(ack.sack), tcb.now);
    board.acknowledge(path_.take_blocks(ack), work, profile_.sack_ends_retransmission);
  }
  una_bytes_ += work.acked_bytes;
  counters.acked_bytes += work.delivered_bytes;
  // Else overtaken by a later one.
  if (ack.window != kUnlimitedWindow && !before(ack.ack, work.prior_una)) note_window(ack);
  if (echo_) [[unlikely]] counters.segments_marked += work.marked = traits_.ecn_counts ? marked_ : work.delivered;
  if (work.delivered > 0) {
    tcb.delivered += work.delivered;
    tcb.delivered_time = tcb.now;
    counters.segments_acked += work.delivered;
    Time sent = work.newest_sent;
    if (sent < 0 && work.una_advanced) sent = work.echo_sent;  // retransmitted: the time stamp tells which copy arrived
    if (sent >= 0) note_rtt(work.rtt = tcb.now - sent);
    if (board.rate) board.rate->finish(tcb, work);
  }
  counters.in_flight_sum += tcb.in_flight();

  const bool undisturbed =
      untroubled && !traits_.recovery_takes_all && work.una_advanced && !work.sack_seen && !work.duplicate && !echo_;
  if (!undisturbed) return recovery_->on_ack(*this, work);
  backoff_ = 0;
  recovery_->on_clean_ack(*this, work.oldest_sent, work.latest_sent, work.latest_segment);
  cc_->take_in(tcb, work);
  profile_.transmit(*this);
}

void Sender::note_rtt(Time rtt) {
  tcb.last_rtt = rtt;
  if (rtt < tcb.min_rtt) tcb.min_rtt = rtt;
  if (rtt < interval_rtt_min) {
    interval_rtt_min = rtt;
    rtt_min = std::min(rtt_min, rtt);
  }
  ++counters.rtt_count;
  counters.rtt_sum += rtt;
}

}  // namespace netbuf
