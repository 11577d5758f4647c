// A receiver of the kernel's as the simulator's receiver controls know theirs: what passes its end of a route, read
// from TCP headers with their time stamps (RFC 7323), becomes Arrivals, and what the control makes of them is the
// window to be clamped to (TCP_WINDOW_CLAMP), and is: before the packet is delivered, so that its ACK says so. One
// connection at a time; a SYN begins anew, with the same control.
#pragma once
#include <memory>

#include "netbuf/config.h"
#include "netbuf/live.h"
#include "netbuf/ranges.h"
#include "netbuf/receiver_control.h"
#include "netbuf/ring.h"

namespace netbuf {

// Cumulative.
struct MeterCounters {
  uint64_t packets_received = 0, segments_missing = 0, segments_repeated = 0, stamps_missing = 0;
  int64_t received_bytes = 0, delivered_bytes = 0;
};

// What an agent of the kind "receiver" is told of the control's side; seconds and bytes, NaN where nothing is known.
struct MeterReading {
  double window_bytes, queue_delay_last_s, queue_delay_s, queue_delay_mean_s, queue_delay_min_s, queue_delay_max_s;
  double queue_delay_before_s;                      // filtered, as the interval began
  double rtt_s, rtt_min_s, silence_s, longest_gap_s, k, target_delay_s, bdp_gain;
};

class ReceiverMeter {
 public:
  // The control of the flow, and its receiver's clock.
  // std::invalid_argument: as make_receiver_control; a flow without one.
  ReceiverMeter(const FlowConfig& config, uint32_t mss);

  // now: the monotonic clock, by which the hosts stamp their packets (tcp_timestamps = 2);
  // packets are of IPv4, whole ones.
  void data(Time now, const uint8_t* packet, uint32_t length);      // reaches the receiver
  void answer(Time now, const uint8_t* packet, uint32_t length);    // leaves it

  void clamp(int socket);                           // the receiver's from now on; a duplicate is kept
  void begin(Time now);                             // an agent's interval
  void set(double k, double target_s, double window_bytes, double gain);  // what an agent decided; NaN: leaves it
  MeterReading read(Time now);                      // these three: std::logic_error where the control is not Nuwa's

  // What the receiver is to advertise at most from now on;
  // what it holds beyond a hole counts where the window is of the network.
  int64_t clamp_bytes() const { return window_ + (control_->counts_network() ? held_bytes_ : 0); }
  int64_t advertised_bytes() const;                 // negative: nothing yet
  int64_t held_bytes() const { return held_bytes_; }
  uint64_t data_reached() const { return counters_.packets_received; }
  const MeterCounters& counters() const { return counters_; }
  uint32_t mss() const { return mss_; }
  Time clock(Time now) const {
    return now + clock_offset_ + static_cast<Time>(static_cast<double>(now - begin_) * clock_drift_);
  }

 private:
  struct Header {
    const uint8_t* tcp;
    uint32_t seq, ack, payload;
    uint32_t stamp, echo;                           // where stamped
    uint16_t window;
    uint8_t scale;                                  // of a SYN
    bool syn, stamped, scaled, holes;               // holes: has SACK blocks
  };
  struct Left {
    uint32_t stamp;
    bool plain;
  };
  static bool parse(const uint8_t* packet, uint32_t length, Header& header);
  class Nuwa& nuwa();
  void apply(Time now);
  void take(const Header& header);

  std::unique_ptr<ReceiverControl> control_;
  const uint32_t mss_;
  const Time unit_, clock_offset_, clamp_interval_;
  const double clock_drift_;
  int64_t window_;
  Descriptor socket_;
  int64_t clamped_ = 0;                             // what the socket was told
  Time clamped_at_ = -1;                            // whole intervals
  double queue_before_ = 0;
  bool heard_before_ = false;
  Time begin_ = 0;                                  // of the connection, or of the last one
  MeterCounters counters_;
  RangeSet beyond_;                                 // a hole, in bytes of the stream
  int64_t held_bytes_ = 0;
  // What comes next in order; after the newest byte; its packet's stamp.
  uint32_t next_ = 0, newest_ = 0, newest_stamp_ = 0;
  uint32_t edge_ = 0, scale_ = 0;
  Time answer_clock_ = 0;                           // the receiver's stamps are ahead of the monotonic clock
  bool begun_ = false, advertised_ = false, echoed_ = false;
  uint32_t last_echo_ = 0;
  Ring<Left> left_;                                 // answers that no packet has echoed yet
};

}  // namespace netbuf
