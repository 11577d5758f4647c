#include "netbuf/relay.h"

#include <algorithm>
#include <memory>

namespace netbuf {

namespace {

struct Relay {
  Flow& upstream;
  Flow& downstream;
  uint32_t upstream_index, downstream_index;
  int64_t buffer;
  std::function<void(uint32_t)> woken;
  int64_t arrived = 0, read = 0, sent = 0;
  bool closed = false;

  int64_t take(Time now, int64_t arrived_now) {
    arrived = arrived_now;
    const int64_t reach = std::min(arrived, sent + buffer);
    if (reach > read) {
      read = reach;
      wake_downstream(now);
    }
    return read;
  }
  void wake_downstream(Time now) {
    downstream.sender.wake_source(now);
    woken(downstream_index);
  }
  void give(Time now, int64_t sent_now) {
    sent = sent_now;
    if (arrived == read) return;
    upstream.receiver.wake_sink(now);
    woken(upstream_index);
  }
};

class RelaySink final : public Sink {
 public:
  explicit RelaySink(std::shared_ptr<Relay> relay) : relay_(std::move(relay)) {}
  int64_t read(Time now, int64_t arrived) override { return relay_->take(now, arrived); }
  void closed(Time now) override {
    relay_->closed = true;
    relay_->wake_downstream(now);
  }

 private:
  std::shared_ptr<Relay> relay_;
};

class RelaySource final : public Source {
 public:
  explicit RelaySource(std::shared_ptr<Relay> relay) : relay_(std::move(relay)) {}
  Offer offer(Time, int64_t) override { return {relay_->read, kNever, relay_->closed && relay_->read == relay_->arrived}; }
  void taken(Time now, int64_t sent) override { relay_->give(now, sent); }

 private:
  std::shared_ptr<Relay> relay_;
};

}  // namespace

void make_relay(std::deque<Flow>& flows, uint32_t upstream, uint32_t downstream, int64_t buffer_bytes, std::function<void(uint32_t)> woken) {
  auto relay = std::make_shared<Relay>(Relay{flows[upstream], flows[downstream], upstream, downstream, buffer_bytes, std::move(woken)});
  flows[upstream].attach(std::make_unique<RelaySink>(relay));
  flows[downstream].attach(std::make_unique<RelaySource>(relay));
}

}  // namespace netbuf
