#include "netbuf/socket_buffer.h"

#include <algorithm>
#include <bit>

#include "netbuf/link.h"
#include "netbuf/receiver.h"
#include "netbuf/sender.h"

namespace netbuf {

namespace {

constexpr int64_t kHeadroom = 64;               // NET_SKB_PAD
constexpr int64_t kHeaders = 52;
constexpr int64_t kSmallHead = kHeaderRoom + kSharedInfo;  // packets up to this have a cache of their own
constexpr int64_t kLargestBurst = 65'536 - 1 - kHeaderRoom;  // gso_max_size less the largest header
constexpr int64_t kLeastSend = 4608, kLeastReceive = 2304;  // SOCK_MIN_SNDBUF, SOCK_MIN_RCVBUF
constexpr int64_t kLeastSegment = 536;          // TCP_MSS_DEFAULT
constexpr int64_t kLargestUnscaled = 65'535;
constexpr uint32_t kInitialWindow = 10;         // TCP_INIT_CWND
// Mean of what a writer waits that was refused memory (sk_stream_wait_memory).
constexpr Time kRetry = 100 * kMillisecond;
// Kernels from which on they are as below.
constexpr uint32_t kRightSizing = 6016, kNewGrowth = 6018, kScalingRatio = 6006;

int64_t pages_of(int64_t bytes) { return (bytes + kPage - 1) / kPage; }

}  // namespace

int64_t packet_truesize(uint32_t payload) {
  const int64_t bytes = kHeadroom + kHeaders + payload + kSharedInfo;
  const int64_t block =
      bytes <= kSmallHead ? kSmallHead : static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(bytes)));
  return block + kPacketHead;
}

int64_t written_packet_bytes(uint32_t mss, int64_t largest_window) {
  int64_t most = kLargestBurst;
  if (largest_window > 0) most = std::min(most, largest_window > kLeastSegment ? largest_window / 2 : largest_window);
  return std::max<int64_t>(1, most / mss) * mss;
}

// ---- sending

SendBuffer::SendBuffer(Host& host, Sender& sender, const FlowConfig& config, uint32_t mss, const Link* device)
    : host_(host),
      sender_(sender),
      wanted_(application_of(config).sized ? config.size_bytes : kEndless),
      closed_(application_of(config).sized),
      locked_(config.sndbuf_bytes > 0),
      mss_(mss),
      explicit_(config.sndbuf_bytes),
      device_(device) {
  packet_bytes_ = written_packet_bytes(mss_, largest_window_);
  host_.join(*this);
}

SendBuffer::~SendBuffer() {
  const Time now = sender_.tcb.now;
  count(now);
  host_.charge(now, -pages_);
  if (open_) {
    host_.totals.sent.add(whole(now));
    host_.gone.add(share(now));
    if (!over_) ++host_.totals.closed;
  }
  host_.leave(*this);
}

// What is asked of the settings as the connection is opened (tcp_init_sock, tcp_init_buffer_space).
void SendBuffer::begin(Time now) {
  open_ = true;
  opened_ = since_ = now;
  ++host_.totals.opened;
  const HostConfig& at = host_.settings();
  limit_ = locked_ ? std::max(2 * std::min(explicit_, at.socket_bytes), kLeastSend) : at.tcp_wmem[1];
  expand();
}

// tcp_sndbuf_expand: room for two windows (BBR: three) of packets at what each takes at most.
void SendBuffer::expand() {
  if (locked_) return;
  // Without the time stamp's option.
  const int64_t segment = std::max<int64_t>(mss_ + 12, mss_) + kHeaderRoom + kSharedInfo;
  const auto packet = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(segment))) + kPacketHead;
  const int64_t wanted = sender_.cc().buffer_windows() * std::max<int64_t>(kInitialWindow, cwnd_packets_) * packet;
  if (limit_ < wanted) limit_ = std::min(wanted, host_.settings().tcp_wmem[2]);
}


