// One TCP connection: sender, the two directions of its path, receiver. Split over sender.cc, acknowledgement.cc,
// segmentation_linux.cc, receiver.cc and path.cc.
#pragma once
#include <memory>
#include <vector>

#include "netbuf/app.h"
#include "netbuf/config.h"
#include "netbuf/link.h"
#include "netbuf/packet.h"
#include "netbuf/ranges.h"
#include "netbuf/receiver_control.h"
#include "netbuf/ring.h"
#include "netbuf/tcp.h"

namespace netbuf {

class Flow;

enum SegmentFlags : uint8_t {
  kSacked = 1,
  kLost = 2,           // inferred lost and not yet retransmitted, or its retransmission inferred lost
  kRetransmitted = 4,  // a retransmission is in flight
  kEverRetransmitted = 8,
};

struct Segment {
  Time sent_at;        // latest transmission
  uint16_t bytes;
  uint8_t flags;
  uint8_t transmissions;
  uint32_t reserved;
};
static_assert(sizeof(Segment) == 16);

// The delivery state when a segment was sent, for rate samples; kept only for congestion controls that want them.
struct RateMark {
  Time delivered_time, first_sent_time;
  uint32_t delivered;
  uint32_t app_limited;
};

// What one ACK brought, on its way through the sender.
struct AckWork : AckEvent {
  uint32_t prior_una = 0;
  bool sack_seen = false;        // the ACK carried SACK blocks
  uint32_t newly_sacked = 0;
  uint32_t short_bytes = 0;      // by how much what was delivered falls short of whole segments (ns-3, finite streams)
  bool acked_retransmitted = false;   // cumulatively acknowledged a segment that had been retransmitted
  bool acked_original = false;   // cumulatively acknowledged one that was sent once (after trouble: F-RTO, undo)
  Time newest_sent = -1;         // transmission time of the newest never-retransmitted segment delivered
  Time oldest_sent = -1;         // likewise the oldest, cumulatively acknowledged only
  bool acked_retransmission = false;  // cumulatively acknowledged one whose retransmission counted as in flight
  Time echo_sent = -1;           // when the segment was sent whose time stamp is echoed
  Time latest_sent = -1;         // transmission time of the latest transmission delivered, for RACK (RFC 8985)
  uint32_t latest_segment = 0;
  bool latest_retransmitted = false;
};

// Loss detection, recovery, RTT estimation and time-outs: where the two stacks differ most.
class Recovery {
 public:
  virtual ~Recovery() = default;
  virtual bool takes_every_ack() const = 0;         // on_ack even for undisturbed ACKs, never on_clean_ack
  virtual void on_established(Flow&, Time rtt) = 0; // rtt of the SYN
  virtual void on_ack(Flow&, AckWork&) = 0;         // state is not open, or the ACK carries SACKs or is a duplicate
  virtual void on_timer(Flow&) = 0;                 // the retransmission timer has expired
  virtual void on_retransmitted(Flow&, uint32_t segment) = 0;
  virtual void on_new_data(Flow&, uint32_t packets) = 0;  // a round of new data has been sent
  virtual Time rto() const = 0;                     // as it stands, without back-off; 0: no sample yet
  virtual void on_clean_ack(Flow&, const AckWork&) = 0;  // undisturbed ACK: re-arms the timer
};
std::unique_ptr<Recovery> make_linux_recovery();
std::unique_ptr<Recovery> make_ns3_recovery();

// Cumulative counters; intervals are differences of two copies.
struct FlowCounters {
  uint64_t packets_sent = 0, packets_retransmitted = 0, queue_drops = 0, random_losses = 0;
  uint64_t packets_received = 0; // data, duplicates included
  uint64_t acks = 0, segments_acked = 0, timeouts = 0, fast_recoveries = 0;
  int64_t delivered_bytes = 0;   // in order, to the receiving application
  int64_t acked_bytes = 0;       // delivered as the sender knows it, cumulatively or selectively
  uint64_t in_flight_sum = 0;    // packets, one term an ACK
  uint64_t rtt_count = 0;
  double rtt_sum = 0;            // ns
  Time last_sent = 0, last_ack = 0;  // data packets and ACKs of data
};

class Flow {
 public:
  // index: its name towards managed links; link_uses[l]: how many directions of flows cross link l.
  Flow(uint32_t index, const FlowConfig& config, const WorldConfig& world, const StackProfile& profile,
       std::vector<Link>& links, const std::vector<uint32_t>& link_uses, Rng* rng);

