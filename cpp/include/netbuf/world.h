// A world: links, switches, flows, traffic and one clock.
// Deterministic: the same configuration and seed give the same bits.
#pragma once
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "netbuf/flow_arrivals.h"
#include "netbuf/medium.h"
#include "netbuf/pool.h"
#include "netbuf/probe.h"
#include "netbuf/udp.h"

namespace netbuf {

// Places in memory, so many cache lines each.
struct Hot {
  static constexpr size_t kPlaces = 32;
  const void* places[kPlaces];
  uint8_t lines[kPlaces];
  uint32_t count = 0, lasting = 0;           // lasting: of these, at the front, the places that stay

  void add(const void* at, size_t bytes) {
    if (!at || count == kPlaces) return;
    places[count] = at;
    lines[count++] = static_cast<uint8_t>(std::min<size_t>((bytes + 63) / 64, UINT8_MAX));
  }
  void prefetch() const {
    for (uint32_t i = 0; i < count; ++i) {
      const char* at = static_cast<const char*>(places[i]);
      const char* const end = at + size_t{lines[i]} * 64;
      do __builtin_prefetch(at); while ((at += 64) < end);
    }
  }
};

class World final : private Link::Host, private FlowArrivals::Host {
 public:
  World(const WorldConfig& config, uint64_t seed);  // std::invalid_argument on a bad configuration
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  void run(Time until);                  // handles every event up to and including until
  bool run(Time until, uint32_t& events);  // at most so many of them, which are counted down; false: there are more
  void set_budget(EventBudget* budget) { budget_ = budget; }  // of whoever runs it from now on; null: nobody is to be asked
  // Runs until one of these flows has received an ACK after now, at most to until. True if one came.
  bool run_to_ack(std::span<const uint32_t> flows, Time until);
  Time now() const { return now_; }
  uint64_t seed() const { return seed_; }
  Time next_event() const {              // kNever: none
    return std::min({network_.flights.next(), tree_[1], network_.apart.next()});
  }

  std::deque<Flow>& flows() { return flows_; }
  std::vector<Link>& links() { return network_.links; }
  std::vector<std::unique_ptr<SharedBuffer>>& switches() { return switches_; }
  std::deque<netbuf::Host>& hosts() { return network_.hosts; }
  void resize_ring(uint32_t host, int64_t packets);
  void set_window(uint32_t flow, double bytes);  // of a flow that an agent controls
  // Runs until one of these flows' receivers has got data after now, at most to until. True if one has.
  bool run_to_data(std::span<const uint32_t> flows, Time until);
  // Before it runs: receivers and ports take turns with all else, which comes to the same.
  void take_turns() {
    looked_ahead_ = true;
    deferred_.clear();
  }
  bool runs_apart() const { return lead_ > 0; }
  bool defers_ports() const { return looked_ahead_ && !deferred_.empty(); }
  void woken(uint32_t flow) { update(first_flow_ + flow); }  // one of its applications has been woken from outside
  size_t memory_bytes() const;
  // What the next step reads first, for whoever steps more worlds in turn than the caches hold; later brought up to date.
  Hot hot() const;
  void warm(Hot& hot) const;

  // ---- traffic
  const std::vector<OpenedFlow>& opened() const { return flow_arrivals_ ? flow_arrivals_->opened() : none_opened_; }
  const std::vector<Completion>& completions() const { return flow_arrivals_ ? flow_arrivals_->completions() : none_completed_; }
  int64_t received_bytes(const OpenedFlow& flow) const { return flow_arrivals_->received_bytes(flow); }
  double ideal_s(uint32_t sender, int64_t size_bytes, Time start) const {
    return flow_arrivals_->ideal_s(sender, size_bytes, start);
  }
  std::vector<PageLoad> pages() const { return flow_arrivals_ ? flow_arrivals_->pages() : std::vector<PageLoad>(); }
  TrafficTotals traffic_totals() const { return flow_arrivals_ ? flow_arrivals_->totals() : TrafficTotals{}; }
  uint64_t packets_received() const { return network_.packets_received; }  // data, at the receivers of all flows
  int64_t delivered_bytes() const { return network_.delivered_bytes; }     // in order, likewise
  uint64_t data_packets_in_network() const { return flow_arrivals_ ? flow_arrivals_->data_packets_in_network() : 0; }
  const ProbeResult& probe(size_t index) const { return probes_[index].result(); }
  size_t probes() const { return probes_.size(); }
  const std::vector<std::unique_ptr<UdpSource>>& udp() const { return udp_; }
  const PacketLog* log() const { return log_.get(); }

 private:
  // Link::Host
  void sent(const Queued& item, Time arrival) override;
  void lost(const Queued& item, Link::Fate fate) override;
  void altered(const Queued& item, PacketEvent event) override;
  void rescheduled(uint32_t link) override { touched_.push_back(source_of_link_[link]); }
  // FlowArrivals::Host
  void opened(uint32_t index, Flow& flow) override;
  void forgotten(uint32_t index) override;
  void woken_by_relay(uint32_t index) override { touched_.push_back(first_flow_ + index); }
  void awaited() override { touched_.push_back(first_flow_ - 1); }  // FlowArrivals is the last of the sources

