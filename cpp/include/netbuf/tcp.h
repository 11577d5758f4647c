// What a congestion control sees of its connection, and what it must provide.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "netbuf/catalogue.h"
#include "netbuf/parameter.h"
#include "netbuf/rng.h"
#include "netbuf/types.h"

namespace netbuf {

// RFC 5681 and Linux: disorder = SACKs seen but no loss inferred yet; cwr = giving way to marks (ECN), for a round
// trip; loss = after a retransmission time-out.
enum class CaState : uint8_t { open, disorder, cwr, recovery, loss };

inline constexpr int64_t kInfiniteWindow = int64_t{1} << 40;  // initial ssthresh, bytes

// Delivery rate sample (draft-cheng-iccrg-delivery-rate-estimation), taken on each ACK for those who want it.
struct RateSample {
  int64_t delivered = -1;        // packets delivered over the interval; negative: no sample
  uint32_t prior_delivered = 0;  // Tcb::delivered when the newest acknowledged packet was sent
  Time interval = 0;             // the longer of send and ACK phases; 0: no sample
  bool app_limited = false;
  bool retransmitted = false;    // the sample comes from a retransmitted packet
  uint32_t prior_lost = 0;       // Tcb::lost when that packet was sent
  uint32_t sent_in_flight = 0;   // packets in flight when it had been sent, itself counted
};

struct AckEvent {
  // Not an aggregate: GCC clears those as a whole, by a slow string instruction, and one is made at every ACK.
  AckEvent() {}

  // Packets newly acknowledged cumulatively. In the ns3 stack what ns-3 passes to PktsAcked and IncreaseWindow there
  // (1 for a duplicate or partial ACK, all the packets of the recovery for the ACK that ends it).
  uint32_t acked = 0;
  int64_t acked_bytes = 0;       // bytes newly acknowledged cumulatively
  uint32_t delivered = 0;        // packets newly acknowledged cumulatively or selectively
  uint32_t lost = 0;             // packets newly marked lost
  uint32_t prior_in_flight = 0;  // packets in flight before this ACK
  Time rtt = -1;                 // of the newest packet acknowledged and never retransmitted; -1: none
  bool una_advanced = false;
  bool duplicate = false;        // D-SACK
  bool echo = false;             // of a mark (ECE); only where ECN is spoken
  // Packets newly known to have been marked: exact with accurate ECN, else what is delivered with an echo.
  uint32_t marked = 0;
  RateSample rate;
};

// Transmission control block: the public part of the sender's state. Windows are in bytes, counts in packets.
struct Tcb {
  // What every ACK needs: two cache lines.
  Time now = 0;
  uint32_t mss = 1448;
  Stack stack = Stack::linux_kernel;
  CaState state = CaState::open;
  bool cwnd_limited = true;      // the window, not the application, limited the last sending round
  bool hystart = true;           // CUBIC's own; else hystart_plus_plus, or none
  bool hystart_plus_plus = false;
  bool established = false;
  uint32_t cwnd_packets = 0;     // whole packets in cwnd
  int64_t cwnd = 0;              // bytes; use set_cwnd
  int64_t ssthresh = kInfiniteWindow;
  double pacing_rate = 0;        // bytes per second; 0 = not paced
  uint32_t una = 0, nxt = 0;     // oldest unacknowledged and next new segment (indices)
  uint32_t sacked_out = 0, lost_out = 0, retrans_out = 0;
  uint32_t delivered = 0;        // packets delivered so far
  uint32_t max_packets_out = 0;  // that the last sending round had outstanding at most
  Time delivered_time = 0;
  Time srtt = 0;                 // RFC 6298; 0 before the first sample
  Time min_rtt = kNever;         // smallest RTT seen
  Time last_rtt = -1;
  Time last_departure = 0;        // latest transmission of data
  Time next_departure = 0;        // when paced, nothing leaves before

