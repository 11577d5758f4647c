// Loss recovery as Linux does it without SACK (net/ipv4/tcp_input.c and tcp_recovery.c, 6.18; behaviour): NewReno (RFC
// 6582) with proportional rate reduction. Each duplicate ACK stands for a segment that has arrived, nobody knows which;
// as many as the degree of reordering make the first segment a loss, and so does each partial ACK. There are no probes of
// the tail; F-RTO (RFC 5682) and time stamps (Eifel detection, RFC 3522) show what was needless.
#include <algorithm>

#include "netbuf/linux_recovery.h"

namespace netbuf {

namespace {

class RenoRecovery final : public LinuxRecovery {
 public:
  void on_clean_ack(Sender& sender, Time oldest_sent, Time, uint32_t) override {
    estimate(sender.tcb, sender.tcb.now - oldest_sent);
    sender.rearm_rto();
  }

  void on_new_data(Sender& sender, uint32_t packets) override {
    prr_out_ += packets;
    if (sender.timer() == kNever) sender.rearm_rto();
  }

  void on_retransmitted(Sender& sender, uint32_t segment) override {
    undo_.retransmitted(sender.tcb.now);
    prr_out_ += 1;
    if (segment == sender.tcb.una || sender.timer() == kNever) sender.rearm_rto();
  }

  // tcp_add_reno_sack, tcp_remove_reno_sacks: of what an ACK acknowledges, one segment fills the hole; the others had
  // been counted.
  void count_arrivals(Sender& sender, AckWork& work, bool repeated) override {
    Tcb& tcb = sender.tcb;
    const uint32_t before = tcb.sacked_out;
    if (work.una_advanced) {
      work.delivered = work.acked > before + 1 ? work.acked - before : 1;
      tcb.sacked_out -= std::min(before, work.acked - 1);
      limit_arrivals(tcb, work.acked);
    } else if (repeated && counts_repeated(tcb)) {
      ++tcb.sacked_out;
      limit_arrivals(tcb, 0);
      work.delivered = tcb.sacked_out > before ? 1 : 0;
      work.repeated = true;
    }
  }

  void on_ack(Sender& sender, AckWork& work) override {
    Tcb& tcb = sender.tcb;
    measure(sender, work);
    if (work.delivered > 0) sender.cc().on_ack(tcb, work);
    const uint32_t lost_before = tcb.lost;
    const Step step = alert(sender, work);
    work.lost = tcb.lost - lost_before;

    if (sender.cc().owns_window()) {
      sender.cc().control(tcb, work);
    } else if (tcb.state == CaState::recovery || tcb.state == CaState::cwr) {
      reduce_window(sender, work);
    } else if (work.una_advanced && tcb.may_grow()) {
      sender.cc().increase_window(tcb, work);
    }
    if (work.una_advanced) sender.rearm_rto();
    if (step == Step::new_data_first && sender.send_new_data()) return;
    if (step == Step::new_data_first) frto_ = false;
    sender.try_send();
  }

  void on_timer(Sender& sender) override {
    if (sender.gives_up()) return;
    Tcb& tcb = sender.tcb;
    ++sender.counters.timeouts;
    tcb.sacked_out = 0;
    for (uint32_t i = tcb.una; before(i, tcb.nxt); ++i) sender.board.mark_lost(i);
    if (tcb.state <= CaState::disorder || !after(tcb.high_seq, tcb.una) ||
        (tcb.state == CaState::loss && !sender.repeats_timeout())) {
      undo_.begin(tcb);
      prior_cwnd_ = std::max(1u, tcb.cwnd_packets);
      tcb.ssthresh = sender.cc().ssthresh(tcb);
    }
    frto_ = tcb.state < CaState::recovery || sender.repeats_timeout();
    sender.enter_state(CaState::loss);
    tcb.set_cwnd_fine(sender.steered() ? std::min<int64_t>(tcb.cwnd, tcb.mss) : tcb.mss);
    tcb.high_seq = tcb.nxt;
    sender.back_off();
    if (sender.steered()) sender.retransmit(tcb.una);
    sender.try_send();
    sender.rearm_rto();
  }

 private:
  enum class Step : uint8_t { send, new_data_first };

  // Whether a duplicate ACK counts: not between the end of a recovery and the first ACK beyond it, nor after a time-out
  // until new data have been sent.
  static bool counts_repeated(const Tcb& tcb) {
    if (tcb.state == CaState::recovery) return before(tcb.una, tcb.high_seq);
    return tcb.state != CaState::loss || (before(tcb.una, tcb.high_seq) && after(tcb.nxt, tcb.high_seq));
  }

  // tcp_check_reno_reordering: more duplicates than segments are missing show that there is reordering.
  void limit_arrivals(Tcb& tcb, uint32_t more) {
    const uint32_t out = tcb.packets_out(), holes = std::min(std::max(tcb.lost_out, 1u), out);
    if (tcb.sacked_out + holes <= out) return;
    tcb.sacked_out = out - holes;
    degree_ = std::min(out + more, Reordering::kMost);
  }

