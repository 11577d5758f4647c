// Loss recovery as Linux does it: RACK-TLP (RFC 8985), proportional rate reduction (RFC 6937), F-RTO (RFC 5682), and
// what reordering changes of it (reordering.h).
#include <algorithm>

#include "netbuf/linux_recovery.h"

namespace netbuf {

namespace {

constexpr Time kTimeoutMin = 2 * kMillisecond;  // TCP_TIMEOUT_MIN_US

class alignas(64) SackRecovery final : public LinuxRecovery {
 public:
  [[gnu::flatten]] void on_clean_ack(Sender& sender, Time oldest_sent, Time latest_sent, uint32_t latest_segment) override {
    Tcb& tcb = sender.tcb;
    estimate(tcb, tcb.now - oldest_sent);
    if (latest_sent >= rack_sent_) advance_rack(tcb, latest_sent, latest_segment);
    if (probe_outstanding_ && !before(tcb.una, probe_high_)) probe_outstanding_ = false;
    arm(sender);
  }

  void on_new_data(Sender& sender, uint32_t packets) override {
    prr_out_ += packets;
    if (armed_at_ == sender.tcb.now && sender.timer() != kNever) return;  // by the ACK that let them go
    if (mode_ != Timer::reorder || sender.timer() == kNever) arm(sender);
  }

  void on_retransmitted(Sender& sender, uint32_t segment) override {
    retransmitted_.push({segment, sender.board.segments[segment].transmissions});
    undo_.retransmitted(sender.tcb.now);
    prr_out_ += 1;
    if (sender.timer() == kNever || mode_ != Timer::reorder) {
      mode_ = Timer::retransmit;
      if (sender.timer() == kNever) sender.rearm_rto();
    }
  }

  void on_ack(Sender& sender, AckWork& work) override {
    Tcb& tcb = sender.tcb;
    measure(sender, work);
    if (work.echo) undo_.keep_reduced();
    // Eifel detection (RFC 3522): the ACK echoes a copy sent before the time-out, so that it was late, not lost.
    const bool spurious = tcb.state == CaState::loss && work.una_advanced && work.echo_sent >= 0 &&
                          work.echo_sent < timed_out_at_;
    if (work.delivered > 0 && !spurious) advance_rack(tcb, work);
    // A probe of the tail that came twice says nothing of reordering.
    const bool of_probe = probe_outstanding_ && work.duplicate_segment + 1 == probe_high_;
    if (work.reordered) reordering_.note(work.reordered_segment, work.reordered_below);
    if (work.duplicate_known) undo_.duplicate(work.duplicate_segment);
    reordering_.adapt(tcb.now, work.latest_sent, work.duplicate_known && !of_probe);
    if (work.delivered > 0) sender.cc().on_ack(tcb, work);
    if (probe_outstanding_) finish_probe(sender, work);

    const bool recovered = !before(tcb.una, tcb.high_seq);
    bool held = false;
    if (tcb.state == CaState::recovery && recovered) {
      leave_recovery(sender, work);
    } else if (tcb.state == CaState::recovery && work.una_advanced && undo_.late(work.echo_sent)) {
      reordering_.note(work.prior_una, sender.board.highest());
      held = tcb.retrans_out > 0;  // until they are settled nothing more is taken for lost
      if (!held) undo_recovery(sender, true);
    }
    if (!held && tcb.state != CaState::loss && undo_.all_needless()) {
      reordering_.recovered(true);
      undo_recovery(sender, false);
    }
    bool new_data_first = false;
    if (spurious) {
      undo_timeout(sender);
    } else if (tcb.state == CaState::loss) {
      new_data_first = process_loss(sender, work, recovered);
    } else if (tcb.state == CaState::cwr && after(tcb.una, tcb.high_seq)) {  // what announced the reduction has arrived
      if (!sender.cc().owns_window()) tcb.set_cwnd(tcb.ssthresh);
      sender.enter_state(CaState::open);
    }

    const uint32_t lost_before = tcb.lost, retransmissions_before = tcb.retrans_out;
    if (!held) detect_losses(sender);
    work.lost = tcb.lost - lost_before;
    if (tcb.state == CaState::loss) {
      if (tcb.retrans_out < retransmissions_before) begin_recovery(sender, work.echo);  // a retransmission is lost in turn
    } else if (tcb.state != CaState::recovery) {
      if (tcb.lost_out > 0) {
        begin_recovery(sender, work.echo);
      } else {
        if (work.echo && tcb.state != CaState::cwr) give_way(sender);
        const CaState state = tcb.sacked_out > 0 ? CaState::disorder : CaState::open;
        if (state != tcb.state && tcb.state != CaState::cwr) sender.enter_state(state);
      }
    }

    if (sender.cc().owns_window()) {
      sender.cc().control(tcb, work);
    } else if (tcb.state == CaState::recovery || tcb.state == CaState::cwr) {
      reduce_window(sender, work);
    } else if ((reordering_.grows_on_any_delivery() ? work.delivered > 0 : work.una_advanced) && tcb.may_grow()) {
      sender.cc().increase_window(tcb, work);
    }
    if (work.una_advanced || work.newly_sacked > 0) {
      if (!reorder_pending_) arm(sender);
    }
    if (new_data_first && sender.send_new_data()) return;
    if (new_data_first) frto_ = false;
    sender.try_send();
  }

