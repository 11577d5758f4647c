#include "netbuf/udp.h"

#include <cmath>

namespace netbuf {

namespace {

uint32_t counted_bits(const UdpConfig& config, const StackProfile& profile) {
  if (config.on_ns == 0 || profile.datagram_overhead == 0 || config.bytes <= profile.datagram_overhead) return 0;
  return (config.bytes - profile.datagram_overhead) * 8;
}

// Products that should be whole are not in binary fractions; ns-3's fixed-point reciprocals err upwards.
double whole(double bits) { return std::floor(bits + 1e-9); }

}  // namespace

UdpSource::UdpSource(const UdpConfig& config, const StackProfile& profile, uint64_t seed, uint32_t index,
                     Network& network)
    : OneWay(config.path, config.bytes, config.priority, index, network),
      on_(config.on_ns),
      off_(config.off_ns),
      stop_(config.stop_ns > 0 ? config.stop_ns : kNever),
      random_(config.random_on_off),
      gap_(std::max<Time>(1, static_cast<Time>(config.bytes * 8e9 / config.rate_bps + 0.5))),
      counted_bits_(counted_bits(config, profile)),
      bits_per_ns_(config.rate_bps * 1e-9 * counted_bits_ / (config.bytes * 8.0)),
      rng_(seed) {
  begin(config.start_ns);
}

void UdpSource::begin(Time at) {
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

Time UdpSource::sends_at() const {
  if (counted_bits_ == 0) return (static_cast<Time>(counters_.sent) + (on_ > 0)) * gap_ - on_before_;
  return since_ - phase_start_ + static_cast<Time>((counted_bits_ - bits_before_) / bits_per_ns_ + 0.5);
}

void UdpSource::plan() {
  const Time at = sends_at();
  sends_ = on_ == 0 || at < phase_on_;
  due_ = phase_start_ + (sends_ ? at : phase_on_ + phase_off_);
  if (due_ >= stop_) due_ = kNever;
}

void UdpSource::act(Time now) {
  if (!sends_) return begin(now);
  ++counters_.sent;
  since_ = now;
  bits_before_ = 0;
  plan();
  launch(now);
}

void UdpSource::received(Time sent_at, Time now) {
  const Time delay = now - sent_at;
  const double delay_s = seconds(delay);
  ++counters_.received;
  counters_.delay_sum += delay_s;
  counters_.delay_sum2 += delay_s * delay_s;
  counters_.delay_min = std::min(counters_.delay_min, delay);
  counters_.delay_max = std::max(counters_.delay_max, delay);
}

void UdpSource::note_loss(Link::Fate fate) {
  ++(fate == Link::Fate::queue_drop ? counters_.queue_drops : counters_.random_losses);
}

}  // namespace netbuf
