// QTCP: learns online, by Q-learning over Kanerva-coded states, whether to add ten packets to the window, none, or take
// one away. Every 0.23 s it asks whether the utility alpha log(throughput) - delta log(RTT) has risen or fallen since
// the last time. Slow start and the response to losses are NewReno's; the learnt part is congestion avoidance.
//
// Kanerva coding: a state activates the prototypes, drawn at random, that differ from it in one feature at
// most (the nearest ones where there are none); the value of an action is the mean of theirs, and what is
// learnt is shared among them.
//
// Source: Li, Zhou, Chowdhury and Meleis, "QTCP: adaptive congestion control with reinforcement learning", IEEE
// Transactions on Network Science and Engineering 6(3), 2019: features, actions, utility, and the figures of learning
// that are defaults here. It leaves open, and so are ours: the bins (octaves of the gaps, quarters of an octave of RTT
// over its minimum), rewards of 1 and -1 with a tolerance of 0.02, equal weights in the utility, and that slow start
// ends with an RTT of 1.5 times the smallest, too.
#include <cmath>
#include <vector>

#include "cc/linux_window.h"

namespace netbuf {
namespace {

constexpr int kFeatures = 3, kActions = 3, kBins = 10;
constexpr int kSteps[kActions] = {10, 0, -1};      // packets
constexpr double kLeastGap = 40e-6;                // s: the first octave of the gaps between packets
constexpr double kRttBins = 4;                     // to an octave
constexpr Time kQueueSeen = 3;                     // halves of the smallest RTT: slow start ends above
constexpr uint32_t kLeastWindow = 2;               // packets

struct State {
  uint8_t bins[kFeatures];

  int differences(const State& other) const {
    int count = 0;
    for (int i = 0; i < kFeatures; ++i) count += bins[i] != other.bins[i];
    return count;
  }
};

// Action values of a state, from those of the prototypes that it activates.
class Kanerva {
 public:
  void draw(uint32_t prototypes, Rng& rng) {
    prototypes_.resize(prototypes);
    for (Prototype& prototype : prototypes_) {
      for (uint8_t& bin : prototype.at.bins) bin = static_cast<uint8_t>(rng.below(kBins));
    }
  }

  double value(const State& state, int action) const {
    double sum = 0;
    const int count =
        for_active(prototypes_, state, [&](const Prototype& prototype) { sum += prototype.values[action]; });
    return sum / count;
  }

  void learn(const State& state, int action, double change) {
    for_active(prototypes_, state, [&](Prototype& prototype) { prototype.values[action] += change; });
  }

 private:
  struct Prototype {
    State at{};
    double values[kActions] = {};
  };

  template <class Prototypes, class Use>
  static int for_active(Prototypes& prototypes, const State& state, Use use) {
    int nearest = kFeatures;
    for (const Prototype& prototype : prototypes) nearest = std::min(nearest, prototype.at.differences(state));
    const int radius = std::max(nearest, 1);
    int count = 0;
    for (auto& prototype : prototypes) {
      if (prototype.at.differences(state) > radius) continue;
      use(prototype);
      ++count;
    }
    return count;
  }

  std::vector<Prototype> prototypes_;
};

class Qtcp final : public LinuxReno {
 public:
  explicit Qtcp(const Parameters& p)
      : prototypes_(p.as<uint32_t>("prototypes")),
        interval_(from_seconds(p["update_interval_s"])),
        discount_(p["discount"]),
        learning_decay_(p["learning_rate_decay"]),
        exploration_decay_(p["exploration_decay"]),
        alpha_(p["alpha"]),
        delta_(p["delta"]),
        tolerance_(p["tolerance"]),
        learning_rate_(p["learning_rate"]),
        exploration_(p["exploration"]) {}

  void init(Tcb& tcb) override {
    rng_ = Rng(tcb.rng ? tcb.rng->next() : 0);
    kanerva_.draw(prototypes_, rng_);
    begin(tcb);
  }

  void on_ack(Tcb& tcb, const AckEvent& ack) override {
    acked_ += ack.delivered;
    if (ack.rtt > 0) {
      rtt_sum_ += static_cast<double>(ack.rtt);
      ++rtts_;
    }
    if (tcb.in_slow_start()) {
      if (2 * tcb.srtt > kQueueSeen * tcb.min_rtt) tcb.ssthresh = tcb.cwnd;
      else return begin(tcb);
    }
    if (tcb.state >= CaState::recovery) {  // what happens there is not the action's doing
      acted_ = false;
      return begin(tcb);
    }
    if (tcb.now - since_ >= interval_) update(tcb);
  }

  void increase_window(Tcb& tcb, const AckEvent& ack) override {
    if (tcb.in_slow_start()) slow_start(tcb, ack.delivered);
  }

  void on_idle_restart(Tcb& tcb) override {
    acted_ = false;
    begin(tcb);
  }

