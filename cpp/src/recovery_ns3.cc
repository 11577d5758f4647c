// Loss recovery as ns-3.44 does it, arithmetic included: SACK scoreboard after RFC 6675, proportional rate reduction
// in bytes, a retransmission timer that only the first partial ACK of a recovery re-arms.
#include <algorithm>
#include <cmath>

#include "netbuf/rate_control.h"
#include "netbuf/sender.h"

namespace netbuf {

namespace {

constexpr uint32_t kDuplicateThreshold = 3;

class Ns3Recovery final : public Recovery {
 public:
  bool takes_every_ack() const override { return true; }
  Time rto() const override { return rto_; }
  void on_clean_ack(Sender&, Time, Time, uint32_t) override {}

  void on_established(Sender& sender, Time rtt) override {
    by_rate_ = dynamic_cast<const ControlsByNs3Rate*>(&sender.cc()) != nullptr;
    take_sample(sender, sender.tcb.now - rtt);
  }

  void on_new_data(Sender& sender, uint32_t packets) override {
    const Tcb& tcb = sender.tcb;
    if (tcb.state == CaState::recovery) {
      prr_out_ += packets * tcb.mss - (tcb.mss - sender.board.segments[tcb.nxt - 1].bytes);
    }
    if (sender.timer() == kNever) sender.rearm_rto();
  }

  void on_retransmitted(Sender& sender, uint32_t segment) override {
    if (sender.tcb.state == CaState::recovery) prr_out_ += sender.board.segments[segment].bytes;
    if (sender.timer() == kNever) sender.rearm_rto();
    sender.start_pacing(sender.board.segments[segment].bytes);
  }

  void on_ack(Sender& sender, AckWork& work) override {
    Tcb& tcb = sender.tcb;
    if (after(tcb.una, history_)) {  // one sample an ACK, from segments sent once since the last time-out
      history_ = tcb.una;
      take_sample(sender, work.echo_sent);
    }
    const uint32_t lost_before = tcb.lost;
    if (work.newly_sacked > 0) update_lost(sender);
    work.lost = tcb.lost - lost_before;
    partial_retransmission_ = tcb.state == CaState::recovery && work.una_advanced && before(tcb.una, recover_) &&
                              work.acked_retransmission;
    sender.measure_tail();
    in_flight_ = static_cast<uint32_t>(tcb.bytes_in_flight());
    process(sender, work);
    partial_retransmission_ = false;
    if (by_rate_) control_by_rate(sender, work);
    limit(sender);
    sender.try_send();
  }

  void on_timer(Sender& sender) override {
    Tcb& tcb = sender.tcb;
    ++sender.counters.timeouts;
    duplicates_ = 0;
    sender.measure_tail();
    const int64_t ssthresh = sender.cc().ssthresh(tcb);  // from what was in flight before everything is presumed lost
    for (uint32_t i = tcb.una; before(i, tcb.nxt); ++i) {
      sender.board.forget_retransmission(i);
      sender.board.mark_lost_once(i);
    }
    recover_ = tcb.high_seq = tcb.nxt;
    recover_active_ = true;
    rto_ = std::min(2 * rto_, sender.profile().max_rto);
    history_ = tcb.nxt;
    tcb.ssthresh = ssthresh;
    lost_out_ = tcb.lost_out;
    tcb.next_departure = tcb.now;    // pacing is called off
    sender.enter_state(CaState::loss);
    tcb.set_cwnd(tcb.mss);
    limit(sender);
    sender.try_send();
  }

 private:
  // ---- RTT and timer
  void take_sample(Sender& sender, Time echo_sent) {  // time stamps count whole milliseconds
    const Time ms = sender.profile().rtt_granularity;
    const Time sample = sender.tcb.now / ms - echo_sent / ms;
    last_rtt_ = sample > 0 ? sample * ms : kMicrosecond;
    estimate(sender, last_rtt_);
  }

  void estimate(Sender& sender, Time sample) {
    Tcb& tcb = sender.tcb;
    if (tcb.srtt == 0) {
      tcb.srtt = sample;
      tcb.rttvar = sample / 2;
    } else {
      const Time error = sample - tcb.srtt;
      tcb.srtt = (8 * tcb.srtt + error) >> 3;
      tcb.rttvar = (4 * tcb.rttvar + (std::abs(error) - tcb.rttvar)) >> 2;
    }
    compute_rto(sender);
  }

  void compute_rto(Sender& sender) {
    const Tcb& tcb = sender.tcb;
    rto_ = std::max(tcb.srtt + std::max(sender.profile().rtt_granularity, 4 * tcb.rttvar), sender.profile().min_rto);
  }

  void restart_timer(Sender& sender) {
    compute_rto(sender);
    sender.rearm_rto();
  }

