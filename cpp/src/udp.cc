#include "netbuf/udp.h"

#include <cmath>
#include <optional>

#include "netbuf/law.h"

namespace netbuf {

namespace {

uint32_t counted_bits(const UdpConfig& config, const StackProfile& profile) {
  if (config.on_ns == 0 || profile.datagram_overhead == 0 || config.bytes <= profile.datagram_overhead) return 0;
  return (config.bytes - profile.datagram_overhead) * 8;
}

// Products that should be whole are not in binary fractions; ns-3's fixed-point reciprocals err upwards.
double whole(double bits) { return std::floor(bits + 1e-9); }

// The gap between packets is bytes / rate, to the nearest nanosecond, as ns-3's UdpClient and OnOffApplication have it.
// A source that is always on sends its first packet when it starts; one with periods sends a packet when it has been on
// for as long as its bits take, and what is left of an on period that ends before that counts in the next one; with
// ns-3's profile the bits of payload that it was long enough for, whole ones, as OnOffApplication does.
class SteadySource final : public UdpSource {
 public:
  SteadySource(const UdpConfig& config, const StackProfile& profile, uint64_t seed, uint32_t index, Network& network)
      : UdpSource(config, index, network),
        bytes_(config.bytes),
        on_(config.on_ns),
        off_(config.off_ns),
        random_(config.random_on_off),
        gap_(std::max<Time>(1, static_cast<Time>(config.bytes * 8e9 / config.rate_bps + 0.5))),
        counted_bits_(counted_bits(config, profile)),
        bits_per_ns_(config.rate_bps * 1e-9 * counted_bits_ / (config.bytes * 8.0)),
        rng_(seed) {
    begin(config.start_ns);
  }

 private:
  void act(Time now) override {
    if (!sends_) return begin(now);
    ++counters_.sent;
    since_ = now;
    bits_before_ = 0;
    plan();
    send(now, bytes_);
  }

  void begin(Time at) {                      // an on period
    const auto length = [this](Time mean) {
      return random_ ? std::max<Time>(1, static_cast<Time>(rng_.exponential(static_cast<double>(mean)))) : mean;
    };
    bits_before_ += whole(static_cast<double>(phase_start_ + phase_on_ - since_) * bits_per_ns_);
    on_before_ += phase_on_;
    phase_start_ = since_ = at;
    if (on_ > 0) {
      phase_on_ = length(on_);
      phase_off_ = length(off_);
    }
    plan();
  }

  Time sends_at() const {                    // after the start of the on period
    if (counted_bits_ == 0) return (static_cast<Time>(counters_.sent) + (on_ > 0)) * gap_ - on_before_;
    return since_ - phase_start_ + static_cast<Time>((counted_bits_ - bits_before_) / bits_per_ns_ + 0.5);
  }

  void plan() {
    const Time at = sends_at();
    sends_ = on_ == 0 || at < phase_on_;
    set_due(phase_start_ + (sends_ ? at : phase_on_ + phase_off_));
  }

  const uint32_t bytes_;
  const Time on_, off_;
  const bool random_;
  const Time gap_;
  const uint32_t counted_bits_;              // of payload, in a packet; 0: time is counted
  const double bits_per_ns_;                 // of payload
  Rng rng_;
  Time phase_start_ = 0, phase_on_ = 0, phase_off_ = 0;  // the on period, and the rest after it
  Time on_before_ = 0;                       // time spent on before it
  Time since_ = 0;                           // the last packet or, if later, the start of the on period
  double bits_before_ = 0;                   // of the next packet, from on periods before it
  bool sends_ = false;                       // when it is due; otherwise an on period begins
};

// Sizes are drawn, gaps are exponential, or periods follow a law. The mean gap is the mean size over the rate, whatever the
// size of the packet before. Time on counts across rests, as above. Periods of a law are found running, on with
// the share of time that they take (an alternating renewal process in equilibrium), so that many together do not start at once.
class RandomSource final : public UdpSource {
 public:
  RandomSource(const UdpConfig& config, uint64_t seed, uint32_t index, Network& network)
      : UdpSource(config, index, network),
        poisson_(config.poisson),
        bytes_(config.bytes),
        on_(config.on_ns),
        off_(config.off_ns),
        random_(config.random_on_off),
        rng_(seed) {
    if (!config.sizes.empty()) sizes_.emplace(config.sizes.front());
    for (const LawConfig& law : config.periods) periods_.emplace_back(law);
    gap_ns_ = (sizes_ ? sizes_->mean() : bytes_) * 8e9 / config.rate_bps;
    const bool restless = on_ == 0 && periods_.empty();
    left_ = restless && !poisson_ ? 0 : gap();
    periods_.empty() ? turn_on(config.start_ns) : find_running(config.start_ns);
  }

