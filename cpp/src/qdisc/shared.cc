#include "netbuf/shared_buffer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "qdisc/shared_port.h"

namespace netbuf {

namespace {
constexpr int64_t kHistogramBins = 2000;  // of the occupancy, when it is counted in bytes
}

double TimeHistogram::mean(Time now) const {
  double sum = static_cast<double>(value_) * static_cast<double>(now - last_);
  for (size_t i = 0; i < spent_.size(); ++i) sum += static_cast<double>(i) * static_cast<double>(spent_[i]);
  return now > 0 ? sum / static_cast<double>(now) : 0;
}

uint32_t TimeHistogram::percentile(double p, Time now) const {
  const double enough = p * static_cast<double>(now);
  double spent = 0;
  const size_t values = std::max<size_t>(spent_.size(), value_ + size_t{1});
  for (size_t i = 0; i < values; ++i) {
    if (i < spent_.size()) spent += static_cast<double>(spent_[i]);
    if (i == value_) spent += static_cast<double>(now - last_);
    if (spent >= enough) return static_cast<uint32_t>(i);
  }
  return max_;
}

SharedBuffer::SharedBuffer(const SwitchConfig& config)
    : ports_(static_cast<uint32_t>(config.ports.size())),
      queues_count_(config.queues),
      capacity_(config.capacity),
      queue_cap_(config.queue_cap > 0 ? config.queue_cap : INT64_MAX),
      mark_(config.mark > 0 ? config.mark : INT64_MAX),
      occupancy_step_(config.in_bytes ? std::max<int64_t>(1, config.capacity / kHistogramBins) : 1),
      in_bytes_(config.in_bytes),
      from_head_(config.drop == "head"),
      protect_syn_(config.protect_syn),
      marks_congestion_(config.congested == "mark"),
      admission_(config.admission == "static" ? Admission::fixed
                 : config.admission == "abm"  ? Admission::abm
                 : config.admission == "agent" ? Admission::agent
                                               : Admission::dynamic),
      scheduler_(config.scheduler == "drr"               ? Scheduler::drr
                 : config.scheduler == "strict_priority" ? Scheduler::strict_priority
                                                         : Scheduler::round_robin),
      alphas_(config.alphas),
      betas_(config.betas),
      thresholds_(config.thresholds),
      quanta_(config.quanta),
      queues_(size_t{ports_} * queues_count_) {
  alphas_.resize(queues_count_, 1);
  cut_.resize(queues_count_, -1);
  betas_.resize(queues_count_, 1);
}

double SharedBuffer::abm_threshold(uint32_t port, uint32_t queue) const {
  uint32_t backlogged_here = 0, congested_ports = 0;
  for (uint32_t q = 0; q < queues_count_; ++q) backlogged_here += q == queue || !this->queue(port, q).items.empty();
  for (uint32_t p = 0; p < ports_; ++p) congested_ports += p == port || !this->queue(p, queue).items.empty();
  return alphas_[queue] * free_room() / (static_cast<double>(congested_ports) * backlogged_here);
}

QueueCounters SharedBuffer::totals(uint32_t queue) const {
  QueueCounters sum = this->queue(0, queue).counters;
  for (uint32_t p = 1; p < ports_; ++p) {
    const QueueCounters& c = this->queue(p, queue).counters;
    sum.arrivals += c.arrivals;
    sum.drops += c.drops;
    sum.marks += c.marks;
    sum.syns += c.syns;
    sum.opened += c.opened;
    sum.closed += c.closed;
    sum.departures += c.departures;
    sum.bytes_out += c.bytes_out;
    sum.sojourn += c.sojourn;
  }
  return sum;
}

uint32_t SharedBuffer::packets(uint32_t queue) const {
  uint32_t sum = 0;
  for (uint32_t p = 0; p < ports_; ++p) sum += this->queue(p, queue).size();
  return sum;
}

int64_t SharedBuffer::bytes(uint32_t queue) const {
  int64_t sum = 0;
  for (uint32_t p = 0; p < ports_; ++p) sum += this->queue(p, queue).bytes;
  return sum;
}

void SharedBuffer::begin_interval(Time now) {
  for (Queue& queue : queues_) queue.interval_max = queue.items.size(), queue.interval_min = queue.bytes;
  if (interval_.before.empty()) [[unlikely]] {
    interval_.before.resize(queues_count_);
    interval_.completed.resize(queues_count_);
    interval_.at_drained.resize(queues_count_);
  } else if (interval_.flows > 0) {
    std::fill(interval_.completed.begin(), interval_.completed.end(), SwitchInterval::Completed{});
  }
  interval_.start = now;
  for (uint32_t q = 0; q < queues_count_; ++q) interval_.before[q] = totals(q);
  interval_.flows = 0;
  interval_.worst_difference = -std::numeric_limits<double>::infinity();
  interval_.worst_ratio = 0;
}

uint64_t SharedBuffer::interval_drops() const {
  uint64_t drops = 0;
  for (uint32_t q = 0; q < queues_count_; ++q) {
    for (uint32_t p = 0; p < ports_; ++p) drops += queue(p, q).counters.drops;
    drops -= interval_.before[q].drops;
  }
  return drops;
}

void SharedBuffer::note_completion(Time now, uint32_t priority, double fct_s, double ideal_s) {
  if (interval_.before.empty()) return;  // nobody asks
  const double ratio = fct_s / ideal_s;
  SwitchInterval::Completed& queue = interval_.completed[std::min(priority, queues_count_ - 1)];
  ++queue.flows;
  queue.ratio_sum += ratio;
  queue.log_ratio_sum += std::log(ratio);
  queue.worst_ratio = std::max(queue.worst_ratio, ratio);
  ++interval_.flows;
  interval_.worst_difference = std::max(interval_.worst_difference, fct_s - ideal_s);
  interval_.worst_ratio = std::max(interval_.worst_ratio, ratio);
  interval_.at = now;
  interval_.at_free = static_cast<double>(capacity_ - used_) / static_cast<double>(capacity_);
  interval_.at_dropped = interval_drops();
  for (uint32_t q = 0; q < queues_count_; ++q) {
    interval_.at_drained[q] = totals(q).bytes_out - interval_.before[q].bytes_out;
  }
}

bool SharedBuffer::take_change() {
  if (interval_.flows == 0 || interval_.worst_ratio == last_worst_ratio_) return false;
  last_worst_ratio_ = interval_.worst_ratio;
  return true;
}

uint32_t SharedBuffer::interval_max(uint32_t queue) const {
  uint32_t longest = 0;
  for (uint32_t p = 0; p < ports_; ++p) longest = std::max(longest, this->queue(p, queue).interval_max);
  return longest;
}

int64_t SharedBuffer::interval_min(uint32_t queue) const {
  int64_t sum = 0;
  for (uint32_t p = 0; p < ports_; ++p) sum += this->queue(p, queue).interval_min;
  return sum;
}

void SharedBuffer::set_cut(Time until, const double* alphas) {
  for (uint32_t q = 0; q < queues_count_; ++q) cut_[q] = std::isnan(alphas[q]) ? -1 : alphas[q];
  cut_until_ = until;
}

size_t SharedBuffer::memory_bytes() const {
  size_t bytes = sizeof *this + queues_.capacity() * sizeof(Queue) + occupancy_.memory_bytes();
  for (const Queue& queue : queues_) bytes += queue.items.memory_bytes() + queue.packets.memory_bytes();
  return bytes;
}

std::unique_ptr<QueueDiscipline> SharedBuffer::make_port(uint32_t port, DropSink* sink) {
  return std::make_unique<SharedPort>(*this, port, sink);
}

}  // namespace netbuf