void SendBuffer::count(Time now) {
  const int64_t unsent = written_ - sent_, each = packet_bytes_;
  queued_ = written_ - una_ + kSendOverhead * (bursts_.size() + (unsent > 0 ? (unsent + each - 1) / each : 0));
  const int64_t pages = pages_of(queued_);
  if (pages != pages_) {
    host_.charge(now, pages - pages_);
    pages_ = pages;
  }
}

bool SendBuffer::free_for_write() const {
  const int64_t lowat = host_.settings().notsent_lowat_bytes;
  return queued_ < limit_ && (lowat == 0 || written_ - sent_ < lowat);
}

// sk_stream_is_writeable: a third of the buffer is free, and half of what may be unsent.
bool SendBuffer::has_room() const {
  const int64_t lowat = host_.settings().notsent_lowat_bytes;
  return limit_ - queued_ >= queued_ / 2 && (lowat == 0 || 2 * (written_ - sent_) < lowat);
}

// sk_stream_moderate_sndbuf: memory is refused, and the buffer shrinks to half of what it holds.
// What would fill it is let in.
bool SendBuffer::squeezes(int64_t more) {
  if (!locked_) limit_ = std::max(std::min(limit_, queued_ / 2), kLeastSend);
  return queued_ + more < limit_;
}

// Room is asked for when another packet is needed: the last one is filled in any case. What the congestion window has
// room for leaves as soon as a packet is full.
void SendBuffer::write(Time now) {
  const int64_t before = written_, each = packet_bytes_;
  if (waits_) since_asked_ = 0;
  waits_ = refused_ = pauses_ = false;
  while (written_ < wanted_) {
    if (!held_ && in_flight_ < cwnd_packets_ && written_ - sent_ >= each) {
      pauses_ = true;
      break;
    }
    if (since_asked_ >= kWriteBytes / mss_ * mss_) {
      since_asked_ = 0;
      if (host_.settings().polls && !has_room()) no_space_ = true;
    }
    const int64_t tail = (written_ - sent_) % each, more = std::min(each - tail, wanted_ - written_);
    if (tail == 0 && !free_for_write()) {
      waits_ = no_space_ = true;
      break;
    }
    if (host_.limited() &&
        !host_.grants(queued_, queued_ - pages_ * kPage + more + kSendOverhead, host_.settings().tcp_wmem[0]) &&
        squeezes(more)) {
      waits_ = refused_ = no_space_ = true;
      break;
    }
    written_ += more;
    since_asked_ += more;
    queued_ = written_ - una_ + kSendOverhead * (bursts_.size() + (written_ - sent_ + each - 1) / each);
  }
  if (written_ == before) return;
  count(now);
  if (application_) application_->taken(now, written_);
}

Source::Offer SendBuffer::offer(Time now, int64_t sent) {
  if (!known_) return {0, kNever, false};
  if (!open_) begin(now);
  sent_ = sent;
  Time next = kNever;
  if (application_) {
    const Offer offered = application_->offer(now, written_);
    wanted_ = offered.written;
    closed_ = offered.closed;
    next = offered.next;
  }
  write(now);
  if (refused_) next = std::min(next, now + kRetry);
  return {written_, next, closed_ && written_ == wanted_};
}

void SendBuffer::stop() {
  application_.reset();
  wanted_ = written_;
  closed_ = true;
  waits_ = false;
}

// tcp_write_err, tcp_done: the write queue is purged.
void SendBuffer::failed(Time now) {
  if (application_) application_->failed(now);
  bursts_.clear();
  no_space_ = starved_ = false;
  una_ = written_ = sent_;
  stop();
  count(now);
  clock_[static_cast<size_t>(state_)] += now - since_;
  since_ = now;
  state_ = State::idle;
  if (over_) return;
  over_ = true;
  ended_ = now;
  if (open_) ++host_.totals.closed;
}

