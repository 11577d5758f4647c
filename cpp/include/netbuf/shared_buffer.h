// A switch: ports with priority queues that share one buffer. Who may store a packet is decided by the admission
// scheme, who sends next by each port's scheduler.
//
// Admission: a packet of queue q is stored if the queue is shorter than its threshold T_q and the buffer has room.
//   static   T_q fixed
//   dynamic  T_q = alpha_q (B - Q)                                  Dynamic Thresholds (Choudhury and Hahne, 1998)
//   abm      T_q = alpha_q / n_q (B - Q) mu_q / b                   ABM (Addanki et al., 2022)
//   agent    T_q = alpha_q beta_q (B - Q)                           RLBM
//            An agent can name other alphas for a while (a cut), after which the first ones stand again.
//
// Where it is not, some packet goes: with drop = "tail" the one that arrives; with "head" the oldest of its queue, as
// many as give up the room that it takes (Lakshman, Neidhardt and Ott, 1996; Linux's pfifo_head_drop), so that a queue
// whose threshold has fallen is not cut, but no longer grows. The one that arrives goes nevertheless if even that does
// not let it in: where the queue has too little to give up and is closed or the buffer is full. What has left a queue
// to be sent is never dropped.
//
// Connections' opening packets (SYN, SYN-ACK) may be protected: a full buffer refuses them only,
// and what arrives goes before them.
//
// With congested = "mark" packets of flows that speak ECN do not go where a threshold alone says so:
// they are stored and marked.
//
// Packets of flows that speak ECN that find their queue longer than a threshold are marked
// (as DCTCP wants it, RFC 8257, 3.1).
//
// B: capacity, Q: occupancy, n_q: ports where queue q is backlogged, mu_q / b: share of the port's rate that the queue
// gets, one over the port's backlogged queues; the arriving packet's queue counts as backlogged.
#pragma once
#include <algorithm>
#include <memory>
#include <vector>

#include "netbuf/config.h"
#include "netbuf/queue_discipline.h"

namespace netbuf {

// How long a quantity had each of its values.
class TimeHistogram {
 public:
  void rise(uint32_t value, Time now) {    // to a value that is no lower
    fall(value, now);
    max_ = std::max(max_, value);
  }
  void fall(uint32_t value, Time now) {    // to one that is no higher
    if (value_ >= spent_.size()) [[unlikely]] grow();
    spent_[value_] += now - last_;
    last_ = now;
    value_ = value;
  }
  double mean(Time now) const;
  uint32_t percentile(double p, Time now) const;  // the least value that is not exceeded for a share p of the time
  uint32_t max() const { return max_; }
  size_t memory_bytes() const { return spent_.capacity() * sizeof(Time); }

 private:
  [[gnu::cold, gnu::noinline]] void grow() { spent_.resize(value_ + 1, 0); }

  std::vector<Time> spent_;
  Time last_ = 0;
  uint32_t value_ = 0, max_ = 0;
};

struct QueueCounters {
  uint64_t arrivals = 0, drops = 0, departures = 0;  // arrivals: dropped or not; departures: taken out to be sent
  uint64_t marks = 0;                                // of arrivals (ECN)
  // SYNs that arrived and that were sent, and last segments that were sent.
  uint64_t syns = 0, opened = 0, closed = 0;
  int64_t bytes_out = 0;
  Time sojourn = 0;                                  // summed over departures
};

// What has happened at a switch since a decision interval began. Ratios: FCT over ideal FCT; differences: in seconds.
struct SwitchInterval {
  struct Completed {
    uint64_t flows = 0;
    double ratio_sum = 0, log_ratio_sum = 0, worst_ratio = 0;
  };
  Time start = 0;
  std::vector<QueueCounters> before;     // of each queue, when it began
  std::vector<Completed> completed;      // of each queue
  uint64_t flows = 0;
  double worst_difference = 0, worst_ratio = 0;

  // As it was when a flow last completed.
  Time at = 0;
  double at_free = 0;                    // share of the buffer
  uint64_t at_dropped = 0;
  std::vector<int64_t> at_drained;       // bytes of each queue
};

class SharedBuffer {
 public:
  struct Queue {
    Ring<Queued> items;
    int64_t bytes = 0, deficit = 0;
    QueueCounters counters;
    TimeHistogram packets;
    uint32_t interval_max = 0;       // packets, since the interval began
    int64_t interval_min = 0;        // bytes, likewise

    uint32_t size() const { return items.size(); }
  };

  explicit SharedBuffer(const SwitchConfig& config);

