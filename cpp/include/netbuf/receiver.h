// The receiving end of a connection: in-order delivery, delayed and selective acknowledgements (RFC 1122, 2018,
// 2883, 5681), flow control, closing. It knows what has arrived, and its own clock; nothing of the sender.
// receiver.cc, receiver_closing.cc.
#pragma once
#include <memory>
#include <vector>

#include "netbuf/app.h"
#include "netbuf/echoes.h"
#include "netbuf/path.h"
#include "netbuf/ranges.h"
#include "netbuf/receiver_control.h"
#include "netbuf/timers.h"

namespace netbuf {

class ReceiveBuffer;

// Cumulative.
struct ReceiverCounters {
  uint64_t packets_received = 0; // data, duplicates included
  uint64_t marks = 0;            // of these, marked on the way (ECN)
  int64_t received_bytes = 0;    // of these, in whatever order
  int64_t delivered_bytes = 0;   // in order, to the receiving application
  // Where there is a receiver control: left out by newer ones; sent again.
  uint64_t segments_missing = 0, segments_repeated = 0;
};

class Receiver {
 public:
  Receiver(const FlowConfig& config, const StackProfile& profile, Path& path, Timers& timers, Network& network);
  ~Receiver();
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  // ---- events
  void receive(const Packet& packet) {       // at packet.time
    if (is_data(packet.kind)) [[likely]] return receive_data(packet);
    receive_small(packet);
  }
  // As receive() of each packet of a train, as far as they take the short way and come before end. How many.
  uint32_t receive_train(const Packet& packet, Time end);
  void on_timer(Time now);                   // the head of the acknowledgement timer
  void on_reading(Time now);

  // ---- the application's and the control's side
  void attach(std::unique_ptr<Sink> sink) {
    sink_ = std::move(sink);
    look_for_plain();
  }
  void attach(std::unique_ptr<ReceiverControl> control);
  void attach(std::unique_ptr<ReceiveBuffer> buffer);           // of a host
  void wake_sink(Time now) { timers_.set(Alarm::reading, now); }  // the sink can read more: opens the window
  void abort(Time now);                      // the application gives the connection up, and what it has not read
  Sink* sink() { return sink_.get(); }
  // Nobody sees what it does but by its ACKs, which tell of what has come, and those that are echoed differ: without SACK
  // one that repeats another has its number.
  bool alone() const {
    return !sink_ && !control_ && !buffer_ && !echoes_ && misbehaviour_ != Misbehaviour::optimistic &&
           (!reads_stamps_ || profile_.sacks());
  }
  ReceiverControl* control() const { return control_.get(); }
  const ReceiveBuffer* buffer() const { return buffer_.get(); }
  bool agent_controlled() const { return agent_controlled_; }
  bool limits_window() const { return window_limited_; }
  // How marks are told: until the sender gives way (RFC 3168); as they come (RFC 8257); by their number (RFC 9768).
  enum class Ecn : uint8_t { none, classic, exact, counts };
  void speak_ecn(Ecn how) {
    ecn_ = how;
    echo_ = how == Ecn::counts ? kAckEcho : 0;
    look_for_plain();
  }
  void hear(Echoes* echoes) {                                     // for the control
    echoes_ = echoes;
    look_for_plain();
  }
  // Every packet goes the long way from now on, which comes to the same.
  void take_no_shortcut() { shortens_ = plain_ = false; }

  template <class Hot>
  void add_to(Hot& hot) const {
    hot.add(control_.get(), 576);
    hot.add(echoes_, sizeof(Echoes));
  }

  const ReceiverCounters& counters() const { return counters_; }
  bool closed() const { return state_ == State::closed; }
  Time last_event() const { return now_; }
  int64_t read_bytes() const { return sink_ ? read_bytes_ : counters_.delivered_bytes; }
  int64_t unread_bytes() const { return sink_ && !dropped_ ? counters_.delivered_bytes - read_bytes_ : 0; }
  int64_t buffered_bytes() const { return unread_bytes() + held_bytes_; }
  int64_t advertised_bytes() const { return std::max<int64_t>(0, window_edge_ - counters_.delivered_bytes); }
  Time clock(Time now) const {
    return now + clock_offset_ + static_cast<Time>(static_cast<double>(now) * clock_drift_);
  }
  size_t memory_bytes() const;

