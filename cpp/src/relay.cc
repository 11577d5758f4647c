#include "netbuf/relay.h"

#include <algorithm>
#include <memory>

namespace netbuf {

namespace {

struct Relay {
  Leg upstream, downstream;                  // null once they are gone
  int64_t buffer;
  std::function<void(uint32_t)> woken;
  int64_t arrived = 0, read = 0, sent = 0;
  bool closed = false, failed = false;

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
    if (!downstream.flow) return;
    downstream.flow->sender.wake_source(now);
    woken(downstream.index);
  }
  void give(Time now, int64_t sent_now) {
    sent = sent_now;
    if (arrived == read || !upstream.flow) return;
    upstream.flow->receiver.wake_sink(now);
    woken(upstream.index);
  }
  // With either connection: the proxy closes both, unless all has passed this one before.
  void fail(Time now) {
    if (failed) return;
    failed = true;
    const Leg up = upstream, down = downstream;  // which part as they fail
    if (up.flow) {
      if (up.flow->completed_at() == kNever) up.flow->sender.abort(now);  // else it is closed
      up.flow->receiver.abort(now);
      woken(up.index);
    }
    if (down.flow) {
      down.flow->sender.abort(now);
      down.flow->note_failure(now);
      woken(down.index);
    }
  }
};

class RelaySink final : public Sink {
 public:
  explicit RelaySink(std::shared_ptr<Relay> relay) : relay_(std::move(relay)) {}
  ~RelaySink() override { relay_->upstream.flow = nullptr; }
  int64_t read(Time now, int64_t arrived) override { return relay_->take(now, arrived); }
  void closed(Time now) override {
    relay_->closed = true;
    relay_->wake_downstream(now);
  }
  void failed(Time now) override { relay_->fail(now); }

 private:
  std::shared_ptr<Relay> relay_;
};

class RelaySource final : public Source {
 public:
  explicit RelaySource(std::shared_ptr<Relay> relay) : relay_(std::move(relay)) {}
  ~RelaySource() override { relay_->downstream.flow = nullptr; }
  Offer offer(Time, int64_t) override {
    return {relay_->read, kNever, relay_->closed && relay_->read == relay_->arrived};
  }
  void taken(Time now, int64_t sent) override { relay_->give(now, sent); }
  void failed(Time now) override {
    if (relay_->downstream.flow->completed_at() == kNever) relay_->fail(now);
  }

 private:
  std::shared_ptr<Relay> relay_;
};

}  // namespace

void make_relay(Leg upstream, Leg downstream, int64_t buffer_bytes, std::function<void(uint32_t)> woken) {
  auto relay = std::make_shared<Relay>(Relay{upstream, downstream, buffer_bytes, std::move(woken)});
  upstream.flow->attach(std::make_unique<RelaySink>(relay));
  downstream.flow->attach(std::make_unique<RelaySource>(relay));
}

}  // namespace netbuf
