// FQ: each connection has a queue of its own, served in turn, new ones first, and sends no faster than it may. On the
// first link of a flow's path it is the queue of the flow's host, whose TCP it makes pace.
//
// Source: net/sched/sch_fq.c (Linux 6.18; behaviour, names and defaults of its parameters), without priority bands.
// TCP stamps a packet with its earliest departure time and lets it go then (Sender::pace): the departures are those of
// the kernel, where the packet waits here for that time instead of in the socket. A bunch of segments leaves as one, as
// it does there under segmentation offload.
#include <set>
#include <unordered_map>

#include "qdisc/flow_queues.h"

namespace netbuf {
namespace {

class Fq final : public QueueDiscipline {
 public:
  explicit Fq(const DisciplineSetting& setting)
      : quantum_(setting.parameters.as<int32_t>("quantum_bytes")),
        initial_quantum_(setting.parameters.as<int32_t>("initial_quantum_bytes")),
        flow_limit_(setting.parameters.as<uint32_t>("flow_limit")),
        limit_packets_(setting.limit_packets),
        limit_bytes_(setting.limit_bytes),
        refill_delay_(from_seconds(setting.parameters["refill_delay_ms"] * 1e-3)),
        ce_threshold_(setting.parameters.automatic("ce_threshold_ms")
                          ? kNever
                          : from_seconds(setting.parameters["ce_threshold_ms"] * 1e-3)),
        ns_per_byte_(8e3 / setting.parameters.or_else("max_rate_mbps", kUnlimited)),
        limits_rate_(!setting.parameters.automatic("max_rate_mbps")),
        paces_(setting.parameters.is("pacing")),
        sink_(setting.sink) {}

  void enqueue(Time now, const Queued& item) override {
    const uint32_t index = find(item);
    Flow& flow = queues_[index];
    const bool full = packets() >= limit_packets_ || bytes() + item.bytes > limit_bytes_;
    if (full || flow.packets >= flow_limit_) return sink_->dropped(item);
    queues_.append(flow, item);
    if (flow.state.place != Place::nowhere) return;
    if (now > flow.state.left + refill_delay_) flow.deficit = std::max(flow.deficit, quantum_);
    place(fresh_, index, Place::fresh);
  }
  bool dequeue(Time now, Queued& item) override {
    Time at = now;                        // whoever does not ask when (ready) gets the next in any case
    for (;;) {
      release(at);
      List& list = fresh_.empty() ? old_ : fresh_;
      if (list.empty()) {
        if (held_.empty()) return false;
        at = held_.begin()->first;
        continue;
      }
      const uint32_t index = list.head;
      Flow& flow = queues_[index];
      if (flow.deficit <= 0) {
        flow.deficit += quantum_;
        queues_.pop(list);
        place(old_, index, Place::old);
      } else if (flow.empty()) {
        // A new flow passes through the old ones: else it could be new again at once and starve them.
        queues_.pop(list);
        if (flow.state.place == Place::fresh) {
          place(old_, index, Place::old);
        } else {
          flow.state.place = Place::nowhere;
          flow.state.left = now;
          if (flow.state.over) queues_.push(unused_, index);
        }
      } else if (flow.state.next > at) {
        queues_.pop(list);
        held_.emplace(flow.state.next, index);
      } else {
        send(now, flow, item);
        return true;
      }
    }
  }
  // Where rates are limited all that is in line may be held back: then when the first may go.
  Time ready(Time now) override {
    if (!limits_rate_) return now;
    release(now);
    Time first = held_.empty() ? kNever : held_.begin()->first;
    for (const List* list : {&fresh_, &old_}) {
      for (uint32_t index = list->head; index != UINT32_MAX && first > now; index = queues_[index].next) {
        if (!queues_[index].empty()) first = std::min(first, std::max(now, queues_[index].state.next));
      }
    }
    return first;
  }

  // What it had of its turn may be in line still; the next connection of that number is another flow.
  void forget(uint32_t owner) override {
    for (const bool is_ack : {false, true}) {
      const auto found = index_.find(flow_key(owner, is_ack));
      if (found == index_.end()) continue;
      const uint32_t index = found->second;
      index_.erase(found);
      queues_[index].state.over = true;
      if (queues_[index].state.place == Place::nowhere) queues_.push(unused_, index);
    }
  }

