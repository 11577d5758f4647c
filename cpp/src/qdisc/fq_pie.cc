// FQ-PIE: flows hashed to queues that are served in turn, new ones first, each under PIE of its own.
//
// Sources: net/sched/sch_fq_pie.c (Linux) for what is done with a flow's packet, RFC 8290, 4 for the turns, RFC 8033 for
// PIE (pie.h). What does not fit into the whole is dropped as it comes, as there.
#include "qdisc/flow_queues.h"
#include "qdisc/pie.h"

namespace netbuf {
namespace {

class FqPie final : public QueueDiscipline {
 public:
  explicit FqPie(const DisciplineSetting& setting)
      : pie_setting_(setting.parameters),
        turns_(queues_, setting.parameters.as<int32_t>("quantum_bytes")),
        limit_packets_(setting.limit_packets),
        limit_bytes_(setting.limit_bytes),
        hash_(setting),
        sink_(setting.sink),
        rng_(setting.rng) {
    for (auto flows = setting.parameters.as<uint32_t>("flows"); flows > 0; --flows) {
      queues_[queues_.add()].state.pie = PieControl(pie_setting_);
    }
  }

  void enqueue(Time now, const Queued& item) override {
    const auto index = hash_.choose(item, queues_.size());
    Flow& flow = queues_[index];
    flow.state.pie.catch_up(now, pie_setting_);
    const bool full = packets() >= limit_packets_ || bytes() + item.bytes > limit_bytes_;
    const PieControl::Verdict verdict = flow.state.pie.judge(pie_setting_, item, flow.bytes, full, *rng_);
    if (verdict == PieControl::Verdict::drop) return sink_->dropped(item);
    Queued taken = item;
    if (verdict == PieControl::Verdict::mark) mark(taken, *sink_);
    queues_.append(flow, taken);
    turns_.activate(index);
  }
  bool dequeue(Time now, Queued& item) override {
    return turns_.dequeue(item, [&](Flow& flow, Queued& next) {
      flow.state.pie.catch_up(now, pie_setting_);
      if (!queues_.take(flow, next)) return false;
      flow.state.pie.sent(now, next.arrived, !flow.empty());
      return true;
    });
  }
  void forget(uint32_t owner) override { hash_.forget(owner); }

  uint32_t packets() const override { return queues_.packets(); }
  int64_t bytes() const override { return queues_.bytes(); }
  size_t memory_bytes() const override { return sizeof *this + queues_.memory_bytes() + hash_.memory_bytes(); }

 private:
  struct State {
    PieControl pie;
    Place place = Place::nowhere;
  };
  using Flow = FlowQueues<State>::Flow;

  const PieSetting pie_setting_;
  FlowQueues<State> queues_;
  RoundRobin<State> turns_;
  int64_t limit_packets_, limit_bytes_;
  FlowHash hash_;
  DropSink* sink_;
  Rng* rng_;
};

std::vector<Parameter> parameters() {
  std::vector<Parameter> all = pie_parameters();
  all.push_back(whole("flows", 1024, 1, 65'536, "queues that flows are hashed to"));
  all.push_back(whole("quantum_bytes", 1514, 64, 1'000'000, "what a queue may send in a turn"));
  all.push_back(kPerturbationParameter);
  return all;
}

const Entry<DisciplineRecord> entry{{
    .name = "fq_pie",
    .meaning = "fair queueing with PIE in each queue (RFC 8290, RFC 8033; Linux' sch_fq_pie)",
    .make = make<FqPie>,
    .parameters = parameters(),
}};

}  // namespace
}  // namespace netbuf
