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
// A switch may have a table of flows for each queue of each port, a bounded number of slots that flows are hashed to, as
// AFQ and FQ-CoDel have it (Sharma et al., NSDI 2018; RFC 8290). It knows what each slot has waiting. With victims =
// "large" a queue at its threshold drops, or marks, packets only of slots that have an equal share of it or more
// (approximate fair dropping, Pan et al., 2003): what arrives for others is stored while the buffer has room, and with
// drop = "head" the oldest of the largest slot goes. A queue is sent first in, first out, or slot by slot by deficit
// round robin.
//
// Ports' schedulers may change while packets wait: deficits begin anew.
//
// B: capacity, Q: occupancy, n_q: ports where queue q is backlogged, mu_q / b: share of the port's rate that the queue
// gets, one over the port's backlogged queues; the arriving packet's queue counts as backlogged.
#pragma once
#include <algorithm>
#include <memory>
#include <span>
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
  const Time* current() const { return spent_.data() + value_; }  // how long it had its present value, for prefetching

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
  Time start = 0;
  uint64_t flows = 0;                    // completed
  double worst_difference = 0, worst_ratio = 0;

  // As it was when a flow last completed.
  Time at = 0;
  double at_free = 0;                    // share of the buffer
  uint64_t at_dropped = 0;
};

// And to the queues of one priority.
struct PriorityInterval {
  QueueCounters before;                  // when it began
  uint64_t flows = 0;
  double ratio_sum = 0, log_ratio_sum = 0, worst_ratio = 0;
  int64_t at_drained = 0;                // bytes, when a flow of any priority last completed
};

// A queue, or those of one priority at all ports.
struct QueueState {
  QueueCounters counters;
  int64_t bytes = 0, interval_min = 0;   // interval_min: the fewest since the interval began, of several ports their sum
  uint32_t packets = 0, interval_max = 0;  // interval_max: the most since then, of several ports the highest
};

class FlowTable;                 // see qdisc/flow_table.h

class SharedBuffer {
 public:
  enum class Scheduler : uint8_t { round_robin, drr, strict_priority };
  struct Queue {
    QueueState state;
    Ring<Queued> items;          // unused where there is a table of flows
    int64_t deficit = 0;
    bool granted = false;        // drr: has its turn, and got its quantum
    TimeHistogram packets;
  };

  explicit SharedBuffer(const SwitchConfig& config);
  ~SharedBuffer();

