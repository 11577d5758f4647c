// What Linux makes of reordering (net/ipv4/tcp_input.c and tcp_recovery.c, 6.18; behaviour): how much of it there is,
// how long RACK waits for what is late (RFC 8985, 6.2 step 4), and when a recovery has proved needless (Eifel
// detection, RFC 3522; D-SACK, RFC 3708) so that the window is given back (RFC 4015).
#pragma once
#include <algorithm>

#include "netbuf/scoreboard.h"

namespace netbuf {

class Reordering {
 public:
  static constexpr uint32_t kInitial = 3;      // net.ipv4.tcp_reordering
  static constexpr uint32_t kMost = 300;       // net.ipv4.tcp_max_reordering

  bool seen() const { return seen_; }
  uint32_t degree() const { return degree_; }  // segments, of the largest displacement seen
  bool grows_on_any_delivery() const { return degree_ > kInitial; }

  // A segment that was sent once arrived after one that was sent later; highest: after the highest that had arrived.
  void note(uint32_t segment, uint32_t highest) {
    if (!before(segment, highest)) return;
    degree_ = std::max(degree_, std::min(highest - segment, kMost));
    seen_ = true;
  }
  // A time-out shows that the degree was taken for too high.
  void doubt(uint32_t sacked) {
    if (sacked >= kInitial) degree_ = kInitial;
  }

  // The multiple of min_rtt / 4 that RACK waits: one more with each round trip that brought a D-SACK, one again when 16
  // recoveries have passed without any. latest_sent: of what this ACK newly delivers; -1: nothing.
  void adapt(Time now, Time latest_sent, bool duplicate) {
    pending_ |= duplicate && seen_;
    if (latest_sent < 0) return;
    if (latest_sent < adapted_at_) pending_ = false;  // sent before the last change could tell
    if (pending_) {
      steps_ = std::min(steps_ + 1, 255u);
      recoveries_left_ = kRecoveries;
      adapted_at_ = now;
      pending_ = false;
    } else if (recoveries_left_ == 0) {
      steps_ = 1;
    }
  }
  void recovered(bool needless) {
    if (needless) {
      recoveries_left_ = std::min(recoveries_left_ + 1, kRecoveries);
    } else if (recoveries_left_ > 0) {
      --recoveries_left_;
    }
  }
  Time window(const Tcb& tcb) const { return std::min(tcb.min_rtt / 4 * steps_, tcb.srtt); }
  uint32_t steps() const { return steps_; }

 private:
  static constexpr uint32_t kRecoveries = 16;  // TCP_RACK_RECOVERY_THRESH
  uint32_t degree_ = kInitial, steps_ = 1, recoveries_left_ = 0;
  bool seen_ = false, pending_ = false;
  Time adapted_at_ = -1;
};

// The last reduction of the window, while it can be taken back: undo_marker, undo_retrans, retrans_stamp, prior_cwnd.
class Undo {
 public:
  void begin(const Tcb& tcb) {
    marked_ = true;
    marker_ = tcb.una;
    copies_ = tcb.retrans_out > 0 ? tcb.retrans_out : kNone;
    first_copy_ = tcb.retrans_out > 0 ? first_copy_ : -1;
    returns_window_ = true;
    cwnd_ = tcb.cwnd;
    const bool reducing = tcb.state == CaState::cwr || tcb.state == CaState::recovery;
    ssthresh_ = reducing ? tcb.ssthresh : std::max(tcb.ssthresh, tcb.cwnd * 3 / 4);  // tcp_current_ssthresh
  }
  void end() { marked_ = false; }
  bool marked() const { return marked_; }
  // For a mark that was echoed: the window stays reduced, whatever proves needless (prior_ssthresh = 0).
  void keep_reduced() { returns_window_ = false; }
  bool returns_window() const { return returns_window_; }

  void retransmitted(Time now) {
    copies_ = copies_ == kNone ? 1 : copies_ + 1;
    if (first_copy_ < 0) first_copy_ = now;
  }
  bool copied() const { return first_copy_ >= 0; }  // something has been sent again since
  void duplicate(uint32_t segment) {           // a D-SACK: it has arrived twice
    if (marked_ && copies_ > 0 && !before(segment, marker_)) --copies_;
  }
  bool all_needless() const { return marked_ && copies_ == 0; }
  // Whether the ACK of a segment that was on its way before the first retransmission,
  // by its time stamp of milliseconds.
  bool late(Time echo_sent) const {
    return marked_ && (first_copy_ < 0 || (echo_sent >= 0 && echo_sent / kMillisecond < first_copy_ / kMillisecond));
  }
  int64_t cwnd() const { return cwnd_; }
  int64_t ssthresh() const { return ssthresh_; }

 private:
  static constexpr int64_t kNone = -1;
  bool marked_ = false, returns_window_ = false;
  uint32_t marker_ = 0;
  int64_t copies_ = kNone;                     // retransmissions that have not proved needless; kNone: there was none
  Time first_copy_ = -1;
  int64_t cwnd_ = 0, ssthresh_ = 0;
};

}  // namespace netbuf