 private:
  enum class State : uint8_t { nothing, syn, stream, last_ack, closed };
  // What it does to get more than its share (Savage et al., 1999; RFC 5681, section 5), and what it costs it:
  // acknowledges what has not come yet, holes included, which are never filled; sends each ACK in parts;
  // sends duplicates of each.
  enum class Misbehaviour : uint8_t { none, optimistic, split, spoofed };

  void receive_data(const Packet& packet);
  void receive_any(const Packet& packet);    // data
  void look_for_plain();                     // whenever something that it looks at has changed
  void measure_round_trip(const Packet& packet);
  void measure_by_window(const Packet& packet);
  void move_round_end();
  void enter(State state) {
    state_ = state;
    look_for_plain();
  }
  void count(const Packet& packet) {
    ++counters_.packets_received;
    counters_.received_bytes += packet.bytes;
    ++network_.packets_received;
  }
  bool makes_ack_due(const Packet& packet) {
    return ++unacked_segments_ >= profile_.delayed_ack_packets || quick_acks_ > 0 || packet.kind == kPushedData;
  }
  void receive_small(const Packet& packet);
  bool late_stamp(const Packet& packet) const {  // in the stamps' unit
    return packet.sent_at < newest_sent_ && profile_.ignores_late_stamps &&
           packet.sent_at / profile_.rtt_granularity < newest_sent_ / profile_.rtt_granularity;
  }
  void note_ecn(const Packet& packet);
  void receive_beyond(const Packet& packet); // a hole
  void receive_again(const Packet& packet);
  void receive_greedily(const Packet& packet);
  void send_more(const Ack& ack);
  // Whole units that have passed: of a negative clock too, as integers of a clock that wraps are cut.
  Time stamp(Time clock) const {
    return stamp_unit_ == kMillisecond ? floored<kMillisecond>(clock) : floored<kMicrosecond>(clock);
  }
  template <Time unit>
  static Time floored(Time clock) {
    return clock / unit - (clock % unit < 0);
  }
  void ask_control(const Packet& packet);
  void read(Time now);
  void take_stretch(int64_t& bytes);
  void deliver(int64_t bytes) {
    counters_.delivered_bytes += bytes;
    network_.delivered_bytes += bytes;
    if (sink_) [[unlikely]] read(now_);
  }
  void ask_again(Time now);
  void settle_acks() {                       // by one that leaves
    if (quick_acks_ > 0) --quick_acks_;
    unacked_segments_ = compressed_ = 0;
    reads_ = false;
    deadline_ = kNever;
  }
  void send_plain_ack();
  [[gnu::noinline]] void send_window();
  void acknowledge(Time now, uint32_t segment, uint32_t acks);
  [[gnu::noinline]] uint32_t acknowledge_rest(const Packet& packet, uint32_t taken, uint32_t count, Time spacing, bool pushed);
  void send_ack(uint8_t flags = 0, const uint32_t* duplicate = nullptr);  // duplicate: the segment of a D-SACK
  void delay_ack(Time deadline);
  Time ack_due() const;
  void acknowledge_as_read();
  void tune_window(const Packet& packet, int64_t behind = 0);
  void grow_window(int64_t behind);
  void tune_buffer(const Packet& packet, int64_t behind);
  void make_room_beyond();
  int64_t beyond_hole() const {  // bytes from the first hole to the end of what has come
    if (out_of_order_.empty()) return 0;
    return static_cast<int64_t>(out_of_order_.ranges().back().end - rcv_nxt_) * profile_.mss;
  }
  // The application reads what comes in order, and the buffer is adjusted as it reads.
  bool ends_round(const Packet& packet) const { return now_ >= round_end_ && after(rcv_nxt_, packet.segment); }
  void begin_round(int64_t upto) {           // upto: bytes that were read before
    tuning_.round_bytes = upto;
    round_begun_ = now_;
    round_end_ = now_ + path_.round_trips.average();
  }
  // Bytes in the buffer as the window grows: with the packet if it came in order, before it is read; else without.
  int64_t memory_at(const Packet& packet, int64_t behind, int64_t packet_bytes) const {
    if (!after(rcv_nxt_, packet.segment)) return buffered_bytes() - packet.bytes;
    return std::max(unread_bytes(), behind + packet_bytes) + held_bytes_;
  }
  int64_t tuned_window() const;
  int64_t window_edge(int64_t& step) const;  // what the window could reach to, and by how much it should move at least
  uint32_t advertised_window();