 private:
  static uint32_t sent(const Tcb& tcb) { return tcb.delivered + tcb.lost + tcb.in_flight(); }

  void begin(const Tcb& tcb) {
    since_ = tcb.now;
    sent_base_ = sent(tcb);
    acked_ = rtts_ = 0;
    rtt_sum_ = 0;
  }

  static uint8_t bin(double at) { return static_cast<uint8_t>(std::clamp(at, 0.0, kBins - 1.0)); }

  State observe(const Tcb& tcb, double elapsed, double rtt) const {
    const double sends = std::max<double>(static_cast<int32_t>(sent(tcb) - sent_base_), 1);
    const double least = static_cast<double>(tcb.min_rtt) / 1e9;
    return {{bin(std::log2(elapsed / sends / kLeastGap)), bin(std::log2(elapsed / acked_ / kLeastGap)),
             bin(kRttBins * std::log2(rtt / least))}};
  }

  void update(Tcb& tcb) {
    if (acked_ == 0 || rtts_ == 0) return;
    const double elapsed = seconds(tcb.now - since_), rtt = rtt_sum_ / rtts_ / 1e9;
    const State state = observe(tcb, elapsed, rtt);
    const double utility = alpha_ * std::log(acked_ / elapsed) - delta_ * std::log(rtt);
    double values[kActions];
    for (int action = 0; action < kActions; ++action) values[action] = kanerva_.value(state, action);
    const double best = *std::max_element(values, values + kActions);
    if (acted_) {
      const double change = utility - utility_, reward = change > tolerance_ ? 1 : change < -tolerance_ ? -1 : 0;
      kanerva_.learn(state_, action_, learning_rate_ * (reward + discount_ * best - kanerva_.value(state_, action_)));
    }
    learning_rate_ *= std::pow(learning_decay_, elapsed);
    exploration_ *= std::pow(exploration_decay_, elapsed);
    state_ = state;
    utility_ = utility;
    action_ = choose(values, best);
    acted_ = true;
    act(tcb);
    begin(tcb);
  }

  // The best, ties by chance; now and then any.
  int choose(const double (&values)[kActions], double best) {
    if (rng_.uniform() < exploration_) return static_cast<int>(rng_.below(kActions));
    int candidates[kActions];
    uint32_t count = 0;
    for (int action = 0; action < kActions; ++action) {
      if (values[action] == best) candidates[count++] = action;
    }
    return candidates[count > 1 ? rng_.below(count) : 0];
  }

  void act(Tcb& tcb) const {
    const int step = kSteps[action_];
    if (step == 0 || (step > 0 && !tcb.cwnd_limited)) return;
    const int64_t window = std::max<int64_t>(int64_t{tcb.cwnd_packets} + step, kLeastWindow);
    tcb.set_cwnd_packets(static_cast<uint32_t>(window));
    tcb.ssthresh = std::min(tcb.ssthresh, tcb.cwnd);  // slow start does not come back by a smaller window
  }

  const uint32_t prototypes_;
  const Time interval_;
  const double discount_, learning_decay_, exploration_decay_, alpha_, delta_, tolerance_;
  double learning_rate_, exploration_;
  Rng rng_;
  Kanerva kanerva_;

  Time since_ = 0;                                 // what follows is of the interval since then
  uint32_t sent_base_ = 0, acked_ = 0, rtts_ = 0;  // packets
  double rtt_sum_ = 0;                             // ns

  bool acted_ = false;                             // and this is what came before
  int action_ = 0;
  State state_{};
  double utility_ = 0;
};

const Entry<CongestionControlRecord> entry{{
    .name = "qtcp",
    .meaning = "QTCP: learns online what to add to the window, by Q-learning with Kanerva coding",
    .linux_kernel = make<Qtcp>,
    .ns3 = make<Qtcp>,
    .parameters =
        {whole("prototypes", 100, 1, 2000, "states drawn at random that the value function is made of"),
         real("update_interval_s", 0.23, 0.01, 10, "time between two actions, s"),
         real("learning_rate", 0.95, 0.001, 1, "share of an error that is learnt, at first"),
         real("learning_rate_decay", 0.995, 0.1, 1, "and how much of it is left after every second"),
         real("exploration", 0.1, 0, 1, "share of the actions that are left to chance, at first"),
         real("exploration_decay", 0.9995, 0.1, 1, "and how much of it is left after every second"),
         real("discount", 0.9, 0, 0.999, "worth of a reward that comes an action later"),
         real("alpha", 1, 0, 100, "weight of the logarithm of the throughput in the utility"),
         real("delta", 1, 0, 100, "weight of the logarithm of the RTT in the utility"),
         real("tolerance", 0.02, 0, 10, "a change of the utility that earns nothing")},
}};

}  // namespace
}  // namespace netbuf
