// Nuwa: the receiver keeps the one-way queueing delay near a target by the window that it advertises.
//
// Source: Jiang, Gong and Jin, "Combining heuristic and reinforcement learning to achieve the low-latency and
// high-throughput receiver-side congestion control" (Nuwa): algorithm 1, eq. 1 to 6. x = (T_d - Q_d) / rho,
// theta = tanh(x), and for each ACK w += theta * k / w, in segments; here times the segments that have come since the
// last (an ACK is sent for every second one), which adds theta * k a round trip.
//
// What is ours, each by a parameter that the paper's rule does without:
// * decrease: above the target the window shrinks by a share of itself, and growth does not cease at the target:
//   w += (k (1 + theta) - decrease * w (1 - theta)) / 2 / w. Adding and taking away the same for all flows never makes
//   unequal windows equal; this has one window for each delay, w = k / decrease * exp(2 x), the same for all who share
//   a queue.
// * drains: the least one-way delay is that of an empty queue, if the queue is ever empty. When it has not been seen
//   for a while (silence of 250 ms and two round trips does not count: nothing could have been seen), after slow start,
//   or when the delay is far above the target (a newcomer may have come, who takes the queue for the path), the window
//   is cut for as long as it takes to hear of the empty queue, and then restored.
// * keep: share of the window that is left after a round trip with a loss; a queue may be too short for the target. A
//   segment that is missing is lost; once a late one has come, so that packets overtake each other on this path, only
//   one sent again is.
// * gain: instead of Nuwa's rule, the window is so many measured products (measured_product.h), and k segments more;
//   drains only when the least delay was not seen for a while.
// * slow start: the window stays ahead of the sender's, until the delay, a loss, or a rate that grows no more ends it.
#pragma once
#include "netbuf/one_way_delay.h"
#include "netbuf/receiver_control.h"
#include "receiver_controls/measured_product.h"

namespace netbuf {

// tanh(x), to within 1e-4.
double quick_tanh(double x);

// What has arrived since an agent's interval began.
struct Interval {
  uint64_t packets = 0;
  double raw_sum = 0, raw_least = 0, raw_most = 0;   // D_c, s
  Time longest_gap = 0, last = 0;                    // last: packet of all, or the interval's start
};

class Nuwa final : public ReceiverControl {
 public:
  explicit Nuwa(const ReceiverSetting& setting);

  int64_t initial_window() const override { return static_cast<int64_t>(window_); }
  int64_t window(const Arrival& arrival) override;

  double steered_bytes() const override { return window_; }   // what it is again after a drain
  Time round_trip() const override { return rtt_; }

  // ---- what an agent sets
  void set_k(double k) { k_ = k; }
  void set_target(double seconds);
  void set_window(double bytes);             // ends slow start
  void set_gain(double gain) { gain_ = gain; }  // 0: the rule is Nuwa's

  // ---- what it knows
  double k() const { return k_; }
  double target_s() const { return target_; }
  double window_bytes() const { return window_; }
  double gain() const { return gain_; }
  const OneWayDelay& delay() const { return delay_; }
  Time rtt() const { return rtt_; }          // last sample; negative: none yet
  Time rtt_min() const { return rtt_least_.empty() ? -1 : rtt_least_.least(); }
  bool in_slow_start() const { return phase_ == Phase::start; }
  bool draining() const { return phase_ == Phase::closing || phase_ == Phase::holding; }

  Interval interval;                         // the agent's to begin anew
  Time heard() const { return heard_; }      // the last packet, receiver's clock
  bool heard_any() const { return delay_.known(); }

  static std::vector<Parameter> parameters();

 private:
  enum class Phase : uint8_t { start, steady, closing, holding, refilling };

  void note(Time now);
  void note_losses(const Arrival& arrival);
  void grow_in_start(const Arrival& arrival);
  void steer(double bytes);
  void fill(Time now, double bytes);
  void watch(const Arrival& arrival);
  void begin_drain(const Arrival& arrival);
  void end_drain(Time now);
  void end_round(Time now);
  void limit();

  // What every packet needs comes first.
  OneWayDelay delay_;
  double window_, k_, target_, inverse_rho_, rho_share_, decrease_, keep_;
  double mss_, least_, most_;                // bytes
  Phase phase_ = Phase::start;
  bool drains_, lost_ = false;
  // Rounds with a loss for which holes are no losses before they have been repaired.
  uint32_t reordered_ = 0;
  // Bytes that have come since the rule was last applied: an ACK's worth at least.
  double unsteered_ = 0;
  double drained_ = 0;                       // bytes: the window while it is cut
  double round_bytes_ = 0, last_round_bytes_ = 0, best_round_bytes_ = 0;
  Time heard_ = 0, rtt_ = -1, seen_ = 0, tolerance_;
  Time round_start_ = std::numeric_limits<Time>::min();  // a receiver's clock may be negative
  WindowedLeast rtt_least_;
  // Of the measured product.
  double gain_ = 0;
  MeasuredProduct product_;
  // Of drains.
  double to_close_ = 0, restore_, start_share_, spike_;
  double base_ = 0;                          // s: as it was after the last drain
  Time closed_ = 0, hold_, drain_interval_, spike_interval_ = 0, next_spike_ = -kNever;
  uint32_t flat_rounds_ = 0;
};

}  // namespace netbuf
