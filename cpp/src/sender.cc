// The sending end: connection set-up, the application, transmission, flow control. Acknowledgements: acknowledgement.cc.
#include <algorithm>
#include <stdexcept>

#include "netbuf/flow.h"

namespace netbuf {

Flow::Flow(uint32_t index, const FlowConfig& config, const WorldConfig& world, const StackProfile& profile,
           std::vector<Link>& links, const std::vector<uint32_t>& link_uses, Rng* rng)
    : profile_(profile),
      cc_(make_congestion_control(config.cc, world.stack, config.cc_parameters)),
      recovery_(world.stack == Stack::linux_kernel ? make_linux_recovery() : make_ns3_recovery()),
      links_(links),
      rng_(rng),
      recovery_takes_all_(recovery_->takes_every_ack()),
      controlled_(config.controlled),
      start_(config.start_ns),
      stop_(config.stop_ns),
      send_buffer_(config.send_buffer_bytes),
      quick_acks_(profile_.quick_acks),
      receive_buffer_(config.receive_buffer_bytes),
      index_(index),
      priority_(config.priority) {
  tcb.stack = world.stack;
  tcb.mss = profile_.mss;
  tcb.hystart = world.hystart;
  tcb.initial_cwnd = config.initial_cwnd_packets;
  tcb.rng = rng;
  tcb.cwnd_since = start_;
  tcb.cwnd = static_cast<int64_t>(tcb.initial_cwnd) * tcb.mss;
  tcb.cwnd_packets = tcb.initial_cwnd;
  if (cc_->wants_rate()) rate_marks_ = std::make_unique<Ring<RateMark>>();
  source_ = make_source(config, tcb.mss, rng);
  closes_ = config.app == "sized";
  if (closes_) {
    stream_written_ = config.size_bytes;
    stream_closed_ = true;
  }
  unhindered_ = config.app == "bulk" && stop_ == 0 && send_buffer_ == 0 && receive_buffer_ == 0 && !rate_marks_;
  tune_window_ = world.stack == Stack::linux_kernel && receive_buffer_ == 0;
  paces_window_ = world.stack == Stack::linux_kernel && world.pacing && !cc_->owns_window();
  attach(make_receiver_control(config));
  build_path(config, link_uses);
  set_head(kAppHead, start_);
  refresh_next();
}

// ---- life of the connection

void Flow::on_app() {
  if (tcb.now == start_ && !syn_sent_) {
    start_connection();
    if (stop_ > 0) set_head(kAppHead, stop_);
    return;
  }
  if (stop_ > 0 && tcb.now >= stop_) {
    stream_written_ = std::min(stream_written_, stream_sent_);
    stream_closed_ = true;
    source_.reset();
    finish_stream();
    return;
  }
  update_source();
  try_send();
}

void Flow::start_connection() {
  syn_sent_ = true;
  launch(0, 0, kSyn);
  set_timer(tcb.now + profile_.initial_rto);
}

void Flow::establish(const Ack& ack) {
  if (tcb.established) {  // an answer to a SYN that was answered before, or the same again
    if (tcb.stack == Stack::linux_kernel) return launch(0, 0, kHandshakeAck);
    if (cc_->owns_window()) return;
    tcb.set_cwnd(static_cast<int64_t>(tcb.initial_cwnd) * tcb.mss);  // ns-3 starts anew with every SYN it gets
    tcb.ssthresh = kInfiniteWindow;
    return;
  }
  tcb.established = true;
  backoff_ = 0;
  set_timer(kNever);
  const Time rtt = tcb.now - ack.echo_sent;  // the time stamp tells which copy of the SYN is answered
  tcb.last_rtt = tcb.min_rtt = rtt;
  recovery_->on_established(*this, rtt);
  if (ack.window != kUnlimitedWindow) note_window(ack.window);
  tcb.delivered_time = tcb.first_sent_time = tcb.now;
  launch(0, 0, kHandshakeAck);
  cc_->init(tcb);
  update_source();
  if (tcb.stack == Stack::ns3) return schedule_wakeup(tcb.now + 1);  // an event of its own there
  try_send();
}

// The receiver has everything and closes too: the last ACK, and the sender remembers the connection for a while.
void Flow::receive_fin(const Ack& ack) {
  if (after(ack.ack, tcb.una)) {
    Ack plain = ack;
    plain.flags &= ~kAckFin;
    receive_ack(plain);
  }
  set_timer(kNever);
  time_wait_until_ = tcb.now + profile_.time_wait;
  launch(0, 0, kFinalAck);
}

// Something comes for a connection that is closed: the receiver has not heard the last ACK, or got a copy of a segment.
// ns-3's sender keeps silent, until it does not know the connection any more.
void Flow::answer_late(const Ack& ack) {
  if (tcb.now >= time_wait_until_) {
    launch(0, 0, kReset);
  } else if (tcb.stack == Stack::linux_kernel && (ack.flags & kAckFin)) {
    launch(0, 0, kFinalAck);
  }
}

void Flow::update_source() {
  if (!source_) return;
  const Source::Offer offer = source_->offer(tcb.now, stream_sent_);
  stream_written_ = offer.written;
  stream_closed_ = offer.closed;
  finish_stream();
  Time next = offer.next;
  if (stop_ > 0) next = std::min(next, stop_);
  set_head(kAppHead, next);
}

void Flow::on_timer() {
  timed_out_ = tcb.now;
  timed_out_set_ = timer_set_;
  if (!tcb.established) {  // the SYN or its answer was lost
    back_off();
    if (backoff_ == profile_.syn_tries) return;  // gives up (a number of tries without end is 0)
    launch(0, 0, kSyn);
    set_timer(tcb.now + std::min(profile_.initial_rto << backoff_, profile_.max_rto));
    return;
  }
  if (tcb.packets_out() == 0) return on_persist();
  recovery_->on_timer(*this);
}

void Flow::attach(std::unique_ptr<Source> source) {
  source_ = std::move(source);
  stream_written_ = 0;
  unhindered_ = false;
}

void Flow::wake_source(Time now) {
  if (!source_ || !tcb.established) return;  // asked anyway when the connection stands
  set_head(kAppHead, std::min(now, rest_[kAppHead - kTimerHead]));
  refresh_next();
}

void Flow::enter_state(CaState state) {
  cc_->on_state(tcb, state);
  tcb.state = state;
}

void Flow::agent_window(Time now, double bytes) {
  tcb.now = std::max(now, start_);
  tcb.set_cwnd(std::max<int64_t>(tcb.mss, static_cast<int64_t>(bytes)));  // less would never send again
  if (tcb.established) {
    try_send();
    refresh_next();
  }
}

double Flow::cwnd_integral(Time now) const {
  return (tcb.cwnd_integral + static_cast<double>(tcb.cwnd) * static_cast<double>(now - tcb.cwnd_since)) * 1e-9;
}

// ---- transmission

void Flow::try_send() {
  if (!tcb.established) return;
  if (tcb.stack == Stack::linux_kernel) return send_bursts();
  if (closes_) return send_finite();
  const uint32_t nxt = tcb.nxt;
  while (tcb.in_flight() < tcb.cwnd_packets) {
    if (lost_pending_ > 0 && retransmit_next_lost()) continue;
    if (unhindered_ && tcb.packets_out() > 0 && lost_pending_ == 0) [[likely]] {
      for (uint32_t room = tcb.cwnd_packets - tcb.in_flight(); room > 0; --room) send_full_segment(kData);
      break;
    }
    if (!send_new_segment()) break;
  }
  const uint32_t in_flight = tcb.in_flight();
  if (!recovery_takes_all_ || tcb.nxt != nxt || in_flight >= tcb.cwnd_packets) tcb.cwnd_limited = in_flight >= tcb.cwnd_packets;
  if (tcb.packets_out() > max_packets_out_ || !before(tcb.una, max_packets_seq_)) {
    max_packets_out_ = tcb.packets_out();
    max_packets_seq_ = tcb.nxt;
  }
  if (tcb.nxt != nxt) recovery_->on_new_data(*this, tcb.nxt - nxt);
  if (rate_marks_ && !has_new_data() && lost_pending_ == 0 && !tcb.cwnd_limited) {
    tcb.app_limited = std::max(1u, tcb.delivered + in_flight);
  }
}

// As ns-3 sends a stream whose end is in sight. The last segment may be short, so that bytes count; it carries FIN, and once
// it has been sent, an undisturbed sender sends nothing again: what was lost waits for duplicate ACKs or the time-out.
void Flow::send_finite() {
  const uint32_t nxt = tcb.nxt;
  bool sent = false;
  while (stream_left() > 0 || tcb.state != CaState::open) {
    measure_tail();
    const int64_t room = tcb.cwnd - tcb.bytes_in_flight();
    uint32_t index;
    if (next_lost(index) || (stream_left() <= 0 && tcb.state == CaState::recovery && next_unsacked(index))) {
      if (room < segments[index].bytes) break;
      retransmit(index);
    } else {
      if (room < std::min<int64_t>(stream_left(), tcb.mss) || !send_new_segment()) break;
    }
    sent = true;
  }
  if (tcb.nxt != nxt) recovery_->on_new_data(*this, tcb.nxt - nxt);
  if (sent) {
    measure_tail();
    tcb.cwnd_limited = tcb.cwnd < tcb.bytes_in_flight() + tcb.mss;
  }
}

// RFC 6675's third rule for the next segment: one that may be on its way, below what is known to have arrived.
bool Flow::next_unsacked(uint32_t& segment) {
  if (before(unsacked_hint_, tcb.una)) unsacked_hint_ = tcb.una;
  for (; before(unsacked_hint_, tcb.nxt); ++unsacked_hint_) {
    if (retransmit_limited_ && !before(unsacked_hint_, retransmit_below_)) return false;
    if (segments[unsacked_hint_].flags & (kSacked | kRetransmitted)) continue;
    segment = unsacked_hint_;
    return true;
  }
  return false;
}

void Flow::measure_tail() {
  tcb.short_out = 0;
  if (!short_segments_ || !closes_ || tcb.una == tcb.nxt) return;
  const Segment& tail = segments[tcb.nxt - 1];
  uint32_t copies = 1;
  if (tail.flags & (kSacked | kLost)) --copies;
  if (tail.flags & kRetransmitted) ++copies;
  tcb.short_out = copies * (tcb.mss - tail.bytes);
}

bool Flow::may_grow() const {
  if (tcb.cwnd_limited) return true;
  return tcb.in_slow_start() && tcb.cwnd_packets < 2 * max_packets_out_;
}

// An endless stream, no limit but the congestion window, no pacing, no rate samples: what send_new_segment comes to then.
void Flow::send_full_segment(PacketKind kind) {
  const auto bytes = static_cast<uint16_t>(tcb.mss);
  segments.push(Segment{tcb.now, bytes, 0, 1, 0});
  ++counters.packets_sent;
  counters.last_sent = tcb.last_departure = tcb.now;
  launch(tcb.nxt++, bytes, kind);
  stream_sent_ += bytes;
}

bool Flow::send_new_segment() {
  const int64_t left = stream_left();
  if (left <= 0) return false;
  auto bytes = static_cast<uint16_t>(std::min<int64_t>(left, tcb.mss));
  if (bytes < tcb.mss && !stream_closed_ && tcb.packets_out() > 0) return false;  // Nagle (RFC 9293, 3.7.4)
  if (stream_sent_ + bytes > window_right_ || (send_buffer_ > 0 && stream_sent_ + bytes - una_bytes_ > send_buffer_)) {
    bytes = fit_segment(bytes);
    if (bytes == 0) return false;
  }
  const uint32_t index = tcb.nxt;
  if (tcb.packets_out() == 0 && tcb.now - counters.last_sent > rto() && counters.packets_sent > 0) {
    restart_after_idle();
  }
  if (bytes < tcb.mss) short_segments_ = true;
  segments.push(Segment{tcb.now, bytes, 0, 0, 0});
  if (rate_marks_) rate_marks_->push(RateMark{});
  transmit(index, false);
  ++tcb.nxt;
  stream_sent_ += bytes;
  if (source_) source_->taken(tcb.now, stream_sent_);
  return true;
}

// What may leave when a whole segment does not fit: avoidance of silly windows, RFC 9293, 3.8.6.2.1. 0: nothing.
uint16_t Flow::fit_segment(uint16_t bytes) {
  const int64_t usable = window_right_ - stream_sent_;
  if (usable < bytes) {
    if (usable <= 0 || (2 * usable < largest_window_ && !overriding_)) {
      if (tcb.packets_out() == 0 && !persisting_) {
        persisting_ = true;
        probes_ = 0;
        set_timer(tcb.now + rto());
      }
      return 0;
    }
    bytes = static_cast<uint16_t>(usable);
  }
  const int64_t room = send_buffer_ - (stream_sent_ - una_bytes_);
  if (send_buffer_ == 0 || room >= bytes) return bytes;
  return tcb.packets_out() > 0 ? 0 : static_cast<uint16_t>(room);
}

// The window has been too small for a time-out, and nothing is on its way that could tell of a larger one: send what
// fits, or probe a closed window (RFC 9293, 3.8.6.1).
void Flow::on_persist() {
  if (!persisting_) return;
  if (window_right_ > stream_sent_) {
    persisting_ = false;
    overriding_ = true;
    try_send();
    overriding_ = false;
    return;
  }
  launch(0, 0, kWindowProbe);
  if (probes_ < 15) ++probes_;
  set_timer(tcb.now + std::min(rto() << probes_, profile_.max_rto));
}

void Flow::note_window(uint32_t window) {
  window_right_ = una_bytes_ + window;
  largest_window_ = std::max<int64_t>(largest_window_, window);
  if (persisting_ && window_right_ > stream_sent_) {
    persisting_ = false;
    set_timer(kNever);
  }
}

// RFC 5681, 4.1, as Linux does it: the window halves for every RTO of silence, down to the initial window.
void Flow::restart_after_idle() {
  cc_->on_idle_restart(tcb);
  if (tcb.stack != Stack::linux_kernel || cc_->owns_window()) return;
  const uint32_t floor = std::min(tcb.initial_cwnd, tcb.cwnd_packets);
  uint32_t window = tcb.cwnd_packets;
  tcb.ssthresh = std::max(tcb.ssthresh, tcb.cwnd * 3 / 4);
  for (Time silence = tcb.now - counters.last_sent - rto(); silence > 0 && window > floor; silence -= rto()) window /= 2;
  tcb.set_cwnd_packets(std::max(window, floor));
}

void Flow::transmit(uint32_t index, bool retransmission) {
  Segment& segment = segments[index];
  segment.sent_at = tcb.now;
  if (rate_marks_) {
    if (tcb.packets_out() == 0) tcb.first_sent_time = tcb.delivered_time = tcb.now;
    (*rate_marks_)[index] = {tcb.delivered_time, tcb.first_sent_time, tcb.delivered, tcb.app_limited};
  }
  if (counters.packets_sent++ == 0) first_sent_ = tcb.now;
  counters.last_sent = tcb.last_departure = tcb.now;
  if (segment.transmissions < UINT8_MAX) ++segment.transmissions;
  if (retransmission) ++counters.packets_retransmitted;
  launch(index, segment.bytes, push_next_ ? kPushedData : kData);
}

Time Flow::rto() const {
  const Time base = recovery_->rto();
  return std::min((base > 0 ? base : profile_.initial_rto) << backoff_, profile_.max_rto);
}

}  // namespace netbuf
