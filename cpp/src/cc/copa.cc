// Copa: moves the window towards the one that keeps 1/delta packets of its own in the queue, by v / delta packets a
// round trip, and doubles v while the direction stays. Where the queue is never seen nearly empty, somebody else fills
// it: then 1/delta grows by one a round trip and halves with a loss, as a window that adds and multiplies.
//
//   target = RTT_standing / (delta (RTT_standing - RTT_min)) packets
//
// RTT_standing is the smallest RTT of half a smoothed RTT (delayed ACKs make the others larger),
// RTT_min that of ten seconds.
//
// Sources: Arun and Balakrishnan, "Copa: practical delay-based congestion control for the Internet", NSDI 2018;
// behaviour and defaults of its authors' code, github.com/venkatarun95/genericCC at 18299d6 (markoviancc.cc,
// rtt-window.cc, estimators.cc; August 2021) with `do_ss:auto:0.5`. Of an ACK for several packets each counts; a
// time-out, which is the transport's business there, leaves the least window, as persistent congestion does in
// github.com/facebook/mvfst at 00e67c1 (Copa.cpp).
#include <algorithm>
#include <limits>

#include "cc/sliding_extreme.h"
#include "netbuf/tcp.h"

namespace netbuf {
namespace {

constexpr double kSrttGain = 1.0 / 16;
constexpr double kNearlyEmpty = 0.1;              // of the range of RTTs: the queue has been seen nearly empty
constexpr Time kNearlyEmptyRtts = 4;              // within so many smoothed RTTs
constexpr Time kMinRttRtts = 20;                  // RTT_min covers so many of itself at least
constexpr double kLeastWindow = 2;                // packets
constexpr uint32_t kLossPackets = 20;             // no verdict on losses over fewer
constexpr Time kLossRtts = 2;

class Copa final : public CongestionControl {
 public:
  explicit Copa(const Parameters& p)
      : default_delta_(p["delta"]),
        competitive_(p.is("competitive_mode")),
        min_rtt_window_(from_seconds(p["min_rtt_window_s"])),
        probe_packets_(p.as<uint32_t>("probe_packets")),
        loss_threshold_(p["loss_threshold"]),
        keep_(p["loss_reduction"]),
        delta_(default_delta_) {
    owns_window_ = true;
  }

  void init(Tcb& tcb) override {
    tcb.ssthresh = kInfiniteWindow;
    window_ = probe_packets_;
    apply(tcb);
  }

  void control(Tcb& tcb, const AckEvent& ack) override {
    if (ack.rtt > 0) {
      note_rtt(tcb.now, ack.rtt);
      update_delta(tcb.now, false, ack.rtt);
    }
    if (min_rtt_.empty()) return apply(tcb);
    if (ack.delivered > 0) update_window(tcb.now, ack);
    if (ack.lost > 0) update_delta(tcb.now, true, 0);
    if (lost_too_much(tcb.now, ack)) window_ = std::max(window_ * keep_, kLeastWindow);
    acked_ += ack.delivered;
    apply(tcb);
  }

  int64_t ssthresh(Tcb& tcb) override { return tcb.ssthresh; }

  void on_state(Tcb&, CaState next) override {
    if (next == CaState::loss) window_ = kLeastWindow;
  }

  uint32_t burst_packets(const Tcb&) const override { return 1; }

 private:
  void note_rtt(Time now, Time rtt) {
    const auto sample = static_cast<double>(rtt);
    srtt_ = srtt_ == 0 ? sample : kSrttGain * sample + (1 - kSrttGain) * srtt_;
    last_rtt_ = rtt;
    const Time longest = min_rtt_.empty() ? min_rtt_window_ : std::max(min_rtt_window_, kMinRttRtts * min_rtt_.get());
    const auto smoothed = static_cast<Time>(srtt_);
    min_rtt_.add(now, rtt, longest);
    standing_.add(now, rtt, std::min(longest, smoothed / 2));
    if (!competitive_) return;
    lowest_.add(now, rtt, std::min(longest, kNearlyEmptyRtts * smoothed));
    highest_.add(now, rtt, std::min(longest, kNearlyEmptyRtts * smoothed));
  }

  bool queue_was_nearly_empty() const {
    const auto least = static_cast<double>(min_rtt_.get());
    return static_cast<double>(lowest_.get()) < least + kNearlyEmpty * (static_cast<double>(highest_.get()) - least);
  }