  Time next() const { return next_; }
  // Where the next event stands among others of the same instant: ns-3 handles them in the order in which they were
  // scheduled, and those scheduled at the same instant in the order of the events that did so.
  struct Turn {
    Time scheduled, cause, queueing;
    auto operator<=>(const Turn&) const = default;
  };
  Turn turn() const;
  void run_next();               // handles the earliest event
  void run(Time until) { while (next_ <= until) run_next(); }

  // ---- what managed links have done with its packets
  void resume(const Queued& item, Time arrival);  // it reaches the next hop then
  void lost(const Queued& item, Link::Fate fate);
  bool finished() const;         // nothing is left to do or on its way: the flow can be forgotten

  // ---- the agent's side
  void agent_window(Time now, double bytes);

  // ---- the applications' and the receiver's side
  void attach(std::unique_ptr<Source> source);
  void attach(std::unique_ptr<Sink> sink) { sink_ = std::move(sink); }
  void attach(std::unique_ptr<ReceiverControl> control);
  void wake_source(Time now);    // the source has more to send, or is closed
  void wake_sink(Time now);      // the sink can read more: opens the window
  bool controlled() const { return controlled_; }

  // ---- sender, for Recovery
  Tcb tcb;
  FlowCounters counters;
  Ring<Segment> segments;        // una .. nxt
  RangeSet sacked;               // above una
  Recovery& recovery() { return *recovery_; }
  CongestionControl& cc() { return *cc_; }
  const StackProfile& profile() const { return profile_; }
  void try_send();               // lost segments first, then new data, as window, pacing and the application allow
  bool send_new_segment();       // one; false when there is none or the peer's window is closed
  void retransmit(uint32_t segment);
  bool next_lost(uint32_t& segment);             // the lowest lost segment that is not on its way again; false: none
  bool retransmit_next_lost();                   // that one; false when there is none
  void mark_lost(uint32_t segment);              // also a retransmission that is lost in turn
  void mark_lost_once(uint32_t segment);         // leaves a retransmission in flight as it is (ns-3)
  void unmark_lost(uint32_t segment);
  void forget_retransmission(uint32_t segment);  // no longer in flight
  // Lost segments at or above this index wait (ns-3 resends only below the highest SACK); UINT32_MAX with no_limit.
  void limit_retransmissions(bool limited, uint32_t below) { retransmit_limited_ = limited, retransmit_below_ = below; }
  bool highest_sacked(uint32_t& index) const { return index = highest_sacked_, have_highest_sacked_; }
  bool may_grow() const;         // the window limits the sender (RFC 7661; Linux' tcp_is_cwnd_limited)
  uint32_t waiting_retransmissions() const { return lost_pending_; }
  void set_timer(Time deadline); // kNever stops it
  Time timer() const { return timer_deadline_; }
  void rearm_rto() { set_timer(tcb.packets_out() ? tcb.now + rto() : kNever); }
  Time rto() const;              // with back-off
  void back_off() { if (backoff_ < 15) ++backoff_; }
  uint32_t backoff() const { return backoff_; }
  void clear_backoff() { backoff_ = 0; }
  bool has_new_data() const { return stream_left() > 0; }
  void enter_state(CaState state);
  void schedule_wakeup(Time at);   // the sender tries to send then (pacing, recovery)
  void measure_tail();             // brings Tcb::short_out up to date
  bool paced_out() const { return tcb.pacing_rate > 0 && tcb.now < tcb.next_departure; }
  Time interval_rtt_min = kNever;  // of data, since the interval began
  Time rtt_min = kNever;           // of data, since the start (tcb.min_rtt counts the handshake's small packets too)

