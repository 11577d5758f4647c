// The receiving end before and after its stream: handshake and FIN.
#include <algorithm>

#include "netbuf/receiver.h"
#include "netbuf/socket_buffer.h"

namespace netbuf {

namespace {
constexpr Time kSynAnswerGap = 500 * kMillisecond;  // tcp_invalid_ratelimit
}

void Receiver::receive_small(const Packet& packet) {
  now_ = packet.time;
  if (packet.kind == kWindowProbe) return send_ack(kAckWindow);
  if (packet.kind == kHandshakeAck) {
    if (state_ == State::syn) static_cast<void>(accept(packet));
    return;
  }
  if (packet.kind == kFinalAck || packet.kind == kReset) {
    if (state_ != State::last_ack && packet.kind == kFinalAck) return;
    if (buffer_ && (state_ == State::syn || state_ == State::stream)) buffer_->abandon(now_);  // a reset
    enter(State::closed);
    return set_timer(kNever);
  }
  if (packet.kind == kSyn && (state_ == State::nothing || state_ == State::syn)) {
    if (state_ == State::nothing) {
      enter(State::syn);
      echo_sent_ = packet.sent_at;
      syn_answered_ = now_;
      set_timer(goes_off(now_, now_ + profile_.initial_rto, profile_.tick));
      if (buffer_) buffer_->begin(now_);
      if (sink_ && tries_ == 0) sink_->opened(now_);
      tries_ = 0;
    } else if (!profile_.counts_syn_answers) {
      if (now_ < syn_repeated_ + kSynAnswerGap) return;  // tcp_check_req: copies in a row have one answer
      syn_repeated_ = now_;
      time_syn_answer();
    } else if (++tries_ == profile_.syn_tries) {
      enter(State::closed);
      return;
    }
    quick_acks_ = profile_.quick_acks;
    answer_syn();
  }
}

void Receiver::answer_syn() {
  const uint32_t copy = reads_stamps_ ? path_.round_trips.answered(now_) : 0;
  path_.send_back(Ack{now_, echo_sent_, 0, kAckSynAck, static_cast<uint16_t>(copy), 0, advertised_window()});
}

// Something has come back that the sender could only send after the answer to its SYN: the first such packet measures
// the round trip. False if it must be ignored.
bool Receiver::accept(const Packet& packet) {
  if (handshake_rtt_ == 0) {
    const Time unit = std::max<Time>(1, profile_.rtt_granularity);
    handshake_rtt_ = std::max(now_ / unit - syn_answered_ / unit, Time{0}) * unit;
    if (handshake_rtt_ == 0) handshake_rtt_ = kMicrosecond;
    if (tunes_window_) silence_ = handshake_rtt_ + profile_.min_rto;
    round_begun_ = now_;
    last_received_ = now_;
  }
  if (profile_.ignores_fin_beyond_hole && packet.fin && packet.segment != rcv_nxt_) return false;
  enter(State::stream);
  echo_sent_ = packet.sent_at;
  set_timer(kNever);
  return true;
}

// The stream has arrived with its FIN, and the application has nothing to say: the FIN goes back.
void Receiver::close(bool in_order) {
  if (profile_.acknowledges_around_fin && in_order) send_ack();
  send_ack(kAckFin);
  if (profile_.acknowledges_around_fin) send_ack();
  enter(State::last_ack);
  if (buffer_) buffer_->end(now_);
  tries_ = 0;
  const Time spread = std::max(profile_.rtt_granularity, 2 * handshake_rtt_);
  if (profile_.repeats_fin) {
    fin_interval_ = handshake_rtt_ + spread;
    fin_repeat_ = now_ + fin_interval_;
    fin_timeout_ = now_ + std::max(fin_interval_, profile_.min_rto);
  } else {
    fin_interval_ = handshake_rtt_ + std::max(spread, profile_.min_rto);
    fin_timeout_ = goes_off(now_, now_ + fin_interval_, profile_.tick);
  }
  set_timer(std::min(fin_repeat_, fin_timeout_));
}

void Receiver::abort(Time now) {
  now_ = now;
  enter(State::closed);
  dropped_ = true;
  set_timer(kNever);
  timers_.set(Alarm::reading, kNever);
  if (buffer_) buffer_->abandon(now);
}

void Receiver::set_timer(Time deadline) {
  deadline_ = deadline;
  timers_.set(Alarm::acknowledgement, deadline);
}

// Nobody has answered the answer to the SYN. In the end it is forgotten: then another SYN is as the first.
void Receiver::repeat_answer() {
  if (++tries_ == profile_.syn_ack_tries) {
    enter(profile_.counts_syn_answers ? State::closed : State::nothing);
    return;
  }
  answer_syn();
  time_syn_answer();
}

void Receiver::time_syn_answer() {
  const Time timeout = doubled_timeout(profile_.initial_rto, std::min(tries_, 15u), profile_.max_rto);
  set_timer(goes_off(now_, now_ + timeout, profile_.tick));
}

// Nobody has answered the FIN.
void Receiver::repeat_fin() {
  if (fin_repeat_ <= now_) {
    send_ack(kAckFin);
    fin_repeat_ = now_ + fin_interval_;
  }
  if (fin_timeout_ <= now_) {
    const Time timeout = doubled_timeout(fin_interval_, std::min(tries_, 15u), profile_.max_rto);
    const uint32_t retries = timeout < profile_.max_rto ? profile_.orphan_retries : 0;
    if (profile_.orphan_retries > 0 && tries_ > 0 &&
        now_ - fin_repeated_ >= modelled_timeout(retries, profile_.max_rto)) {
      enter(State::closed);
      return;
    }
    send_ack(kAckFin);
    if (profile_.repeats_fin) {
      fin_timeout_ = now_ + std::max(fin_interval_, profile_.min_rto);
    } else {
      if (tries_++ == 0) fin_repeated_ = now_;
      const Time next = doubled_timeout(fin_interval_, std::min(tries_, 15u), profile_.max_rto);
      fin_timeout_ = goes_off(now_, now_ + next, profile_.tick);
    }
  }
  set_timer(std::min(fin_repeat_, fin_timeout_));
}

}  // namespace netbuf