void SendBuffer::acknowledged(const Position& at) {
  cwnd_packets_ = at.cwnd_packets;
  in_flight_ = at.in_flight;
  known_ = true;
  if (at.largest_window != largest_window_) {
    largest_window_ = at.largest_window;
    packet_bytes_ = written_packet_bytes(mss_, largest_window_);
  }
  if (at.una == una_) return;
  una_ = at.una;
  while (!bursts_.empty() && !after(bursts_.front(), at.segment)) bursts_.pop();
}

// tcp_small_queue_check: about a millisecond's worth of its own packets may wait in the host, two of them in any case,
// and no more than what the host says.
Time SendBuffer::held_back(Time now, double rate) {
  const int64_t most = host_.settings().limit_output_bytes;
  if (!device_ || most == 0) return 0;
  while (!in_device_.empty() && in_device_.front().at <= now) {
    device_bytes_ -= in_device_.front().bytes;
    in_device_.pop();
  }
  if (in_device_.size() <= 1) return 0;
  const int64_t limit = std::min(most, std::max(2 * in_device_.back().bytes, static_cast<int64_t>(rate / 1024)));
  return device_bytes_ > limit ? in_device_.front().at : 0;
}

void SendBuffer::sent(Time now, uint32_t first, uint32_t count, uint32_t burst) {
  if (device_ && host_.settings().limit_output_bytes > 0) {
    const int64_t bytes = int64_t{count} * mss_ + kSendOverhead * ((count + burst - 1) / burst);
    in_device_.push({device_->backlog_end(now), bytes});
    device_bytes_ += bytes;
  }
  for (uint32_t done = 0; done < count; done += burst) bursts_.push(first + std::min(done + burst, count));
}

// tcp_check_space
bool SendBuffer::wakes(const Position& at) {
  held_ = pauses_ && at.sent == sent_;         // pacing, or the other end's window: it writes on
  sent_ = at.sent;
  count(at.now);
  in_flight_ = at.in_flight;
  cwnd_packets_ = at.cwnd_packets;
  if (!no_space_) return pauses_;
  if (!host_.pressure() && host_.plenty() && in_flight_ < cwnd_packets_) expand();
  if (!has_room()) return pauses_;
  no_space_ = starved_ = false;
  return waits_ || pauses_;
}

// tcp_cwnd_validate: something left just now, nothing is left to leave, and the application was without room before.
// What leaves as it is written is not counted where the application only writes: it finds no room when all has left.
void SendBuffer::left(const Position& at, bool cwnd_limited) {
  if (no_space_ && written_ == at.sent && !cwnd_limited) starved_ = true;
}

// As TCP_INFO has it (tcp_chrono_start): the buffer limits from when the congestion window's use shows it until there
// is room; the window when a packet that waits does not fit in it, while it does in the congestion window.
void SendBuffer::note(const Position& at, int64_t open) {
  State state = State::busy;
  if (written_ == una_) {
    state = State::idle;
  } else if (starved_) {
    state = State::buffer_limited;
  } else if (at.in_flight < at.cwnd_packets) {
    if (open < std::min(written_ - at.sent, packet_bytes_) && open < int64_t{at.cwnd_packets - at.in_flight} * mss_) {
      state = State::window_limited;
    }
  }
  if (state != state_) {
    clock_[static_cast<size_t>(state_)] += at.now - since_;
    since_ = at.now;
    state_ = state;
  }
  if (state == State::idle && closed_ && written_ == wanted_ && !over_) {
    over_ = true;
    ended_ = at.now;
    ++host_.totals.closed;
    ++host_.totals.completed;
  }
}

