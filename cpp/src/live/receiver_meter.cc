#include "netbuf/receiver_meter.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "netbuf/live.h"
#include "receiver_controls/nuwa.h"

namespace netbuf {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr Time kRepeat = 10 * kMillisecond;      // the same window is said again
constexpr Time kSameClock = 50 * kMillisecond;   // stamps that are off by less are the monotonic clock's
constexpr uint8_t kTcp = 6, kSynFlag = 2, kAckFlag = 16;
enum Option : uint8_t { kEnd = 0, kNothing = 1, kScale = 3, kSack = 5, kStamps = 8 };

uint32_t half(const uint8_t* at) { return uint32_t{at[0]} << 8 | at[1]; }
uint32_t word(const uint8_t* at) { return half(at) << 16 | half(at + 2); }

}  // namespace

ReceiverMeter::ReceiverMeter(const FlowConfig& config, uint32_t mss)
    : control_(make_receiver_control(config, mss)),
      mss_(mss),
      unit_(config.timestamp_ns),
      clock_offset_(config.clock_offset_ns),
      clamp_interval_(std::max<Time>(config.clamp_interval_ns, 0)),
      clock_drift_(config.clock_drift_ppm * 1e-6) {
  if (!control_) throw std::invalid_argument("the flow's receiver has no control");
  window_ = control_->initial_window();
}

bool ReceiverMeter::parse(const uint8_t* packet, uint32_t length, Header& h) {
  if (length < 20 || packet[0] >> 4 != 4 || packet[9] != kTcp) return false;
  if ((packet[6] & 0x1f) | packet[7]) return false;  // a fragment, not the first
  const uint32_t ip = (packet[0] & 15u) * 4, total = std::min(half(packet + 2), length);
  if (total < ip + 20) return false;
  const uint8_t* tcp = packet + ip;
  const uint32_t header = (tcp[12] >> 4) * 4u;
  if (header < 20 || total < ip + header) return false;
  h = {};
  h.tcp = tcp;
  h.seq = word(tcp + 4);
  h.ack = word(tcp + 8);
  h.payload = total - ip - header;
  h.window = static_cast<uint16_t>(half(tcp + 14));
  h.syn = tcp[13] & kSynFlag;
  for (uint32_t at = 20; at < header;) {
    const uint8_t kind = tcp[at];
    if (kind == kEnd) break;
    if (kind == kNothing) {
      ++at;
      continue;
    }
    if (at + 2 > header || tcp[at + 1] < 2 || at + tcp[at + 1] > header) break;
    const uint8_t bytes = tcp[at + 1];
    if (kind == kStamps && bytes == 10) {
      h.stamped = true;
      h.stamp = word(tcp + at + 2);
      h.echo = word(tcp + at + 6);
    } else if (kind == kScale && bytes == 3) {
      h.scaled = true;
      h.scale = tcp[at + 2];
    } else if (kind == kSack) {
      h.holes = true;
    }
    at += bytes;
  }
  return true;
}

void ReceiverMeter::data(Time now, const uint8_t* packet, uint32_t length) {
  Header h;
  if (!parse(packet, length, h)) return;
  if (h.syn) {
    if (begun_ && next_ == h.seq + 1) return;   // the same again
    begin_ = now;
    begun_ = true;
    next_ = newest_ = h.seq + 1;
    newest_stamp_ = h.stamp;
    beyond_.clear();
    left_.clear();
    held_bytes_ = 0;
    advertised_ = echoed_ = false;
    return;
  }
  if (h.payload == 0 || !begun_) return;
  ++counters_.packets_received;
  counters_.received_bytes += h.payload;
  if (!h.stamped) {
    ++counters_.stamps_missing;
    return take(h);
  }
  Arrival arrival{};
  arrival.now = clock(now);
  arrival.unit = unit_;
  arrival.stamp = h.stamp;
  arrival.bytes = h.payload;
  arrival.rtt = -1;
  if (!echoed_ || after(h.echo, last_echo_)) {
    last_echo_ = h.echo;
    echoed_ = true;
    bool known = false;
    for (; !left_.empty() && !after(left_.front().stamp, h.echo); left_.pop()) {
      known = left_.front().stamp == h.echo && left_.front().plain;
    }
    const Time there = now + answer_clock_;
    const auto units = static_cast<int32_t>(static_cast<uint32_t>(there / unit_) - h.echo);
    if (known && units >= 0) arrival.rtt = units * unit_ + there % unit_;
  }
  arrival.delivered_bytes = counters_.delivered_bytes;
  arrival.buffered_bytes = held_bytes_;
  arrival.window_bytes = advertised_ ? static_cast<int32_t>(edge_ - next_) : control_->initial_window();
  if (!before(h.seq, newest_)) {
    arrival.missing = (h.seq - newest_ + mss_ - 1) / mss_;
    newest_ = h.seq + h.payload;
    newest_stamp_ = h.stamp;
  } else {
    arrival.repeated = after(h.stamp, newest_stamp_);
    arrival.late = before(h.stamp, newest_stamp_);
  }
  counters_.segments_missing += arrival.missing;
  counters_.segments_repeated += arrival.repeated;
  if (clamp_interval_ > 0) apply(now);   // what was said before the interval ended
  window_ = control_->window(arrival);
  take(h);
  if (clamp_interval_ == 0) apply(now);
}

