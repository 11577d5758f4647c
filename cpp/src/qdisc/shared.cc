#include "netbuf/shared_buffer.h"

#include <algorithm>
#include <cmath>
#include <limits>

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

double SharedBuffer::threshold(uint32_t port, uint32_t queue) const {
  const auto free = static_cast<double>(capacity_ - used_);
  switch (admission_) {
    case Admission::fixed: return static_cast<double>(thresholds_[queue]);
    case Admission::dynamic: return alphas_[queue] * free;
    case Admission::agent: return factor(queue) * betas_[queue] * free;
    case Admission::abm: break;
  }
  uint32_t backlogged_here = 0, congested_ports = 0;
  for (uint32_t q = 0; q < queues_count_; ++q) backlogged_here += q == queue || !this->queue(port, q).items.empty();
  for (uint32_t p = 0; p < ports_; ++p) congested_ports += p == port || !this->queue(p, queue).items.empty();
  return alphas_[queue] * free / (static_cast<double>(congested_ports) * backlogged_here);
}

void SharedBuffer::note(Queue& queue, Time now) {
  const uint32_t packets = queue.items.size();
  queue.packets.set(packets, now);
  queue.interval_max = std::max(queue.interval_max, packets);
  queue.interval_min = std::min(queue.interval_min, queue.bytes);
  occupancy_.set(static_cast<uint32_t>(occupancy_step_ == 1 ? used_ : used_ / occupancy_step_), now);
  used_max_ = std::max(used_max_, used_);
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

// The queues of one port.
class SharedPort final : public QueueDiscipline {
 public:
  SharedPort(SharedBuffer& buffer, uint32_t port, DropSink* sink) : buffer_(buffer), port_(port), sink_(sink) {}

  void enqueue(Time now, const Queued& item) override {
    SharedBuffer& b = buffer_;
    const uint32_t q = std::min<uint32_t>(item.priority, b.queues_count_ - 1);
    SharedBuffer::Queue& queue = b.at(port_, q);
    const int64_t size = b.size_of(item);
    ++queue.counters.arrivals;
    queue.counters.syns += b.is_syn(item);
    b.end_cut(now);
    const bool admitted = admits(q, size), marks = !admitted && b.marks_congestion_ && item.ecn && fits(queue, size);
    if (!admitted && !marks && !(b.protects(item) && b.used_ + size <= b.capacity_) &&
        !(b.from_head_ && make_room(now, q, size))) {
      ++queue.counters.drops;
      return sink_->dropped(item);
    }
    const bool long_queue = marks || b.length(queue) > b.mark_;
    queue.items.push(item);
    if (long_queue && mark(queue.items.back(), *sink_)) ++queue.counters.marks;
    queue.bytes += item.bytes;
    b.used_ += size;
    ++packets_;
    bytes_ += item.bytes;
    b.note(queue, now);
  }

  bool dequeue(Time now, Queued& item) override {
    if (packets_ == 0) return false;
    SharedBuffer& b = buffer_;
    SharedBuffer::Queue& queue = b.at(port_, next_queue());
    item = queue.items.front();
    take_out(queue);
    if (b.scheduler_ == SharedBuffer::Scheduler::drr) {
      queue.deficit = queue.items.empty() ? 0 : queue.deficit - item.bytes;
    }
    ++queue.counters.departures;
    queue.counters.opened += b.is_syn(item);
    queue.counters.closed += b.is_data_of_flow(item) && item.packet.fin;
    queue.counters.bytes_out += item.bytes;
    queue.counters.sojourn += now - item.arrived;
    b.note(queue, now);
    return true;
  }

  uint32_t packets() const override { return packets_; }
  int64_t bytes() const override { return bytes_; }
  size_t memory_bytes() const override { return sizeof *this; }  // the queues are the buffer's

 private:
  uint32_t after(uint32_t q) const { return q + 1 < buffer_.queues_count_ ? q + 1 : 0; }

  bool fits(const SharedBuffer::Queue& queue, int64_t size) const {  // whatever the threshold
    return buffer_.used_ + size <= buffer_.capacity_ && buffer_.length(queue) + size <= buffer_.queue_cap_;
  }

  bool admits(uint32_t q, int64_t size) const {
    const SharedBuffer::Queue& queue = buffer_.queue(port_, q);
    return fits(queue, size) && static_cast<double>(buffer_.length(queue)) < buffer_.threshold(port_, q);
  }

  void take_out(SharedBuffer::Queue& queue) {
    const Queued& head = queue.items.front();
    queue.bytes -= head.bytes;
    buffer_.used_ -= buffer_.size_of(head);
    --packets_;
    bytes_ -= head.bytes;
    queue.items.pop();
  }

  // For a packet that is not admitted, by dropping from the head of its queue.
  // Whether there is room is known before the first goes.
  bool make_room(Time now, uint32_t q, int64_t size) {
    SharedBuffer& b = buffer_;
    SharedBuffer::Queue& queue = b.at(port_, q);
    int64_t given_up = 0;
    uint32_t end = queue.items.head();
    for (; end != queue.items.tail() && given_up < size; ++end) {
      if (b.protects(queue.items[end])) return false;
      given_up += b.size_of(queue.items[end]);
    }
    if (given_up < size &&
        (size > b.queue_cap_ || b.used_ - given_up + size > b.capacity_ || !(b.threshold(port_, q) > 0))) {
      return false;
    }
    do {
      const Queued oldest = queue.items.front();
      take_out(queue);
      ++queue.counters.drops;
      b.note(queue, now);
      sink_->dropped(oldest);
    } while (queue.items.head() != end && !admits(q, size));
    return true;
  }

  // Some queue is backlogged.
  uint32_t next_queue() {
    SharedBuffer& b = buffer_;
    uint32_t q = b.scheduler_ == SharedBuffer::Scheduler::strict_priority ? 0 : turn_;
    if (b.scheduler_ == SharedBuffer::Scheduler::drr) {
      // Shreedhar and Varghese (1995): a queue whose turn begins is given its quantum,
      // and sends while its deficit lasts.
      for (;; q = after(q), granted_ = false) {
        SharedBuffer::Queue& queue = b.at(port_, q);
        if (queue.items.empty()) continue;
        if (!granted_) queue.deficit += b.quanta_[q];
        granted_ = true;
        if (queue.deficit >= queue.items.front().bytes) break;
      }
      turn_ = q;
      return q;
    }
    while (b.at(port_, q).items.empty()) q = after(q);
    turn_ = after(q);
    return q;
  }

  SharedBuffer& buffer_;
  uint32_t port_, packets_ = 0, turn_ = 0;
  bool granted_ = false;
  int64_t bytes_ = 0;
  DropSink* sink_;
};

std::unique_ptr<QueueDiscipline> SharedBuffer::make_port(uint32_t port, DropSink* sink) {
  return std::make_unique<SharedPort>(*this, port, sink);
}

}  // namespace netbuf