  // ---- results
  Time started_at() const { return start_; }
  Time first_sent() const { return first_sent_; }
  Time first_ack() const { return first_ack_; }
  Time completed_at() const { return completed_; }   // kNever while unfinished
  double cwnd_integral(Time now) const;              // byte seconds
  size_t memory_bytes() const;
  uint64_t packets_in_network() const;               // data packets on their way to the receiver, waiting ones too
  uint32_t bottleneck() const { return bottleneck_; }
  const std::vector<uint32_t>& path() const { return path_; }

 private:
  enum Head : uint8_t { kRxHead, kAckHead, kTimerHead, kDelayedAckHead, kWakeupHead, kAppHead, kSinkHead, kFirstHop };

  struct Hop {                   // a link that is not simply folded into the one before
    uint32_t link;
    bool folded;                 // nobody else uses it and it never drops: its outcome is known at once
  };

  // path.cc
  void build_path(const FlowConfig& config, const std::vector<uint32_t>& link_uses);
  void launch(uint32_t segment, uint16_t bytes, PacketKind kind);  // a packet sets out now
  void onward(Packet packet, size_t hop);    // reaches hop at packet.time
  bool cross(Packet& packet, size_t hop);    // takes the link; false when it was lost there
  void backward(Ack ack, size_t hop, Time at);
  bool wait_backward(const Ack& ack, size_t hop);
  void offer(Link& link, const Packet& packet, size_t hop);
  uint32_t wire_bytes(PacketKind kind, uint32_t payload) const;
  uint32_t wire_bytes(const Ack& ack) const;
  void count_fate(Link::Fate fate, bool is_data);
  void set_head(uint8_t head, Time at);
  void refresh_rest();
  void refresh_next() {
    next_ = rest_next_;
    if (rx_head_ < next_) next_ = rx_head_;
    if (ack_head_ < next_) next_ = ack_head_;
  }

  // receiver.cc
  void receive(const Packet& packet);
  void receive_small(const Packet& packet);
  void answer_syn();
  bool accept(const Packet& packet);
  void measure_receiver_rtt();
  void close_receiver(bool in_order);
  void on_receiver_timer();
  void set_receiver_timer(Time deadline);
  void receive_data(const Packet& packet);
  void send_ack(uint32_t flags = 0);
  void deliver(int64_t bytes);
  void tune_window(int64_t bytes);
  int64_t window_edge(int64_t& step) const;  // what the window could reach to, and by how much it should move at least
  uint32_t advertised_window();
  void on_sink();
  void finish_stream();          // notes the completion when all has arrived

  // segmentation_linux.cc
  void send_bursts();
  double window_rate() const;
  uint32_t burst_limit() const;
  bool may_defer() const;
  bool defers(uint32_t room) const;
  void pace(int64_t bytes);

  // sender.cc
  void start_connection();
  void receive_ack(const Ack& ack);
  void establish(const Ack& ack);
  void receive_fin(const Ack& ack);
  void answer_late(const Ack& ack);
  void send_finite();
  bool next_unsacked(uint32_t& segment);
  void acknowledge(const Ack& ack, AckWork& work);
  void acknowledge_in_order(const Ack& ack, AckWork& work);
  void send_full_segment(PacketKind kind);
  void note_delivered(uint32_t index, const Segment& segment, AckWork& work);
  void note_rtt(AckWork& work);
  void restart_after_idle();
  void finish_rate_sample(AckWork& work);
  void transmit(uint32_t index, bool retransmission);
  void on_timer();
  void on_app();
  uint16_t fit_segment(uint16_t bytes);
  void on_persist();
  void note_window(uint32_t window);
  int64_t stream_left() const { return stream_written_ - stream_sent_; }
  void update_source();

  // ---- scheduling: the two busy heads apart from the rest, whose minimum is cached
  Time next_ = kNever, rx_head_ = kNever, ack_head_ = kNever, rest_next_ = kNever;
  std::vector<Time> rest_;       // indexed by Head - kTimerHead, then forward hops, then backward hops

  const StackProfile& profile_;
  std::unique_ptr<CongestionControl> cc_;
  std::unique_ptr<Recovery> recovery_;
  std::vector<Link>& links_;
  Rng* rng_;
  bool recovery_takes_all_, controlled_;

