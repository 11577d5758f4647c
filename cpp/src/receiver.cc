#include "netbuf/receiver.h"

#include <algorithm>

#include "netbuf/socket_buffer.h"

namespace netbuf {

namespace {
constexpr uint32_t kImmediateDuplicates = 3;   // Linux: SACK compression begins after these
constexpr uint32_t kCompressionLimit = 44;     // Linux: tcp_comp_sack_nr
}  // namespace

Receiver::Receiver(const FlowConfig& config, const StackProfile& profile, Path& path, Timers& timers, Network& network)
    : profile_(profile),
      path_(path),
      timers_(timers),
      network_(network),
      window_limited_(config.receive_buffer_bytes > 0 || !profile.scales_windows),
      tunes_window_(profile.tunes_window && config.receive_buffer_bytes == 0),
      agent_controlled_(!config.receiver.empty() && Catalogue<ReceiverControlRecord>::find(config.receiver)->agent),
      bunched_(profile.acknowledges_as_read && path.delivers_bunches()),
      offers_tuned_(tunes_window_ && (!profile.sacks() || path.delays_acks())),
      reads_stamps_(tunes_window_ && profile.time_stamps),
      quick_acks_(profile.quick_acks),
      tune_at_(tunes_window_ ? 0 : kNever),
      receive_buffer_(config.receive_buffer_bytes),
      clock_offset_(config.clock_offset_ns),
      stamp_unit_(config.timestamp_ns),
      clamp_interval_(config.clamp_interval_ns),
      clock_drift_(config.clock_drift_ppm * 1e-6) {
  if (!config.misbehaviour.empty()) {
    misbehaviour_ = config.misbehaviour == "optimistic" ? Misbehaviour::optimistic
                    : config.misbehaviour == "split"    ? Misbehaviour::split
                                                        : Misbehaviour::spoofed;
  }
  window_limited_ |= offers_tuned_;
  if (path.delays_acks()) path.round_trips.look_at_each(stamp_unit_);
  attach(make_receiver_control(config, profile.mss));
  attach(reader_of(config, profile.mss));
}

Receiver::~Receiver() = default;

// What the window has grown to, within what the buffer has left, in units of its scale but for the handshake's
// (__tcp_select_window).
inline int64_t Receiver::tuned_window() const {
  const int64_t window = std::max<int64_t>(0, std::min(tuning_.offered, tuning_.allowed - buffered_bytes()));
  if (state_ != State::stream || !profile_.scales_windows) return window;
  return (window + WindowTuning::kUnit - 1) / WindowTuning::kUnit * WindowTuning::kUnit;
}

// The end of send_plain_ack() where the window is told, with what advertised_window() comes to then.
void Receiver::send_window() {
  const int64_t delivered = counters_.delivered_bytes;
  const int64_t edge = delivered + std::min(tuned_window(), profile_.scales_windows ? kEndless : kLargestUnscaledWindow);
  if (edge - window_edge_ >= profile_.mss) window_edge_ = edge;
  window_said_ = static_cast<uint32_t>(std::clamp<int64_t>(window_edge_ - delivered, 0, kUnlimitedWindow - 1));
  path_.send_back(Ack{now_, echo_sent_, 0, 0, 0, rcv_nxt_, window_said_});
}

// What send_ack() comes to while plain_.
inline void Receiver::send_plain_ack() {
  settle_acks();
  last_ack_sent_ = rcv_nxt_;
  if (reads_stamps_) path_.round_trips.left(rcv_nxt_, now_);
  if (window_limited_) [[unlikely]] return send_window();
  path_.send_back(Ack{now_, echo_sent_, 0, 0, 0, rcv_nxt_, kUnlimitedWindow});
}

// The short way, of a segment that comes in order while plain_: what receive_any() comes to then.
void Receiver::receive_data(const Packet& packet) {
  if (!plain_ || packet.segment != rcv_nxt_ || packet.fin || packet.sent_at < newest_sent_ ||
      packet.time - last_received_ > silence_) [[unlikely]] {
    return receive_any(packet);
  }
  now_ = last_received_ = packet.time;
  count(packet);
  if (path_.round_trips.echoes(packet.sent_at)) [[unlikely]] measure_round_trip(packet);
  newest_sent_ = packet.sent_at;
  if (rcv_nxt_ == last_ack_sent_) echo_sent_ = packet.sent_at;
  ++rcv_nxt_;
  counters_.delivered_bytes += packet.bytes;
  network_.delivered_bytes += packet.bytes;
  if (now_ >= tune_at_) [[unlikely]] tune_window(packet);
  if (makes_ack_due(packet)) return send_plain_ack();
  if (deadline_ == kNever) delay_ack(now_ + profile_.delayed_ack_timeout);
}

// ACKs of a train, the first of this segment.
inline void Receiver::acknowledge(Time now, uint32_t segment, uint32_t acks) {
  if (reads_stamps_) {
    path_.round_trips.left(segment, now);
    if (acks > 1) [[unlikely]] {
      const Time spacing = path_.ack_spacing();
      for (uint32_t i = 1; i < acks; ++i) path_.round_trips.left(segment + i * path_.ack_step(), now + i * spacing);
    }
  }
  path_.answer(now, echo_sent_, segment, acks);
}

// Those that become due with the rest of a train, of which so many have been acknowledged; how many are then.
uint32_t Receiver::acknowledge_rest(const Packet& packet, uint32_t taken, uint32_t count, Time spacing, bool pushed) {
  echo_sent_ = packet.sent_at;
  const uint32_t each = profile_.delayed_ack_packets;
  for (; count - taken >= each; taken += each) {
    acknowledge(packet.time + (taken + each - 1) * spacing, packet.segment + taken + each, 1);
  }
  if (pushed && taken < count) acknowledge(packet.time + (count - 1) * spacing, packet.segment + (taken = count), 1);
  return taken;
}

// As receive_data() of each. An ACK becomes due with every so many packets, and with the last of those that were sent at
// once. A timer for what waits is set where nothing more comes in this train: another would find, when it goes off, that
// there is nothing to do.
uint32_t Receiver::receive_train(const Packet& packet, Time end) {
  const Time time = packet.time;
  if (!plain_ || window_limited_ || packet.segment != rcv_nxt_ || !is_data(packet.kind) || quick_acks_ > 0 || packet.fin ||
      packet.sent_at < newest_sent_ || time - last_received_ > silence_) [[unlikely]] {
    return 0;
  }
  if (path_.round_trips.echoes(packet.sent_at)) [[unlikely]] {
    now_ = time;
    measure_round_trip(packet);
  }
  end = std::min(end, tune_at_);
  if (time >= end) [[unlikely]] return 0;
  uint32_t count = 1;
  Time spacing = 0, last = time;
  bool pushed = packet.kind == kPushedData;
  if (followers(packet) > 0) {
    spacing = path_.spacing();
    count += followers(packet);
    last += followers(packet) * spacing;
    // The delayed ACK's timer can go off between those of one ACK.
    const bool slow = std::max<Time>(1, profile_.delayed_ack_packets - 1) * spacing >= profile_.delayed_ack_timeout;
    if (last >= end || slow) [[unlikely]] {
      count = slow ? 1 : static_cast<uint32_t>((end - time + spacing - 1) / spacing);
      last = time + (count - 1) * spacing;
      pushed = false;
    }
  }
  const int64_t bytes = int64_t{count} * packet.bytes;
  now_ = last_received_ = last;
  newest_sent_ = packet.sent_at;
  counters_.packets_received += count;
  counters_.received_bytes += bytes;
  counters_.delivered_bytes += bytes;
  network_.packets_received += count;
  network_.delivered_bytes += bytes;
  path_.arrived(count);
  rcv_nxt_ += count;

  if (last_ack_sent_ == packet.segment) echo_sent_ = packet.sent_at;
  const uint32_t each = profile_.delayed_ack_packets;
  uint32_t taken = each - unacked_segments_, acks = 1;  // taken: that are acknowledged
  if (taken > count) {
    if (!pushed) {
      unacked_segments_ += count;
      if (deadline_ == kNever) delay_ack(time + profile_.delayed_ack_timeout);
      return count;
    }
    taken = count;
  }
  if (unacked_segments_ == 0 && count - taken >= each) acks += (count - taken) / each;
  acknowledge(time + (taken - 1) * spacing, packet.segment + taken, acks);
  taken += (acks - 1) * each;
  if (taken < count) [[unlikely]] taken = acknowledge_rest(packet, taken, count, spacing, pushed);
  last_ack_sent_ = packet.segment + taken;
  compressed_ = 0;
  unacked_segments_ = count - taken;
  deadline_ = kNever;
  if (taken < count) [[unlikely]] delay_ack(time + taken * spacing + profile_.delayed_ack_timeout);
  return count;
}

void Receiver::look_for_plain() {
  plain_ = shortens_ && state_ == State::stream && out_of_order_.empty() && recent_blocks_.empty() && !have_end_ &&
           !sink_ && !control_ && !buffer_ && !echoes_ && window_limited_ == offers_tuned_ && !bunched_ &&
           ecn_ == Ecn::none && misbehaviour_ == Misbehaviour::none && reads_stamps_ == tunes_window_;
}

// Any data, at any time.
void Receiver::receive_any(const Packet& packet) {
  const uint32_t index = packet.segment;
  now_ = packet.time;
  count(packet);
  if (state_ != State::stream) [[unlikely]] {
    if (state_ == State::closed) return;
    if (state_ == State::nothing) return path_.send_back(Ack{now_, packet.sent_at, 0, kAckReset, 0, 0, 0});
    if (state_ == State::last_ack) {  // a copy of what has arrived
      const Time deadline = deadline_;
      send_ack(kAckDuplicate);
      return set_timer(deadline);
    }
    if (!accept(packet)) return;
  }
  if (tunes_window_) {  // after a long silence the sender starts anew and needs every ACK
    if (buffer_ && !before(index, rcv_nxt_) &&
        !buffer_->admits(packet.bytes, index == rcv_nxt_, unread_bytes())) [[unlikely]] {
      return send_ack();
    }
    if (now_ - last_received_ > silence_) quick_acks_ = std::max(quick_acks_, profile_.quick_acks);
    last_received_ = now_;
    if (path_.round_trips.echoes(packet.sent_at)) {
      measure_round_trip(packet);
    } else if (!reads_stamps_ && index == rcv_nxt_) [[unlikely]] {
      measure_by_window(packet);
    }
  }
  if (ecn_ != Ecn::none) [[unlikely]] note_ecn(packet);
  if (control_) [[unlikely]] ask_control(packet);
  if (misbehaviour_ == Misbehaviour::optimistic) [[unlikely]] return receive_greedily(packet);
  const bool late = late_stamp(packet);
  if (!late) newest_sent_ = packet.sent_at;
  if (index != rcv_nxt_) [[unlikely]] {
    return before(index, rcv_nxt_) || out_of_order_.find(index) ? receive_again(packet) : receive_beyond(packet);
  }
  if (index == last_ack_sent_ && !late) echo_sent_ = packet.sent_at;  // RFC 7323, 4.3
  ++rcv_nxt_;
  if (packet.fin) [[unlikely]] stream_end_ = rcv_nxt_, have_end_ = true;
  if (!out_of_order_.empty()) [[unlikely]] {
    int64_t bytes = packet.bytes;
    take_stretch(bytes);
    look_for_plain();
    deliver(bytes);
    if (have_end_ && rcv_nxt_ == stream_end_) return close(false);
    if (tunes_window_) tune_window(packet, bytes - packet.bytes);
    return send_ack();
  }
  deliver(packet.bytes);
  if (have_end_) [[unlikely]] return close(true);
  if (now_ >= tune_at_) [[unlikely]] tune_window(packet);
  if (makes_ack_due(packet)) {
    if (bunched_ && quick_acks_ == 0) [[unlikely]] return acknowledge_as_read();
    send_ack();
  } else if (deadline_ == kNever) {
    delay_ack(now_ + profile_.delayed_ack_timeout);
  }
}

void Receiver::measure_round_trip(const Packet& packet) {
  path_.round_trips.sample(packet.sent_at, now_, stamp_unit_);
  move_round_end();
}

void Receiver::measure_by_window(const Packet& packet) {
  const int64_t window = window_limited_ ? window_said_ : tuned_window();
  path_.round_trips.in_order(counters_.delivered_bytes + packet.bytes, window, now_);
  move_round_end();
}

void Receiver::move_round_end() {
  round_end_ = round_begun_ + path_.round_trips.average();
  if (tune_at_ > 0) tune_at_ = round_end_;
}

// RFC 3168, 6.1.3: a mark is echoed by every ACK until the sender has given way, and the first are not delayed,
// as Linux has it. RFC 8257, 3.2: ACKs say of each packet whether it was marked, so that what waits is
// acknowledged before that changes.
void Receiver::note_ecn(const Packet& packet) {
  const bool marked = packet.to & kEcnMarked;
  counters_.marks += marked;
  if (ecn_ == Ecn::classic) {
    if (packet.to & kEcnReduced) echo_ = 0, quick_acks_ = std::max(quick_acks_, 1u);  // its window may be very small
    if (marked && !echo_) quick_acks_ = std::max(quick_acks_, 2u);
    if (marked) echo_ = kAckEcho;
  } else if (ecn_ == Ecn::counts) {  // RFC 9768, 3.2.2.5.1: an ACK at the latest when two more have come
    marks_ += marked;
    if (marks_ - marks_told_ >= 2) quick_acks_ = std::max(quick_acks_, 1u);
  } else if (marked != (echo_ != 0)) {
    if (unacked_segments_ > 0 && deadline_ != kNever) send_ack();
    echo_ = marked ? kAckEcho : 0;
    quick_acks_ = std::max(quick_acks_, 1u);
  }
}

// Whatever comes is taken for all that was sent before it, and a quarter of what came in the last round trip for more:
// as much as has been sent meanwhile, most likely. What is sent again shows that the sender did not believe it.
void Receiver::receive_greedily(const Packet& packet) {
  const bool again = before(packet.segment, rcv_nxt_);
  echo_sent_ = packet.sent_at;
  ++round_segments_;
  if (again || now_ >= lead_round_) {
    lead_ = again ? 0 : round_segments_ / 4;
    round_segments_ = 0;
    lead_round_ = now_ + std::max(handshake_rtt_, kMillisecond);
  }
  if (!again) rcv_nxt_ = packet.segment + 1;
  deliver(packet.bytes);
  if (++unacked_segments_ >= profile_.delayed_ack_packets || quick_acks_ > 0 || again) send_ack();
  else if (deadline_ == kNever) delay_ack(now_ + profile_.delayed_ack_timeout);
}

// Savage et al.: with the ACK go three that acknowledge parts of its segments, or three duplicates.
void Receiver::send_more(const Ack& ack) {
  Ack part = ack;
  if (misbehaviour_ == Misbehaviour::split) part.ack = last_ack_sent_, part.flags = kAckUntrue;
  for (int i = 0; i < 3; ++i) path_.send_back(part);
}

// What a receiver knows of a packet: the sender's clock by its time stamp, and its own.
void Receiver::ask_control(const Packet& packet) {
  Arrival arrival;
  arrival.now = clock(now_);
  arrival.unit = stamp_unit_;
  arrival.stamp = static_cast<uint32_t>(stamp(packet.sent_at));
  arrival.bytes = packet.bytes;
  arrival.rtt = -1;
  if (echoes_) {
    const Time left = echoes_->first_echo(packet.sent_at);
    if (left >= 0) arrival.rtt = arrival.now - stamp(clock(left)) * stamp_unit_;
  }
  arrival.delivered_bytes = counters_.delivered_bytes;
  arrival.buffered_bytes = buffered_bytes();
  arrival.window_bytes = window_edge_ - counters_.delivered_bytes;
  arrival.missing = 0;
  arrival.repeated = false;
  if (!before(packet.segment, newest_)) [[likely]] {
    arrival.missing = packet.segment - newest_;
    newest_ = packet.segment + 1;
    newest_stamp_ = arrival.stamp;
  } else {
    arrival.repeated = after(arrival.stamp, newest_stamp_);  // by the stamps alone: within one unit nobody could tell
    arrival.late = before(arrival.stamp, newest_stamp_);
  }
  counters_.segments_missing += arrival.missing;
  counters_.segments_repeated += arrival.repeated;
  const int64_t said = control_->window(arrival);
  if (clamp_interval_ < 0) [[likely]] {
    window_clamp_ = said;
    return;
  }
  // What it said last before an interval ended is in force since then.
  if (const Time intervals = clamp_interval_ > 0 ? now_ / clamp_interval_ : -1;
      intervals != clamped_at_ || intervals < 0) {
    const int64_t clamp = clamp_interval_ > 0 ? next_clamp_ : said;
    clamped_at_ = intervals;
    if (clamp > clamp_) {
      window_clamp_ = std::max(window_clamp_, std::min(clamp, window_edge_ - counters_.delivered_bytes));
    }
    clamp_ = clamp;
    window_clamp_ = std::min(window_clamp_, clamp);
  }
  next_clamp_ = said;
  // Linux offers more by two segments a segment that arrives, and acknowledges that one at once (tcp_grow_window).
  if (window_clamp_ < clamp_) {
    window_clamp_ = std::min<int64_t>(window_clamp_ + 2 * int64_t{profile_.mss}, clamp_);
    quick_acks_ |= 1;
  }
}

// A hole is filled: what follows it in order goes with the segment that filled it.
void Receiver::take_stretch(int64_t& bytes) {
  const RangeSet::Stretch first = out_of_order_.ranges().front();
  if (first.begin != rcv_nxt_) return;
  rcv_nxt_ = first.end;
  bytes += first.bytes;
  held_bytes_ -= first.bytes;
  out_of_order_.trim(rcv_nxt_);
  std::erase_if(recent_blocks_, [&](const Range& r) { return !after(r.end, rcv_nxt_); });
}

void Receiver::receive_again(const Packet& packet) {
  const uint32_t index = packet.segment;
  if (profile_.quick_acks > 1) quick_acks_ = profile_.quick_acks;
  if (profile_.echoes_duplicates && !after(packet.segment, last_ack_sent_)) {
    echo_sent_ = std::max(echo_sent_, packet.sent_at);
  }
  send_ack(static_cast<uint8_t>(profile_.sacks() ? kAckDuplicate : 0), profile_.reports_duplicates ? &index : nullptr);
}

void Receiver::receive_beyond(const Packet& packet) {
  const uint32_t index = packet.segment;
  plain_ = false;
  if (packet.fin) stream_end_ = index + 1, have_end_ = true;
  out_of_order_.add(index, index + 1, packet.bytes);
  held_bytes_ += packet.bytes;
  if (!profile_.sacks()) [[unlikely]] {  // each is worth an ACK, which must not open the window (tcp_data_queue_ofo)
    if (buffer_) buffer_->hold(now_, unread_bytes(), held_bytes_);
    if (tunes_window_) make_room_beyond();
    return send_ack();
  }
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

  if (tunes_window_) {
    tune_window(packet);
    make_room_beyond();
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
  if (deadline_ == kNever || compressed_ == 1) {
    delay_ack(now_ + std::min(profile_.compressed_ack_delay, handshake_rtt_ * 33 / 100));
  }
}

// Linux acknowledges every segment while the window it offers grows (tcp_grow_window): by two segments a segment
// received, up to what the buffer has room for. The buffer itself grows, with each round trip in which the application
// read more than in any before, to hold a doubling of that (dynamic right-sizing, tcp_rcv_space_adjust). Round trips are
// measured by the ACKs that time stamps echo, so that the queues of both directions count. Where ACKs arrive as soon as
// they can the window is ahead of any sender that is not limited by its own, and what shows is the ACKs. It holds the
// sender back where they queue, and without SACK, with which alone it grows while a segment is missing.
// A round ends as the application reads the first packet: what became readable with it, when a hole was filled, is still
// unread then, is taken off what was read, and is of the next round. behind: so many bytes.
void Receiver::tune_window(const Packet& packet, int64_t behind) {
  if (buffer_) return tune_buffer(packet, behind);
  WindowTuning& w = tuning_;
  if (const int64_t room = w.allowed + w.kPacket - memory_at(packet, behind, w.kPacket) - w.offered; room > 0) {
    w.offered += std::min<int64_t>(room, 2 * packet.bytes);
    quick_acks_ |= 1;
  }
  if (ends_round(packet)) grow_window(behind);
  tune_at_ = w.offered < w.allowed ? 0 : round_end_;
}

void Receiver::grow_window(int64_t behind) {
  WindowTuning& w = tuning_;
  const int64_t unread = std::max(unread_bytes(), behind), upto = counters_.delivered_bytes - unread;
  const int64_t read = upto - w.round_bytes - unread;
  if (read > w.largest_round) {
    // More than the largest window in a round trip asks for the largest at once, and its square would not fit.
    w.allow(read >= w.kLargest ? w.kLargest
                               : 2 * read + 4 * read * (read - w.largest_round) / w.largest_round + beyond_hole());
    w.largest_round = read;
  }
  begin_round(upto);
}

// Likewise where the buffer is a host's, which knows by how much.
void Receiver::tune_buffer(const Packet& packet, int64_t behind) {
  const int64_t memory = memory_at(packet, behind, packet.bytes);
  if (buffer_->arrived(now_, packet.bytes, memory, unread_bytes(), held_bytes_)) quick_acks_ |= 1;
  if (!ends_round(packet)) return;
  const int64_t unread = std::max(unread_bytes(), behind), upto = counters_.delivered_bytes - unread;
  buffer_->round(upto - tuning_.round_bytes, unread, beyond_hole());
  begin_round(upto);
}

// What waits beyond a hole needs room beside what is read in a round trip (tcp_data_queue_ofo).
void Receiver::make_room_beyond() {
  if (buffer_) return buffer_->reordered(beyond_hole());
  tuning_.allow(2 * tuning_.largest_round + beyond_hole());
  tune_at_ = 0;
}

// ---- acknowledgements

// When the timer goes off for what is delayed. That of a delayed ACK ticks; what makes it exact sets a deadline of its own.
inline Time Receiver::ack_due() const {
  const bool exact = reads_ || compressed_ > 0 || state_ != State::stream;  // a high-resolution timer
  return exact ? deadline_ : goes_off(deadline_ - profile_.delayed_ack_timeout, deadline_, profile_.tick);
}

void Receiver::delay_ack(Time deadline) {
  deadline_ = deadline;
  if (deadline < timers_.at(Alarm::acknowledgement)) timers_.set(Alarm::acknowledgement, ack_due());
}

// Linux acknowledges a second segment at once only where the window that it would offer is no smaller than the last
// (__tcp_ack_snd_check), which it is while something is unread; else when the application reads (tcp_cleanup_rbuf). That
// wakes up after all that the same interrupt, or the same turn of whatever writes to the device, has brought.
void Receiver::acknowledge_as_read() {
  reads_ = true;
  delay_ack(now_);
}

void Receiver::on_timer(Time now) {
  const Time due = ack_due();
  timers_.set(Alarm::acknowledgement, due > now ? due : kNever);  // deadlines move
  if (due > now) return;
  now_ = now;
  deadline_ = kNever;
  if (state_ == State::syn) return repeat_answer();
  if (state_ == State::last_ack) return repeat_fin();
  send_ack();
}

void Receiver::send_ack(uint8_t flags, const uint32_t* duplicate) {
  settle_acks();
  Ack ack{now_, echo_sent_, 0, static_cast<uint8_t>(flags | echo_), 0, rcv_nxt_, advertised_window()};
  if (ecn_ == Ecn::counts) [[unlikely]] {
    ack.echo_sent = (ack.echo_sent & ~kMarkCount) | static_cast<Time>((marks_told_ = marks_) & kMarkCount);
  }
  if (misbehaviour_ != Misbehaviour::none && flags == 0) [[unlikely]] {
    if (misbehaviour_ == Misbehaviour::optimistic) ack.ack += lead_, ack.flags = ack.flags | kAckUntrue;
    if (misbehaviour_ == Misbehaviour::split) send_more(ack);
  }
  last_ack_sent_ = rcv_nxt_;
  if (recent_blocks_.empty() && !duplicate) [[likely]] {
    if (reads_stamps_) path_.round_trips.left(rcv_nxt_, now_);
    if (echoes_ && flags == 0) [[unlikely]] echoes_->left(rcv_nxt_, now_);
    path_.send_back(ack);
    if (misbehaviour_ == Misbehaviour::spoofed) [[unlikely]] send_more(ack);
    return;
  }
  SackBlocks blocks{};
  blocks.count = static_cast<uint8_t>(std::min<size_t>(profile_.max_sack_blocks, recent_blocks_.size()));
  if (duplicate) blocks.has_duplicate = true, blocks.duplicate = *duplicate;
  std::copy_n(recent_blocks_.begin(), blocks.count, blocks.block);
  const uint16_t number = path_.send_back(ack, blocks);
  if (reads_stamps_) path_.round_trips.left_with_blocks(rcv_nxt_, number, now_);
}

// ---- the application, flow control

void Receiver::attach(std::unique_ptr<ReceiverControl> control) {
  control_ = std::move(control);
  if (!control_) return;
  window_limited_ = true;
  window_clamp_ = clamp_ = next_clamp_ = control_->initial_window();
  look_for_plain();
}

void Receiver::attach(std::unique_ptr<ReceiveBuffer> buffer) {
  buffer_ = std::move(buffer);
  window_limited_ = tunes_window_ = true;
  offers_tuned_ = false;
  reads_stamps_ = profile_.time_stamps;
  tune_at_ = 0;  // every packet is looked at
  look_for_plain();
}

void Receiver::read(Time now) {
  read_bytes_ = sink_->read(now, counters_.delivered_bytes);
  timers_.set_no_later(Alarm::reading, sink_->next(now));
}

void Receiver::on_reading(Time now) {
  now_ = now;
  timers_.set(Alarm::reading, kNever);
  read(now);
  ask_again(now);
  if (buffer_) buffer_->hold(now, unread_bytes(), held_bytes_);
  int64_t step;
  const int64_t edge = window_edge(step), delivered = counters_.delivered_bytes;
  // As Linux does: only a window that has at least doubled is worth an ACK of its own.
  if (edge - window_edge_ < std::max<int64_t>(1, step) || edge - delivered < 2 * (window_edge_ - delivered)) return;
  if (window_limited_ && (!buffer_ || state_ == State::stream)) send_ack(kAckWindow);
}

// A request is a segment that is sent again until something comes of it (RFC 6298, of which the handshake is the only
// sample). On the wire it is as long as an ACK.
void Receiver::ask_again(Time now) {
  if (sink_->asks(now)) {
    request_ = {};
  } else if (now < request_.repeat) {
    return timers_.set_no_later(Alarm::reading, request_.repeat);
  } else if (counters_.packets_received > request_.heard) {
    request_.repeat = kNever;
    return;
  }
  request_.heard = counters_.packets_received;
  const Time timeout = std::max(profile_.min_rto, 3 * handshake_rtt_);
  request_.repeat = now + doubled_timeout(timeout, std::min(request_.tries++, 15u), profile_.max_rto);
  timers_.set_no_later(Alarm::reading, request_.repeat);
  send_ack(kAckRequest);
}

// What the buffer has left beyond what the application has not read yet, within what the control allows.
int64_t Receiver::window_edge(int64_t& step) const {
  int64_t space = std::min(window_clamp_, profile_.scales_windows ? kEndless : kLargestUnscaledWindow);
  if (offers_tuned_) [[unlikely]] space = std::min(space, tuned_window());
  if (control_ && control_->counts_network() && profile_.sacks()) space += held_bytes_;
  step = std::min<int64_t>(profile_.mss, window_clamp_ / 2);
  if (buffer_) {
    space = std::min(space, buffer_->window(unread_bytes(), held_bytes_));
    step = 1;
  }
  if (receive_buffer_ > 0) {
    space = std::min(space, receive_buffer_ - (sink_ ? counters_.delivered_bytes - read_bytes_ : 0));
    step = std::min(step, receive_buffer_ / 2);
  }
  return counters_.delivered_bytes + space;
}

// RFC 9293, 3.8.6: never takes back what was advertised, nor moves its right edge by silly steps (3.8.6.2.2).
uint32_t Receiver::advertised_window() {
  if (!window_limited_) [[likely]] return kUnlimitedWindow;
  int64_t step;
  const int64_t edge = window_edge(step);
  if (edge > window_edge_ && edge - window_edge_ >= step) window_edge_ = edge;
  return window_said_ = static_cast<uint32_t>(
             std::clamp<int64_t>(window_edge_ - counters_.delivered_bytes, 0, kUnlimitedWindow - 1));
}

size_t Receiver::memory_bytes() const {
  return out_of_order_.memory_bytes() + recent_blocks_.capacity() * sizeof(Range) + (sink_ ? sink_->memory_bytes() : 0);
}

}  // namespace netbuf
