// A connection without a network stack, for tests of congestion controls against their interface alone: one bottleneck,
// one sender that never runs out of data, cumulative ACKs, no losses but those a test declares.
#pragma once
#include <deque>
#include <memory>

#include "netbuf/tcp.h"

namespace fake {

using namespace netbuf;

struct Path {
  Time rtt = 50 * kMillisecond;           // without queue and serialisation
  Time per_packet = 1200 * kMicrosecond;  // serialisation: 10 Mbit/s
  uint32_t ack_every = 1;
};

class Connection {
 public:
  Connection(std::string_view name, Path path, Stack stack = Stack::linux_kernel, const Given& parameters = {})
      : cc(make_congestion_control(name, stack, parameters)), path_(path), rng_(7) {
    tcb.stack = stack;
    tcb.rng = &rng_;
    tcb.set_cwnd_packets(tcb.initial_cwnd);
    tcb.now = path.rtt;
    tcb.min_rtt = tcb.srtt = tcb.last_rtt = path.rtt;
    tcb.delivered_time = tcb.first_sent_time = tcb.now;
    tcb.established = true;
    cc->init(tcb);
    send();
  }

  // One event: an ACK, or the pacing timer. Returns whether it was an ACK.
  bool step() {
    const Time ack_at = next_ack_ < outstanding_.size() ? outstanding_[next_ack_].acked_at : kNever;
    if (wants_to_send_ && tcb.next_departure < ack_at) {
      tcb.now = tcb.next_departure;
      send();
      return false;
    }
    tcb.now = ack_at;
    acknowledge();
    send();
    return true;
  }

  void run(Time until) {
    while (tcb.now < until) step();
  }
  void run_acks(uint32_t count) {
    while (count > 0) count -= step();
  }

  // A loss that is found and repaired on the spot.
  void lose() {
    tcb.ssthresh = cc->ssthresh(tcb);
    cc->on_state(tcb, CaState::recovery);
    tcb.state = CaState::recovery;
    tcb.high_seq = tcb.una;
    if (!cc->owns_window()) tcb.set_cwnd(tcb.ssthresh);
    cc->on_state(tcb, CaState::open);
    tcb.state = CaState::open;
  }

  // A retransmission time-out after which everything turns out to have been delivered.
  void time_out() {
    tcb.ssthresh = cc->ssthresh(tcb);
    cc->on_state(tcb, CaState::loss);
    tcb.state = CaState::loss;
    tcb.set_cwnd_packets(1);
    cc->on_state(tcb, CaState::open);
    tcb.state = CaState::open;
  }

  Time queue_delay() const { return std::max<Time>(link_free_ - tcb.now - path_.rtt / 2, 0); }

  Tcb tcb;
  std::unique_ptr<CongestionControl> cc;
  Time extra_delay = 0;  // on the way back, from now on
  double sent_bytes = 0;

 private:
  struct Packet {
    Time sent_at, acked_at, delivered_time, first_sent_time;
    uint32_t delivered;
    bool app_limited;
  };

  void send() {
    wants_to_send_ = false;
    while (tcb.in_flight() < tcb.cwnd_packets) {
      if (tcb.pacing_rate > 0 && tcb.next_departure > tcb.now) {
        wants_to_send_ = true;
        return;
      }
      const uint32_t burst = tcb.pacing_rate > 0 ? cc->burst_packets(tcb) : 1;
      for (uint32_t i = 0; i < burst && tcb.in_flight() < tcb.cwnd_packets; ++i) send_packet();
    }
  }

  void send_packet() {
    if (tcb.packets_out() == 0) tcb.first_sent_time = tcb.delivered_time = tcb.now;
    const Time arrival = tcb.now + path_.rtt / 2;
    link_free_ = std::max(link_free_, arrival) + path_.per_packet;
    Time acked_at = link_free_ + path_.rtt / 2 + extra_delay;
    if (!outstanding_.empty()) acked_at = std::max(acked_at, outstanding_.back().acked_at);
    outstanding_.push_back(
        {tcb.now, acked_at, tcb.delivered_time, tcb.first_sent_time, tcb.delivered, tcb.app_limited != 0});
    next_ack_ = std::min<size_t>(path_.ack_every, outstanding_.size()) - 1;
    ++tcb.nxt;
    tcb.last_departure = tcb.now;
    if (tcb.pacing_rate > 0)
      tcb.next_departure = std::max(tcb.next_departure, tcb.now) + static_cast<Time>(tcb.mss * 1e9 / tcb.pacing_rate);
    sent_bytes += tcb.mss;
  }

  void acknowledge() {
    AckEvent ack;
    ack.prior_in_flight = tcb.in_flight();
    ack.acked = ack.delivered = static_cast<uint32_t>(next_ack_) + 1;
    ack.acked_bytes = static_cast<int64_t>(ack.acked) * tcb.mss;
    ack.una_advanced = true;
    const Packet packet = outstanding_[next_ack_];
    outstanding_.erase(outstanding_.begin(), outstanding_.begin() + static_cast<long>(next_ack_) + 1);
    next_ack_ = outstanding_.empty() ? 0 : std::min<size_t>(path_.ack_every, outstanding_.size()) - 1;
    ack.rtt = tcb.last_rtt = tcb.now - packet.sent_at;
    tcb.min_rtt = std::min(tcb.min_rtt, ack.rtt);
    tcb.srtt += (ack.rtt - tcb.srtt) / 8;
    tcb.una += ack.acked;
    tcb.delivered += ack.acked;
    tcb.delivered_time = tcb.now;
    if (tcb.app_limited && after(tcb.delivered, tcb.app_limited)) tcb.app_limited = 0;
    tcb.first_sent_time = packet.sent_at;
    ack.rate = {static_cast<int64_t>(tcb.delivered - packet.delivered), packet.delivered,
                std::max(packet.sent_at - packet.first_sent_time, tcb.now - packet.delivered_time),
                packet.app_limited, false};
    cc->on_ack(tcb, ack);
    if (cc->owns_window()) cc->control(tcb, ack);
    else cc->increase_window(tcb, ack);
  }

  Path path_;
  Rng rng_;
  std::deque<Packet> outstanding_;
  size_t next_ack_ = 0;
  Time link_free_ = 0;
  bool wants_to_send_ = false;
};

}  // namespace fake
