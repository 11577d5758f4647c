// Loss recovery as ns-3.44 does it, arithmetic included: SACK scoreboard after RFC 6675, proportional rate reduction
// in bytes, a retransmission timer that only the first partial ACK of a recovery re-arms.
#include <algorithm>
#include <cmath>

#include "netbuf/flow.h"

namespace netbuf {

namespace {

constexpr uint32_t kDuplicateThreshold = 3;

class Ns3Recovery final : public Recovery {
 public:
  bool takes_every_ack() const override { return true; }
  Time rto() const override { return rto_; }
  void on_clean_ack(Flow&, const AckWork&) override {}

  void on_established(Flow& flow, Time rtt) override {
    take_sample(flow, flow.tcb.now - rtt);
  }

  void on_new_data(Flow& flow, uint32_t packets) override {
    const Tcb& tcb = flow.tcb;
    if (tcb.state == CaState::recovery) prr_out_ += packets * tcb.mss - (tcb.mss - flow.segments[tcb.nxt - 1].bytes);
    if (flow.timer() == kNever) flow.rearm_rto();
  }

  void on_retransmitted(Flow& flow, uint32_t segment) override {
    if (flow.tcb.state == CaState::recovery) prr_out_ += flow.segments[segment].bytes;
    if (flow.timer() == kNever) flow.rearm_rto();
  }

  void on_ack(Flow& flow, AckWork& work) override {
    Tcb& tcb = flow.tcb;
    if (after(tcb.una, history_)) {  // one sample an ACK, from segments sent once since the last time-out
      history_ = tcb.una;
      take_sample(flow, work.echo_sent);
    }
    const uint32_t lost_before = tcb.lost;
    if (work.newly_sacked > 0) update_lost(flow);
    work.lost = tcb.lost - lost_before;
    partial_retransmission_ = tcb.state == CaState::recovery && work.una_advanced && before(tcb.una, recover_) &&
                              work.acked_retransmission;
    flow.measure_tail();
    in_flight_ = static_cast<uint32_t>(tcb.bytes_in_flight());
    process(flow, work);
    partial_retransmission_ = false;
    limit(flow);
    flow.try_send();
  }

  void on_timer(Flow& flow) override {
    Tcb& tcb = flow.tcb;
    ++flow.counters.timeouts;
    duplicates_ = 0;
    flow.measure_tail();
    const int64_t ssthresh = flow.cc().ssthresh(tcb);  // from what was in flight before everything is presumed lost
    for (uint32_t i = tcb.una; before(i, tcb.nxt); ++i) {
      flow.forget_retransmission(i);
      flow.mark_lost_once(i);
    }
    recover_ = tcb.high_seq = tcb.nxt;
    recover_active_ = true;
    rto_ = std::min(2 * rto_, flow.profile().max_rto);
    history_ = tcb.nxt;
    tcb.ssthresh = ssthresh;
    flow.enter_state(CaState::loss);
    tcb.set_cwnd(tcb.mss);
    limit(flow);
    flow.try_send();
  }

 private:
  // ---- RTT and timer
  void take_sample(Flow& flow, Time echo_sent) {  // time stamps count whole milliseconds
    const Time ms = flow.profile().rtt_granularity;
    const Time sample = flow.tcb.now / ms - echo_sent / ms;
    estimate(flow, sample > 0 ? sample * ms : kMicrosecond);
  }

  void estimate(Flow& flow, Time sample) {
    Tcb& tcb = flow.tcb;
    if (tcb.srtt == 0) {
      tcb.srtt = sample;
      tcb.rttvar = sample / 2;
    } else {
      const Time error = sample - tcb.srtt;
      tcb.srtt = (8 * tcb.srtt + error) >> 3;
      tcb.rttvar = (4 * tcb.rttvar + (std::abs(error) - tcb.rttvar)) >> 2;
    }
    compute_rto(flow);
  }

  void compute_rto(Flow& flow) {
    const Tcb& tcb = flow.tcb;
    rto_ = std::max(tcb.srtt + std::max(flow.profile().rtt_granularity, 4 * tcb.rttvar), flow.profile().min_rto);
  }

  void restart_timer(Flow& flow) {
    compute_rto(flow);
    flow.rearm_rto();
  }

  // ---- scoreboard
  void update_lost(Flow& flow) {
    Tcb& tcb = flow.tcb;
    uint32_t top;
    if (!flow.highest_sacked(top)) return;
    uint32_t counted = 0, frontier = tcb.una;
    const auto& ranges = flow.sacked.ranges();
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
    for (; before(frontier_, frontier); ++frontier_) flow.mark_lost_once(frontier_);
  }

  bool is_lost(Flow& flow, uint32_t index) const {
    uint32_t top;
    return before(index, flow.tcb.nxt) && flow.highest_sacked(top) && before(index, top) &&
           (flow.segments[index].flags & kLost);
  }

  void limit(Flow& flow) const {
    uint32_t top;
    const bool limited = flow.highest_sacked(top);
    flow.limit_retransmissions(limited, top);
  }