  uint32_t high_seq = 0;         // recovery point: nxt when recovery or loss was entered
  // Bytes by which what is in flight falls short of whole segments (ns-3, finite streams).
  uint32_t short_out = 0;
  uint32_t initial_cwnd = 10;    // packets
  uint32_t lost = 0;             // packets marked lost so far
  uint32_t app_limited = 0;      // 0, or the delivery count until which samples are application-limited
  Time first_sent_time = 0;
  Time rttvar = 0;               // as srtt
  Rng* rng = nullptr;

  uint32_t packets_out() const { return nxt - una; }
  uint32_t in_flight() const { return nxt - una - sacked_out - lost_out + retrans_out; }
  int64_t bytes_in_flight() const { return static_cast<int64_t>(in_flight()) * mss - short_out; }
  bool in_slow_start() const { return cwnd < ssthresh; }
  bool may_grow() const {        // the window limits the sender (RFC 7661; Linux' tcp_is_cwnd_limited)
    return cwnd_limited || (in_slow_start() && cwnd_packets < 2 * max_packets_out);
  }
  uint32_t ssthresh_packets() const {
    return static_cast<uint32_t>(std::min<int64_t>(ssthresh, kInfiniteWindow) / mss);
  }

  void set_cwnd(int64_t bytes) {
    cwnd_integral += static_cast<double>(cwnd) * static_cast<double>(now - cwnd_since);
    cwnd_since = now;
    cwnd = bytes;
    cwnd_packets = static_cast<uint32_t>(std::min<int64_t>(cwnd / mss, 1 << 30));
  }
  // Less than two segments, whose sender is paced: room for the whole ones that it touches.
  void set_cwnd_fine(int64_t bytes) {
    set_cwnd(bytes);
    if (bytes < 2 * int64_t{mss}) cwnd_packets = bytes > mss ? 2 : 1;
  }
  // What an agent decides; no less than ever sends again.
  void set_cwnd_steered(int64_t bytes, bool fine) {
    constexpr uint32_t kFinest = 16;  // to a segment
    if (fine) {
      set_cwnd_fine(std::max<int64_t>(mss / kFinest, bytes));
    } else {
      set_cwnd(std::max<int64_t>(mss, bytes));
    }
  }
  void set_cwnd_packets(uint32_t packets) { set_cwnd(static_cast<int64_t>(packets) * mss); }

  double cwnd_integral = 0;      // byte nanoseconds, up to cwnd_since
  Time cwnd_since = 0;
};
static_assert(offsetof(Tcb, high_seq) == 128);

// What an agent's sender is given: packets leave at 1.2 windows in the least round trip; windows below two segments are
// paced; the window grows by what is acknowledged until its first decision.
struct Steering {
  bool paced, fine, slow_start;
};

// Linux' tcp_congestion_ops and ns-3's TcpCongestionOps, reduced to what both need. Window changes go through
// Tcb::set_cwnd. During recovery the sender itself runs proportional rate reduction (RFC 6937) unless owns_window().
class CongestionControl {
 public:
  virtual ~CongestionControl() = default;
  // Another of its own, of one that has not begun; null: it is made from its parameters again.
  virtual std::unique_ptr<CongestionControl> copy() const { return nullptr; }
  virtual void init(Tcb&) {}                                   // at establishment, after the first RTT sample
  virtual void on_ack(Tcb&, const AckEvent&) {}                // every ACK that delivers something, before growth
  virtual void increase_window(Tcb&, const AckEvent&) {}       // may grow the window (cwnd-limited, not reducing)
  // All that it must have. Bytes; loss or marks seen: recovery, loss or cwr is entered.
  virtual int64_t ssthresh(Tcb&) = 0;
  virtual void on_state(Tcb&, CaState) {}                      // before Tcb::state changes to it
  // wants_losses(): a packet is taken for lost. The sample is as of an ACK of it.
  virtual void on_lost(Tcb&, const RateSample&) {}
  virtual void on_idle_restart(Tcb&) {}                        // first transmission after the network went idle
  virtual int64_t undo_window(Tcb&, int64_t prior_cwnd) { return prior_cwnd; }  // bytes; the loss proved spurious
  virtual void control(Tcb&, const AckEvent&) {}               // owns_window(): sets cwnd and pacing rate on every ACK
  // Before all: an agent sets the window, after a slow start or at once.
  virtual void on_agent(bool slow_start) { (void)slow_start; }
  virtual void on_decision() {}                                // the agent has set the window
  // Of a control that is an agent itself; null: it is none.
  virtual const Steering* steering() const { return nullptr; }
  // Before all: what is advertised may be less than there is to send.
  virtual void on_receiver_limit() {}
  virtual uint32_t burst_packets(const Tcb&) const { return 2; }  // packets sent back to back when paced
  virtual uint32_t buffer_windows() const { return 2; }  // how many windows a socket's send buffer is to hold