 private:
  void find_running(Time at) {
    const double on_s = periods_[0].mean(), share = on_s / (on_s + periods_[1].mean());
    if (rng_.uniform() < share) return turn_on(at, periods_[0].draw_rest_time(rng_));
    set_due(at + periods_[1].draw_rest_time(rng_));
  }
  // Fractions of a nanosecond are kept from one to the next.
  double gap() { return std::max(1.0, poisson_ ? rng_.exponential(gap_ns_) : gap_ns_); }
  Time period(size_t which, Time mean) {
    if (!periods_.empty()) return periods_[which].draw_time(rng_);
    return random_ ? std::max<Time>(1, static_cast<Time>(rng_.exponential(static_cast<double>(mean)))) : mean;
  }
  void turn_on(Time at) {
    if (on_ == 0 && periods_.empty()) return turn_on(at, kNever);
    turn_on(at, period(0, on_));
  }
  void turn_on(Time at, Time length) {
    begun_ = at;
    passed_ = 0;
    on_length_ = static_cast<double>(length);
    if (length < kNever) rests_ = period(1, off_);
    plan();
  }
  void plan() {                              // left_: of time on, until the next packet
    sends_ = passed_ + left_ < on_length_;
    if (sends_) return set_due(begun_ + static_cast<Time>(passed_ + left_));
    left_ -= on_length_ - passed_;
    const double rested = on_length_ + static_cast<double>(rests_);
    set_due(rested < static_cast<double>(kNever) ? begun_ + static_cast<Time>(rested) : kNever);
  }
  void act(Time now) override {
    if (!sends_) return turn_on(now);
    passed_ += left_;
    left_ = gap();
    if (on_length_ >= static_cast<double>(kNever)) begun_ = now, passed_ -= std::floor(passed_);
    ++counters_.sent;
    plan();
    send(now, sizes_ ? static_cast<uint32_t>(std::min<int64_t>(sizes_->draw_bytes(rng_), bytes_)) : bytes_);
  }

  const bool poisson_;
  const uint32_t bytes_;                     // most, where they are drawn
  const Time on_, off_;
  const bool random_;
  std::optional<Law> sizes_;
  std::vector<Law> periods_;                 // on and off, or none
  double gap_ns_;                            // mean
  Rng rng_;
  Time begun_ = 0, rests_ = 0;               // the on period, and the rest after it
  double on_length_ = 0, passed_ = 0, left_ = 0;  // of the on period; of it up to the last packet; from there to the next
  bool sends_ = false;                       // when it is due; otherwise an on period begins
};

class Replay final : public UdpSource {
 public:
  Replay(const UdpConfig& config, uint32_t index, Network& network)
      : UdpSource(config, index, network),
        times_(config.replay_ns),
        bytes_(config.replay_bytes),
        period_(config.replay_period_ns),
        round_(config.start_ns) {
    set_due(round_ + times_.front());
  }

 private:
  void act(Time now) override {
    const uint32_t bytes = bytes_[position_];
    ++counters_.sent;
    if (++position_ == times_.size() && period_ > 0) position_ = 0, round_ += period_;
    set_due(position_ < times_.size() ? round_ + times_[position_] : kNever);
    send(now, bytes);
  }

  const std::vector<Time> times_;
  const std::vector<uint32_t> bytes_;
  const Time period_;
  Time round_;                               // when it began
  size_t position_ = 0;                      // the next packet
};

}  // namespace

std::unique_ptr<UdpSource> make_udp_source(const UdpConfig& config, const StackProfile& profile, uint64_t seed,
                                           uint32_t index, Network& network) {
  if (!config.replay_ns.empty()) return std::make_unique<Replay>(config, index, network);
  if (config.poisson || !config.sizes.empty() || !config.periods.empty()) {
    return std::make_unique<RandomSource>(config, seed, index, network);
  }
  return std::make_unique<SteadySource>(config, profile, seed, index, network);
}

void UdpSource::received(Time sent_at, Time now, uint32_t bytes) {
  const Time delay = now - sent_at;
  const double delay_s = seconds(delay);
  ++counters_.received;
  counters_.received_bytes += bytes;
  counters_.delay_sum += delay_s;
  counters_.delay_sum2 += delay_s * delay_s;
  counters_.delay_min = std::min(counters_.delay_min, delay);
  counters_.delay_max = std::max(counters_.delay_max, delay);
}

void UdpSource::note_loss(Link::Fate fate) {
  ++(fate == Link::Fate::queue_drop ? counters_.queue_drops : counters_.random_losses);
}

}  // namespace netbuf
