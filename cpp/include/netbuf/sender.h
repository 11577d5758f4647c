// The sending end of a connection: set-up, the application's stream, transmission, acknowledgements, flow control. It
// knows the receiver by its ACKs only. Split over sender.cc, acknowledgement.cc and transmission_{linux,ns3}.cc.
#pragma once
#include <memory>
#include <utility>

#include "netbuf/app.h"
#include "netbuf/echoes.h"
#include "netbuf/path.h"
#include "netbuf/recovery.h"
#include "netbuf/timers.h"

namespace netbuf {

// Cumulative; intervals are differences of two copies.
struct SenderCounters {
  uint64_t packets_sent = 0;
  uint64_t acks = 0, segments_acked = 0;
  int64_t acked_bytes = 0;       // delivered as the sender knows it, cumulatively or selectively
  uint64_t in_flight_sum = 0;    // packets, one term an ACK
  uint64_t rtt_count = 0;
  Time rtt_sum = 0;
  Time last_sent = 0, last_ack = 0;  // data packets and ACKs of data
  uint64_t packets_retransmitted = 0, timeouts = 0, fast_recoveries = 0;
  uint64_t segments_marked = 0;  // acknowledged by ACKs that echoed marks
  uint64_t syn_timeouts = 0;     // of the handshake; timeouts are those of data
  uint64_t mark_responses = 0;   // how often the sender gave way to marks (ECN)
};

// What each stack does when the window, or the application, may let something go.
void transmit_linux(Sender& sender);
void transmit_ns3(Sender& sender);
void transmit_at_host(Sender& sender);       // where its socket has a buffer of a host

class SendBuffer;

class Sender {
 public:
  Sender(const FlowConfig& config, const Application& application, const WorldConfig& world, const StackProfile& profile,
         Path& path, Timers& timers, Rng* rng);
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  // ---- events
  void receive(const Ack& ack);              // at ack.time
  void on_timer(Time now);                   // the head of the retransmission timer
  void on_wakeup(Time now);
  void on_application(Time now);
  void pace_windows();                       // its host does, what the congestion control does not pace itself
  // By an agent, from the start on. fine: windows below two segments are paced; slow_start: until its first decision.
  void steer(bool paced, bool fine, bool slow_start);
  void set_window(double bytes);             // an agent's decision

  // TCP_CONGESTION: another control by its name, from now on. One that stands keeps its window, its ssthresh and its state;
  // the control starts as at the handshake, nothing that was reduced before is given back, and what has been paced stays so
  // (tcp_reinit_congestion_control; sk_pacing_status). The one that it has already: nothing changes. At an agent's host,
  // whose senders take rate samples; connections that speak accurate ECN, on which both ends agreed, keep theirs.
  void set_congestion_control(std::string_view name, Time now);

  // ---- the application's side
  void attach(std::unique_ptr<Source> source);
  void attach(std::unique_ptr<SendBuffer> buffer);
  SendBuffer* buffer() const { return buffer_; }
  void wake_source(Time now);                // the source has more to send, or is closed
  void abort(Time now);                      // the application gives the connection up: it has failed
  void heed_windows() { traits_.unhindered = false; }  // the other end's may limit
  void limit_by_receiver(Echoes* echoes = nullptr) {
    heed_windows();
    cc_->on_receiver_limit();
    echoes_ = echoes;
  }
  bool stream_closed() const { return stream_closed_; }
  int64_t stream_written() const { return stream_written_; }
  int64_t stream_left() const { return stream_written_ - stream_sent_; }

  // ---- for recovery and transmission
  alignas(64) Tcb tcb;
  Scoreboard board{tcb};
  SenderCounters counters;
  CongestionControl& cc() { return *cc_; }
  const StackProfile& profile() const { return profile_; }
  bool controlled() const { return traits_.controlled; }
  bool steered() const { return traits_.steered; }
  // Lost segments first, then new data, as window, pacing and application allow.
  void try_send() {
    if (tcb.established && !failed()) profile_.transmit(*this);
  }
  bool send_new_data();                      // as try_send(), but nothing that is lost; false when nothing can leave
  bool send_new_segment();                   // one; false when there is none or the peer's window is closed
  void retransmit(uint32_t segment);
  bool retransmit_next_lost();               // the lowest that waits; false when there is none
  void enter_state(CaState state);           // a smaller window is announced with the next new segment (CWR)
  void set_timer(Time deadline);             // kNever stops it
  Time timer() const { return timer_deadline_; }
  void rearm_rto() { set_timer(tcb.packets_out() ? tcb.now + rto() : kNever); }
  Time rto() const;                          // with back-off
  void back_off() { if (backoff_ < 15) ++backoff_; }
  uint32_t backoff() const { return backoff_; }
  // At a time-out, after gives_up(): whether another came since something was acknowledged (icsk_retransmits).
  bool repeats_timeout() const { return unheard_since_ != tcb.now; }
  void clear_backoff() { backoff_ = 0; }
  bool gives_up();                           // whether this time-out is one too many: then the connection has failed
  void measure_tail();                       // brings Tcb::short_out up to date
  void start_pacing(uint32_t bytes);         // of a segment that has just left (ns-3)

  // Every ACK goes the long way from now on, which comes to the same.
  void take_no_shortcut() { traits_.takes_clean_acks = false; }

