// The sending end: connection set-up, the application, transmission, flow control.
#include "netbuf/sender.h"

#include <algorithm>
#include <cmath>
#include <typeinfo>

#include "netbuf/rate_control.h"
#include "netbuf/socket_buffer.h"

namespace netbuf {

Sender::Sender(const FlowConfig& config, const Application& application, const WorldConfig& world,
               const StackProfile& profile, Path& path, Timers& timers, Rng* rng)
    : profile_(profile),
      path_(path),
      timers_(timers),
      cc_(config.own_control ? config.own_control(world.stack)
                             : make_congestion_control(config.cc, world.stack, config.cc_parameters)),
      recovery_(profile.make_recovery()),
      traits_{.recovery_takes_all = recovery_->takes_every_ack(),
              .controlled = config.controlled,
              .steered = config.controlled || cc_->steering() != nullptr,
              .owns_window = cc_->owns_window(),
              .ecn = config.ecn || cc_->accurate_ecn(),
              .ecn_counts = config.ecn_counts || cc_->l4s()},
      ect_(kEcnCapable | (cc_->l4s() ? kEcnL4s : 0)),
      answers_(application.answers),
      closes_(application.sized),
      send_buffer_(config.send_buffer_bytes),
      source_(application.source(config, profile.mss, rng)),
      start_(config.start_ns),
      stop_(config.stop_ns) {
  tcb.stack = world.stack;
  tcb.mss = profile_.mss;
  tcb.hystart = world.hystart;
  tcb.hystart_plus_plus = world.hystart_plus_plus;
  tcb.initial_cwnd = config.initial_cwnd_packets;
  tcb.rng = rng;
  if (config.receive_buffer_bytes > 0) cc_->on_receiver_limit();
  tcb.cwnd_since = start_;
  tcb.cwnd = static_cast<int64_t>(tcb.initial_cwnd) * tcb.mss;
  tcb.cwnd_packets = tcb.initial_cwnd;
  const bool ns3_rate = profile_.keeps_rate_samples && dynamic_cast<const ControlsByNs3Rate*>(cc_.get());
  if (cc_->wants_rate()) board.rate = std::make_unique<RateSampler>(ns3_rate);
  if (cc_->wants_losses()) board.rate->watch(cc_.get());
  if (cc_->accurate_ecn()) path_.always_ecn(ect_);
  traits_.takes_clean_acks = !traits_.recovery_takes_all && !board.rate;
  if (source_) stream_written_ = 0;
  if (closes_) {
    stream_written_ = config.size_bytes;
    stream_closed_ = true;
  }
  traits_.unhindered = application.endless && stop_ == 0 && send_buffer_ == 0 &&
                config.receive_buffer_bytes == 0 && !board.rate && !traits_.ecn;
  if (world.pacing) pace_windows();
  if (const Steering* own = cc_->steering()) steer(own->paced, own->fine, own->slow_start);
  timers_.set(Alarm::application, start_);
}

// ---- life of the connection

void Sender::on_application(Time now) {
  tcb.now = now;
  if (failed()) return;
  if (now == start_ && syn_sent_at_ == kNever) {
    start_connection();
    if (stop_ > 0) timers_.set(Alarm::application, stop_);
    return;
  }
  if (stop_ > 0 && now >= stop_) return stop_writing();
  serve_source();
}

// What the socket has taken leaves yet. A program that writes at a rate and is held up fills the packet that it began
// when less than the limit waited to leave. Before the connection stands a socket takes nothing.
void Sender::stop_writing() {
  const int64_t limit = profile_.unsent_limit, each = written_packet_bytes(tcb.mss, largest_window_);
  if (limit > 0) {
    update_source();
    timers_.set(Alarm::application, kNever);
  }
  if (!tcb.established && !buffer_) {
    stream_written_ = 0;
  } else if (limit > 0 && stream_written_ != kEndless && !buffer_) {
    stream_written_ = std::min(stream_written_, ((stream_sent_ + limit) / each + 1) * each);
  } else if (!buffer_) {
    if (taken_ == 0 && limit > 0) taken_ = most_unsent();
    stream_written_ = std::min(stream_written_, count_taken());
  }
  stream_closed_ = true;
  if (buffer_) {
    buffer_->stop();
  } else {
    source_.reset();
  }
  if (limit > 0) try_send();
}

void Sender::start_connection() {
  syn_sent_at_ = tcb.now;
  path_.launch(tcb.now, 0, 0, kSyn);
  set_timer(tcb.now + profile_.initial_rto);
}

void Sender::establish(const Ack& ack) {
  path_.round_trips.answer_arrived(static_cast<uint16_t>(ack.sack), tcb.now);
  if (tcb.established) {  // an answer to a SYN that was answered before, or the same again
    if (profile_.confirms_repeated_syn_ack) return path_.launch(tcb.now, 0, 0, kHandshakeAck);
    if (traits_.owns_window) return;
    tcb.set_cwnd(static_cast<int64_t>(tcb.initial_cwnd) * tcb.mss);
    tcb.ssthresh = kInfiniteWindow;
    return;
  }
  tcb.established = true;
  set_timer(kNever);
  const bool known = profile_.time_stamps || backoff_ == 0;  // which copy of the SYN is answered, by the time stamp
  if (profile_.heeds_lost_syns) heed_lost_syns(ack);
  if (known) {
    backoff_ = 0;
    const Time rtt = tcb.now - ack.echo_sent;
    tcb.last_rtt = tcb.min_rtt = rtt;
    recovery_->on_established(*this, rtt);
  }
  if (ack.window != kUnlimitedWindow) note_window(ack);
  tcb.delivered_time = tcb.first_sent_time = tcb.now;
  path_.launch(tcb.now, 0, 0, kHandshakeAck);
  cc_->init(tcb);
  if (!profile_.first_data_is_an_event) return serve_source();
  update_source();
  timers_.set_no_later(Alarm::wakeup, tcb.now + 1);
}

// tcp_init_transfer: unless the time stamp tells that the first SYN was answered after all. Which of them was does not
// show without time stamps; nor does the round trip then, and nothing stays backed off (RFC 6298, 5.7).
void Sender::heed_lost_syns(const Ack& ack) {
  const bool needless = profile_.time_stamps && ack.echo_sent == syn_sent_at_;
  if (backoff_ > 1 && !needless) tcb.set_cwnd_packets(1);
  if (profile_.time_stamps || backoff_ == 0) return;
  backoff_ = 0;
  recovery_->on_established(*this, -1);
}

// The connection is no more: whatever comes for it is answered by a reset.
void Sender::fail() {
  failed_at_ = tcb.now;
  be_late_from(tcb.now);
  set_timer(kNever);
  if (source_) source_->failed(tcb.now);
}

void Sender::abort(Time now) {
  if (failed()) return;
  tcb.now = now;
  fail();
}

// tcp_write_timeout. A stream whose FIN has been sent belongs to nobody any more.
bool Sender::gives_up() {
  if (profile_.data_retries == 0) return false;
  if (unheard_since_ == kNever || unheard_from_ != tcb.una) {
    unheard_since_ = tcb.now;
    unheard_from_ = tcb.una;
    return false;
  }
  uint32_t retries = profile_.data_retries;
  if (closes_ && stream_closed_ && stream_left() <= 0) retries = rto() < profile_.max_rto ? profile_.orphan_retries : 0;
  if (tcb.now - unheard_since_ < modelled_timeout(retries, profile_.max_rto)) return false;
  fail();
  return true;
}

// What is not an acknowledgement of data, or comes after the end.
void Sender::receive_special(const Ack& ack) {
  if (failed()) [[unlikely]] return answer_late(ack);
  if (ack.flags == kAckReset) [[unlikely]] return fail();
  if (ack.flags & kAckUntrue) [[unlikely]] return receive_untrue(ack);
  if (ack.flags & kAckEcho) [[unlikely]] return receive_echo(ack);
  if (ack.flags & kAckSynAck) return establish(ack);
  if (time_wait_until_ != kNever) return answer_late(ack);
  if (ack.flags & kAckFin) return receive_fin(ack);
  if (ack.flags == kAckWindow && ack.ack == tcb.una) {  // tells of the window only
    note_window(ack);
    return try_send();
  }
  if (ack.flags & kAckRequest) return receive_request(ack);
  process(ack);
}

// Data of the other end's, which acknowledges too but is no duplicate acknowledgement. A copy of a request that has
// been answered acknowledges less than has been sent.
void Sender::receive_request(const Ack& ack) {
  if (ack.ack == tcb.nxt) update_source();
  if (after(ack.ack, tcb.una) || (ack.flags & kAckHasSack)) return process(ack);
  if (ack.window != kUnlimitedWindow && ack.ack == tcb.una) note_window(ack);
  try_send();
}

// The ACK as it would be without the echo, which the congestion control is told of.
void Sender::receive_echo(Ack ack) {
  ack.flags = ack.flags & ~kAckEcho;
  echo_ = true;
  if (traits_.ecn_counts) {
    const auto count = static_cast<uint8_t>(ack.echo_sent & kMarkCount);
    const bool late = before(ack.ack, tcb.una);  // overtaken by an ACK that says more
    marked_ = late ? 0 : (count - mark_count_) & kMarkCount;
    mark_count_ = late ? mark_count_ : count;
    echo_ = marked_ > 0;
    ack.echo_sent = ack.echo_sent < 0 ? -1 : ack.echo_sent & ~kMarkCount;
  }
  (ack.flags & ~kAckHasSack) != 0 || time_wait_until_ != kNever ? receive_special(ack) : process(ack);
  echo_ = false;
}

// RFC 9293, 3.10.7.4: what acknowledges something that was not sent is dropped;
// and a part of a segment lets nothing more go.
void Sender::receive_untrue(Ack ack) {
  if (after(ack.ack, tcb.nxt) || !after(ack.ack, tcb.una)) return;
  ack.flags = ack.flags & ~kAckUntrue;
  receive(ack);
}

// The receiver has everything and closes too: the last ACK, and the sender remembers the connection for a while.
void Sender::receive_fin(const Ack& ack) {
  if (after(ack.ack, tcb.una)) {
    Ack plain = ack;
    plain.flags = plain.flags & ~kAckFin;
    receive(plain);
  }
  set_timer(kNever);
  be_late_from(tcb.now + profile_.time_wait);
  path_.launch(tcb.now, 0, 0, kFinalAck);
}

// Something comes for a connection that is closed: the receiver has not heard the last ACK, or got a copy of a segment.
// ns-3's sender keeps silent, until it does not know the connection any more.
void Sender::answer_late(const Ack& ack) {
  if (ack.flags == kAckReset) return;
  if (tcb.now >= time_wait_until_) {
    path_.launch(tcb.now, 0, 0, kReset);
  } else if (profile_.confirms_repeated_fin && (ack.flags & kAckFin)) {
    path_.launch(tcb.now, 0, 0, kFinalAck);
  }
}

void Sender::update_source() {
  if (!source_) return;
  const bool writing = stream_written_ == kEndless;
  const Source::Offer offer = source_->offer(tcb.now, buffer_ || !writing ? stream_sent_ : count_taken());
  stream_written_ = offer.written;
  stream_closed_ = offer.closed;
  Time next = offer.next;
  if (tcb.now < stop_) next = std::min(next, stop_);
  timers_.set(Alarm::application, next);
}

// A program that writes whatever the socket takes fills the last packet and begins others until the limit waits to leave
// (tcp_sendmsg_locked): whole packets wait then, besides what leaves at once.
int64_t Sender::most_unsent() const {
  const int64_t each = written_packet_bytes(tcb.mss, largest_window_);
  return (profile_.unsent_limit + each - 1) / each * each;
}

void Sender::serve_source() {
  const bool begins = stream_written_ != kEndless;
  update_source();
  try_send();
  if (begins && stream_written_ == kEndless && taken_ - stream_sent_ < profile_.unsent_limit) {
    taken_ = stream_sent_ + most_unsent();
  }
}

// What such a program has written by now: it is woken whenever less than half of the limit waits (tcp_stream_memory_free),
// and a buffer of its own may bind before.
int64_t Sender::count_taken() {
  const int64_t limit = profile_.unsent_limit, least = (limit + 1) / 2;
  if (limit == 0) return stream_sent_;
  if (const int64_t lacking = stream_sent_ + least - taken_; lacking > 0) {
    const int64_t turn = most_unsent() - (least - 1) / tcb.mss * tcb.mss;
    taken_ += (lacking + turn - 1) / turn * turn;
  }
  if (send_buffer_ > 0) taken_ = std::min(taken_, std::max(stream_sent_, una_bytes_ + send_buffer_ / tcb.mss * tcb.mss));
  return taken_;
}

void Sender::attach(std::unique_ptr<SendBuffer> buffer) {
  buffer_ = buffer.get();
  if (source_) buffer_->attach(std::move(source_));
  source_ = std::move(buffer);
  stream_written_ = 0;
  stream_closed_ = traits_.unhindered = false;
  if (!buffer_->measures_rate() || board.rate) return;
  board.rate = std::make_unique<RateSampler>(false);
  traits_.takes_clean_acks = false;
}

void Sender::attach(std::unique_ptr<Source> source) {
  if (buffer_) return buffer_->attach(std::move(source));
  source_ = std::move(source);
  stream_written_ = 0;
  traits_.unhindered = false;
}

void Sender::wake_source(Time now) {
  if (!source_ || !tcb.established || failed()) return;  // asked anyway when the connection stands
  if (buffer_ && buffer_->waits()) return;   // or when there is room
  timers_.set_no_later(Alarm::application, now);
}

// ---- timers

void Sender::set_timer(Time deadline) {
  timer_deadline_ = deadline;
  timer_set_ = tcb.now;
  // With few packets on their way it moves less often than it would go off for nothing.
  constexpr uint32_t kFew = 4;
  const uint32_t out = tcb.packets_out();
  if (out > kFew) return timers_.set_no_later(Alarm::retransmission, deadline);
  timers_.set(Alarm::retransmission, out > 0 ? deadline : goes_off(tcb.now, deadline, profile_.tick));
}

void Sender::on_timer(Time now) {
  const Time due = goes_off(timer_set_, timer_deadline_, profile_.tick);
  timers_.set(Alarm::retransmission, due > now ? due : kNever);  // deadlines move
  if (due > now) return;
  tcb.now = now;
  timer_deadline_ = kNever;
  timed_out_ = {now, timer_set_};
  if (!tcb.established) {  // the SYN or its answer was lost
    back_off();
    if (++counters.syn_timeouts >= profile_.syn_tries) return fail();
    path_.launch(now, 0, 0, kSyn);
    const uint32_t doublings = backoff_ - std::min(backoff_, profile_.linear_syns);
    set_timer(now + doubled_timeout(profile_.initial_rto, doublings, profile_.max_rto));
    return;
  }
  if (tcb.packets_out() == 0) return on_persist();
  recovery_->on_timer(*this);
}

void Sender::on_wakeup(Time now) {
  tcb.now = now;
  try_send();
}

Time Sender::rto() const {
  const Time base = recovery_->rto();
  return doubled_timeout(base > 0 ? base : profile_.unsampled_rto, backoff_, profile_.max_rto);
}

void Sender::enter_state(CaState state) {
  if (state == CaState::loss || (state >= CaState::cwr && tcb.state < CaState::cwr)) reduced_ = traits_.ecn;
  cc_->on_state(tcb, state);
  tcb.state = state;
}

void Sender::pace_windows() { traits_.paces_window = profile_.paces && !traits_.owns_window; }

void Sender::steer(bool paced, bool fine, bool slow_start) {
  traits_.paces_window = paced && profile_.paces;
  traits_.fine = fine && traits_.paces_window;
  cc_->on_agent(slow_start);
}

void Sender::set_window(double bytes) {
  cc_->on_decision();
  tcb.set_cwnd_steered(static_cast<int64_t>(bytes), traits_.fine);
}

void Sender::set_congestion_control(std::string_view name, Time now) {
  if (traits_.ecn_counts || cc_->accurate_ecn()) return;
  auto other = make_congestion_control(name, tcb.stack);
  const CongestionControl &present = *cc_, &chosen = *other;
  if (typeid(present) == typeid(chosen)) return;
  tcb.now = std::max(tcb.now, now);
  const bool paced = traits_.paces_window || tcb.pacing_rate > 0;
  cc_ = std::move(other);
  if (board.rate) board.rate->watch(cc_->wants_losses() ? cc_.get() : nullptr);
  traits_.owns_window = cc_->owns_window();
  traits_.paces_window = paced && profile_.paces && !traits_.owns_window;
  recovery_->keep_window(*this);
  if (tcb.established) cc_->init(tcb);
}

// ---- transmission

// While nothing limits the sender but its congestion window: what send_new_segment comes to then.
void Sender::send_full_segments(uint32_t count, PacketKind last) {
  const auto bytes = static_cast<uint16_t>(tcb.mss);
  const Time now = tcb.now;
  counters.packets_sent += count;
  counters.last_sent = tcb.last_departure = now;
  stream_sent_ += static_cast<int64_t>(count) * bytes;
  board.segments.reserve(count);
  board.segments.extend_reserved(count, [=](Segment& segment) {
    segment.sent_at = now;
    segment.bytes = bytes;
    segment.flags = 0;
    segment.transmissions = 1;
    segment.fin = false;
  });
  const uint32_t first = tcb.nxt;
  tcb.nxt += count;
  count > 1 ? path_.launch_burst(now, first, count, bytes, last) : path_.launch(now, first, bytes, last);
}

bool Sender::send_new_segment() {
  const int64_t left = stream_left();
  if (left <= 0) return false;
  auto bytes = static_cast<uint16_t>(std::min<int64_t>(left, tcb.mss));
  // Nagle (RFC 9293, 3.7.4).
  if (bytes < tcb.mss && !stream_closed_ && !answers_ && tcb.packets_out() > 0) return false;
  if (stream_sent_ + bytes > window_right_ || (send_buffer_ > 0 && stream_sent_ + bytes - una_bytes_ > send_buffer_)) {
    bytes = fit_segment(bytes);
    if (bytes == 0) return false;
  }
  const uint32_t index = tcb.nxt;
  if (tcb.packets_out() == 0 && tcb.now - counters.last_sent > rto() && counters.packets_sent > 0) {
    restart_after_idle();
  }
  board.push(tcb.now, bytes, closes_ && stream_closed_ && left == bytes, 0);
  if (board.rate) board.rate->push();
  transmit(index, false);
  ++tcb.nxt;
  stream_sent_ += bytes;
  if (source_) source_->taken(tcb.now, stream_sent_);
  return true;
}

// What may leave when a whole segment does not fit: avoidance of silly windows, RFC 9293, 3.8.6.2.1. 0: nothing.
uint16_t Sender::fit_segment(uint16_t bytes) {
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
void Sender::on_persist() {
  if (!persisting_) return;
  if (window_right_ > stream_sent_) {
    persisting_ = false;
    overriding_ = true;
    try_send();
    overriding_ = false;
    return;
  }
  if (profile_.data_retries > 0 && unanswered_probes_++ == profile_.data_retries) return fail();
  path_.launch(tcb.now, 0, 0, kWindowProbe);
  if (probes_ < (profile_.data_retries > 0 ? std::min(profile_.data_retries, 15u) : 15u)) ++probes_;
  set_timer(tcb.now + doubled_timeout(rto(), probes_, profile_.max_rto));
}

void Sender::note_window(const Ack& ack) {
  window_right_ = una_bytes_ + ack.window;
  largest_window_ = std::max<int64_t>(largest_window_, ack.window);
  unanswered_probes_ = 0;
  if (echoes_) echoes_->arrived(ack.ack, ack.flags == 0, tcb.now);
  if (persisting_ && window_right_ > stream_sent_) {
    persisting_ = false;
    set_timer(kNever);
  }
}

// RFC 5681, 4.1, as Linux does it: the window halves for every RTO of silence, down to the initial window.
void Sender::restart_after_idle() {
  cc_->on_idle_restart(tcb);
  if (!profile_.restarts_after_idle || traits_.owns_window) return;
  const uint32_t floor = std::min(tcb.initial_cwnd, tcb.cwnd_packets);
  uint32_t window = tcb.cwnd_packets;
  tcb.ssthresh = std::max(tcb.ssthresh, tcb.cwnd * 3 / 4);
  for (Time silence = tcb.now - counters.last_sent - rto(); silence > 0 && window > floor; silence -= rto()) {
    window /= 2;
  }
  tcb.set_cwnd_packets(std::max(window, floor));
}

void Sender::transmit(uint32_t index, bool retransmission) {
  Segment& segment = board.segments[index];
  segment.sent_at = tcb.now;
  if (board.rate) {
    if (tcb.packets_out() == 0) tcb.first_sent_time = tcb.delivered_time = tcb.now;
    board.rate->mark(tcb, index);
  }
  if (counters.packets_sent++ == 0) first_sent_ = tcb.now;
  counters.last_sent = tcb.last_departure = tcb.now;
  if (segment.transmissions < UINT8_MAX) ++segment.transmissions;
  if (retransmission) ++counters.packets_retransmitted;
  uint64_t ecn = 0;
  if (traits_.ecn && !retransmission) [[unlikely]] {  // RFC 3168, 6.1.5: what is sent again cannot be marked
    ecn = ect_ | (reduced_ ? kEcnReduced : 0);
    reduced_ = false;
  }
  path_.launch(tcb.now, index, segment.bytes, push_next_ ? kPushedData : kData, segment.fin, ecn);
}

void Sender::retransmit(uint32_t index) {
  board.mark_retransmitted(index);
  transmit(index, true);
  recovery_->on_retransmitted(*this, index);
  if (closes_ && profile_.retransmission_measures_window) {
    measure_tail();
    tcb.cwnd_limited = tcb.cwnd < tcb.bytes_in_flight() + tcb.mss;
  }
}

bool Sender::send_new_data() {
  const uint32_t nxt = tcb.nxt;
  holds_lost_ = true;
  try_send();
  holds_lost_ = false;
  return tcb.nxt != nxt;
}

bool Sender::retransmit_next_lost() {
  uint32_t index;
  if (!board.next_lost(index)) return false;
  retransmit(index);
  return true;
}

void Sender::measure_tail() {
  tcb.short_out = 0;
  if (!board.has_short_segments() || !closes_ || tcb.una == tcb.nxt) return;
  const Segment& tail = board.segments[tcb.nxt - 1];
  uint32_t copies = 1;
  if (tail.flags & (kSacked | kLost)) --copies;
  if (tail.flags & kRetransmitted) ++copies;
  tcb.short_out = copies * (tcb.mss - tail.bytes);
}

}  // namespace netbuf