// Again, even if it is the same: the kernel sets it anew when it learns how much of its buffers is payload.
void ReceiverMeter::apply(Time now) {
  if (!socket_) return;
  if (clamp_interval_ > 0) {
    const Time intervals = now / clamp_interval_;
    if (intervals == clamped_at_) return;
    clamped_at_ = intervals;
  } else if (clamp_bytes() == clamped_ && now - clamped_at_ < kRepeat) {
    return;
  } else {
    clamped_at_ = now;
  }
  clamped_ = clamp_bytes();
  const int bytes = static_cast<int>(std::clamp<int64_t>(clamped_, 1, INT32_MAX));
  setsockopt(socket_.get(), IPPROTO_TCP, TCP_WINDOW_CLAMP, &bytes, sizeof bytes);
}

void ReceiverMeter::clamp(int socket) {
  socket_ = Descriptor(::fcntl(socket, F_DUPFD_CLOEXEC, 0));
  if (!socket_) fail_system("a duplicate of a receiver's socket");
  clamped_at_ = -1;
}

Nuwa& ReceiverMeter::nuwa() {
  auto* nuwa = dynamic_cast<Nuwa*>(control_.get());
  if (!nuwa) throw std::logic_error("the receiver's control is not Nuwa's");
  return *nuwa;
}

void ReceiverMeter::begin(Time now) {
  Nuwa& rule = nuwa();
  rule.interval = {};
  rule.interval.last = clock(now);
  queue_before_ = rule.delay().queue();
  heard_before_ = rule.heard_any();
}

void ReceiverMeter::set(double k, double target_s, double window_bytes, double gain) {
  Nuwa& rule = nuwa();
  if (!std::isnan(k)) rule.set_k(k);
  if (!std::isnan(target_s)) rule.set_target(target_s);
  if (!std::isnan(window_bytes)) {
    rule.set_window(window_bytes);
    window_ = static_cast<int64_t>(rule.window_bytes());
  }
  if (!std::isnan(gain)) rule.set_gain(gain);
}

MeterReading ReceiverMeter::read(Time now) {
  const Nuwa& rule = nuwa();
  const Interval& seen = rule.interval;
  const bool heard = rule.heard_any(), any = seen.packets > 0;
  const Time here = clock(now);
  MeterReading r;
  r.window_bytes = rule.window_bytes();
  r.queue_delay_last_s = any ? rule.delay().raw() : kNaN;
  r.queue_delay_s = heard ? rule.delay().queue() : kNaN;
  r.queue_delay_mean_s = any ? seen.raw_sum / static_cast<double>(seen.packets) : kNaN;
  r.queue_delay_min_s = any ? seen.raw_least : kNaN;
  r.queue_delay_max_s = any ? seen.raw_most : kNaN;
  r.queue_delay_before_s = heard_before_ && any ? queue_before_ : kNaN;
  r.rtt_s = rule.rtt() >= 0 ? seconds(rule.rtt()) : kNaN;
  r.rtt_min_s = rule.rtt_min() >= 0 ? seconds(rule.rtt_min()) : kNaN;
  r.silence_s = heard ? seconds(here - rule.heard()) : kNaN;
  r.longest_gap_s = seconds(std::max(seen.longest_gap, here - seen.last));
  r.k = rule.k();
  r.target_delay_s = rule.target_s();
  r.bdp_gain = rule.gain();
  return r;
}

// Puts the payload in its place.
void ReceiverMeter::take(const Header& h) {
  const uint32_t end = h.seq + h.payload;
  if (!after(end, next_)) return;
  if (after(h.seq, next_)) {
    beyond_.add(h.seq, end, 0, [this](uint32_t from, uint32_t to) { held_bytes_ += to - from; });
    return;
  }
  const uint32_t before_it = next_;
  next_ = end;
  for (;;) {
    int64_t covered = 0;   // of what was held, by what is in order now
    bool reached = false;
    for (const RangeSet::Stretch& held : beyond_.ranges()) {
      if (after(held.begin, next_)) break;
      const uint32_t upto = after(held.end, next_) ? held.end : next_;
      covered += held.end - held.begin;
      if (upto != next_) next_ = upto, reached = true;
    }
    held_bytes_ -= covered;
    beyond_.trim(next_);
    if (!reached) break;
  }
  counters_.delivered_bytes += next_ - before_it;
}

void ReceiverMeter::answer(Time now, const uint8_t* packet, uint32_t length) {
  Header h;
  if (!parse(packet, length, h) || !begun_ || !(h.tcp[13] & kAckFlag)) return;
  if (h.syn) {
    scale_ = h.scaled ? std::min<uint32_t>(h.scale, 14) : 0;
    edge_ = h.ack + h.window;   // not scaled yet
    if (h.stamped) {
      const Time ahead = static_cast<int32_t>(h.stamp - static_cast<uint32_t>(now / unit_)) * unit_;
      answer_clock_ = ahead > -kSameClock && ahead < kSameClock ? 0 : ahead;
    }
    return;
  }
  const uint32_t edge = h.ack + (uint32_t{h.window} << scale_);
  if (!advertised_ || after(edge, edge_) || !before(h.ack, next_)) edge_ = edge;
  advertised_ = true;
  if (h.stamped) left_.push({h.stamp, !h.holes && h.payload == 0});
}

int64_t ReceiverMeter::advertised_bytes() const {
  return advertised_ ? std::max<int64_t>(0, static_cast<int32_t>(edge_ - next_)) : -1;
}

}  // namespace netbuf
