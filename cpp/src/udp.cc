#include "netbuf/udp.h"

namespace netbuf {

UdpSource::UdpSource(const UdpConfig& config, uint64_t seed, uint32_t index, Network& network)
    : OneWay(config.path, config.bytes, config.priority, index, network),
      on_(config.on_ns),
      off_(config.off_ns),
      stop_(config.stop_ns > 0 ? config.stop_ns : kNever),
      random_(config.random_on_off),
      gap_(std::max<Time>(1, static_cast<Time>(config.bytes * 8e9 / config.rate_bps + 0.5))),
      rng_(seed) {
  begin(config.start_ns);
}

void UdpSource::begin(Time at) {
  const auto length = [this](Time mean) {
    return random_ ? std::max<Time>(1, static_cast<Time>(rng_.exponential(static_cast<double>(mean)))) : mean;
  };
  on_before_ += phase_on_;
  phase_start_ = at;
  if (on_ > 0) {
    phase_on_ = length(on_);
    phase_off_ = length(off_);
  }
  plan();
}

void UdpSource::plan() {
  const Time sends_at = (static_cast<Time>(counters_.sent) + (on_ > 0)) * gap_ - on_before_;
  sends_ = on_ == 0 || sends_at < phase_on_;
  due_ = phase_start_ + (sends_ ? sends_at : phase_on_ + phase_off_);
  if (due_ >= stop_) due_ = kNever;
}

void UdpSource::act(Time now) {
  if (!sends_) return begin(now);
  ++counters_.sent;
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

void UdpSource::note_loss(Link::Fate fate) { ++(fate == Link::Fate::queue_drop ? counters_.queue_drops : counters_.random_losses); }

}  // namespace netbuf