  void on_timer(Sender& sender) override {
    switch (mode_) {
      case Timer::reorder: return on_reorder_timer(sender);
      case Timer::probe: return send_probe(sender);
      case Timer::retransmit: return on_timeout(sender);
    }
  }

 private:
  enum class Timer : uint8_t { retransmit, probe, reorder };
  struct Retransmission {
    uint32_t segment;
    uint8_t transmissions;   // the count after it; a later one makes this entry stale
  };

  // ---- RACK
  void advance_rack(const Tcb& tcb, const AckWork& work) {
    if (work.latest_sent < 0) return;
    if (work.latest_retransmitted && tcb.now - work.latest_sent < tcb.min_rtt) return;  // of the original, perhaps
    advance_rack(tcb, work.latest_sent, work.latest_segment);
  }
  void advance_rack(const Tcb& tcb, Time latest_sent, uint32_t latest_segment) {
    rack_rtt_ = tcb.now - latest_sent;
    if (latest_sent > rack_sent_ || (latest_sent == rack_sent_ && after(latest_segment, rack_segment_))) {
      rack_sent_ = latest_sent;
      rack_segment_ = latest_segment;
    }
  }

  Time reorder_window(const Tcb& tcb) const {
    if (reordering_.seen()) return reordering_.window(tcb);
    if (tcb.state == CaState::recovery || tcb.state == CaState::loss) return 0;
    if (tcb.sacked_out >= reordering_.degree()) return 0;
    return std::min(tcb.min_rtt / 4, tcb.srtt / 8);
  }

  bool sent_before_rack(const Segment& segment, uint32_t index) const {
    return segment.sent_at < rack_sent_ || (segment.sent_at == rack_sent_ && before(index, rack_segment_));
  }

  // Marks what was sent before the latest delivered transmission and is overdue;
  // arms the reordering timer for the rest.
  void detect_losses(Sender& sender) {
    Tcb& tcb = sender.tcb;
    reorder_pending_ = false;
    if (rack_sent_ < 0) return;
    const Time window = reorder_window(tcb);
    Time wait = 0;
    const auto overdue = [&](const Segment& segment) {
      const Time remaining = segment.sent_at + rack_rtt_ + window - tcb.now;
      if (remaining <= 0) return true;
      wait = std::max(wait, remaining);
      return false;
    };
    // First transmissions lie in the order of segments: scan on from where everything is settled.
    if (before(scan_, tcb.una)) scan_ = tcb.una;
    bool settled = true;
    for (uint32_t i = scan_; before(i, tcb.nxt); ++i) {
      const Segment& segment = sender.board.segments[i];
      if (!(segment.flags & (kSacked | kLost | kEverRetransmitted))) {
        if (!sent_before_rack(segment, i)) break;
        if (overdue(segment)) {
          sender.board.mark_lost(i);
        } else {
          settled = false;
        }
      }
      if (settled) scan_ = i + 1;
    }
    // Retransmissions lie in the order of their times.
    while (!retransmitted_.empty()) {
      const Retransmission r = retransmitted_.front();
      if (!before(r.segment, tcb.una) && before(r.segment, tcb.nxt)) {
        const Segment& segment = sender.board.segments[r.segment];
        const bool settled = segment.flags & kSacked || (segment.flags & (kLost | kRetransmitted)) == kLost;
        if (!settled && segment.transmissions == r.transmissions) {
          if (!sent_before_rack(segment, r.segment) || !overdue(segment)) break;
          sender.board.mark_lost(r.segment);
        }
      }
      retransmitted_.pop();
    }
    if (wait > 0) {
      reorder_pending_ = true;
      mode_ = Timer::reorder;
      sender.set_timer(std::min(tcb.now + wait + kTimeoutMin, tcb.now + sender.rto()));
    }
  }

