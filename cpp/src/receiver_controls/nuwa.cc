#include "receiver_controls/nuwa.h"

#include <array>

namespace netbuf {

namespace {

constexpr double kLargestWindow = 1 << 30;   // RFC 7323, 2.3
constexpr double kFirstSegments = 20;        // twice what a sender starts with (RFC 6928)
constexpr double kSpareSegments = 10;        // beyond twice what a round trip brought the window does not grow
constexpr uint32_t kFlatRounds = 3;          // without a quarter more: slow start is over
constexpr uint32_t kReordered = 16;          // rounds with a loss
constexpr Time kSilence = kSecond / 4;       // and two round trips: an outage
constexpr Time kFirstSpike = kSecond / 2, kLongestSpike = 32 * kSecond;

// tanh at the 32nds up to 8, the last for all beyond, linear in between: a table, as in the paper's kernel module.
constexpr int kPerUnit = 32, kUnits = 8;
const std::array<double, kPerUnit * kUnits + 2> kTanh = [] {
  std::array<double, kPerUnit * kUnits + 2> table{};
  for (size_t i = 0; i < table.size(); ++i) table[i] = std::tanh(static_cast<double>(i) / kPerUnit);
  return table;
}();

}  // namespace

double quick_tanh(double x) {
  const double at = std::min(std::fabs(x) * kPerUnit, static_cast<double>(kPerUnit * kUnits));
  const auto index = static_cast<size_t>(at);
  const double value = kTanh[index] + (at - static_cast<double>(index)) * (kTanh[index + 1] - kTanh[index]);
  return std::copysign(value, x);
}

Nuwa::Nuwa(const ReceiverSetting& setting)
    : delay_({from_seconds(setting.parameters["base_window_s"]), setting.parameters["state_noise_ms2"] * 1e-6,
              setting.parameters["state_noise_gaps"]}),
      window_(kFirstSegments * setting.mss),
      k_(setting.parameters["k"]),
      rho_share_(0),
      decrease_(setting.parameters["decrease"]),
      keep_(setting.parameters["keep"]),
      mss_(setting.mss),
      least_(2.0 * setting.mss),
      most_(setting.buffer_bytes > 0 ? std::min(kLargestWindow, static_cast<double>(setting.buffer_bytes))
                                     : kLargestWindow),
      drains_(setting.parameters["drain_interval_s"] > 0),
      tolerance_(from_seconds(setting.parameters["drain_tolerance_ms"] * 1e-3)),
      rtt_least_(from_seconds(setting.parameters["base_window_s"])),
      restore_(setting.parameters["drain_keep"]),
      start_share_(setting.parameters["start_share"]),
      spike_(setting.parameters["spike"]),
      hold_(from_seconds(setting.parameters["drain_hold_ms"] * 1e-3)),
      drain_interval_(from_seconds(setting.parameters["drain_interval_s"])) {
  counts_network_ = true;
  gain_ = setting.parameters["gain"];
  const Parameters& p = setting.parameters;
  if (p.automatic("rho_ms")) {
    rho_share_ = 0.25;
  } else {
    inverse_rho_ = 1e3 / p["rho_ms"];
  }
  set_target(p["target_ms"] * 1e-3);
  limit();
}

void Nuwa::set_target(double seconds) {
  target_ = seconds;
  if (rho_share_ > 0) inverse_rho_ = 1 / (rho_share_ * seconds);
}

void Nuwa::set_window(double bytes) {
  window_ = bytes;
  limit();
  if (phase_ == Phase::start) phase_ = Phase::steady;
}

void Nuwa::limit() { window_ = std::clamp(window_, std::min(least_, most_), most_); }

int64_t Nuwa::window(const Arrival& arrival) {
  const double bytes = arrival.bytes;
  delay_.add(arrival.now, arrival.stamp, arrival.unit, arrival.bytes);
  note(arrival.now);
  if (gain_ > 0) product_.add(arrival, delay_.raw(), rtt_least_.empty() ? 0 : seconds(rtt_least_.least()), window_);
  round_bytes_ += bytes;
  note_losses(arrival);
  if (arrival.rtt >= 0) {
    rtt_ = arrival.rtt;
    rtt_least_.add(arrival.now, rtt_, 0);
    if (arrival.now - arrival.rtt >= round_start_) end_round(arrival.now);
  }
  switch (phase_) {
    case Phase::steady:
      unsteered_ += bytes;
      if (unsteered_ < 2 * mss_) break;
      if (gain_ > 0) {
        fill(arrival.now, unsteered_);
      } else {
        steer(unsteered_);
      }
      unsteered_ = 0;
      if (drains_) watch(arrival);
      break;
    case Phase::start: grow_in_start(arrival); break;
    case Phase::closing:
      to_close_ -= bytes;
      if (to_close_ <= 0) phase_ = Phase::holding, closed_ = arrival.now;
      break;
    case Phase::holding:
      if (arrival.rtt >= 0 && arrival.now - arrival.rtt > closed_ && arrival.now - closed_ >= hold_) {
        end_drain(arrival.now);
      }
      break;
    case Phase::refilling:
      drained_ += bytes;
      if (drained_ >= window_ || delay_.queue() > target_) phase_ = Phase::steady;
      break;
  }
  return static_cast<int64_t>(phase_ >= Phase::closing ? std::min(drained_, window_) : window_);
}

void Nuwa::note(Time now) {
  const double raw = delay_.raw();
  Interval& i = interval;
  // Nobody could have seen anything in it.
  if (now - heard_ > std::max(kSilence, 2 * rtt_)) [[unlikely]] seen_ += now - heard_;
  i.raw_least = i.packets ? std::min(i.raw_least, raw) : raw;
  i.raw_most = i.packets ? std::max(i.raw_most, raw) : raw;
  i.raw_sum += raw;
  ++i.packets;
  i.longest_gap = std::max(i.longest_gap, now - i.last);
  i.last = heard_ = now;
}

// Reordering once seen, a hole is no loss before it has been repaired; what was taken for one lately may
// have been this. Sixteen rounds with losses and without reordering forget it, as RACK's wider window is
// forgotten (RFC 8985, 6.2, step 4).
void Nuwa::note_losses(const Arrival& arrival) {
  if (arrival.late) [[unlikely]] {
    if (reordered_ == 0) lost_ = false;
    reordered_ = kReordered;
  }
  lost_ |= reordered_ > 0 ? arrival.repeated : arrival.missing > 0;
}

// Twice what the sender sends, for as long as that helps.
void Nuwa::grow_in_start(const Arrival& arrival) {
  window_ = std::min(window_ + arrival.bytes, most_);
  if (delay_.queue() <= start_share_ * target_ && !lost_ && flat_rounds_ < kFlatRounds) return;
  window_ = std::max(last_round_bytes_, round_bytes_);
  lost_ = false;
  limit();
  phase_ = Phase::steady;
  seen_ = arrival.now;
  base_ = delay_.base();
  spike_interval_ = kFirstSpike;
  if (drains_ && gain_ == 0) begin_drain(arrival);  // what is measured lets the queue of slow start run empty
}

void Nuwa::steer(double bytes) {
  if (k_ <= 0) return;
  const double theta = quick_tanh((target_ - delay_.queue()) * inverse_rho_), adding = k_ * mss_ / window_;
  const double step = decrease_ > 0 ? 0.5 * ((1 + theta) * adding - (1 - theta) * decrease_) : theta * adding;
  // What the sender does not use is not made more.
  if (step > 0 && window_ > 2 * last_round_bytes_ + kSpareSegments * mss_) return;
  window_ += step * bytes;
  limit();
}

void Nuwa::fill(Time now, double bytes) {
  window_ = product_.window(now, gain_, k_ * mss_, window_, bytes);
  limit();
}

// Whether it is time to empty the queue.
void Nuwa::watch(const Arrival& arrival) {
  const Time now = arrival.now;
  if (delay_.raw() <= seconds(tolerance_ + arrival.unit)) {
    seen_ = now;
  } else if (now - seen_ > drain_interval_) {
    begin_drain(arrival);
  } else if (gain_ == 0 && delay_.queue() > spike_ * target_ && now >= next_spike_) {
    begin_drain(arrival);
  }
  const double base = delay_.base();
  if (base > base_) base_ = base;
  if (base < base_ - seconds(tolerance_)) begin_drain(arrival);
}

// Down to half of what the path alone holds.
void Nuwa::begin_drain(const Arrival& arrival) {
  const double in_flight = std::min(window_, std::max({last_round_bytes_, round_bytes_, least_}));
  const double share =
      rtt_ > 0 && !rtt_least_.empty() ? seconds(rtt_least_.least()) / std::max(seconds(rtt_), 1e-9) : 0.5;
  drained_ = std::clamp(0.5 * in_flight * std::min(share, 1.0), least_, std::max(window_, least_));
  to_close_ = static_cast<double>(arrival.window_bytes) - drained_;   // what may still come that was let go
  phase_ = Phase::closing;
  closed_ = arrival.now;
}

void Nuwa::end_drain(Time now) {
  const bool emptied = delay_.raw() <= seconds(2 * tolerance_) + 0.1 * target_;
  window_ *= restore_;
  limit();
  spike_interval_ = emptied ? kFirstSpike : std::min(2 * spike_interval_, kLongestSpike);
  next_spike_ = now + spike_interval_;
  seen_ = now;
  base_ = delay_.base();
  lost_ = false;
  phase_ = Phase::refilling;
}

void Nuwa::end_round(Time now) {
  if (lost_ && phase_ == Phase::steady) {
    if (k_ > 0 && gain_ == 0) window_ *= keep_;
    limit();
  }
  if (lost_ && reordered_ > 0) --reordered_;
  if (phase_ != Phase::start) lost_ = false;
  if (phase_ == Phase::start) {
    flat_rounds_ = round_bytes_ < 1.25 * best_round_bytes_ ? flat_rounds_ + 1 : 0;
    best_round_bytes_ = std::max(best_round_bytes_, round_bytes_);
  }
  last_round_bytes_ = round_bytes_;
  round_bytes_ = 0;
  round_start_ = now;
}

std::vector<Parameter> Nuwa::parameters() {
  return {
      real("k", 2, 0, 64,
           "segments that the window grows by in a round trip, far below the target; 0: the rule does not move it"),
      real("gain", 0, 0, 16,
           "instead of that rule: window in products of rate and round trip as measured, k segments more; 0: off"),
      real("target_ms", 75, 0.5, 2000, "one-way queueing delay to keep, ms: interactive 25, video 75, bulk 150"),
      real("rho_ms", kAutomatic, 0.01, 10'000,
           "distance from the target that counts as far, ms; a quarter of the target"),
      real("decrease", 0.25, 0, 1,
           "share of the window that a round trip far above the target takes; 0: as much as k adds"),
      real("keep", 0.85, 0.1, 1, "share of the window that is left after a round trip with losses"),
      real("base_window_s", 10, 1, 1000, "for so long the least one-way delay is that of an empty queue, s"),
      real("state_noise_ms2", 0.1, 1e-6, 1000,
           "variance by which the queueing delay moves from packet to packet at least, ms^2"),
      real("state_noise_gaps", 2, 0, 100,
           "deviation by which it moves, in mean times between packets; 0: the variance alone"),
      real("drain_interval_s", 5, 0, 1000,
           "the queue is emptied when its least delay was not seen for so long, s; 0: never"),
      real("drain_tolerance_ms", 2, 0, 1000, "delays above the least that still count as it, ms"),
      real("drain_hold_ms", 200, 0, 10'000, "an emptied queue is listened to for so long, ms, and for a round trip"),
      real("drain_keep", 0.7, 0.1, 1, "share of the window that is restored after a drain"),
      real("spike", 1.25, 1, 1000, "multiples of the target at which the queue is emptied as well"),
      real("start_share", 0.5, 0.01, 1000, "multiples of the target at which slow start ends"),
  };
}

namespace {
const Entry<ReceiverControlRecord> entry{{
    .name = "nuwa",
    .meaning = "steers the one-way queueing delay to a target",
    .make = make_receiver<Nuwa>,
    .parameters = Nuwa::parameters(),
}};
}  // namespace

}  // namespace netbuf
