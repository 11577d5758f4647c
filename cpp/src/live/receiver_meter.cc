#include "netbuf/receiver_meter.h"

#include <algorithm>
#include <stdexcept>

namespace netbuf {

namespace {

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
      clock_drift_(config.clock_drift_ppm * 1e-6) {
  if (!control_) throw std::invalid_argument("the flow's receiver has no control");
  window_ = control_->initial_window();
}

bool ReceiverMeter::read(const uint8_t* packet, uint32_t length, Header& h) {
  if (length < 20 || packet[0] >> 4 != 4 || packet[9] != kTcp) return false;
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
  if (!read(packet, length, h)) return;
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
  window_ = control_->window(arrival);
  take(h);
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
  if (!read(packet, length, h) || !begun_ || !(h.tcp[13] & kAckFlag)) return;
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
