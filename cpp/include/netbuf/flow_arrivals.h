// The finite flows of a world's traffic: opened as time goes on, followed to their completion,
// forgotten when nothing is left to do.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "netbuf/event_source.h"
#include "netbuf/flow.h"
#include "netbuf/ideal.h"
#include "netbuf/shared_buffer.h"
#include "netbuf/traffic.h"

namespace netbuf {

// A flow that traffic has opened. FCT: from the start, before the SYN, to the last byte in order at the receiver.
struct OpenedFlow {
  Time start;
  uint32_t sender, priority;
  int64_t size_bytes;
  int64_t received_bytes = 0;    // once it is forgotten; until then the flow itself knows
  uint32_t slot = 0;             // kForgotten, or where it is
  bool failed = false;           // a sender of it has
  static constexpr uint32_t kForgotten = UINT32_MAX;
};

struct Completion {
  uint32_t flow;                 // index of the OpenedFlow
  Time fct;
  double ideal_s;                // FlowArrivals::ideal_s
};

struct TrafficTotals {
  uint64_t connected = 0, failed = 0, packets_sent = 0, packets_retransmitted = 0, packets_received = 0, timeouts = 0,
           syn_timeouts = 0, queue_drops = 0, random_losses = 0, marks = 0, mark_responses = 0;
  int64_t received_bytes = 0, delivered_bytes = 0;
};

class FlowArrivals final : public EventSource {
 public:
  // Whom it tells of flows that come and go; index: their name in the network.
  class Host {
   public:
    virtual void opened(uint32_t index, Flow& flow) = 0;
    virtual void forgotten(uint32_t index) = 0;
    virtual void woken_by_relay(uint32_t index) = 0;  // its next event has changed
    virtual void awaited() = 0;                       // that of these arrivals has

   protected:
    ~Host() = default;
  };

  // first: the index of the first flow that it opens; indices are given anew.
  FlowArrivals(const WorldConfig& config, uint64_t seed, uint32_t first, Network& network,
               const std::vector<std::unique_ptr<SharedBuffer>>& switches, Rng* rng, Host& host);

  Time next() const override { return traffic_.next(); }
  void run(Time now) override;               // opens a flow
  void after_event(uint32_t index, Time now); // of a flow that is one of these: it may have completed, or be done with

  const std::vector<OpenedFlow>& opened() const { return opened_; }
  const std::vector<Completion>& completions() const { return completions_; }
  int64_t received_bytes(const OpenedFlow& flow) const;
  double ideal_s(uint32_t sender, int64_t size_bytes, Time start) const {
    return ideal_.seconds_of(sender, size_bytes, start);
  }
  TrafficTotals totals() const;
  std::vector<PageLoad> pages() const { return traffic_.pages(); }
  uint64_t data_packets_in_network() const;
  size_t memory_bytes() const;

 private:
  struct Slot {
    std::optional<Flow> flow;
    uint32_t opened = 0;                     // index
    bool completed = false;
    bool relayed = false;                    // the leg to a relay: what comes of it is told of the one from there
    uint32_t stream = 0, user = 0;           // of its arrival
    bool told = false;                       // its arrivals know that it has ended
  };
  uint32_t open(FlowConfig& config, const FlowArrival& arrival, Time start, bool relayed);
  void note_failure(Slot& slot);
  void note_end(Slot& slot, Time now);       // for arrivals that listen
  void forget(uint32_t index);
  static void count(TrafficTotals& totals, const Slot& slot);

  uint32_t first_;
  Network& network_;
  Rng* rng_;
  Host& host_;
  WorldConfig template_;                     // what flows are made with (links and flows left out)
  Traffic traffic_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<uint32_t> free_slots_;
  std::vector<OpenedFlow> opened_;
  std::vector<Completion> completions_;
  IdealTimes ideal_;
  std::vector<std::vector<SharedBuffer*>> crossed_;    // by sender: the switches on its path
  TrafficTotals forgotten_;                  // but for failed
  uint64_t failed_ = 0;
};

}  // namespace netbuf