  // receiver_closing.cc
  void answer_syn();
  void time_syn_answer();
  bool accept(const Packet& packet);
  void close(bool in_order);
  void repeat_answer();                      // to the SYN
  void repeat_fin();
  void set_timer(Time deadline);

  struct Request {               // the last of the application's, until something comes of it
    Time repeat = kNever;
    uint64_t heard = 0;          // packets, as it left
    uint32_t tries = 0;
  };

  // Linux: tcp_rmem's default of 128 KiB, of which five eighths may be payload. allowed: beside the packet that comes.
  struct WindowTuning {
    int64_t offered = 65160, allowed = 81920 - kPacket, largest_round = 14480, round_bytes = 0;
    static constexpr int64_t kPacket = 1440;       // five eighths of what one takes in memory
    static constexpr int64_t kLargest = 40 << 20;  // likewise of tcp_rmem's maximum, 64 MiB
    static constexpr int64_t kUnit = 2048;         // of the scale that this takes
    void allow(int64_t wanted) { allowed = std::clamp(wanted - kPacket, allowed, kLargest); }
  };

  // What every packet needs: three cache lines.
  const StackProfile& profile_;
  Path& path_;
  Timers& timers_;
  Network& network_;
  Time now_ = 0;
  State state_ = State::nothing;
  Ecn ecn_ = Ecn::none;
  Misbehaviour misbehaviour_ = Misbehaviour::none;
  uint8_t echo_ = 0;             // kAckEcho: with every ACK
  bool plain_ = false;           // nothing is up but what receive_data() looks at itself
  bool shortens_ = true;         // such packets take the short way
  bool window_limited_, tunes_window_, agent_controlled_;
  bool bunched_;                 // packets may come at the same instant
  bool reads_ = false;           // an ACK is due once they have been read
  bool dropped_ = false;         // what was unread
  bool offers_tuned_;            // the window that it tunes may hold the sender back
  bool reads_stamps_;            // and round trips are measured by time stamps
  uint32_t rcv_nxt_ = 0, unacked_segments_ = 0, quick_acks_, last_ack_sent_ = 0;
  uint32_t compressed_ = 0;
  Time newest_sent_ = 0;         // of all segments that have arrived
  Time echo_sent_ = -1, deadline_ = kNever, last_received_ = 0;
  Time tune_at_;                 // from when on tune_window() has something to do; 0: always
  Time silence_ = kNever;        // after so long the sender starts anew, where the window is tuned
  ReceiverCounters counters_;
  Time round_begun_ = 0, round_end_ = kNever;
  uint32_t marks_ = 0, marks_told_ = 0;      // Ecn::counts
  // Misbehaviour::optimistic: beyond what has come, and how many have come in this round.
  uint32_t lead_ = 0, round_segments_ = 0;
  Time lead_round_ = 0;
  uint32_t stream_end_ = 0;      // the segment after the one with FIN, once that has arrived
  bool have_end_ = false;
  WindowTuning tuning_;
  RangeSet out_of_order_;
  std::vector<Range> recent_blocks_;         // most recent first, for SACK
  uint32_t duplicates_sent_ = 0, compressed_at_ = UINT32_MAX;
  int64_t receive_buffer_, read_bytes_ = 0, window_edge_ = 0, window_clamp_ = kEndless;
  uint32_t window_said_ = 0;     // where it is limited: with the last ACK
  std::unique_ptr<Sink> sink_;
  std::unique_ptr<ReceiverControl> control_;
  Request request_;
  std::unique_ptr<ReceiveBuffer> buffer_;    // of a host
  Echoes* echoes_ = nullptr;
  int64_t held_bytes_ = 0;       // beyond a hole
  uint32_t newest_ = 0;          // the segment after the newest that has arrived
  uint32_t newest_stamp_ = 0;
  Time clock_offset_, stamp_unit_;
  const Time clamp_interval_;
  Time clamped_at_ = 0;          // whole intervals
  // In force, and what the control has said since; window_clamp_ follows the first.
  int64_t clamp_ = 0, next_clamp_ = 0;
  double clock_drift_;           // a second a second
  uint32_t tries_ = 0;           // of the SYN's answer, or of FIN
  Time syn_answered_ = 0, handshake_rtt_ = 0;
  Time fin_interval_ = 0, fin_repeat_ = kNever, fin_timeout_ = kNever;
  Time fin_repeated_ = 0;        // first
  Time syn_repeated_ = -kSecond; // the last repeated SYN that was answered
};

}  // namespace netbuf