  std::unique_ptr<QueueDiscipline> make_port(uint32_t port, DropSink* sink);
  void set_alpha(uint32_t queue, double alpha) {
    priorities_[queue].alpha = alpha;
    set_scale(priorities_[queue]);
  }
  void set_cut(Time until, const double* alphas);  // of all queues; NaN: of this one none
  void set_drop_head(bool from_head) { from_head_ = from_head; }
  void set_congested(bool marks) { marks_congestion_ = marks; }
  void set_scheduler(Scheduler scheduler, std::span<const double> quanta = {});  // quanta: drr only, bytes; NaN: as it is
  void set_victims(bool large) { spares_small_ = large && flow_slots_ > 0; }
  double alpha(uint32_t queue) const { return priorities_[queue].alpha; }  // but for a cut
  bool drops_head() const { return from_head_; }
  double share(uint32_t queue) const;   // of a port that the queue is sent, where all are backlogged
  uint32_t flow_slots() const { return flow_slots_; }
  uint32_t slots_used(uint32_t queue) const;      // over all ports, likewise below; 0 without a table
  int64_t largest_slot(uint32_t queue) const;     // bytes
  double threshold(uint32_t port, uint32_t queue) const {   // for a packet that would arrive now
    if (scales_) [[likely]] return priorities_[queue].scale * free_room();
    return other_threshold(port, queue);
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
  // Over all ports.
  QueueState state(uint32_t queue) const {
    QueueState sum;
    return state(queue, sum);
  }
  const QueueState& state(uint32_t queue, QueueState& sum) const {  // sum: room for it, where there are several
    return ports_ == 1 ? queues_[queue].state : sum = sum_up(queue);
  }
  QueueCounters totals(uint32_t queue) const { return state(queue).counters; }
  uint32_t packets(uint32_t queue) const { return state(queue).packets; }
  int64_t bytes(uint32_t queue) const { return state(queue).bytes; }
  void begin_interval(Time now);
  const SwitchInterval& interval() const { return interval_; }
  const PriorityInterval& interval(uint32_t queue) const { return priorities_[queue].interval; }
  void note_completion(Time now, uint32_t priority, double fct_s, double ideal_s);
  bool take_change();            // whether the worst ratio of the interval differs from the last one asked about
  size_t memory_bytes() const;
  template <class Hot>
  void add_to(Hot& hot) const {
    hot.add(this, sizeof *this);
    hot.add(priorities_.data(), priorities_.size() * sizeof(Priority));
    hot.add(queues_.data(), queues_.size() * sizeof(Queue));
  }
  template <class Hot>
  void add_next_to(Hot& hot) const {
    hot.add(occupancy_.current(), 64);
    for (const Queue& queue : queues_) {
      if (queue.items.empty()) continue;
      hot.add(&queue.items.front(), 128);
      hot.add(queue.packets.current(), 64);
    }
  }

 private:
  friend class SwitchPort;
  friend class SharedPort;
  friend class FlowPort;
  enum class Admission : uint8_t { fixed, dynamic, abm, agent };

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
  // What the queues of one priority have in common.
  struct Priority {
    double alpha = 1, beta = 1, cut = -1;  // cut: below 0 none
    double scale = 1;                      // of its threshold, where that is a multiple of the free buffer
    int64_t threshold = 0, quantum = 0;
    PriorityInterval interval;
  };
  void set_scale(Priority& priority) const {
    priority.scale = priority.alpha;
    if (admission_ != Admission::agent) return;
    if (cut_until_ > 0 && priority.cut >= 0) priority.scale = priority.cut;
    priority.scale *= priority.beta;
  }
  void set_scales() {
    for (Priority& priority : priorities_) set_scale(priority);
  }
  void end_cut(Time now) {
    if (now < cut_until_ || cut_until_ == 0) [[likely]] return;
    cut_until_ = 0;
    set_scales();
  }
  int64_t length(const Queue& queue) const { return in_bytes_ ? queue.state.bytes : queue.state.packets; }
  double free_room() const { return static_cast<double>(capacity_ - used_); }
  double other_threshold(uint32_t port, uint32_t queue) const;
  uint32_t occupancy_bin() const { return static_cast<uint32_t>(occupancy_step_ == 1 ? used_ : used_ / occupancy_step_); }
  void note_arrival(Queue& queue, Time now) {
    QueueState& state = queue.state;
    queue.packets.rise(++state.packets, now);
    state.interval_max = std::max(state.interval_max, state.packets);
    occupancy_.rise(occupancy_bin(), now);
    used_max_ = std::max(used_max_, used_);
  }
  void note_departure(Queue& queue, Time now) {
    QueueState& state = queue.state;
    queue.packets.fall(--state.packets, now);
    state.interval_min = std::min(state.interval_min, state.bytes);
    occupancy_.fall(occupancy_bin(), now);
  }
  [[gnu::cold]] QueueState sum_up(uint32_t queue) const;

  uint32_t ports_, queues_count_;
  int64_t capacity_, used_ = 0, used_max_ = 0, queue_cap_, mark_, occupancy_step_;
  bool in_bytes_, from_head_, protect_syn_, marks_congestion_;
  Admission admission_;
  bool scales_;                          // thresholds are multiples of the free buffer
  Scheduler scheduler_;
  bool observed_ = false;                // an interval has begun
  bool spares_small_, turns_of_slots_;   // see victims, flow_service
  uint32_t flow_slots_;
  int64_t flow_quantum_;
  Time cut_until_ = 0;                   // 0: no cut
  std::vector<Priority> priorities_;
  std::vector<Queue> queues_;            // port by port
  std::vector<std::unique_ptr<FlowTable>> tables_;  // likewise; empty: none
  TimeHistogram occupancy_;
  SwitchInterval interval_;
  double last_worst_ratio_ = 0;
};

}  // namespace netbuf
