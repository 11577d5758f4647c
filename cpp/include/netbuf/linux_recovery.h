// What recovery in Linux has in common with and without SACK: RTT estimation, proportional rate reduction (RFC 6937),
// giving way to marks, and what can be taken back.
#pragma once
#include <algorithm>

#include "netbuf/reordering.h"
#include "netbuf/sender.h"

namespace netbuf {

class LinuxRecovery : public Recovery {
 public:
  bool takes_every_ack() const override { return false; }

  Time rto() const override { return srtt_ > 0 ? srtt_ + rttvar_ : 0; }

  void on_established(Sender& sender, Time rtt) override {
    min_rto_ = sender.profile().min_rto;
    if (rtt >= 0) estimate(sender.tcb, rtt);
  }

  void keep_window(Sender&) override { undo_.keep_reduced(); }

 protected:
  // RTT estimation: rttvar follows the largest mean deviation of a round trip, decays once a round trip and has
  // min_rto as its floor. mdev_ and rttvar_ are four times the mean deviation, as the RTO adds them.
  void estimate(Tcb& tcb, Time sample) {
    if (srtt_ == 0) {
      srtt_ = sample;
      mdev_ = 2 * sample;
      rttvar_ = mdev_max_ = std::max(mdev_, min_rto_);
      rtt_seq_ = tcb.nxt;
    } else {
      Time error = sample - srtt_;
      srtt_ += error / 8;
      if (error < 0) {
        error = -error - mdev_ / 4;
        if (error > 0) error /= 8;  // a falling RTT must not raise the RTO much
      } else {
        error -= mdev_ / 4;
      }
      mdev_ += error;
      if (mdev_ > mdev_max_) {
        mdev_max_ = mdev_;
        rttvar_ = std::max(rttvar_, mdev_max_);
      }
      if (after(tcb.una, rtt_seq_)) {
        if (mdev_max_ < rttvar_) rttvar_ -= (rttvar_ - mdev_max_) / 4;
        rtt_seq_ = tcb.nxt;
        mdev_max_ = min_rto_;
      }
    }
    tcb.srtt = srtt_;
    tcb.rttvar = rttvar_;
  }

  // An ACK's sample, if it has one.
  void measure(Sender& sender, const AckWork& work) {
    Tcb& tcb = sender.tcb;
    if (work.oldest_sent >= 0 && !work.acked_retransmitted) {
      estimate(tcb, tcb.now - work.oldest_sent);
    } else if (work.rtt >= 0) {
      estimate(tcb, work.rtt);
    }
    if (work.una_advanced && (work.rtt >= 0 || sender.profile().time_stamps)) sender.clear_backoff();
  }

  // To marks, as to losses but once a window, and for good: tcp_enter_cwr (RFC 3168, 6.1.2).
  void give_way(Sender& sender) {
    undo_.end();
    undo_.keep_reduced();
    begin_reduction(sender);
    sender.tcb.high_seq = sender.tcb.nxt;
    ++sender.counters.mark_responses;
    sender.enter_state(CaState::cwr);
  }

  // tcp_enter_recovery. Where the window is being reduced for marks, or this ACK echoes one, it is not given back.
  void begin_recovery(Sender& sender, bool echo) {
    Tcb& tcb = sender.tcb;
    undo_.begin(tcb);
    if (echo || tcb.state == CaState::cwr) undo_.keep_reduced();
    if (tcb.state != CaState::cwr) begin_reduction(sender);
    tcb.high_seq = tcb.nxt;
    ++sender.counters.fast_recoveries;
    sender.enter_state(CaState::recovery);
  }

  // tcp_undo_cwnd_reduction, but for what is marked lost.
  void give_back(Sender& sender) {
    Tcb& tcb = sender.tcb;
    undo_.end();
    if (!undo_.returns_window()) return;
    if (!sender.cc().owns_window()) tcb.set_cwnd(std::max(tcb.cwnd, sender.cc().undo_window(tcb, undo_.cwnd())));
    tcb.ssthresh = std::max(tcb.ssthresh, undo_.ssthresh());
  }

  void begin_reduction(Sender& sender) {
    Tcb& tcb = sender.tcb;
    prior_cwnd_ = tcb.cwnd_packets;
    prr_delivered_ = prr_out_ = 0;
    tcb.ssthresh = sender.cc().ssthresh(tcb);
  }

  // RFC 6937 with the slow-start reduction bound while retransmissions make progress, as Linux has it.
  void reduce_window(Sender& sender, const AckWork& work) {
    Tcb& tcb = sender.tcb;
    if (work.delivered == 0) return;
    const auto in_flight = static_cast<int64_t>(tcb.in_flight());
    const int64_t target = tcb.ssthresh_packets();
    const int64_t delta = target - in_flight;
    prr_delivered_ += work.delivered;
    int64_t allowance;
    if (delta < 0) {
      allowance = (target * prr_delivered_ + prior_cwnd_ - 1) / prior_cwnd_ - prr_out_;
    } else {
      allowance = std::max<int64_t>(prr_delivered_ - prr_out_, work.delivered);
      if (work.una_advanced && work.lost == 0) ++allowance;
      allowance = std::min(delta, allowance);
    }
    allowance = std::max<int64_t>(allowance, prr_out_ ? 0 : 1);
    tcb.set_cwnd_packets(static_cast<uint32_t>(std::max<int64_t>(1, in_flight + allowance)));
  }

  // What every ACK needs is in front and, of derived classes, behind all else.
  Time srtt_ = 0, mdev_ = 0, mdev_max_ = 0, rttvar_ = 0, min_rto_ = 0;
  uint32_t rtt_seq_ = 0;
  Undo undo_;
  int64_t prr_delivered_ = 0, prior_cwnd_ = 1, prr_out_ = 0;
};

}  // namespace netbuf