  // What was taken for lost is so no longer, and is looked at anew: some of it may be.
  void forget_losses(Sender& sender) {
    const Tcb& tcb = sender.tcb;
    for (uint32_t i = tcb.una; before(i, tcb.nxt); ++i) {
      const Segment& segment = sender.board.segments[i];
      if (!(segment.flags & kLost)) continue;
      sender.board.unmark_lost(i);
      if ((segment.flags & (kEverRetransmitted | kRetransmitted)) == kEverRetransmitted) {
        retransmitted_.push({i, segment.transmissions});
      }
    }
    scan_ = tcb.una;
  }

  void on_reorder_timer(Sender& sender) {
    Tcb& tcb = sender.tcb;
    const uint32_t in_flight = tcb.in_flight();
    const uint32_t lost_before = tcb.lost;
    detect_losses(sender);
    if (tcb.in_flight() != in_flight) {
      if (tcb.state != CaState::recovery && tcb.state != CaState::loss) {
        begin_recovery(sender, false);
        if (!sender.cc().owns_window()) {
          AckWork work;
          work.delivered = 1;
          work.lost = tcb.lost - lost_before;
          reduce_window(sender, work);
        }
      }
      sender.try_send();
    }
    if (!reorder_pending_) arm(sender);
  }

  // ---- recovery
  void leave_recovery(Sender& sender, const AckWork& work) {
    Tcb& tcb = sender.tcb;
    if (undo_.late(work.echo_sent) || undo_.all_needless()) return undo_recovery(sender, false);
    reordering_.recovered(false);
    if (!sender.cc().owns_window() && tcb.ssthresh < kInfiniteWindow) tcb.set_cwnd(tcb.ssthresh);
    sender.enter_state(tcb.sacked_out > 0 ? CaState::disorder : CaState::open);
  }

  // The recovery, or one before, was needless: the window as it was, or as it has become since.
  void undo_recovery(Sender& sender, bool none_is_lost) {
    const Tcb& tcb = sender.tcb;
    if (none_is_lost) forget_losses(sender);
    give_back(sender);
    const CaState state = tcb.sacked_out + tcb.lost_out + tcb.retrans_out > 0 ? CaState::disorder : CaState::open;
    if (tcb.state != state) sender.enter_state(state);
  }

  // ---- time-out
  void on_timeout(Sender& sender) {
    if (sender.gives_up()) return;
    Tcb& tcb = sender.tcb;
    ++sender.counters.timeouts;
    const bool fresh = tcb.state == CaState::open || tcb.state == CaState::disorder;
    if (fresh) reordering_.doubt(tcb.sacked_out);
    for (uint32_t i = tcb.una; before(i, tcb.nxt); ++i) {
      Segment& segment = sender.board.segments[i];
      if (segment.flags & kSacked) continue;
      if (i != tcb.una && segment.sent_at + rack_rtt_ > tcb.now) continue;  // sent lately: not yet presumed lost
      sender.board.mark_lost(i);
    }
    if (fresh || !after(tcb.high_seq, tcb.una) || (tcb.state == CaState::loss && !sender.repeats_timeout())) {
      prior_cwnd_ = std::max(1u, tcb.cwnd_packets);
      undo_.begin(tcb);
      timed_out_at_ = tcb.now;
      tcb.ssthresh = sender.cc().ssthresh(tcb);
    }
    undo_.end();  // by what is known of duplicates; its window is what a spurious time-out gives back
    // F-RTO: whether the time-out was spurious shows in what the next ACKs acknowledge. Not where a recovery was under
    // way, but where the time-out is another for the same segment (tcp_enter_loss).
    frto_ = tcb.state < CaState::recovery || sender.repeats_timeout();
    sender.enter_state(CaState::loss);
    // What was sent lately stays in flight; an agent's window falls to one segment, if it is more, until it decides again.
    if (sender.steered()) {
      tcb.set_cwnd_fine(std::min<int64_t>(tcb.cwnd, tcb.mss));
    } else {
      tcb.set_cwnd_packets(tcb.in_flight() + 1);
    }
    tcb.high_seq = tcb.nxt;
    probe_outstanding_ = false;
    mode_ = Timer::retransmit;
    sender.back_off();
    if (sender.steered()) sender.retransmit(tcb.una);
    sender.try_send();
    mode_ = Timer::retransmit;
    sender.rearm_rto();
  }