  std::unique_ptr<QueueDiscipline> make_port(uint32_t port, DropSink* sink);
  void set_alpha(uint32_t queue, double alpha) { alphas_[queue] = alpha; }
  void set_cut(Time until, const double* alphas);  // of all queues; NaN: of this one none
  void set_drop_head(bool from_head) { from_head_ = from_head; }
  void set_congested(bool marks) { marks_congestion_ = marks; }
  double alpha(uint32_t queue) const { return alphas_[queue]; }  // but for a cut
  bool drops_head() const { return from_head_; }
  double threshold(uint32_t port, uint32_t queue) const {   // for a packet that would arrive now
    switch (admission_) {
      case Admission::fixed: return static_cast<double>(thresholds_[queue]);
      case Admission::dynamic: return alphas_[queue] * free_room();
      case Admission::agent: return factor(queue) * betas_[queue] * free_room();
      case Admission::abm: break;
    }
    return abm_threshold(port, queue);
  }
  bool agent_controlled() const { return admission_ == Admission::agent; }

  uint32_t ports() const { return ports_; }
  uint32_t queues() const { return queues_count_; }
  int64_t capacity() const { return capacity_; }
  int64_t occupancy() const { return used_; }
  const Queue& queue(uint32_t port, uint32_t queue) const { return queues_[port * queues_count_ + queue]; }
  const TimeHistogram& occupancy_histogram() const { return occupancy_; }
  int64_t occupancy_step() const { return occupancy_step_; }  // of the histogram, in the unit of the capacity
  int64_t occupancy_max() const { return used_max_; }
  QueueCounters totals(uint32_t queue) const;               // over all ports
  uint32_t packets(uint32_t queue) const;                   // stored now, over all ports
  int64_t bytes(uint32_t queue) const;
  void begin_interval(Time now);
  const SwitchInterval& interval() const { return interval_; }
  uint64_t interval_drops() const;
  void note_completion(Time now, uint32_t priority, double fct_s, double ideal_s);
  bool take_change();            // whether the worst ratio of the interval differs from the last one asked about
  uint32_t interval_max(uint32_t queue) const;              // the longest that one port's queue has been, packets
  // The shortest that each port's queue has been, bytes, their sum.
  int64_t interval_min(uint32_t queue) const;
  size_t memory_bytes() const;

 private:
  friend class SharedPort;
  enum class Admission : uint8_t { fixed, dynamic, abm, agent };
  enum class Scheduler : uint8_t { round_robin, drr, strict_priority };

  int64_t size_of(const Queued& item) const { return in_bytes_ ? item.bytes : 1; }
  static bool is_syn(const Queued& item) {
    return !item.is_ack && item.owner < kOneWayOwner && opens(item.packet.kind);
  }
  static bool is_data_of_flow(const Queued& item) {
    return !item.is_ack && item.owner < kOneWayOwner && is_data(item.packet.kind);
  }
  bool protects(const Queued& item) const {
    return protect_syn_ && (item.is_ack ? is_syn_ack(item.ack) : is_syn(item));
  }
  Queue& at(uint32_t port, uint32_t queue) { return queues_[port * queues_count_ + queue]; }
  double factor(uint32_t queue) const { return cut_until_ > 0 && cut_[queue] >= 0 ? cut_[queue] : alphas_[queue]; }
  void end_cut(Time now) {
    if (now >= cut_until_) cut_until_ = 0;
  }
  int64_t length(const Queue& queue) const { return in_bytes_ ? queue.bytes : queue.items.size(); }
  double free_room() const { return static_cast<double>(capacity_ - used_); }
  double abm_threshold(uint32_t port, uint32_t queue) const;
  uint32_t occupancy_bin() const { return static_cast<uint32_t>(occupancy_step_ == 1 ? used_ : used_ / occupancy_step_); }
  void note_arrival(Queue& queue, Time now) {
    const uint32_t packets = queue.items.size();
    queue.packets.rise(packets, now);
    queue.interval_max = std::max(queue.interval_max, packets);
    occupancy_.rise(occupancy_bin(), now);
    used_max_ = std::max(used_max_, used_);
  }
  void note_departure(Queue& queue, Time now) {
    queue.packets.fall(queue.items.size(), now);
    queue.interval_min = std::min(queue.interval_min, queue.bytes);
    occupancy_.fall(occupancy_bin(), now);
  }

  uint32_t ports_, queues_count_;
  int64_t capacity_, used_ = 0, used_max_ = 0, queue_cap_, mark_, occupancy_step_;
  bool in_bytes_, from_head_, protect_syn_, marks_congestion_;
  Admission admission_;
  Scheduler scheduler_;
  std::vector<double> alphas_, betas_, cut_;
  Time cut_until_ = 0;                   // 0: no cut
  std::vector<int64_t> thresholds_, quanta_;
  std::vector<Queue> queues_;            // port by port
  TimeHistogram occupancy_;
  SwitchInterval interval_;
  double last_worst_ratio_ = 0;
};

}  // namespace netbuf
