// The receiving end: in-order delivery, delayed and selective acknowledgements (RFC 1122, 2018, 2883, 5681), flow control.
#include <algorithm>

#include "netbuf/flow.h"

namespace netbuf {

namespace {
constexpr uint32_t kImmediateDuplicates = 3;   // Linux: SACK compression begins after these
constexpr uint32_t kCompressionLimit = 44;     // Linux: tcp_comp_sack_nr
constexpr int64_t kLargestWindow = 40 << 20;   // a tcp_rmem maximum of 64 MiB, of which five eighths may be payload
}  // namespace

void Flow::receive(const Packet& packet) {
  if (is_data(packet.kind)) [[likely]] return receive_data(packet);
  receive_small(packet);
}

void Flow::receive_small(const Packet& packet) {
  if (packet.kind == kWindowProbe) return send_ack(kAckWindow);
  if (packet.kind == kHandshakeAck) {
    if (receiving_ == Receiving::syn) static_cast<void>(accept(packet));
    return;
  }
  if (packet.kind == kFinalAck || packet.kind == kReset) {
    if (receiving_ != Receiving::last_ack) return;
    receiving_ = Receiving::closed;
    return set_receiver_timer(kNever);
  }
  if (packet.kind == kSyn && (receiving_ == Receiving::nothing || receiving_ == Receiving::syn)) {
    if (receiving_ == Receiving::nothing) {
      receiving_ = Receiving::syn;
      echo_sent_ = packet.sent_at;
      syn_answered_ = tcb.now;
      set_receiver_timer(tcb.now + profile_.initial_rto);
    } else if (tcb.stack == Stack::ns3 && ++receiver_tries_ == profile_.syn_tries) {  // answers count, whoever asked for them
      receiving_ = Receiving::closed;
      return;
    }
    quick_acks_ = profile_.quick_acks;
    if (tcb.stack == Stack::linux_kernel) echo_sent_ = packet.sent_at;
    answer_syn();
  }
}

void Flow::answer_syn() { backward(Ack{tcb.now, 0, advertised_window(), kAckSynAck, 0, echo_sent_}, 0, tcb.now); }

// Something has come back that the sender could only send after the answer to its SYN: the first such packet measures the
// round trip. False if it must be ignored: ns-3 does not know what to do with FIN beyond a hole in this state.
bool Flow::accept(const Packet& packet) {
  if (receiver_rtt_ == 0) measure_receiver_rtt();
  const bool fin = closes_ && is_data(packet.kind) && stream_left() <= 0 && packet.segment == tcb.nxt - 1;
  if (tcb.stack == Stack::ns3 && fin && packet.segment != rcv_nxt_) return false;
  receiving_ = Receiving::stream;
  echo_sent_ = packet.sent_at;
  set_receiver_timer(kNever);
  return true;
}

void Flow::measure_receiver_rtt() {
  const Time unit = std::max<Time>(1, profile_.rtt_granularity);
  receiver_rtt_ = std::max(tcb.now / unit - syn_answered_ / unit, Time{0}) * unit;
  if (receiver_rtt_ == 0) receiver_rtt_ = kMicrosecond;
}

// The stream has arrived with its FIN, and the application has nothing to say. ns-3 acknowledges what came in order, sends
// its FIN, and acknowledges once more; in Linux the FIN is the acknowledgement.
void Flow::close_receiver(bool in_order) {
  const bool ns3 = tcb.stack == Stack::ns3;
  if (ns3 && in_order) send_ack();
  send_ack(kAckFin);
  if (ns3) send_ack();
  receiving_ = Receiving::last_ack;
  receiver_tries_ = 0;
  const Time spread = std::max(profile_.rtt_granularity, 2 * receiver_rtt_);
  if (ns3) {  // two timers at once
    fin_interval_ = receiver_rtt_ + spread;
    fin_repeat_ = tcb.now + fin_interval_;
    fin_timeout_ = tcb.now + std::max(fin_interval_, profile_.min_rto);
  } else {
    fin_interval_ = receiver_rtt_ + std::max(spread, profile_.min_rto);
    fin_timeout_ = tcb.now + fin_interval_;
  }
  set_receiver_timer(std::min(fin_repeat_, fin_timeout_));
}

void Flow::set_receiver_timer(Time deadline) {
  delayed_ack_deadline_ = deadline;
  set_head(kDelayedAckHead, deadline);
}

// A delayed ACK is due; or nobody has answered the answer to the SYN, or the FIN.
void Flow::on_receiver_timer() {
  if (receiving_ == Receiving::syn) {
    if (++receiver_tries_ == profile_.syn_tries) {
      receiving_ = Receiving::closed;
      return;
    }
    answer_syn();
    return set_receiver_timer(tcb.now + std::min(profile_.initial_rto << std::min(receiver_tries_, 15u), profile_.max_rto));
  }
  if (receiving_ != Receiving::last_ack) return send_ack();
  if (fin_repeat_ <= tcb.now) {
    send_ack(kAckFin);
    fin_repeat_ = tcb.now + fin_interval_;
  }
  if (fin_timeout_ <= tcb.now) {
    send_ack(kAckFin);
    if (tcb.stack == Stack::ns3) {
      fin_timeout_ = tcb.now + std::max(fin_interval_, profile_.min_rto);
    } else {
      fin_timeout_ = tcb.now + std::min(fin_interval_ << std::min(++receiver_tries_, 15u), profile_.max_rto);
    }
  }
  set_receiver_timer(std::min(fin_repeat_, fin_timeout_));
}

void Flow::receive_data(const Packet& packet) {
  const uint32_t index = packet.segment;
  ++counters.packets_received;
  if (receiving_ != Receiving::stream) [[unlikely]] {
    if (receiving_ == Receiving::closed) return;
    if (receiving_ == Receiving::last_ack) {  // a copy of what has arrived
      const Time deadline = delayed_ack_deadline_;
      send_ack(kAckDuplicate);
      return set_receiver_timer(deadline);
    }
    if (!accept(packet)) return;
  }
  if (tune_window_) {  // after a long silence the sender starts anew and needs every ACK
    if (tcb.now - last_received_ > tcb.min_rtt + profile_.min_rto && last_received_ > 0) quick_acks_ = std::max(quick_acks_, profile_.quick_acks);
    last_received_ = tcb.now;
  }
  if (receiver_control_) [[unlikely]] {
    const int64_t unread = sink_ ? counters.delivered_bytes - read_bytes_ : 0;
    window_clamp_ = receiver_control_->window({tcb.now, packet.sent_at, counters.delivered_bytes, unread, window_edge_ - counters.delivered_bytes, tcb.mss}, packet);
  }
  if (index == rcv_nxt_ && index == last_ack_sent_) echo_sent_ = packet.sent_at;  // RFC 7323, 4.3
  if (index == rcv_nxt_) [[likely]] {
    int64_t bytes = packet.bytes;
    ++rcv_nxt_;
    if (out_of_order_.empty()) [[likely]] {
      deliver(bytes);
      if (closes_ && completed_ != kNever) [[unlikely]] return close_receiver(true);
      if (tune_window_ && (tuning_.offered < tuning_.allowed || tcb.now - tuning_.round_start >= tcb.srtt)) [[unlikely]] {
        tune_window(packet.bytes);
      }
      if (++unacked_segments_ >= profile_.delayed_ack_packets || quick_acks_ > 0 || packet.kind == kPushedData) {
        send_ack();
      } else if (delayed_ack_deadline_ == kNever) {
        delayed_ack_deadline_ = tcb.now + profile_.delayed_ack_timeout;
        if (delayed_ack_deadline_ < rest_[kDelayedAckHead - kTimerHead]) set_head(kDelayedAckHead, delayed_ack_deadline_);
      }
      return;
    }
    const Range first = out_of_order_.ranges().front();
    if (first.begin == rcv_nxt_) {
      for (; rcv_nxt_ != first.end; ++rcv_nxt_) {
        bytes += segments[rcv_nxt_].bytes;
        out_of_order_bytes_ -= segments[rcv_nxt_].bytes;
      }
      out_of_order_.trim(rcv_nxt_);
      std::erase_if(recent_blocks_, [&](const Range& r) { return !after(r.end, rcv_nxt_); });
    }
    deliver(bytes);
    if (closes_ && completed_ != kNever) [[unlikely]] return close_receiver(false);
    if (tune_window_) tune_window(packet.bytes);
    send_ack();
    return;
  }
  if (before(index, rcv_nxt_) || out_of_order_.find(index)) {  // had it already
    if (profile_.quick_acks > 1) quick_acks_ = profile_.quick_acks;
    // ns-3 echoes in-order segments only. What the sender has done with gives it no sample either.
    if (tcb.stack == Stack::linux_kernel && !before(index, tcb.una) && !after(index, last_ack_sent_)) {
      echo_sent_ = std::max(echo_sent_, packet.sent_at);
    }
    send_ack(kAckDuplicate);
    return;
  }
  out_of_order_.add(index, index + 1);
  out_of_order_bytes_ += packet.bytes;
  // The list joins only what it still holds: what has dropped out of it is not reported again (Linux and ns-3 alike).
  Range block{index, index + 1};
  std::erase_if(recent_blocks_, [&](const Range& r) {
    if (r.end == block.begin) {
      block.begin = r.begin;
    } else if (r.begin == block.end) {
      block.end = r.end;
    } else {
      return false;
    }
    return true;
  });
  recent_blocks_.insert(recent_blocks_.begin(), block);
  if (recent_blocks_.size() > 4) recent_blocks_.pop_back();

  if (tune_window_) {
    tune_window(packet.bytes);
    if (quick_acks_ > 0) return send_ack();
  }
  if (compressed_at_ != rcv_nxt_) {
    compressed_at_ = rcv_nxt_;
    duplicates_sent_ = 0;
  }
  if (profile_.compressed_ack_delay == 0 || duplicates_sent_ < kImmediateDuplicates) {
    ++duplicates_sent_;
    return send_ack();
  }
  if (++compressed_ > kCompressionLimit) return send_ack();
  if (delayed_ack_deadline_ == kNever || compressed_ == 1) {
    delayed_ack_deadline_ = tcb.now + std::min(profile_.compressed_ack_delay, tcb.min_rtt * 33 / 100);
    if (delayed_ack_deadline_ < rest_[kDelayedAckHead - kTimerHead]) set_head(kDelayedAckHead, delayed_ack_deadline_);
  }
}

// Linux acknowledges every segment while the window it offers grows (tcp_grow_window): by two segments a segment received,
// up to what the buffer allows. The buffer itself grows, with each round trip in which the application read more than in any
// before, to hold a doubling of that (dynamic right-sizing, tcp_rcv_space_adjust). The window is ahead of any sender here
// that is not limited by its own; what shows is the ACKs.
void Flow::tune_window(int64_t bytes) {
  WindowTuning& w = tuning_;
  if (w.offered < w.allowed) {
    w.offered = std::min(w.offered + 2 * bytes, w.allowed);
    quick_acks_ |= 1;
  }
  if (tcb.now - w.round_start < tcb.srtt) return;
  const int64_t read = counters.delivered_bytes - w.round_bytes;
  if (read > w.largest_round) {
    w.allowed = std::clamp(2 * read + 4 * read * (read - w.largest_round) / w.largest_round, w.allowed, kLargestWindow);
    w.largest_round = read;
  }
  w.round_start = tcb.now;
  w.round_bytes = counters.delivered_bytes;
}

void Flow::send_ack(uint32_t flags) {
  if (quick_acks_ > 0) --quick_acks_;
  unacked_segments_ = compressed_ = 0;
  delayed_ack_deadline_ = kNever;
  last_ack_sent_ = rcv_nxt_;
  Ack ack{tcb.now, rcv_nxt_, advertised_window(), flags, 0, echo_sent_};
  if (!recent_blocks_.empty()) [[unlikely]] {
    SackBlocks blocks{};
    blocks.count = std::min<uint32_t>(profile_.max_sack_blocks, static_cast<uint32_t>(recent_blocks_.size()));
    std::copy_n(recent_blocks_.begin(), blocks.count, blocks.block);
    ack.flags |= kAckHasSack;
    ack.sack = sack_ring_.tail();
    sack_ring_.push(blocks);
  }
  backward(ack, 0, tcb.now);
}

void Flow::deliver(int64_t bytes) {
  counters.delivered_bytes += bytes;
  if (sink_) [[unlikely]] read_bytes_ = sink_->read(tcb.now, counters.delivered_bytes);
  if (stream_closed_) finish_stream();
}

void Flow::finish_stream() {
  if (!stream_closed_ || completed_ != kNever || counters.delivered_bytes != stream_written_) return;
  completed_ = tcb.now;
  if (sink_) sink_->closed(tcb.now);
}

void Flow::attach(std::unique_ptr<ReceiverControl> control) {
  receiver_control_ = std::move(control);
  if (!receiver_control_) return;
  window_clamp_ = receiver_control_->initial_window();
  unhindered_ = false;
}

void Flow::wake_sink(Time now) {
  set_head(kSinkHead, now);
  refresh_next();
}

void Flow::on_sink() {
  read_bytes_ = sink_->read(tcb.now, counters.delivered_bytes);
  int64_t step;
  const int64_t edge = window_edge(step);
  // As Linux does: only a window that has at least doubled is worth an ACK of its own.
  if (edge - window_edge_ < std::max<int64_t>(1, step) || edge - counters.delivered_bytes < 2 * (window_edge_ - counters.delivered_bytes)) return;
  if (receive_buffer_ > 0 || receiver_control_) send_ack(kAckWindow);
}

// What the buffer has left beyond what the application has not read yet, within what the control allows.
int64_t Flow::window_edge(int64_t& step) const {
  int64_t space = window_clamp_;
  step = std::min<int64_t>(tcb.mss, window_clamp_ / 2);
  if (receive_buffer_ > 0) {
    space = std::min(space, receive_buffer_ - (sink_ ? counters.delivered_bytes - read_bytes_ : 0));
    step = std::min(step, receive_buffer_ / 2);
  }
  return counters.delivered_bytes + space;
}

// RFC 9293, 3.8.6: never takes back what was advertised, nor moves its right edge by silly steps (3.8.6.2.2).
uint32_t Flow::advertised_window() {
  if (receive_buffer_ == 0 && !receiver_control_) [[likely]] return kUnlimitedWindow;
  int64_t step;
  const int64_t edge = window_edge(step);
  if (edge > window_edge_ && edge - window_edge_ >= step) window_edge_ = edge;
  return static_cast<uint32_t>(std::clamp<int64_t>(window_edge_ - counters.delivered_bytes, 0, kUnlimitedWindow - 1));
}

}  // namespace netbuf