  // An ACK outside recovery: all that it is told of it. A final class may say `take(*this, tcb, ack)` itself, which calls
  // its own members directly.
  virtual void take_in(Tcb& tcb, const AckEvent& ack) { take(*this, tcb, ack); }

  bool owns_window() const { return owns_window_; }
  bool wants_rate() const { return wants_rate_; }
  bool wants_losses() const { return wants_losses_; }
  bool accurate_ecn() const { return accurate_ecn_; }
  bool l4s() const { return l4s_; }

 protected:
  template <class Control>
  static void take(Control& own, Tcb& tcb, const AckEvent& ack) {
    own.on_ack(tcb, ack);
    if (own.owns_window()) {
      own.control(tcb, ack);
    } else if (tcb.may_grow()) {
      own.increase_window(tcb, ack);
    }
  }

  bool owns_window_ = false, wants_rate_ = false;
  bool wants_losses_ = false;    // with wants_rate_
  // Speaks ECN in any case, and its receiver echoes every mark and nothing else (RFC 8257).
  bool accurate_ecn_ = false;
  bool l4s_ = false;             // with accurate_ecn_: sends ECT(1), its receiver counts marks (RFC 9331, RFC 9768)
};

// Shares as the kernel counts with them: whole numbers of 1/1024.
inline constexpr int64_t kFraction = 1024;
inline int64_t scaled_fraction(double share) { return static_cast<int64_t>(share * kFraction + 0.5); }

// What the file of a congestion control ends in: an Entry of one of these.
// How it is made, by stack; null: not in that stack.
struct CongestionControlRecord {
  static constexpr std::string_view kWhat = "congestion control";
  using Make = std::unique_ptr<CongestionControl> (*)(const Parameters&);

  std::string_view name, meaning;
  Make linux_kernel = nullptr, ns3 = nullptr;
  std::vector<Parameter> parameters = {};
  bool agent = false;            // nothing without an agent that sets its window

  Make in(Stack stack) const {
    const Make makers[] = {linux_kernel, ns3};
    return makers[static_cast<size_t>(stack)];
  }
};

// For records: a class that is made from its parameters, or from nothing.
template <class Control>
std::unique_ptr<CongestionControl> make(const Parameters& parameters) {
  static_assert(!std::is_abstract_v<Control>,
                "the class is abstract; valid: one with `int64_t ssthresh(Tcb&) override`, "
                "which every congestion control has");
  if constexpr (std::is_constructible_v<Control, const Parameters&>) {
    return std::make_unique<Control>(parameters);
  } else {
    return std::make_unique<Control>();
  }
}

// Throws std::invalid_argument: a name that is not in the stack, a parameter that is unknown or out of range.
std::unique_ptr<CongestionControl> make_congestion_control(std::string_view name, Stack stack,
                                                           const Given& parameters = {},
                                                           const std::string& field = "cc");
// What makes any number of them: likewise, and what is the same for all is looked up now.
std::function<std::unique_ptr<CongestionControl>()> prepare_congestion_control(std::string_view name, Stack stack,
                                                                               const Given& parameters = {},
                                                                               const std::string& field = "cc");
void check_congestion_control(std::string_view name, Stack stack, const Given& parameters, const std::string& field);

}  // namespace netbuf
