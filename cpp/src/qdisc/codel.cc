// CoDel: drops from the head, ever more often, while packets wait longer than a target for longer than an interval.
//
// Sources: Nichols, Jacobson, McGregor and Iyengar, RFC 8289, 2018; see codel.h for the arithmetic. By the RFC and
// Linux nothing is dropped while no more than one packet of the MTU would be left (mtu_bytes); ns-3.44 drops unless
// fewer than 1500 bytes of IP packets would be: mtu_bytes = 1499 does that.
#include "qdisc/codel.h"

namespace netbuf {
namespace {

class CodelQueue final : public QueueDiscipline {
 public:
  explicit CodelQueue(const DisciplineSetting& setting)
      : codel_setting_(Codel::setting(setting.parameters)),
        limit_packets_(setting.limit_packets),
        limit_bytes_(setting.limit_bytes),
        sink_(setting.sink) {}

  void enqueue(Time, const Queued& item) override {
    if (queue_.size() >= limit_packets_ || bytes_ + item.bytes > limit_bytes_) return sink_->dropped(item);
    queue_.push(item);
    bytes_ += item.bytes;
  }
  bool dequeue(Time now, Queued& item) override { return codel_.dequeue(now, codel_setting_, *this, item); }
  uint32_t packets() const override { return queue_.size(); }
  int64_t bytes() const override { return bytes_; }
  size_t memory_bytes() const override { return sizeof *this + queue_.memory_bytes(); }

  bool pop(Queued& item) {
    if (queue_.empty()) return false;
    item = queue_.front();
    queue_.pop();
    bytes_ -= item.bytes;
    return true;
  }
  void drop(const Queued& item) { sink_->dropped(item); }
  DropSink& sink() { return *sink_; }

 private:
  Codel codel_;
  Codel::Setting codel_setting_;
  Ring<Queued> queue_;
  int64_t limit_packets_, limit_bytes_, bytes_ = 0;
  DropSink* sink_;
};

const Entry<DisciplineRecord> entry{{
    .name = "codel",
    .meaning = "controlled delay (RFC 8289): drops from the head, ever more often, while packets wait too long",
    .make = make<CodelQueue>,
    .parameters = {std::begin(kCodelParameters), std::end(kCodelParameters)},
}};

}  // namespace
}  // namespace netbuf