  // Without competitors, or alone with its like: the default.
  // Else as an additive increase of 1/delta, halved by a loss.
  void update_delta(Time now, bool lost, Time rtt) {
    if (!competitive_ || lowest_.empty()) return;
    const bool new_round = delta_lost_at_ + rtt < now;
    if (queue_was_nearly_empty()) {
      if (delta_changed_at_ < 0 || new_round) {
        delta_ = default_delta_;
        delta_changed_at_ = now;
      }
      return;
    }
    if (lost && new_round) {
      delta_ = 2 * delta_;
      delta_lost_at_ = now;
    } else if (std::max<Time>(delta_changed_at_, 0) + rtt < now) {
      delta_ = 1 / (1 / delta_ + 1);
      delta_changed_at_ = now;
    }
    delta_ = std::min(delta_, default_delta_);
  }

  // Packets; infinite while there is no queue.
  double target() const {
    const Time queue = standing_.get() - min_rtt_.get();
    if (queue <= 0) return std::numeric_limits<double>::infinity();
    return static_cast<double>(standing_.get()) / (static_cast<double>(queue) * delta_);
  }

  void update_window(Time now, const AckEvent& ack) {
    if (acked_ + 1 < 2 * probe_packets_) return;  // the first two round trips measure
    const double target = this->target(), packets = ack.delivered;
    const bool used = 2 * ack.prior_in_flight >= static_cast<uint32_t>(window_);  // else the application sets the pace
    if (slow_start_) {
      if (used) window_ += packets;
      slow_start_ = window_ < target;
      return;
    }
    update_velocity(now);
    const double step = packets * velocity_ / (delta_ * window_);
    if (window_ < target) {
      direction_ += ack.delivered;
      if (used) window_ += step;
    } else {
      direction_ -= ack.delivered;
      window_ = std::max(window_ - step, kLeastWindow);
    }
  }

  void update_velocity(Time now) {
    if (velocity_changed_at_ + last_rtt_ < now) {
      if ((direction_ > 0 && upwards_) || (direction_ < 0 && !upwards_)) {
        velocity_ *= 2;
      } else {
        velocity_ = 1;
        upwards_ = !upwards_;
      }
      velocity_changed_at_ = now;
      direction_ = 0;
    }
    if (velocity_ > window_ * delta_) velocity_ /= 2;  // by no more than the window in a round trip
    velocity_ = std::max(velocity_, 1.0);
  }

  bool lost_too_much(Time now, const AckEvent& ack) {
    loss_lost_ += ack.lost;
    loss_packets_ += ack.lost + ack.delivered;
    if (now <= loss_since_ + kLossRtts * last_rtt_ || loss_packets_ <= kLossPackets) return false;
    const bool much = loss_lost_ > loss_threshold_ * loss_packets_;
    loss_since_ = now;
    loss_lost_ = loss_packets_ = 0;
    return much;
  }

  void apply(Tcb& tcb) const {
    const auto packets = static_cast<uint32_t>(window_);
    if (packets != tcb.cwnd_packets) tcb.set_cwnd_packets(packets);
    const Time rtt = standing_.empty() ? tcb.srtt : standing_.get();
    tcb.pacing_rate = rtt > 0 ? 2 * window_ * tcb.mss * 1e9 / static_cast<double>(rtt) : 0;
  }

  const double default_delta_;
  const bool competitive_;
  const Time min_rtt_window_;
  const uint32_t probe_packets_;
  const double loss_threshold_, keep_;

  double window_ = kLeastWindow;         // packets
  double delta_;                         // 1 / packets in the queue
  bool slow_start_ = true;
  uint32_t acked_ = 0;                   // packets

  double srtt_ = 0;                      // nanoseconds, as all times
  Time last_rtt_ = 0;
  SlidingMin min_rtt_, standing_, lowest_;
  SlidingMax highest_;

  double velocity_ = 1;
  // Packets that moved the window up less those that moved it down, since the last look.
  int64_t direction_ = 1;
  bool upwards_ = true;                  // what the direction was then
  Time velocity_changed_at_ = 0;

  Time delta_changed_at_ = -1, delta_lost_at_ = 0;
  Time loss_since_ = 0;
  uint32_t loss_lost_ = 0, loss_packets_ = 0;
};

const Entry<CongestionControlRecord> entry{{
    .name = "copa",
    .meaning = "Copa: keeps 1/delta packets of its own in the queue; competes where others fill it",
    .linux_kernel = make<Copa>,
    .parameters =
        {real("delta", 0.5, 0.01, 1, "1 / packets that it keeps in the queue while it is alone with its like"),
         truth("competitive_mode", true, "smaller deltas where the queue is never seen nearly empty"),
         real("min_rtt_window_s", 10, 0.1, 10'000, "for so long a smallest round-trip time holds, s"),
         whole("probe_packets", 10, 2, 1000, "the window until twice as many packets are acknowledged"),
         real("loss_threshold", 0.3, 0.01, 1,
              "lost / all packets over two round trips above which a loss cuts the window"),
         real("loss_reduction", 0.7, 0.1, 1, "share of the window that is then left")},
}};

}  // namespace
}  // namespace netbuf