SendShare SendBuffer::whole(Time now) const {
  const SenderCounters& c = sender_.counters;
  SendShare share;
  share.there = open_ ? std::min(now, ended_) - opened_ : 0;
  share.acked_bytes = c.acked_bytes;
  share.packets_sent = c.packets_sent;
  share.packets_retransmitted = c.packets_retransmitted;
  share.rtt_count = c.rtt_count;
  share.rtt_sum = c.rtt_sum;
  share.rtt_min = sender_.rtt_min;
  share.window_limited = spent(State::window_limited, now);
  share.buffer_limited = spent(State::buffer_limited, now);
  share.busy = spent(State::busy, now) + share.window_limited + share.buffer_limited;
  share.sending = share.busy > 0;
  return share;
}

SendShare SendBuffer::share(Time now) const {
  SendShare share = whole(now);
  share.there -= mark_.there;
  share.acked_bytes -= mark_.acked_bytes;
  share.packets_sent -= mark_.packets_sent;
  share.packets_retransmitted -= mark_.packets_retransmitted;
  share.rtt_count -= mark_.rtt_count;
  share.rtt_sum -= mark_.rtt_sum;
  share.busy -= mark_.busy;
  share.window_limited -= mark_.window_limited;
  share.buffer_limited -= mark_.buffer_limited;
  share.sending = share.busy > 0 || share.acked_bytes > 0;
  return share;
}

size_t SendBuffer::memory_bytes() const {
  return sizeof *this + bursts_.memory_bytes();
}

// ---- receiving

ReceiveBuffer::ReceiveBuffer(Host& host, const Receiver& receiver, const FlowConfig& config, uint32_t mss)
    : host_(host),
      receiver_(receiver),
      locked_(config.rcvbuf_bytes > 0),
      mss_(mss),
      truesize_(packet_truesize(mss)),
      explicit_(config.rcvbuf_bytes) {
  host_.join(*this);
}

ReceiveBuffer::~ReceiveBuffer() {
  host_.charge(receiver_.last_event(), -pages_);
  host_.totals.received_bytes += receiver_.read_bytes();
  host_.leave(*this);
  if (open_) ++host_.totals.closed;
}

// tcp_select_initial_window: half of the buffer may be payload until a packet has shown what it takes;
// the window in the handshake is not scaled.
void ReceiveBuffer::begin(Time) {
  if (open_) return;
  open_ = true;
  ++host_.totals.opened;
  const HostConfig& at = host_.settings();
  limit_ = locked_ ? std::max(2 * std::min(explicit_, at.socket_bytes), kLeastReceive) : at.tcp_rmem[1];
  const int64_t space = window_of(limit_);
  clamp_ = space;
  offered_ = std::min(space > mss_ ? space / mss_ * mss_ : space, kLargestUnscaled);
  space_ = std::min(offered_, int64_t{kInitialWindow} * mss_);
  const int64_t most = std::max({space, at.tcp_rmem[2], at.socket_bytes});
  scale_ = static_cast<uint32_t>(std::clamp<int64_t>(std::bit_width(static_cast<uint64_t>(most)) - 1 - 15, 0, 14));
}

void ReceiveBuffer::end(Time now) {
  hold(now, 0, 0);
  if (open_) ++host_.totals.closed, ++host_.totals.completed;
  open_ = false;
}

// What the application reads from now on is charged to nobody.
void ReceiveBuffer::abandon(Time now) {
  hold(now, 0, 0);
  if (open_) ++host_.totals.closed;
  open_ = false;
  abandoned_ = true;
}

bool ReceiveBuffer::arrived(Time now, uint32_t bytes, int64_t waiting, int64_t unread, int64_t held) {
  if (!measured_ && bytes >= kLeastSegment) {  // tcp_measure_rcv_mss
    measured_ = true;
    if (host_.settings().kernel >= kScalingRatio) {
      ratio_ = std::max<int64_t>(1, (int64_t{bytes} << 8) / packet_truesize(bytes));
      clamp_ = window_of(limit_);
      space_ = std::min(space_, clamp_);
    }
  }
  hold(now, unread, held);
  // tcp_grow_window: two segments a segment, up to what the buffer allows; under pressure it falls back to four.
  const int64_t room = std::min(clamp_, window_of(limit_ - memory_of(waiting))) - offered_;
  if (room <= 0) return false;
  if (host_.pressure()) {
    offered_ = std::min<int64_t>(offered_, 4 * int64_t{mss_});
    return false;
  }
  offered_ += std::min<int64_t>(room, 2 * std::max<int64_t>(mss_, bytes));
  return true;
}