  void build_links(const WorldConfig& config);
  PacketEnds ends_of(const Queued& item) const;
  void build_hosts(const WorldConfig& config);
  void count_uses(const WorldConfig& config);
  void build_flows(const WorldConfig& config);
  void build_one_ways(const WorldConfig& config, uint64_t seed);
  void order_ties(const WorldConfig& config);
  void build_tree();

  void check_until(Time until) const;
  void find_ports(const WorldConfig& config);
  [[gnu::cold]] void look_ahead();
  void catch_up() {                          // what has left deferred ports by now has left
    for (Link* const port : deferred_) port->catch_up(now_);
  }
  void end(Time until) {
    now_ = until;
    catch_up();
    if (!touched_.empty()) take_notice();
  }
  bool run_apart(Time until, uint32_t& events);
  uint32_t run_but_arrivals(Time until, uint32_t most, Time& done);
  uint32_t run_receivers(Time until, Time timers_before);
  bool arrival_first(uint32_t lane) const;   // of an arrival and a timer
  void run_arrival(uint32_t lane);
  uint32_t run_acks(uint32_t lane, Time until, uint32_t most);
  [[gnu::noinline]] uint32_t run_ack_train(uint32_t lane, Ack ack, Time until, uint32_t most);
  template <class Count>
  bool run_to(std::span<const uint32_t> flows, Time until, Count&& count);
  bool packet_first(uint32_t lane) const;    // of a packet and a source or timer that are due at the same instant
  void run_next();                           // the next event
  void run_packet(uint32_t lane) {
    Flight flight;
    network_.flights.pop(lane, flight);
    const Destination to = flight.packet.destination();
    const uint32_t index = to.flow();
    Flow& flow = *by_index_[index];
    flow.arrive(flight, to.stage());
    after_flow(index, flow);
  }
  void prefetch_second(uint32_t lane) const;
  void run_source(uint32_t source);
  void run_tied();
  [[gnu::cold, gnu::noinline]] void log_arrival(uint32_t lane);  // of the next packet of a lane
  void after_flow(uint32_t index, Flow& flow) {
    if (index >= static_flows_ && flow.over()) [[unlikely]] return after_end(index);
    if (flow.next_timer() != timers_[index]) [[unlikely]] update_timer(index, flow.next_timer());
    if (!touched_.empty()) [[unlikely]] take_notice();
  }
  void after_end(uint32_t index);            // of one that traffic has opened
  void take_notice();                        // of what events have done to others than their own
  bool tied(uint32_t source) const;
  uint32_t first_source() const;
  Time next_of(uint32_t source) const;
  size_t leaf(uint32_t source) const {
    return source < first_flow_ ? first_source_leaf_ + source : first_timer_leaf_ + (source - first_flow_);
  }
  void update(uint32_t source) { update(source, next_of(source)); }
  void update(uint32_t source, Time time) { update_leaf(leaf(source), time); }
  void update_timer(uint32_t flow, Time time) { update_leaf(first_timer_leaf_ + flow, time); }
  void update_leaf(size_t node, Time time) {  // whose next event has changed
    Time* const tree = tree_.data();
    tree[node] = time;
    while (node > 1) {
      time = std::min(time, tree[node ^ 1]);
      node /= 2;
      if (tree[node] == time) return;        // and so are all above
      tree[node] = time;
    }
  }

  // What every step needs stands together.
  Time now_ = 0;
  uint32_t first_flow_ = 0;              // source number of flow 0
  bool ordered_ = false;                 // flows' events of the same instant take turns as in ns-3
  bool one_by_one_ = false;              // ordered, or logged
  bool looked_ahead_ = false;
  Time lead_ = 0;                        // of others over receivers, see run_apart(); 0: all take turns
  // Times of next events, in a tree whose inner nodes have the least of theirs. Node 1 is the root. Sources, few and often
  // first, have the tree of node 2, flows' timers that of node 3, or of node 1 where they are alone; leaves stand behind
  // inner nodes. Of equals the lower index comes first.
  std::vector<Time> tree_;
  size_t first_source_leaf_ = 0, first_timer_leaf_ = 0, flow_leaves_ = 0;
  const Time* timers_ = nullptr;         // the flows' leaves
  EventBudget* budget_ = nullptr;
  uint32_t static_flows_ = 0;            // that live as long as the world
  std::vector<Flow*> by_index_;          // null: forgotten
  Network network_;
  std::vector<uint32_t> touched_;        // sources whose next event others have changed
  std::vector<Link*> deferred_;          // ports of switches, see look_ahead()
  std::deque<Flow> flows_;
  uint64_t seed_;
  Rng rng_;
  const StackProfile* profile_;          // usual
  std::vector<std::unique_ptr<SharedBuffer>> switches_;
  std::vector<SharedMedium> media_;

  std::vector<EventSource*> sources_;
  std::vector<uint32_t> source_of_link_;
  uint32_t first_one_way_ = 0;           // source number
  std::vector<OneWay*> one_ways_;        // probes, then sources of datagrams
  std::deque<Probe> probes_;
  std::vector<std::unique_ptr<UdpSource>> udp_;
  std::optional<FlowArrivals> flow_arrivals_;
  std::unique_ptr<PacketLog> log_;       // null: none is kept
  static inline const std::vector<OpenedFlow> none_opened_;
  static inline const std::vector<Completion> none_completed_;
};

}  // namespace netbuf