  bool paces() const override { return paces_; }
  uint32_t packets() const override { return queues_.packets(); }
  int64_t bytes() const override { return queues_.bytes(); }
  void resize(int64_t packets) override { limit_packets_ = packets; }
  void reset(Time) override {             // what a flow has sent is behind it
    for (uint32_t i = 0; i < queues_.size(); ++i) queues_[i].state.next = 0;
  }
  size_t memory_bytes() const override {
    return sizeof *this + queues_.memory_bytes() + index_.size() * sizeof(std::pair<uint64_t, uint32_t>) +
           held_.size() * sizeof(std::pair<Time, uint32_t>);
  }

 private:
  static constexpr double kUnlimited = 1e12;
  struct State {
    Time next = 0;                        // nothing of it leaves before
    Time left = 0;                        // when it was last found empty
    Place place = Place::nowhere;
    bool over = false;                    // its connection is
  };
  using Queues = FlowQueues<State>;
  using Flow = Queues::Flow;
  using List = Queues::List;

  uint32_t find(const Queued& item) {
    const auto [found, is_new] = index_.try_emplace(flow_key(item));
    if (is_new) [[unlikely]] found->second = add();
    return found->second;
  }
  uint32_t add() {
    const uint32_t index = unused_.empty() ? queues_.add() : unused_.head;
    if (!unused_.empty()) queues_.pop(unused_);
    queues_[index].state = {};
    queues_[index].deficit = initial_quantum_;
    return index;
  }
  void place(List& list, uint32_t index, Place place) {
    queues_[index].state.place = place;
    queues_.push(list, index);
  }
  void release(Time now) {
    for (; !held_.empty() && held_.begin()->first <= now; held_.erase(held_.begin())) {
      place(old_, held_.begin()->second, Place::old);
    }
  }
  void send(Time now, Flow& flow, Queued& item) {
    queues_.take(flow, item);
    if (now - std::max(item.arrived, flow.state.next) > ce_threshold_) mark(item, *sink_);
    flow.deficit -= static_cast<int32_t>(item.bytes);
    if (!limits_rate_) return;
    // A packet that leaves late makes good the time lost, up to half its own.
    Time gap = std::min(static_cast<Time>(item.bytes * ns_per_byte_), kSecond);
    if (flow.state.next > 0) gap -= std::min(gap / 2, now - flow.state.next);
    flow.state.next = now + gap;
  }

  const int32_t quantum_, initial_quantum_;
  const uint32_t flow_limit_;
  int64_t limit_packets_, limit_bytes_;
  const Time refill_delay_, ce_threshold_;
  const double ns_per_byte_;
  const bool limits_rate_, paces_;
  DropSink* sink_;
  Queues queues_;
  std::unordered_map<uint64_t, uint32_t> index_;  // of flows, by key
  List fresh_, old_, unused_;
  std::set<std::pair<Time, uint32_t>> held_;      // flows that may not send yet, and from when on
};

const Entry<DisciplineRecord> entry{{
    .name = "fq",
    .meaning = "fair queueing of connections, and pacing of those whose host's queue it is (Linux' sch_fq)",
    .make = make<Fq>,
    .parameters =
        {whole("quantum_bytes", 3028, 64, 1'000'000, "what a flow may send in a turn"),
         whole("initial_quantum_bytes", 15'140, 64, 10'000'000, "and in its first"),
         whole("flow_limit", 100, 1, 1'000'000, "packets of a flow that may wait"),
         real("refill_delay_ms", 40, 0, 100'000, "a flow that was away for longer starts with a full turn, ms"),
         real("max_rate_mbps", kAutomatic, 1e-3, 1e6, "rate that no flow exceeds, of bytes on the wire; auto: none"),
         truth("pacing", true, "senders whose path begins here are paced as those under Scenario.pacing (linux stack)"),
         real("ce_threshold_ms", kAutomatic, 0, 10'000,
              "what waits longer, its flow's own rate aside, is marked where the flow speaks ECN, ms; auto: not")},
}};

}  // namespace
}  // namespace netbuf