  // ---- results
  Time interval_rtt_min = kNever;            // of data, since the interval began
  bool failed() const { return failed_at_ != kNever; }
  Time failed_at() const { return failed_at_; }     // given up, or reset; kNever: it is not
  Time first_sent() const { return first_sent_; }
  Time first_ack() const { return first_ack_; }
  Time timer_set() const { return timer_set_; }     // when the deadline was decided on
  // When the timer last went off (-1: never) and had been set.
  std::pair<Time, Time> timed_out() const { return timed_out_; }
  template <class Hot>
  void add_to(Hot& hot) const {
    hot.add(cc_.get(), 128);
    hot.add(recovery_.get(), 192);
  }

 private:
  friend void transmit_linux(Sender& sender);
  friend void transmit_ns3(Sender& sender);
  friend void transmit_at_host(Sender& sender);

  // sender.cc
  void start_connection();
  void heed_lost_syns(const Ack& ack);
  void fail();
  void be_late_from(Time until) {      // whatever comes from now on; the connection is remembered until then
    time_wait_until_ = until;
    traits_.takes_clean_acks = false;
  }
  void establish(const Ack& ack);
  void receive_fin(const Ack& ack);
  void answer_late(const Ack& ack);
  void receive_special(const Ack& ack);
  void receive_request(const Ack& ack);
  void receive_echo(Ack ack);
  void receive_untrue(Ack ack);
  void transmit(uint32_t index, bool retransmission);
  void send_full_segments(uint32_t count, PacketKind last);
  uint16_t fit_segment(uint16_t bytes);
  void on_persist();
  void note_window(const Ack& ack);
  void restart_after_idle();
  void update_source();
  void serve_source();                 // it writes, and what may leave does
  void stop_writing();
  int64_t most_unsent() const;
  int64_t count_taken();

  // acknowledgement.cc
  void process(const Ack& ack);
  void process_clean(const Ack& ack);
  void note_rtt(Time rtt);

  // transmission_linux.cc
  double window_rate() const;
  double agent_rate() const;
  bool narrow(uint32_t& room) const;
  uint32_t burst_limit() const;
  bool surely_below_burst(uint32_t room) const;
  bool may_defer() const;
  bool defers(uint32_t room) const;
  void pace(int64_t bytes);
  bool paced_out() const { return tcb.pacing_rate > 0 && tcb.now < tcb.next_departure; }

  // transmission_ns3.cc
  void send_finite();
  bool waits_for_pacing();

  const StackProfile& profile_;
  Path& path_;
  Timers& timers_;
  std::unique_ptr<CongestionControl> cc_;
  std::unique_ptr<Recovery> recovery_;
  // Properties of the connection that decide which steps it can do without.
  struct Traits {
    bool recovery_takes_all;     // every ACK concerns the recovery
    bool controlled;             // an environment's agent sets the window
    bool steered;                // an agent does, whoever runs it
    bool owns_window;            // the congestion control sets the window in recovery, too
    bool ecn;                    // spoken (RFC 3168)
    bool ecn_counts;             // of these, marks are told by their number
    bool takes_clean_acks = false;  // ACKs that only acknowledge in order take the short way
    bool unhindered = false;     // an endless stream, no limit but the congestion window, no rate samples
    bool paces_window = false;   // by rule, though the congestion control does not ask for it
    bool fine = false;           // an agent's window may be less than a segment
  } traits_;
  Time timer_deadline_ = kNever, timer_set_ = 0;
  int64_t stream_sent_ = 0, una_bytes_ = 0;
  uint32_t max_packets_seq_ = 0; // the round is over when that is acknowledged
  uint32_t backoff_ = 0;
  SendBuffer* buffer_ = nullptr; // the source, where the socket is a host's
  uint64_t ect_;                 // what its packets carry then
  bool echo_ = false;            // the ACK that is being taken in echoes a mark
  // traits_.ecn_counts: what the last ACK said, and by how many this one says more.
  uint8_t mark_count_ = 0, marked_ = 0;
  bool reduced_ = false;         // the receiver has not been told yet
  bool stream_closed_ = false, push_next_ = false, holds_lost_ = false;
  bool persisting_ = false, overriding_ = false;
  bool answers_;                 // the last bytes of a message wait for nothing (TCP_NODELAY)
  bool closes_;                  // FIN goes with the last segment; else the connection stays open
  uint32_t probes_ = 0;          // of a closed window, since it closed
  uint32_t unanswered_probes_ = 0;
  int64_t stream_written_ = kEndless, window_right_ = kEndless, send_buffer_;
  int64_t largest_window_ = 0;
  int64_t taken_ = 0;            // by the socket, of a program that writes what it can, up to when it was last counted
  std::unique_ptr<Source> source_;
  Echoes* echoes_ = nullptr;     // what a receiver control is told of ACKs
  Time start_, stop_, first_sent_ = 0, first_ack_ = 0;
  std::pair<Time, Time> timed_out_{-1, 0};
  Time syn_sent_at_ = kNever;      // the first
  Time unheard_since_ = kNever;    // the first time-out since something was acknowledged
  uint32_t unheard_from_ = 0;      // what was the oldest unacknowledged then
  Time failed_at_ = kNever;
  Time time_wait_until_ = kNever;  // the closing sender forgets the connection then; kNever: it is not closed

 public:
  // Of data, since the start (tcb.min_rtt counts the handshake's small packets too).
  Time rtt_min = kNever;
};

}  // namespace netbuf
