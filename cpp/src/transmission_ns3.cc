// How ns-3.44 sends what its window lets go: a segment at a time, each as soon as it fits.
#include <algorithm>

#include "netbuf/sender.h"

namespace netbuf {

// TcpSocketBase's pacing: a timer that runs for as long as the rate needs for a segment; nothing leaves meanwhile but
// what recovery sends at once. The first window is not paced.
void Sender::start_pacing(uint32_t bytes) {
  if (tcb.pacing_rate <= 0 || tcb.nxt < tcb.initial_cwnd || paced_out()) return;
  tcb.next_departure = tcb.now + static_cast<Time>(bytes * 1e9 / tcb.pacing_rate + 0.5);
  timers_.set_no_later(Alarm::wakeup, tcb.next_departure);
}

bool Sender::waits_for_pacing() {
  if (!paced_out()) return false;
  timers_.set_no_later(Alarm::wakeup, tcb.next_departure);
  return true;
}

void transmit_ns3(Sender& s) {
  if (s.closes_) return s.send_finite();
  Tcb& tcb = s.tcb;
  const uint32_t nxt = tcb.nxt;
  while (tcb.in_flight() < tcb.cwnd_packets && !s.waits_for_pacing()) {
    if (s.board.waiting() > 0 && s.retransmit_next_lost()) continue;
    if (s.traits_.unhindered && tcb.packets_out() > 0 && s.board.waiting() == 0) [[likely]] {
      s.send_full_segments(tcb.cwnd_packets - tcb.in_flight(), kData);
      break;
    }
    if (!s.send_new_segment()) break;
    s.start_pacing(tcb.mss);
  }
  const uint32_t in_flight = tcb.in_flight();
  if (!s.traits_.recovery_takes_all || tcb.nxt != nxt || in_flight >= tcb.cwnd_packets) {
    tcb.cwnd_limited = in_flight >= tcb.cwnd_packets;
  }
  if (tcb.packets_out() > tcb.max_packets_out || !before(tcb.una, s.max_packets_seq_)) {
    tcb.max_packets_out = tcb.packets_out();
    s.max_packets_seq_ = tcb.nxt;
  }
  if (tcb.nxt != nxt) s.recovery_->on_new_data(s, tcb.nxt - nxt);
  if (s.board.rate && s.stream_left() <= 0 && s.board.waiting() == 0 && !tcb.cwnd_limited) {
    tcb.app_limited = std::max(1u, tcb.delivered + in_flight);
  }
}

// A stream whose end is in sight. The last segment may be short, so that bytes count; it carries FIN, and once it has
// been sent, an undisturbed sender sends nothing again: what was lost waits for duplicate ACKs or the time-out.
void Sender::send_finite() {
  const uint32_t nxt = tcb.nxt;
  bool sent = false;
  while (stream_left() > 0 || tcb.state != CaState::open) {
    if (waits_for_pacing()) break;
    measure_tail();
    const int64_t room = tcb.cwnd - tcb.bytes_in_flight();
    uint32_t index;
    if (board.next_lost(index) ||
        (stream_left() <= 0 && tcb.state == CaState::recovery && board.next_unsacked(index))) {
      if (room < board.segments[index].bytes) break;
      retransmit(index);
    } else {
      if (room < std::min<int64_t>(stream_left(), tcb.mss) || !send_new_segment()) break;
      start_pacing(board.segments[tcb.nxt - 1].bytes);
    }
    sent = true;
  }
  if (tcb.nxt != nxt) recovery_->on_new_data(*this, tcb.nxt - nxt);
  if (sent) {
    measure_tail();
    tcb.cwnd_limited = tcb.cwnd < tcb.bytes_in_flight() + tcb.mss;
  }
}

}  // namespace netbuf
