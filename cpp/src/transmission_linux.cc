// How Linux cuts a stream into bursts: segments leave in groups that segmentation offload takes as one packet
// (tcp_write_xmit, tcp_tso_autosize and tcp_tso_should_defer in net/ipv4/tcp_output.c, 6.18; behaviour). A group
// is about a millisecond's worth at the sending rate, more on short paths, two segments at least. A smaller one
// waits for the next ACK if that must come within a millisecond. What is at the path's entrance at once decides
// who meets a full queue there.
#include <algorithm>

#include "netbuf/sender.h"

namespace netbuf {

namespace {
constexpr uint32_t kMinBurst = 2;               // tcp_min_tso_segs
constexpr uint32_t kLargestBurst = 65536 - 321; // bytes: gso_max_size less the largest header
constexpr uint32_t kBufferSegments = 45;        // full-sized segments that a socket buffer holds (size_goal)
constexpr int kRttLog = 9;                      // tcp_tso_rtt_log
constexpr int kWindowDivisor = 3;               // tcp_tso_win_divisor
constexpr double kSlowStartRatio = 2.0, kAvoidanceRatio = 1.2;  // tcp_pacing_ss_ratio, tcp_pacing_ca_ratio
}  // namespace

// Bytes a second at which Linux paces a flow whose congestion control sets a window, and by which it sizes bursts,
// paced or not (tcp_update_pacing_rate); 0: unknown.
double Sender::window_rate() const {
  if (tcb.srtt <= 0) return 0;
  const double window = static_cast<double>(std::max(tcb.cwnd_packets, tcb.packets_out())) * tcb.mss;
  return window * (2 * tcb.cwnd < tcb.ssthresh ? kSlowStartRatio : kAvoidanceRatio) * 1e9 /
         static_cast<double>(tcb.srtt);
}

// Bytes a second at which a window is paced: an agent's at 1.2 windows in the least round trip, so that packets are
// spread as they would be without a queue and never held back by a smoothed round trip that an outage has made long.
// A fine one at itself in a smoothed round trip: the pace is what binds.
double Sender::agent_rate() const {
  if (traits_.fine && tcb.cwnd < 2 * int64_t{tcb.mss}) [[unlikely]] {
    return tcb.srtt > 0 ? static_cast<double>(tcb.cwnd) * 1e9 / static_cast<double>(tcb.srtt) : 0;
  }
  if (rtt_min == kNever || rtt_min <= 0) return 0;
  const double window = static_cast<double>(std::max(tcb.cwnd_packets, tcb.packets_out())) * tcb.mss;
  return window * kAvoidanceRatio * 1e9 / static_cast<double>(rtt_min);
}

// Lost segments, then new ones.
void transmit_linux(Sender& s) {
  Tcb& tcb = s.tcb;
  const uint32_t nxt = tcb.nxt;
  uint32_t limit = 0;  // computed where it can matter
  if (s.traits_.paces_window) tcb.pacing_rate = s.traits_.steered ? s.agent_rate() : s.window_rate();
  bool deferred = false;
  uint32_t in_flight = tcb.in_flight();
  for (; in_flight < tcb.cwnd_packets; in_flight = tcb.in_flight()) {
    if (s.paced_out()) {
      s.timers_.set_no_later(Alarm::wakeup, tcb.next_departure);
      break;
    }
    uint32_t room = tcb.cwnd_packets - in_flight;
    bool by_window = false;  // the receiver's window has room for less
    if (s.buffer_) [[unlikely]] by_window = s.narrow(room);
    const bool small = limit == 0 && s.surely_below_burst(room);
    if (!small && (room > kMinBurst || tcb.pacing_rate > 0)) {
      if (limit == 0) limit = s.burst_limit();
      room = std::min(room, limit);
    }
    uint32_t sent = 0;
    if (s.board.waiting() > 0 && !s.holds_lost_) [[unlikely]] {
      while (sent < room && s.retransmit_next_lost()) ++sent;
    } else if ((limit == 0 || room < limit) && s.defers(room) &&
               (small || room < (limit ? limit : (limit = s.burst_limit())))) {
      deferred = !by_window;
      break;
    } else if (s.traits_.unhindered && in_flight > 0) [[likely]] {
      s.send_full_segments(room, room > 1 ? kPushedData : kData);
      sent = room;
    } else {
      const int64_t left = (s.stream_left() + tcb.mss - 1) / tcb.mss;
      const auto whole = static_cast<uint32_t>(std::min<int64_t>(room, left));
      if (in_flight > 0 && (!s.source_ || s.buffer_) && !s.board.rate && s.send_buffer_ == 0 && !s.closes_ && !s.traits_.ecn) {
        // At once what the receiver's window has room for.
        const int64_t usable = std::min(s.window_right_, s.stream_written_) - s.stream_sent_;
        sent = static_cast<uint32_t>(std::clamp<int64_t>(usable / tcb.mss, 0, whole));
        if (sent > 0) s.send_full_segments(sent, whole > 1 && sent == whole ? kPushedData : kData);
      }
      for (; sent < whole; ++sent) {
        s.push_next_ = whole > 1 && sent + 1 == whole;
        if (!s.send_new_segment()) break;
      }
      s.push_next_ = false;
    }
    if (sent == 0) break;
    if (tcb.pacing_rate > 0) s.pace(static_cast<int64_t>(sent) * tcb.mss);
  }
  const bool limited = deferred || in_flight >= tcb.cwnd_packets;
  if ((tcb.nxt != nxt || limited) &&
      (limited || !before(tcb.una, s.max_packets_seq_) ||
       (!tcb.cwnd_limited && tcb.packets_out() > tcb.max_packets_out))) {
    tcb.cwnd_limited = limited;
    tcb.max_packets_out = tcb.packets_out();
    s.max_packets_seq_ = tcb.nxt;
  }
  if (tcb.nxt != nxt) s.recovery_->on_new_data(s, tcb.nxt - nxt);
  if (s.board.rate && !limited && s.stream_left() <= 0 && s.board.waiting() == 0) {
    tcb.app_limited = std::max(1u, tcb.delivered + in_flight);
  }
}

// At a host groups wait for the receiver's window as they do for the congestion window.
bool Sender::narrow(uint32_t& room) const {
  const int64_t open = (window_right_ - stream_sent_) / tcb.mss;
  if (open <= 0 || open >= room || board.waiting() > 0) return false;
  room = static_cast<uint32_t>(open);
  return true;
}

// Segments of the largest group.
uint32_t Sender::burst_limit() const {
  if (tcb.pacing_rate > 0 && !traits_.paces_window) return cc_->burst_packets(tcb);
  double bytes = (traits_.paces_window ? tcb.pacing_rate : window_rate()) / 1024;
  const Time halvings = (tcb.min_rtt / kMicrosecond) >> kRttLog;
  if (halvings < 32) bytes += kLargestBurst >> halvings;
  return std::max(static_cast<uint32_t>(std::min<double>(bytes, kLargestBurst)) / tcb.mss, kMinBurst);
}

// Whether room is less than that beyond doubt, by its rate alone and a fifth too low; without divisions. Not where what
// is lost can make more outstanding than the window, nor where another rule sets the rate.
bool Sender::surely_below_burst(uint32_t room) const {
  constexpr uint32_t kMost = 64;        // segments: what follows stays below 2**63
  constexpr Time kLongest = Time{1} << 45;
  if (room >= kMost || tcb.pacing_rate > 0 || traits_.paces_window || !board.untroubled()) return false;
  if (tcb.srtt <= 0 || tcb.srtt > kLongest || (room + 1) * tcb.mss > kLargestBurst) return false;
  return int64_t{tcb.cwnd_packets} * kSecond >= Time{1024} * (room + 1) * tcb.srtt;
}

bool Sender::may_defer() const {
  return tcb.state < CaState::recovery && tcb.packets_out() > 0 &&
         tcb.now - std::max(tcb.last_departure, tcb.next_departure) <= kMillisecond;
}

// Whether room segments, fewer than the largest group, wait for the next ACK to make a larger one.
bool Sender::defers(uint32_t room) const {
  if (!may_defer()) return false;
  // The rest of a socket buffer: it will not grow.
  if (kBufferSegments - tcb.nxt % kBufferSegments <= room) return false;
  if (stream_closed_ && stream_left() <= static_cast<int64_t>(room) * tcb.mss) return false;
  const int64_t window = buffer_ ? std::min<int64_t>(tcb.cwnd_packets, largest_window_ / tcb.mss) : tcb.cwnd_packets;
  if (kWindowDivisor * room >= window) return false;
  const Time expected_ack = board.segments[tcb.una].sent_at + tcb.srtt;
  return expected_ack - tcb.now <= std::min(tcb.srtt / 2, kMillisecond);
}

// A late burst makes good the time lost, up to half its own. Payload alone counts.
void Sender::pace(int64_t bytes) {
  const Time late = std::max<Time>(tcb.now - tcb.next_departure, 0);
  tcb.next_departure = std::max(tcb.next_departure, tcb.now);
  if (counters.packets_sent < tcb.initial_cwnd) return;
  const auto gap = static_cast<Time>(static_cast<double>(bytes) * 1e9 / tcb.pacing_rate);
  tcb.next_departure += gap - std::min(gap / 2, late);
}

}  // namespace netbuf