  // path
  std::vector<uint32_t> path_;
  std::vector<Hop> forward_, backward_;
  uint32_t forward_hops_ = 0, backward_hops_ = 0;
  Link *first_link_ = nullptr, *first_return_link_ = nullptr;
  std::vector<Ring<Packet>> forward_rings_;   // one a hop, waiting to enter it (unused when folded)
  std::vector<Ring<Ack>> backward_rings_;
  Ring<Packet> rx_ring_;
  Ring<Ack> ack_ring_;
  Ring<SackBlocks> sack_ring_;
  SackBlocks last_blocks_{};
  uint32_t bottleneck_ = 0;

  // sender
  Time start_, stop_, completed_ = kNever;
  Time timer_deadline_ = kNever, timer_set_ = 0, first_sent_ = 0, first_ack_ = 0;
  uint32_t backoff_ = 0, probes_ = 0;           // probes_: of a closed window, since it closed
  int64_t largest_window_ = 0;
  bool persisting_ = false, overriding_ = false;
  int64_t stream_sent_ = 0, stream_written_ = kEndless, una_bytes_ = 0, window_right_ = kEndless, send_buffer_;
  uint32_t lost_hint_ = 0, lost_pending_ = 0;  // no segment below the hint waits for retransmission; how many wait
  uint32_t unsacked_hint_ = 0;   // every segment below it has arrived or is on its way again
  uint32_t max_packets_out_ = 0, max_packets_seq_ = 0;
  uint32_t retransmit_below_ = 0, highest_sacked_ = 0;
  bool retransmit_limited_ = false, have_highest_sacked_ = false;
  bool unhindered_ = false, short_segments_ = false, stream_closed_ = false, push_next_ = false, syn_sent_ = false;
  bool paces_window_ = false;    // at window_rate(), though the congestion control does not ask for it
  std::unique_ptr<Source> source_;
  std::unique_ptr<Ring<RateMark>> rate_marks_;
  RateMark newest_mark_{};
  Time newest_mark_sent_ = 0;
  uint32_t newest_mark_segment_ = 0;
  bool have_mark_ = false, newest_mark_retransmitted_ = false;

  // receiver
  enum class Receiving : uint8_t { nothing, syn, stream, last_ack, closed };
  Receiving receiving_ = Receiving::nothing;
  struct WindowTuning {          // Linux: tcp_rmem's default of 128 KiB, of which five eighths may be payload
    int64_t offered = 65160, allowed = 81920, largest_round = 14480, round_bytes = 0;
    Time round_start = 0;
  };
  WindowTuning tuning_;
  bool tune_window_;
  uint32_t rcv_nxt_ = 0, unacked_segments_ = 0, quick_acks_, compressed_ = 0, duplicates_sent_ = 0;
  uint32_t compressed_at_ = UINT32_MAX;
  uint32_t last_ack_sent_ = 0;
  Time echo_sent_ = -1;
  Time delayed_ack_deadline_ = kNever, last_received_ = 0;
  RangeSet out_of_order_;
  std::vector<Range> recent_blocks_;          // most recent first, for SACK
  int64_t receive_buffer_, out_of_order_bytes_ = 0;
  std::unique_ptr<Sink> sink_;
  std::unique_ptr<ReceiverControl> receiver_control_;
  int64_t read_bytes_ = 0, window_edge_ = 0, window_clamp_ = kEndless;

  // What a bulk flow over plain links does not touch stands last.
  uint32_t index_, priority_;
  uint32_t held_ = 0, held_data_ = 0;  // packets and ACKs that managed links hold, and those of them with data
  bool closes_;                  // FIN goes with the last segment; else the connection stays open
  uint32_t receiver_tries_ = 0;  // of the SYN's answer, or of FIN
  Time timed_out_ = -1, timed_out_set_ = 0;
  Time time_wait_until_ = kNever;  // the closing sender forgets the connection then; kNever: it is not closed
  Time syn_answered_ = 0, receiver_rtt_ = 0, fin_interval_ = 0, fin_repeat_ = kNever, fin_timeout_ = kNever;
};

}  // namespace netbuf