// tcp_try_rmem_schedule: what is next in order is taken while nothing waits to be read.
bool ReceiveBuffer::admits(uint32_t bytes, bool next, int64_t unread) {
  if (!host_.limited() || (next && unread == 0) ||
      host_.grants(queued_, packet_truesize(bytes), host_.settings().tcp_rmem[0])) {
    return true;
  }
  offered_ = std::min<int64_t>(offered_, 4 * int64_t{mss_});
  ++host_.totals.refused;
  return false;
}

void ReceiveBuffer::hold(Time now, int64_t unread, int64_t held) {
  const int64_t queued = memory_of(unread + held);
  if (queued == queued_ || abandoned_) return;
  queued_ = queued;
  const int64_t pages = pages_of(queued);
  if (pages == pages_) return;
  host_.charge(now, pages - pages_);
  pages_ = pages;
}

// tcp_rcv_space_adjust. A window is twice what was read in a round trip, and more while that grows.
void ReceiveBuffer::round(int64_t read, int64_t unread, int64_t beyond) {
  const HostConfig& at = host_.settings();
  if (at.kernel >= kRightSizing) read -= unread;
  if (read <= space_) return;
  const int64_t before = std::max<int64_t>(space_, 1);
  space_ = read;
  if (!at.moderate_rcvbuf || locked_) return;
  int64_t window = 2 * read;
  if (at.kernel < kRightSizing) window += 16 * int64_t{mss_};
  if (at.kernel < kRightSizing || at.kernel >= kNewGrowth) {
    const double grown = static_cast<double>(window) * static_cast<double>(read - before) / static_cast<double>(before);
    window += 2 * static_cast<int64_t>(std::min(grown, 1e15));
  }
  if (at.kernel >= kRightSizing) window += beyond;
  grow_to(window);
}

// tcp_data_queue_ofo: what waits beyond a hole needs room beside it.
void ReceiveBuffer::reordered(int64_t beyond) {
  const HostConfig& at = host_.settings();
  if (at.kernel >= kRightSizing && at.moderate_rcvbuf && !locked_) grow_to(2 * space_ + beyond);
}

void ReceiveBuffer::grow_to(int64_t window) {
  const int64_t most = host_.settings().tcp_rmem[2];
  int64_t wanted = space_of(window);
  if (host_.settings().kernel < kScalingRatio) {   // by whole packets, of which half the buffer may be payload
    int64_t packet = mss_ + kHeaderRoom + kPacketHead + kSharedInfo;
    while (window_of(packet) < mss_) packet += 128;
    wanted = window / mss_ * packet;
  }
  wanted = std::min(wanted, most);
  if (wanted <= limit_) return;
  limit_ = wanted;
  clamp_ = window_of(limit_);
}

// __tcp_select_window, in units of the scale.
int64_t ReceiveBuffer::window(int64_t unread, int64_t held) const {
  const int64_t full = std::min(clamp_, window_of(limit_));
  int64_t space = window_of(std::max<int64_t>(0, limit_ - memory_of(unread + held)));
  if (space < full / 2) {
    const int64_t rounded = space >> scale_ << scale_;
    if (rounded < full / 16 || rounded < std::min<int64_t>(mss_, full)) return 0;
    space = rounded;
  }
  space = std::min(space, offered_);
  if (host_.window_clamp > 0) space = std::min(space, host_.window_clamp);
  if (!measured_) return space;              // the handshake's is not scaled
  const int64_t unit = int64_t{1} << scale_;
  return std::min((space + unit - 1) / unit, kLargestUnscaled) * unit;
}

}  // namespace netbuf