  // ---- scoreboard
  void update_lost(Sender& sender) {
    Tcb& tcb = sender.tcb;
    uint32_t top;
    if (!sender.board.highest_sacked(top)) return;
    uint32_t counted = 0, frontier = tcb.una;
    const auto& ranges = sender.board.sacked.ranges();
    for (auto range = ranges.rbegin(); range != ranges.rend(); ++range) {
      if (after(range->begin, top)) continue;
      const uint32_t end = after(range->end, top + 1) ? top + 1 : range->end;
      const uint32_t inside = end - range->begin;
      if (counted + inside >= kDuplicateThreshold) {
        frontier = end - (kDuplicateThreshold - counted);
        counted = kDuplicateThreshold;
        break;
      }
      counted += inside;
    }
    if (counted < kDuplicateThreshold) return;
    if (before(frontier_, tcb.una)) frontier_ = tcb.una;
    for (; before(frontier_, frontier); ++frontier_) sender.board.mark_lost_once(frontier_);
  }

  bool is_lost(Sender& sender, uint32_t index) const {
    uint32_t top;
    return before(index, sender.tcb.nxt) && sender.board.highest_sacked(top) && before(index, top) &&
           (sender.board.segments[index].flags & kLost);
  }

  void limit(Sender& sender) const {
    uint32_t top;
    const bool limited = sender.board.highest_sacked(top);
    sender.board.limit_retransmissions(limited, top);
  }

  // ---- the state machine
  void process(Sender& sender, AckWork& work) {
    Tcb& tcb = sender.tcb;
    const uint32_t old_duplicates = duplicates_;
    const bool duplicate = work.newly_sacked > 0;
    if (duplicate) duplicate_ack(sender, work);
    if (!work.una_advanced) {
      if (tcb.una != tcb.nxt) pkts_acked(sender, work, 1);
      return;
    }
    const uint32_t delivered = work.delivered * tcb.mss - work.short_bytes;
    uint32_t segments = delivered / tcb.mss;
    leftover_ += delivered % tcb.mss;
    if (leftover_ >= tcb.mss) {
      ++segments;
      leftover_ -= tcb.mss;
    }
    if (!duplicate) duplicates_ = 0;

    if (before(tcb.una, recover_) && tcb.state == CaState::loss) {
      pkts_acked(sender, work, segments);
      grow(sender, work, segments);
      restart_timer(sender);
      return;
    }
    if (before(tcb.una, recover_) && tcb.state == CaState::recovery) {
      if (segments >= 1) reduce(sender, delivered, false);
      const Segment& head = sender.board.segments[tcb.una];
      const bool on_its_way = (head.flags & kRetransmitted) && !(head.flags & kSacked);
      if (!on_its_way || head.bytes < tcb.mss) resend(sender);  // ns-3 does not recognise a short one
      pkts_acked(sender, work, 1);
      if (first_partial_) restart_timer(sender);
      first_partial_ = false;
      return;
    }
    bool leaves_recovery = false;
    switch (tcb.state) {
      case CaState::open:
        pkts_acked(sender, work, segments);
        break;
      case CaState::disorder:
        if (segments >= old_duplicates) pkts_acked(sender, work, segments - old_duplicates);
        if (!duplicate) sender.enter_state(CaState::open);
        break;
      case CaState::cwr: break;                  // of who speaks ECN, which this stack does not
      case CaState::recovery:
        first_partial_ = true;
        segments = tcb.una - work.prior_una;
        pkts_acked(sender, work, segments);
        sender.enter_state(CaState::open);
        duplicates_ = 0;
        leaves_recovery = true;
        break;
      case CaState::loss:
        first_partial_ = true;
        segments = tcb.una - recover_;
        pkts_acked(sender, work, segments);
        sender.enter_state(CaState::open);
        break;
    }
    if (!before(tcb.una, recover_)) recover_active_ = false;
    if (leaves_recovery) {
      restart_timer(sender);
      if (!sender.cc().owns_window()) tcb.set_cwnd(tcb.ssthresh);
    }
    if (tcb.state == CaState::open) {
      grow(sender, work, segments);
      restart_timer(sender);
    }
  }

  void duplicate_ack(Sender& sender, AckWork& work) {
    Tcb& tcb = sender.tcb;
    if (tcb.state == CaState::loss) return;
    if (tcb.state == CaState::recovery) return reduce(sender, work.delivered * tcb.mss - work.short_bytes, true);
    ++duplicates_;
    if (tcb.state == CaState::open) sender.enter_state(CaState::disorder);
    const bool new_episode = !before(tcb.una, recover_) || !recover_active_;
    if ((duplicates_ == kDuplicateThreshold && new_episode) || is_lost(sender, tcb.una)) enter_recovery(sender, work);
  }

