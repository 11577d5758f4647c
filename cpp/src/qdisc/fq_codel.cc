// FQ-CoDel: flows hashed to queues that are served in turn, new ones first, each under CoDel.
//
// Sources: Hoeiland-Joergensen, McKenney, Taht, Gettys and Dumazet, RFC 8290, 2018; the choice between lists and the
// batch of drops as in net/sched/sch_fq_codel.c (Linux) and src/traffic-control/model/fq-codel-queue-disc.cc (ns-3.44).
// CoDel's rule about the last MTU looks at a flow's own queue, as in ns-3 (Linux looks at all queues).
#include <algorithm>
#include <vector>

#include "qdisc/codel.h"

namespace netbuf {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

class FqCodel final : public QueueDiscipline {
 public:
  explicit FqCodel(const DisciplineSetting& setting)
      : codel_setting_(Codel::setting(setting.parameters)),
        flows_(setting.parameters.as<size_t>("flows")),
        quantum_(setting.parameters.as<int32_t>("quantum_bytes")),
        batch_(setting.parameters.as<uint32_t>("drop_batch")),
        limit_packets_(setting.limit_packets),
        limit_bytes_(setting.limit_bytes),
        sink_(setting.sink) {
    const bool drawn = setting.parameters.automatic("perturbation");
    salt_ = drawn ? setting.rng->next() : setting.parameters.as<uint64_t>("perturbation");
  }

  void enqueue(Time, const Queued& item) override {
    if (limit_packets_ < 1 || item.bytes > limit_bytes_) return sink_->dropped(item);
    const uint32_t index = hash(item);
    Flow& flow = flows_[index];
    append(flow, item);
    if (flow.place == Place::nowhere) {
      flow.place = Place::fresh;
      flow.deficit = quantum_;
      push(fresh_, index);
    }
    while (packets_ > limit_packets_ || bytes_ > limit_bytes_) drop_from_fattest();
  }

  bool dequeue(Time now, Queued& item) override {
    for (;;) {
      List& list = fresh_.head != kNone ? fresh_ : old_;
      if (list.head == kNone) return false;
      const uint32_t index = list.head;
      Flow& flow = flows_[index];
      if (flow.deficit <= 0) {
        flow.deficit += quantum_;
        pop(list);
        flow.place = Place::old;
        push(old_, index);
        continue;
      }
      View view{*this, flow};
      if (flow.codel.dequeue(now, codel_setting_, view, item)) {
        flow.deficit -= static_cast<int32_t>(item.bytes);
        return true;
      }
      // A new flow that is empty passes through the old ones: else it could be new again at once and starve them.
      pop(list);
      if (flow.place == Place::fresh) {
        flow.place = Place::old;
        push(old_, index);
      } else {
        flow.place = Place::nowhere;
      }
    }
  }

  uint32_t packets() const override { return packets_; }
  int64_t bytes() const override { return bytes_; }
  size_t memory_bytes() const override {
    return sizeof *this + flows_.capacity() * sizeof(Flow) + nodes_.capacity() * sizeof(Node);
  }

 private:
  enum class Place : uint8_t { nowhere, fresh, old };
  struct Flow {
    Codel codel;
    uint32_t head = kNone, tail = kNone;  // nodes
    int64_t bytes = 0;
    int32_t deficit = 0;
    uint32_t next = kNone;                // flow of the same list
    Place place = Place::nowhere;
  };
  struct Node {
    Queued item;
    uint32_t next;
  };
  struct List {
    uint32_t head = kNone, tail = kNone;
  };
  // One flow's queue, as CoDel sees it.
  struct View {
    FqCodel& all;
    Flow& flow;
    bool pop(Queued& item) { return all.take(flow, item); }
    int64_t bytes() const { return flow.bytes; }
    void drop(const Queued& item) { all.sink_->dropped(item); }
    DropSink& sink() { return *all.sink_; }
  };

  // A flow's data and its ACKs are two flows.
  uint32_t hash(const Queued& item) const {
    uint64_t z = salt_ + 0x9e3779b97f4a7c15 * (uint64_t{item.owner} * 2 + item.is_ack + 1);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    z ^= z >> 31;
    return static_cast<uint32_t>((z >> 32) * flows_.size() >> 32);
  }

  void push(List& list, uint32_t index) {
    flows_[index].next = kNone;
    (list.head == kNone ? list.head : flows_[list.tail].next) = index;
    list.tail = index;
  }
  void pop(List& list) { list.head = flows_[list.head].next; }

  void append(Flow& flow, const Queued& item) {
    uint32_t node = free_;
    if (node != kNone) {
      free_ = nodes_[node].next;
    } else {
      node = static_cast<uint32_t>(nodes_.size());
      nodes_.emplace_back();
    }
    nodes_[node] = {item, kNone};
    (flow.head == kNone ? flow.head : nodes_[flow.tail].next) = node;
    flow.tail = node;
    flow.bytes += item.bytes;
    bytes_ += item.bytes;
    ++packets_;
  }
  bool take(Flow& flow, Queued& item) {
    const uint32_t node = flow.head;
    if (node == kNone) return false;
    item = nodes_[node].item;
    flow.head = nodes_[node].next;
    nodes_[node].next = free_;
    free_ = node;
    flow.bytes -= item.bytes;
    bytes_ -= item.bytes;
    --packets_;
    return true;
  }

  // From the head, up to a batch and half of what it holds.
  void drop_from_fattest() {
    Flow& fattest = *std::max_element(flows_.begin(), flows_.end(),
                                      [](const Flow& a, const Flow& b) { return a.bytes < b.bytes; });
    const int64_t enough = fattest.bytes / 2;
    int64_t dropped = 0;
    Queued item;
    for (uint32_t n = 0; n < batch_ && take(fattest, item); ++n) {
      sink_->dropped(item);
      dropped += item.bytes;
      if (dropped >= enough) break;
    }
  }

  Codel::Setting codel_setting_;
  std::vector<Flow> flows_;
  std::vector<Node> nodes_;  // grows to the most packets that were ever held
  uint32_t free_ = kNone;
  List fresh_, old_;
  uint64_t salt_;
  int32_t quantum_;
  uint32_t batch_, packets_ = 0;
  int64_t limit_packets_, limit_bytes_, bytes_ = 0;
  DropSink* sink_;
};

const Entry<DisciplineRecord> entry{{
    .name = "fq_codel",
    .meaning = "fair queueing with CoDel in each queue (RFC 8290)",
    .make = make<FqCodel>,
    .parameters =
        {kCodelParameters[0], kCodelParameters[1], kCodelParameters[2], kCodelParameters[3], kCodelParameters[4],
         whole("flows", 1024, 1, 65'536, "queues that flows are hashed to"),
         whole("quantum_bytes", 1514, 64, 1'000'000, "what a queue may send in a turn"),
         whole("drop_batch", 64, 1, 1'000'000, "packets dropped at once from the longest queue when all are full"),
         whole("perturbation", kAutomatic, 1, 4'294'967'295, "of the hash; auto: drawn from the world's seed")},
}};

}  // namespace
}  // namespace netbuf