  // tcp_packet_delayed
  bool delayed(const Tcb& tcb, const AckWork& work) const {
    return undo_.late(work.echo_sent) && (undo_.copied() || before(tcb.una, tcb.high_seq));
  }

  // tcp_fastretrans_alert
  Step alert(Sender& sender, AckWork& work) {
    Tcb& tcb = sender.tcb;
    const bool recovered = !before(tcb.una, tcb.high_seq);
    if (work.echo) undo_.keep_reduced();
    if (tcb.state == CaState::cwr && after(tcb.una, tcb.high_seq)) {
      if (!sender.cc().owns_window()) tcb.set_cwnd(tcb.ssthresh);
      sender.enter_state(CaState::open);
    } else if (tcb.state == CaState::recovery && recovered) {
      tcb.sacked_out = 0;
      if (delayed(tcb, work)) undo(sender, false);
      if (tcb.una == tcb.high_seq) return Step::send;  // until something beyond it is acknowledged: RFC 6582, 3.2
      if (!sender.cc().owns_window() && reduced_ && tcb.ssthresh < kInfiniteWindow) tcb.set_cwnd(tcb.ssthresh);
      sender.enter_state(CaState::open);
    } else if (tcb.state == CaState::recovery && work.una_advanced) {
      if (undo_.marked() && delayed(tcb, work)) {
        degree_ = std::max(degree_, std::min(tcb.una - work.prior_una, Reordering::kMost));
        if (tcb.retrans_out > 0) return Step::send;    // until it is settled nothing more is taken for lost
        undo(sender, true);
        keep_open(sender);
        find_loss(sender, work.echo);
      } else {
        mark_first(sender);
      }
      return Step::send;
    } else if (tcb.state == CaState::recovery) {
      return Step::send;
    }
    if (tcb.state == CaState::loss) {
      const Step step = process_loss(sender, work, recovered);
      if (tcb.state != CaState::open) return step;
    }
    if (work.una_advanced) tcb.sacked_out = 0;
    if (find_loss(sender, work.echo)) return Step::send;
    if (work.echo && tcb.state != CaState::cwr) give_way(sender);
    if (tcb.state != CaState::cwr) keep_open(sender);
    return Step::send;
  }

  bool find_loss(Sender& sender, bool echo) {
    if (sender.tcb.sacked_out >= degree_) mark_first(sender);
    if (sender.tcb.lost_out == 0) return false;
    enter_recovery(sender, echo);
    return true;
  }

  // tcp_newreno_mark_lost
  static void mark_first(Sender& sender) {
    Tcb& tcb = sender.tcb;
    if (tcb.packets_out() > 0 && !(sender.board.segments[tcb.una].flags & kLost)) sender.board.mark_lost(tcb.una);
  }

  static void keep_open(Sender& sender) {
    const Tcb& tcb = sender.tcb;
    const CaState state = tcb.sacked_out + tcb.lost_out + tcb.retrans_out > 0 ? CaState::disorder : CaState::open;
    if (tcb.state != state) sender.enter_state(state);
  }

  void enter_recovery(Sender& sender, bool echo) {
    begin_recovery(sender, echo);
    reduced_ = true;
  }

  // tcp_process_loss
  Step process_loss(Sender& sender, const AckWork& work, bool recovered) {
    Tcb& tcb = sender.tcb;
    if (work.una_advanced && undo_.marked() && delayed(tcb, work)) {
      undo(sender, true);                    // the state ends with what was outstanding
      return Step::send;
    }
    if (frto_) {
      // Step 3.b: what was sent once before the time-out arrived after all.
      if (work.una_advanced && !work.acked_retransmitted && before(work.prior_una, tcb.high_seq)) {
        undo(sender, true);
        if (tcb.una != tcb.high_seq) sender.enter_state(CaState::open);
        return Step::send;
      }
      if (after(tcb.nxt, tcb.high_seq)) {
        if (work.repeated) frto_ = false;    // step 3.a: the loss was real
      } else if (work.una_advanced && !recovered) {
        tcb.high_seq = tcb.nxt;              // step 2.b
        return Step::new_data_first;
      }
    }
    if (recovered) {
      if (tcb.una != tcb.high_seq) sender.enter_state(CaState::open);
    } else if (work.una_advanced) {
      tcb.sacked_out = 0;
    }
    return Step::send;
  }

  // tcp_undo_cwnd_reduction
  void undo(Sender& sender, bool none_is_lost) {
    Tcb& tcb = sender.tcb;
    if (none_is_lost) {
      for (uint32_t i = tcb.una; before(i, tcb.nxt); ++i) sender.board.unmark_lost(i);
    }
    give_back(sender);
    reduced_ = false;
  }

  uint32_t degree_ = Reordering::kInitial;   // of reordering: so many duplicate ACKs make a loss
  bool frto_ = false, reduced_ = false;      // reduced_: this recovery has, and it was not taken back
};

}  // namespace

std::unique_ptr<Recovery> make_linux_reno_recovery() { return std::make_unique<RenoRecovery>(); }

}  // namespace netbuf