  void enter_recovery(Sender& sender, const AckWork& work) {
    Tcb& tcb = sender.tcb;
    if (tcb.una == tcb.nxt) return;
    if (!is_lost(sender, tcb.una)) {
      sender.board.forget_retransmission(tcb.una);
      sender.board.mark_lost_once(tcb.una);
    }
    recover_ = tcb.high_seq = tcb.nxt;
    recover_active_ = true;
    ++sender.counters.fast_recoveries;
    sender.measure_tail();
    in_flight_ = static_cast<uint32_t>(tcb.bytes_in_flight());
    const int64_t ssthresh = sender.cc().ssthresh(tcb);
    sender.enter_state(CaState::recovery);
    tcb.ssthresh = ssthresh;
    prr_out_ = prr_delivered_ = 0;
    prr_flight_ = in_flight_;
    reduce(sender, work.delivered * tcb.mss - work.short_bytes, true);
    sender.retransmit(tcb.una);
    sender.measure_tail();  // an ACK that moves una too reduces once more, and counts what has just been sent
    in_flight_ = static_cast<uint32_t>(tcb.bytes_in_flight());
  }

  // Bytes in 32-bit arithmetic, as ns-3 has it: the product below wraps for windows beyond about 45 packets.
  void reduce(Sender& sender, uint32_t delivered, bool duplicate) {
    Tcb& tcb = sender.tcb;
    if (sender.cc().owns_window()) return;
    if (duplicate && prr_delivered_ < prr_flight_) delivered += tcb.mss;
    if (delivered == 0) return;
    prr_delivered_ += delivered;
    const auto ssthresh = static_cast<uint32_t>(std::min<int64_t>(tcb.ssthresh, UINT32_MAX));
    int64_t allowance;
    if (in_flight_ > ssthresh) {
      const uint32_t product = prr_delivered_ * ssthresh;
      allowance = static_cast<int32_t>(std::ceil(static_cast<double>(product) / prr_flight_) - prr_out_);
    } else {
      auto bound = static_cast<int32_t>(std::max(prr_delivered_ - prr_out_, delivered));
      if (partial_retransmission_) bound += static_cast<int32_t>(tcb.mss);
      allowance = std::min(bound, static_cast<int32_t>(ssthresh - in_flight_));
    }
    allowance = std::max<int64_t>(allowance, prr_out_ > 0 ? 0 : tcb.mss);
    tcb.set_cwnd(static_cast<int64_t>(in_flight_) + allowance);
  }

  // A partial ACK sends one segment whatever the window says.
  void resend(Sender& sender) {
    limit(sender);
    if (sender.retransmit_next_lost()) return;
    const uint32_t nxt = sender.tcb.nxt;
    if (sender.send_new_segment()) {
      on_new_data(sender, sender.tcb.nxt - nxt);
      sender.start_pacing(sender.tcb.mss);
    } else {
      sender.retransmit(sender.tcb.una);
    }
  }

  void pkts_acked(Sender& sender, AckWork& work, uint32_t packets) {
    work.acked = packets;
    sender.cc().on_ack(sender.tcb, work);
    if (sender.cc().owns_window() && !by_rate_) sender.cc().control(sender.tcb, work);
  }

  // CongControl: after all that an ACK does, of what it did in packets, with the RTT by time stamps. Of losses it counts
  // how many more or fewer there are than at the ACK before.
  void control_by_rate(Sender& sender, AckWork& work) {
    Tcb& tcb = sender.tcb;
    work.lost = tcb.lost_out > lost_out_ ? tcb.lost_out - lost_out_ : lost_out_ - tcb.lost_out;
    lost_out_ = tcb.lost_out;
    work.rtt = last_rtt_;
    sender.cc().control(tcb, work);
  }

  void grow(Sender& sender, AckWork& work, uint32_t packets) {
    work.acked = packets;
    if (!sender.cc().owns_window()) sender.cc().increase_window(sender.tcb, work);
  }

  uint32_t duplicates_ = 0, recover_ = 0, history_ = 0, frontier_ = 0;
  uint32_t prr_delivered_ = 0, prr_out_ = 0, prr_flight_ = 1, in_flight_ = 0;
  uint32_t leftover_ = 0;          // bytes acknowledged that do not make up a segment yet
  bool recover_active_ = false, first_partial_ = true, partial_retransmission_ = false;
  bool by_rate_ = false;           // the control is one of ControlsByNs3Rate
  uint32_t lost_out_ = 0;          // after the ACK or time-out before
  Time rto_ = 0, last_rtt_ = 0;
};

}  // namespace

std::unique_ptr<Recovery> make_ns3_recovery() { return std::make_unique<Ns3Recovery>(); }

}  // namespace netbuf
