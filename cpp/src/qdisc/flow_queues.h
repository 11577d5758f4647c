// Queues of flows that are served in turn by deficit round robin, new ones first (RFC 8290, 4): shared by FQ-CoDel,
// FQ-PIE, FQ and CAKE.
#pragma once
#include <algorithm>
#include <vector>

#include "netbuf/queue_discipline.h"

namespace netbuf {

// A flow's data and its ACKs are two flows.
inline uint64_t flow_key(uint32_t owner, bool is_ack) { return uint64_t{owner} * 2 + is_ack; }
inline uint64_t flow_key(const Queued& item) { return flow_key(item.owner, item.is_ack); }

// Scrambles a number (splitmix64).
inline uint64_t scramble(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// Where flows are hashed to. A connection that takes an old one's number has ports of its own, and hashes anew.
class FlowHash {
 public:
  explicit FlowHash(const DisciplineSetting& setting)
      : salt_(setting.parameters.automatic("perturbation") ? setting.rng->next()
                                                           : setting.parameters.as<uint64_t>("perturbation")) {}

  explicit FlowHash(uint64_t salt) : salt_(salt) {}

  uint64_t operator()(uint64_t key) const { return scramble(salt_ + 0x9e3779b97f4a7c15 * (key + 1)); }
  uint64_t operator()(const Queued& item) const {
    const uint64_t before = item.owner < before_.size() ? before_[item.owner] : 0;
    return (*this)(flow_key(item) + (before << 33));
  }
  // One of so many queues.
  uint32_t choose(const Queued& item, uint32_t queues) const {
    return static_cast<uint32_t>(((*this)(item) >> 32) * queues >> 32);
  }
  void forget(uint32_t owner) {           // its connection is over
    if (owner >= before_.size()) before_.resize(owner + 1);
    ++before_[owner];
  }
  size_t memory_bytes() const { return before_.capacity() * sizeof(uint32_t); }

 private:
  uint64_t salt_;
  std::vector<uint32_t> before_;          // connections that have had a number and are over
};
inline constexpr Parameter kPerturbationParameter =
    whole("perturbation", kAutomatic, 1, 4'294'967'295, "of the hash; auto: drawn from the world's seed");

// Queues that each have a State beside their packets: what rules on a flow alone.
template <class State>
class FlowQueues {
  static constexpr uint32_t kNone = UINT32_MAX;

 public:
  struct Flow {
    State state;
    uint32_t head = kNone, tail = kNone;  // nodes
    uint32_t packets = 0;
    uint32_t before = kNone;              // flow of the same list; of its head, none that counts
    int64_t bytes = 0;
    int32_t deficit = 0;
    uint32_t next = kNone;                // likewise
    bool empty() const { return head == kNone; }
  };
  // Flows that take turns.
  struct List {
    uint32_t head = kNone, tail = kNone;
    bool empty() const { return head == kNone; }
  };

  explicit FlowQueues(size_t flows = 0) : flows_(flows) {}

  Flow& operator[](uint32_t index) { return flows_[index]; }
  const Flow& operator[](uint32_t index) const { return flows_[index]; }
  uint32_t size() const { return static_cast<uint32_t>(flows_.size()); }
  uint32_t add() {                        // another flow's index
    flows_.emplace_back();
    return size() - 1;
  }
  uint32_t packets() const { return packets_; }
  int64_t bytes() const { return bytes_; }
  size_t memory_bytes() const { return flows_.capacity() * sizeof(Flow) + nodes_.capacity() * sizeof(Node); }

  void push(List& list, uint32_t index) {
    flows_[index].next = kNone;
    flows_[index].before = list.tail;
    (list.empty() ? list.head : flows_[list.tail].next) = index;
    list.tail = index;
  }
  void pop(List& list) { list.head = flows_[list.head].next; }
  // A flow anywhere in the list.
  void erase(List& list, uint32_t index) {
    if (list.head == index) return pop(list);
    const uint32_t before = flows_[index].before, next = flows_[index].next;
    flows_[before].next = next;
    (list.tail == index ? list.tail : flows_[next].before) = before;
  }

  void append(Flow& flow, const Queued& item) {
    uint32_t node = free_;
    if (node != kNone) {
      free_ = nodes_[node].next;
    } else {
      node = static_cast<uint32_t>(nodes_.size());
      nodes_.emplace_back();
    }
    nodes_[node] = {item, kNone};
    (flow.empty() ? flow.head : nodes_[flow.tail].next) = node;
    flow.tail = node;
    flow.bytes += item.bytes;
    ++flow.packets;
    bytes_ += item.bytes;
    ++packets_;
  }
  const Queued& front(const Flow& flow) const { return nodes_[flow.head].item; }
  Queued& back(const Flow& flow) { return nodes_[flow.tail].item; }
  bool take(Flow& flow, Queued& item) {
    const uint32_t node = flow.head;
    if (node == kNone) return false;
    item = nodes_[node].item;
    flow.head = nodes_[node].next;
    nodes_[node].next = free_;
    free_ = node;
    flow.bytes -= item.bytes;
    --flow.packets;
    bytes_ -= item.bytes;
    --packets_;
    return true;
  }
  // The first of those with the most bytes.
  Flow& fattest() {
    return *std::max_element(flows_.begin(), flows_.end(), [](const Flow& a, const Flow& b) { return a.bytes < b.bytes; });
  }

 private:
  struct Node {
    Queued item;
    uint32_t next;
  };

  std::vector<Flow> flows_;
  std::vector<Node> nodes_;  // grows to the most packets that were ever held
  uint32_t free_ = kNone, packets_ = 0;
  int64_t bytes_ = 0;
};

enum class Place : uint8_t { nowhere, fresh, old };

// The turns of RFC 8290, 4.1 and 4.2, as net/sched/sch_fq_codel.c and sch_fq_pie.c take them: each flow has a Place
// `place` in its State, and a quantum a turn.
template <class State>
class RoundRobin {
 public:
  using Queues = FlowQueues<State>;
  using Flow = typename Queues::Flow;

  RoundRobin(Queues& queues, int32_t quantum) : queues_(queues), quantum_(quantum) {}

  // A flow that has got a packet.
  void activate(uint32_t index) {
    Flow& flow = queues_[index];
    if (flow.state.place != Place::nowhere) return;
    flow.state.place = Place::fresh;
    flow.deficit = quantum_;
    queues_.push(fresh_, index);
  }
  // take(flow, item): the packet of a flow whose turn it is, false where it has none left.
  template <class Take>
  bool dequeue(Queued& item, Take&& take) {
    for (;;) {
      typename Queues::List& list = fresh_.empty() ? old_ : fresh_;
      if (list.empty()) return false;
      const uint32_t index = list.head;
      Flow& flow = queues_[index];
      if (flow.deficit <= 0) {
        flow.deficit += quantum_;
        move(list, index);
        continue;
      }
      if (take(flow, item)) {
        flow.deficit -= static_cast<int32_t>(item.bytes);
        return true;
      }
      // A new flow that is empty passes through the old ones: else it could be new again at once and starve them.
      if (flow.state.place == Place::fresh) {
        move(list, index);
      } else {
        queues_.pop(list);
        flow.state.place = Place::nowhere;
      }
    }
  }

 private:
  void move(typename Queues::List& list, uint32_t index) {
    queues_.pop(list);
    queues_[index].state.place = Place::old;
    queues_.push(old_, index);
  }

  Queues& queues_;
  typename Queues::List fresh_, old_;
  int32_t quantum_;
};

}  // namespace netbuf
