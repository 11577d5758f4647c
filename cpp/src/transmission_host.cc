// How a sender at a host transmits: its socket's buffer gives back what is acknowledged, what is in it leaves as the
// stack would have it, and the application that waited for room writes on.
#include "netbuf/sender.h"
#include "netbuf/socket_buffer.h"

namespace netbuf {

void transmit_at_host(Sender& s) {
  SendBuffer& buffer = *s.buffer_;
  const auto position = [&] {
    return SendBuffer::Position{s.tcb.now,          s.una_bytes_,      s.stream_sent_,   s.tcb.una,
                                s.tcb.cwnd_packets, s.tcb.in_flight(), s.largest_window_};
  };
  buffer.acknowledged(position());
  if (!buffer.open()) [[unlikely]] s.update_source();
  const auto transmit = [&] {
    if (const Time until = buffer.held_back(s.tcb.now, s.window_rate())) {
      return s.timers_.set_no_later(Alarm::wakeup, until);
    }
    const uint32_t first = s.tcb.nxt;
    transmit_linux(s);
    const uint32_t count = s.tcb.nxt - first;
    if (count == 0) return;
    buffer.sent(s.tcb.now, first, count, count > 2 ? s.burst_limit() : 2);
    buffer.left(position(), s.tcb.may_grow());
  };
  transmit();
  while (buffer.wakes(position())) {
    const int64_t written = s.stream_written_;
    s.update_source();
    if (s.stream_written_ == written) break;
    transmit();
  }
  buffer.note(position(), s.paced_out() ? kEndless : s.window_right_ - s.stream_sent_);
}

}  // namespace netbuf
