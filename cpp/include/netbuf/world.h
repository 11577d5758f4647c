// A world: links, switches, flows, traffic and one clock. Deterministic: the same configuration and seed give the same bits.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <vector>

#include "netbuf/flow.h"
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
  static constexpr uint32_t kForgotten = UINT32_MAX;
};

struct Completion {
  uint32_t flow;                 // index of the OpenedFlow
  Time fct;
  double ideal_s;                // base RTT (propagation) + size / rate of the slowest link
};

struct TrafficTotals {
  uint64_t connected = 0, packets_sent = 0, packets_retransmitted = 0, packets_received = 0, timeouts = 0, queue_drops = 0,
           random_losses = 0;
  int64_t delivered_bytes = 0;
};

struct ProbeResult {
  uint64_t sent = 0;
  std::vector<double> delays;    // seconds one way, of those that arrived
};

class World final : private Link::Host {
 public:
  World(const WorldConfig& config, uint64_t seed);  // std::invalid_argument on a bad configuration
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  void run(Time until);                  // handles every event up to and including until
  // Runs until an agent's flow has received an ACK after now, at most to until. True if one came.
  bool run_to_agent_ack(Time until);
  Time now() const { return now_; }

  std::vector<Flow>& flows() { return flows_; }
  std::vector<Link>& links() { return links_; }
  std::vector<std::unique_ptr<SharedBuffer>>& switches() { return switches_; }
  const std::vector<uint32_t>& agents() const { return agents_; }  // flows under an agent's control
  const std::vector<uint32_t>& agent_switches() const { return agent_switches_; }
  void set_window(uint32_t flow, double bytes);  // of a flow that an agent controls
  size_t memory_bytes() const;

  // ---- traffic
  const std::vector<OpenedFlow>& opened() const { return opened_; }
  const std::vector<Completion>& completions() const { return completions_; }
  int64_t received_bytes(const OpenedFlow& flow) const;
  double ideal_s(uint32_t sender, int64_t size_bytes) const;
  TrafficTotals traffic_totals() const;
  uint64_t packets_received() const { return packets_received_; }  // data, at the receivers of all flows
  int64_t delivered_bytes() const { return delivered_bytes_; }     // in order, likewise
  uint64_t data_packets_in_network() const;                        // of traffic's flows, managed links included
  const ProbeResult& probe(size_t index) const { return probes_[index].result; }
  size_t probes() const { return probes_.size(); }

 private:
  // Tournament tree over next events: first of managed links, probes and traffic, then of flows. Node 1 is the root, leaves
  // follow the inner nodes. Ties go to the lower index.
  struct Entry {
    Time time;
    uint32_t source;
  };
  struct Slot {
    std::optional<Flow> flow;
    uint32_t opened = 0;                 // index
    bool completed = false;
  };
  struct Probe {
    ProbeConfig config;
    ProbeResult result;
    struct Travelling {
      Time time, sent_at;                // reaches hop then
      uint32_t hop;
      bool operator>(const Travelling& other) const { return time > other.time; }
    };
    std::priority_queue<Travelling, std::vector<Travelling>, std::greater<>> travelling;
    Time next_send;
    Time next() const { return travelling.empty() ? next_send : std::min(next_send, travelling.top().time); }
  };

  void sent(const Queued& item, Time arrival) override;
  void lost(const Queued& item, Link::Fate fate) override;
  void rescheduled(uint32_t link) override { touched_.push_back(managed_[link]); }

  void check_until(Time until) const;
  void build_links(const WorldConfig& config);
  void build_tree();
  void update_woken();
  void update_touched();
  void order_ties(const WorldConfig& config);
  void run_source(uint32_t source);
  void run_flow(uint32_t index);
  void run_probe(Probe& probe, uint32_t index);
  void move_probe(Probe& probe, uint32_t index, Probe::Travelling packet);
  void open_flow();
  void after_flow(Slot& slot, uint32_t index);
  void forget(Slot& slot, uint32_t index);
  void count(TrafficTotals& totals, const Flow& flow) const;
  Time next_of(uint32_t source) const;
  Flow& flow(uint32_t index) {
    return index < flows_.size() ? flows_[index] : *slots_[index - flows_.size()]->flow;
  }
  bool tied(uint32_t source) const;
  void run_tied();
  void update(uint32_t source) { update(source, next_of(source)); }
  void update(uint32_t source, Time time) {  // its next event has changed
    size_t node = tree_.size() / 2 + source;
    Entry best{time, source};
    tree_[node] = best;
    for (; node > 1; node /= 2) {
      const Entry& rival = tree_[node ^ 1];
      const bool wins = rival.time < best.time + static_cast<Time>(node & 1);
      best.time = wins ? rival.time : best.time;
      best.source = wins ? rival.source : best.source;
      tree_[node / 2] = best;
    }
  }

  // What every step needs stands together.
  Time now_ = 0;
  uint32_t first_flow_ = 0;              // source number of flow 0; 0: flows are the only sources of events
  bool ordered_ = false;                 // flows' events of the same instant take turns as in ns-3
  std::vector<Flow> flows_;
  std::vector<Link> links_;
  std::vector<uint32_t> agents_;
  std::vector<Entry> tree_;
  std::vector<uint32_t> woken_;          // flows whose next event a relay has changed
  Rng rng_;
  const StackProfile* profile_;          // shared by all worlds, or own_profile_
  std::unique_ptr<StackProfile> own_profile_;
  std::vector<uint32_t> agent_switches_;
  std::vector<std::unique_ptr<SharedBuffer>> switches_;

  std::vector<uint32_t> managed_;        // by link: its source number
  std::vector<uint32_t> managed_links_;  // by source number: the link
  std::vector<Probe> probes_;
  std::vector<uint32_t> touched_;        // sources whose next event has changed
  std::vector<WorldConfig> template_;    // what opened flows are made with (links and flows left out); one if there is traffic
  std::optional<Traffic> traffic_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<uint32_t> free_slots_, link_uses_;
  std::vector<OpenedFlow> opened_;
  std::vector<Completion> completions_;
  std::vector<double> base_rtt_s_, seconds_per_byte_;  // by sender
  std::vector<std::vector<SharedBuffer*>> crossed_;    // by sender: the switches on its path
  TrafficTotals forgotten_;
  uint64_t packets_received_ = 0;
  int64_t delivered_bytes_ = 0;
};

}  // namespace netbuf
