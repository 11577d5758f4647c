// FQ-CoDel: flows hashed to queues that are served in turn, new ones first, each under CoDel.
//
// Sources: Hoeiland-Joergensen, McKenney, Taht, Gettys and Dumazet, RFC 8290, 2018; the choice between lists and the
// batch of drops as in net/sched/sch_fq_codel.c (Linux) and src/traffic-control/model/fq-codel-queue-disc.cc (ns-3.44).
// CoDel's rule about the last MTU looks at a flow's own queue, as in ns-3 (Linux looks at all queues).
#include "qdisc/codel.h"
#include "qdisc/flow_queues.h"

namespace netbuf {
namespace {

class FqCodel final : public QueueDiscipline {
 public:
  explicit FqCodel(const DisciplineSetting& setting)
      : codel_setting_(Codel::setting(setting.parameters)),
        queues_(setting.parameters.as<size_t>("flows")),
        turns_(queues_, setting.parameters.as<int32_t>("quantum_bytes")),
        batch_(setting.parameters.as<uint32_t>("drop_batch")),
        limit_packets_(setting.limit_packets),
        limit_bytes_(setting.limit_bytes),
        hash_(setting),
        sink_(setting.sink) {}

  void enqueue(Time, const Queued& item) override {
    if (limit_packets_ < 1 || item.bytes > limit_bytes_) return sink_->dropped(item);
    const auto index = hash_.choose(item, queues_.size());
    queues_.append(queues_[index], item);
    turns_.activate(index);
    while (packets() > limit_packets_ || bytes() > limit_bytes_) drop_from_fattest();
  }
  bool dequeue(Time now, Queued& item) override {
    return turns_.dequeue(item, [&](Flow& flow, Queued& next) {
      View view{*this, flow};
      return flow.state.codel.dequeue(now, codel_setting_, view, next);
    });
  }
  void forget(uint32_t owner) override { hash_.forget(owner); }

  uint32_t packets() const override { return queues_.packets(); }
  int64_t bytes() const override { return queues_.bytes(); }
  size_t memory_bytes() const override { return sizeof *this + queues_.memory_bytes() + hash_.memory_bytes(); }

 private:
  struct State {
    Codel codel;
    Place place = Place::nowhere;
  };
  using Flow = FlowQueues<State>::Flow;
  // One flow's queue, as CoDel sees it.
  struct View {
    FqCodel& all;
    Flow& flow;
    bool pop(Queued& item) { return all.queues_.take(flow, item); }
    int64_t bytes() const { return flow.bytes; }
    void drop(const Queued& item) { all.sink_->dropped(item); }
    DropSink& sink() { return *all.sink_; }
  };

  // From the head, up to a batch and half of what it holds.
  void drop_from_fattest() {
    Flow& fattest = queues_.fattest();
    const int64_t enough = fattest.bytes / 2;
    int64_t dropped = 0;
    Queued item;
    for (uint32_t n = 0; n < batch_ && queues_.take(fattest, item); ++n) {
      sink_->dropped(item);
      dropped += item.bytes;
      if (dropped >= enough) break;
    }
  }

  Codel::Setting codel_setting_;
  FlowQueues<State> queues_;
  RoundRobin<State> turns_;
  uint32_t batch_;
  int64_t limit_packets_, limit_bytes_;
  FlowHash hash_;
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
         kPerturbationParameter},
}};

}  // namespace
}  // namespace netbuf
