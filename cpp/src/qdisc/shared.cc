#include "netbuf/shared_buffer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "qdisc/flow_port.h"

namespace netbuf {

namespace {
constexpr int64_t kHistogramBins = 2000;  // of the occupancy, when it is counted in bytes
constexpr int64_t kQuantum = 1500;        // of a queue by deficit round robin, where nobody says
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
      scales_(admission_ == Admission::agent || admission_ == Admission::dynamic),
      scheduler_(config.scheduler == "drr"               ? Scheduler::drr
                 : config.scheduler == "strict_priority" ? Scheduler::strict_priority
                                                         : Scheduler::round_robin),
      spares_small_(config.victims == "large"),
      turns_of_slots_(config.flow_service == "drr"),
      flow_slots_(config.flow_slots),
      flow_quantum_(config.flow_quantum),
      priorities_(queues_count_),
      queues_(size_t{ports_} * queues_count_) {
  for (size_t q = 0; q < queues_count_; ++q) {
    Priority& priority = priorities_[q];
    if (q < config.alphas.size()) priority.alpha = config.alphas[q];
    if (q < config.betas.size()) priority.beta = config.betas[q];
    if (q < config.thresholds.size()) priority.threshold = config.thresholds[q];
    priority.quantum = q < config.quanta.size() ? config.quanta[q] : kQuantum;
    set_scale(priority);
  }
  if (flow_slots_ == 0) return;
  for (size_t i = 0; i < queues_.size(); ++i) {
    tables_.push_back(std::make_unique<FlowTable>(flow_slots_, turns_of_slots_, flow_quantum_));
  }
}

SharedBuffer::~SharedBuffer() = default;

void SharedBuffer::set_scheduler(Scheduler scheduler, std::span<const double> quanta) {
  bool same = scheduler == scheduler_;
  scheduler_ = scheduler;
  for (size_t q = 0; q < std::min<size_t>(queues_count_, quanta.size()); ++q) {
    if (std::isnan(quanta[q])) continue;  // nobody names it: the queue's stays
    const auto quantum = static_cast<int64_t>(quanta[q]);
    same &= quantum == std::exchange(priorities_[q].quantum, quantum);
  }
  if (same) return;
  for (Queue& queue : queues_) {
    queue.deficit = 0;
    queue.granted = false;
  }
}

double SharedBuffer::share(uint32_t queue) const {
  if (scheduler_ == Scheduler::strict_priority) return queue == 0 ? 1 : 0;
  if (scheduler_ == Scheduler::round_robin) return 1.0 / queues_count_;
  int64_t all = 0;
  for (const Priority& priority : priorities_) all += priority.quantum;
  return static_cast<double>(priorities_[queue].quantum) / static_cast<double>(all);
}

uint32_t SharedBuffer::slots_used(uint32_t queue) const {
  uint32_t used = 0;
  for (size_t i = queue; i < tables_.size(); i += queues_count_) used += tables_[i]->used();
  return used;
}

int64_t SharedBuffer::largest_slot(uint32_t queue) const {
  int64_t largest = 0;
  for (size_t i = queue; i < tables_.size(); i += queues_count_) largest = std::max(largest, tables_[i]->largest());
  return largest;
}

double SharedBuffer::other_threshold(uint32_t port, uint32_t queue) const {
  if (admission_ == Admission::fixed) return static_cast<double>(priorities_[queue].threshold);
  uint32_t backlogged_here = 0, congested_ports = 0;
  for (uint32_t q = 0; q < queues_count_; ++q) backlogged_here += q == queue || this->queue(port, q).state.packets > 0;
  for (uint32_t p = 0; p < ports_; ++p) congested_ports += p == port || this->queue(p, queue).state.packets > 0;
  return priorities_[queue].alpha * free_room() / (static_cast<double>(congested_ports) * backlogged_here);
}

QueueState SharedBuffer::sum_up(uint32_t queue) const {
  QueueState sum = this->queue(0, queue).state;
  for (uint32_t p = 1; p < ports_; ++p) {
    const QueueState& other = this->queue(p, queue).state;
    const QueueCounters& c = other.counters;
    sum.counters.arrivals += c.arrivals;
    sum.counters.drops += c.drops;
    sum.counters.marks += c.marks;
    sum.counters.syns += c.syns;
    sum.counters.opened += c.opened;
    sum.counters.closed += c.closed;
    sum.counters.departures += c.departures;
    sum.counters.bytes_out += c.bytes_out;
    sum.counters.sojourn += c.sojourn;
    sum.packets += other.packets;
    sum.bytes += other.bytes;
    sum.interval_max = std::max(sum.interval_max, other.interval_max);
    sum.interval_min += other.interval_min;
  }
  return sum;
}

void SharedBuffer::begin_interval(Time now) {
  for (Queue& queue : queues_) {
    QueueState& state = queue.state;
    state.interval_max = state.packets;
    state.interval_min = state.bytes;
  }
  for (uint32_t q = 0; q < queues_count_; ++q) {
    PriorityInterval& interval = priorities_[q].interval;
    if (interval_.flows > 0) interval = {};
    QueueState sum;
    interval.before = state(q, sum).counters;
  }
  interval_.start = now;
  interval_.flows = 0;
  interval_.worst_difference = -std::numeric_limits<double>::infinity();
  interval_.worst_ratio = 0;
  observed_ = true;
}

void SharedBuffer::note_completion(Time now, uint32_t priority, double fct_s, double ideal_s) {
  if (!observed_) return;
  const double ratio = fct_s / ideal_s;
  PriorityInterval& own = priorities_[std::min(priority, queues_count_ - 1)].interval;
  ++own.flows;
  own.ratio_sum += ratio;
  own.log_ratio_sum += std::log(ratio);
  own.worst_ratio = std::max(own.worst_ratio, ratio);
  ++interval_.flows;
  interval_.worst_difference = std::max(interval_.worst_difference, fct_s - ideal_s);
  interval_.worst_ratio = std::max(interval_.worst_ratio, ratio);
  interval_.at = now;
  interval_.at_free = free_room() / static_cast<double>(capacity_);
  interval_.at_dropped = 0;
  for (uint32_t q = 0; q < queues_count_; ++q) {
    PriorityInterval& interval = priorities_[q].interval;
    QueueState sum;
    const QueueCounters& total = state(q, sum).counters;
    interval_.at_dropped += total.drops - interval.before.drops;
    interval.at_drained = total.bytes_out - interval.before.bytes_out;
  }
}

bool SharedBuffer::take_change() {
  if (interval_.flows == 0 || interval_.worst_ratio == last_worst_ratio_) return false;
  last_worst_ratio_ = interval_.worst_ratio;
  return true;
}

void SharedBuffer::set_cut(Time until, const double* alphas) {
  for (uint32_t q = 0; q < queues_count_; ++q) priorities_[q].cut = std::isnan(alphas[q]) ? -1 : alphas[q];
  cut_until_ = until;
  set_scales();
}

size_t SharedBuffer::memory_bytes() const {
  size_t bytes = sizeof *this + priorities_.capacity() * sizeof(Priority) + queues_.capacity() * sizeof(Queue) + occupancy_.memory_bytes();
  for (const Queue& queue : queues_) bytes += queue.items.memory_bytes() + queue.packets.memory_bytes();
  for (const auto& table : tables_) bytes += table->memory_bytes();
  return bytes;
}

std::unique_ptr<QueueDiscipline> SharedBuffer::make_port(uint32_t port, DropSink* sink) {
  if (flow_slots_ > 0) return std::make_unique<FlowPort>(*this, port, sink);
  return std::make_unique<SharedPort>(*this, port, sink);
}

}  // namespace netbuf