  // ---- the state machine
  void process(Flow& flow, AckWork& work) {
    Tcb& tcb = flow.tcb;
    const uint32_t old_duplicates = duplicates_;
    const bool duplicate = work.newly_sacked > 0;
    if (duplicate) duplicate_ack(flow, work);
    if (!work.una_advanced) {
      if (tcb.una != tcb.nxt) pkts_acked(flow, work, 1);
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
      pkts_acked(flow, work, segments);
      grow(flow, work, segments);
      restart_timer(flow);
      return;
    }
    if (before(tcb.una, recover_) && tcb.state == CaState::recovery) {
      if (segments >= 1) reduce(flow, delivered, false);
      const Segment& head = flow.segments[tcb.una];
      const bool on_its_way = (head.flags & kRetransmitted) && !(head.flags & kSacked);
      if (!on_its_way || head.bytes < tcb.mss) resend(flow);  // ns-3 does not recognise a short one
      pkts_acked(flow, work, 1);
      if (first_partial_) restart_timer(flow);
      first_partial_ = false;
      return;
    }
    bool leaves_recovery = false;
    switch (tcb.state) {
      case CaState::open:
        pkts_acked(flow, work, segments);
        break;
      case CaState::disorder:
        if (segments >= old_duplicates) pkts_acked(flow, work, segments - old_duplicates);
        if (!duplicate) flow.enter_state(CaState::open);
        break;
      case CaState::recovery:
        first_partial_ = true;
        segments = tcb.una - work.prior_una;
        pkts_acked(flow, work, segments);
        flow.enter_state(CaState::open);
        duplicates_ = 0;
        leaves_recovery = true;
        break;
      case CaState::loss:
        first_partial_ = true;
        segments = tcb.una - recover_;
        pkts_acked(flow, work, segments);
        flow.enter_state(CaState::open);
        break;
    }
    if (!before(tcb.una, recover_)) recover_active_ = false;
    if (leaves_recovery) {
      restart_timer(flow);
      if (!flow.cc().owns_window()) tcb.set_cwnd(tcb.ssthresh);
    }
    if (tcb.state == CaState::open) {
      grow(flow, work, segments);
      restart_timer(flow);
    }
  }

  void duplicate_ack(Flow& flow, AckWork& work) {
    Tcb& tcb = flow.tcb;
    if (tcb.state == CaState::loss) return;
    if (tcb.state == CaState::recovery) return reduce(flow, work.delivered * tcb.mss - work.short_bytes, true);
    ++duplicates_;
    if (tcb.state == CaState::open) flow.enter_state(CaState::disorder);
    const bool new_episode = !before(tcb.una, recover_) || !recover_active_;
    if ((duplicates_ == kDuplicateThreshold && new_episode) || is_lost(flow, tcb.una)) enter_recovery(flow, work);
  }

  void enter_recovery(Flow& flow, const AckWork& work) {
    Tcb& tcb = flow.tcb;
    if (tcb.una == tcb.nxt) return;
    if (!is_lost(flow, tcb.una)) {
      flow.forget_retransmission(tcb.una);
      flow.mark_lost_once(tcb.una);
    }
    recover_ = tcb.high_seq = tcb.nxt;
    recover_active_ = true;
    ++flow.counters.fast_recoveries;
    flow.measure_tail();
    in_flight_ = static_cast<uint32_t>(tcb.bytes_in_flight());
    const int64_t ssthresh = flow.cc().ssthresh(tcb);
    flow.enter_state(CaState::recovery);
    tcb.ssthresh = ssthresh;
    prr_out_ = prr_delivered_ = 0;
    prr_flight_ = in_flight_;
    reduce(flow, work.delivered * tcb.mss - work.short_bytes, true);
    flow.retransmit(tcb.una);
  }

  // Bytes in 32-bit arithmetic, as ns-3 has it: the product below wraps for windows beyond about 45 packets.
  void reduce(Flow& flow, uint32_t delivered, bool duplicate) {
    Tcb& tcb = flow.tcb;
    if (flow.cc().owns_window()) return;
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
  void resend(Flow& flow) {
    limit(flow);
    if (flow.retransmit_next_lost()) return;
    const uint32_t nxt = flow.tcb.nxt;
    if (flow.send_new_segment()) {
      on_new_data(flow, flow.tcb.nxt - nxt);
    } else {
      flow.retransmit(flow.tcb.una);
    }
  }

  void pkts_acked(Flow& flow, AckWork& work, uint32_t packets) {
    work.acked = packets;
    flow.cc().on_ack(flow.tcb, work);
    if (flow.cc().owns_window()) flow.cc().control(flow.tcb, work);
  }

  void grow(Flow& flow, AckWork& work, uint32_t packets) {
    work.acked = packets;
    if (!flow.cc().owns_window()) flow.cc().increase_window(flow.tcb, work);
  }

  uint32_t duplicates_ = 0, recover_ = 0, history_ = 0, frontier_ = 0;
  uint32_t prr_delivered_ = 0, prr_out_ = 0, prr_flight_ = 1, in_flight_ = 0;
  uint32_t leftover_ = 0;          // bytes acknowledged that do not make up a segment yet
  bool recover_active_ = false, first_partial_ = true, partial_retransmission_ = false;
  Time rto_ = 0;
};

}  // namespace

std::unique_ptr<Recovery> make_ns3_recovery() { return std::make_unique<Ns3Recovery>(); }

}  // namespace netbuf