  // tcp_process_loss; whether new data go before what is lost.
  bool process_loss(Sender& sender, AckWork& work, bool recovered) {
    Tcb& tcb = sender.tcb;
    if (frto_) {
      if (work.acked_original && !work.acked_retransmitted && (work.una_advanced || work.newly_sacked > 0) &&
          work.latest_sent >= 0 && !work.latest_retransmitted && before(work.latest_segment, tcb.high_seq)) {
        undo_timeout(sender);  // step 3.b: something sent before the time-out arrived after all
        return false;
      }
      if (after(tcb.nxt, tcb.high_seq)) {
        if (work.newly_sacked > 0 || !work.una_advanced) frto_ = false;  // step 3.a: the loss was real
      } else if (work.una_advanced && !recovered) {
        tcb.high_seq = tcb.nxt;  // step 2.b
        return true;
      }
    }
    if (recovered) {
      timed_out_at_ = -1;
      sender.enter_state(tcb.sacked_out > 0 ? CaState::disorder : CaState::open);
    }
    return false;
  }

  void undo_timeout(Sender& sender) {
    Tcb& tcb = sender.tcb;
    frto_ = false;
    timed_out_at_ = -1;
    forget_losses(sender);
    give_back(sender);
    sender.enter_state(tcb.sacked_out > 0 ? CaState::disorder : CaState::open);
  }

  // ---- tail loss probe
  void arm(Sender& sender) {
    const Tcb& tcb = sender.tcb;
    if (tcb.packets_out() == 0) return sender.set_timer(kNever);
    if (tcb.packets_out() > 1) armed_at_ = tcb.now;
    if ((tcb.state == CaState::open || tcb.state == CaState::cwr) && tcb.sacked_out == 0 && !probe_outstanding_) {
      Time probe = 2 * tcb.srtt + (tcb.packets_out() == 1 ? sender.profile().min_rto : kTimeoutMin);
      if (tcb.srtt == 0) probe = sender.profile().initial_rto;
      mode_ = Timer::probe;  // also where the time-out would come first: then in its stead
      return sender.set_timer(tcb.now + (tcb.srtt == 0 ? probe : std::min(probe, srtt_ + rttvar_)));
    }
    mode_ = Timer::retransmit;
    sender.rearm_rto();
  }

  void send_probe(Sender& sender) {
    Tcb& tcb = sender.tcb;
    probe_retransmitted_ = !sender.send_new_segment();
    if (probe_retransmitted_) sender.retransmit(tcb.nxt - 1);
    probe_outstanding_ = true;
    probe_high_ = tcb.nxt;
    mode_ = Timer::retransmit;
    sender.rearm_rto();
  }

  void finish_probe(Sender& sender, const AckWork& work) {
    Tcb& tcb = sender.tcb;
    if (before(tcb.una, probe_high_)) return;
    probe_outstanding_ = false;
    if (!probe_retransmitted_ || work.duplicate) return;
    if (work.acked_retransmitted && tcb.state == CaState::open) {  // the probe repaired a loss: answer as to any loss
      begin_reduction(sender);
      if (!sender.cc().owns_window()) tcb.set_cwnd(tcb.ssthresh);
    }
  }

  Timer mode_ = Timer::retransmit;
  bool reorder_pending_ = false, frto_ = false, probe_outstanding_ = false, probe_retransmitted_ = false;
  uint32_t rack_segment_ = 0;
  Time rack_sent_ = -1, rack_rtt_ = 0, armed_at_ = -1;
  uint32_t scan_ = 0, probe_high_ = 0;
  Time timed_out_at_ = -1;       // the time-out whose window can be given back; -1: nothing to undo
  Ring<Retransmission> retransmitted_;
  Reordering reordering_;
};

}  // namespace

std::unique_ptr<Recovery> make_linux_recovery() { return std::make_unique<SackRecovery>(); }

}  // namespace netbuf
