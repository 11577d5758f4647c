#include "netbuf/world.h"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>

#include "netbuf/links.h"
#include "netbuf/relay.h"

namespace netbuf {

World::World(const WorldConfig& config, uint64_t seed) : seed_(seed), rng_(seed) {
  validate(config);
  network_.clock = &now_;
  profile_ = &network_.profiles.emplace(config).usual();
  if (config.log_packets) network_.log = (log_ = std::make_unique<PacketLog>()).get();
  build_links(config);
  count_uses(config);
  build_hosts(config);
  build_flows(config);
  static_flows_ = static_cast<uint32_t>(flows_.size());
  build_one_ways(config, seed);
  if (!config.traffic.empty()) {
    const auto first = static_cast<uint32_t>(flows_.size());
    FlowArrivals::Host& host = *this;
    flow_arrivals_.emplace(config, seed, first, network_, switches_, &rng_, host);
    sources_.push_back(&*flow_arrivals_);
  }
  first_flow_ = static_cast<uint32_t>(sources_.size());
  if (profile_->orders_ties) order_ties(config);
  one_by_one_ = ordered_ || log_;
  find_ports(config);
  build_tree();
}

void World::build_links(const WorldConfig& config) {
  source_of_link_.assign(config.links.size(), 0);
  std::vector<Link>& links = network_.links;
  netbuf::build_links(config, &rng_, this, links, switches_, [&](uint32_t link) {
    source_of_link_[link] = static_cast<uint32_t>(sources_.size());
    sources_.push_back(&links[link]);
  }, [this](const Queued& item) { return ends_of(item); });
  media_ = build_media(config, &rng_, links);
  for (const SharedMedium& shared : media_) {
    for (const uint32_t link : shared.links) source_of_link_[link] = static_cast<uint32_t>(sources_.size());
    sources_.push_back(shared.medium.get());
  }
}

PacketEnds World::ends_of(const Queued& item) const {
  const Flow* flow = item.owner < by_index_.size() ? by_index_[item.owner] : nullptr;
  if (flow) return flow->ends(item.is_ack);
  const uint64_t own = ~uint64_t{item.owner};
  return {own, own};
}

// A ring that can be resized while packets wait in it is a queue of its own.
void World::build_hosts(const WorldConfig& config) {
  for (const HostConfig& host : config.hosts) {
    HostConfig& settings = network_.hosts.emplace_back(host).settings();
    for (const uint32_t device : host.devices) {
      if (host.ring_packets > 0) network_.links[device].resize_queue(host.ring_packets);
      settings.ring_packets = host.ring_packets > 0 ? host.ring_packets : config.links[device].queue_limit_packets;
    }
  }
}

// Several flows of one sender share its links. What is no connection's comes from anywhere.
void World::count_uses(const WorldConfig& config) {
  using Use = Network::Use;
  network_.uses.assign(config.links.size(), {});
  network_.lanes.assign(config.links.size(), 0);
  const auto use = [&](const std::vector<uint32_t>& path, uint32_t times, bool connection = true) {
    for (size_t i = 0; i < path.size(); ++i) {
      Use& link = network_.uses[path[i]];
      const uint32_t from = connection && i > 0 ? path[i - 1] : Use::kSeveral;
      link.count += times;
      link.from = link.from == Use::kNone || link.from == from ? from : Use::kSeveral;
      if (i > 0 && profile_->orders_ties) network_.links[path[i]].keep_drained();
    }
  };
  for (const FlowConfig& flow : config.flows) {
    use(flow.path, 1), use(flow.return_path, 1);
    for (const RouteConfig& route : flow.routes) use(route.path, 1), use(route.return_path, 1);
  }
  for (const TrafficConfig& traffic : config.traffic) {
    for (const FlowConfig& sender : traffic.senders) {
      use(sender.path, 2), use(sender.return_path, 2);
      for (const FlowConfig& leg : sender.relay) use(leg.path, 2), use(leg.return_path, 2);
    }
  }
  for (const ProbeConfig& probe : config.probes) use(probe.path, 2, false);
  for (const UdpConfig& udp : config.udp) use(udp.path, 2, false);
}

void World::build_flows(const WorldConfig& config) {
  std::vector<Time> later(config.flows.size());
  Rng starts(seed_ ^ 0x7374617274730000);  // another stream than the world's own
  for (Time& start : later) {
    start = static_cast<Time>(starts.uniform() * static_cast<double>(config.start_jitter_ns));
  }
  for (FlowConfig flow : config.flows) {
    const auto index = static_cast<uint32_t>(flows_.size());
    size_t first = index;  // legs over relays go together
    while (config.flows[first].relay_from >= 0) first = static_cast<size_t>(config.flows[first].relay_from);
    flow.start_ns += later[first];
    if (flow.stop_ns > 0) flow.stop_ns += later[first];
    by_index_.push_back(&flows_.emplace_back(index, flow, config, network_, &rng_));
  }
  for (uint32_t i = 0; i < flows_.size(); ++i) {
    const FlowConfig& flow = config.flows[i];
    if (flow.relay_from < 0) continue;
    const auto upstream = static_cast<uint32_t>(flow.relay_from);
    make_relay({&flows_[upstream], upstream}, {&flows_[i], i}, flow.relay_buffer_bytes,
               [this](uint32_t index) { woken_by_relay(index); });
  }
}

void World::build_one_ways(const WorldConfig& config, uint64_t seed) {
  first_one_way_ = static_cast<uint32_t>(sources_.size());
  const auto add = [this](OneWay& one) { one_ways_.push_back(&one), sources_.push_back(&one); };
  const auto index = [this] { return static_cast<uint32_t>(one_ways_.size()); };
  for (const ProbeConfig& probe : config.probes) add(probes_.emplace_back(probe, index(), network_));
  Rng seeds(seed ^ 0x6461746167726d73);  // another stream than the world's own
  for (const UdpConfig& udp : config.udp) add(*udp_.emplace_back(make_udp_source(udp, *profile_, seeds.next(), index(), network_)));
}

void World::order_ties(const WorldConfig& config) {
  ordered_ = first_one_way_ > 0;
  if (!ordered_) return;
  std::vector<Link>& links = network_.links;
  for (const FlowConfig& flow : config.flows) links[flow.path.front()].remember_busy_periods();
  for (const TrafficConfig& traffic : config.traffic) {
    for (const FlowConfig& sender : traffic.senders) links[sender.path.front()].remember_busy_periods();
  }
}

void World::build_tree() {
  const size_t flows = by_index_.size(), leaves = std::bit_ceil(std::max<size_t>(1, first_flow_));
  const size_t root = first_flow_ > 0 ? 3 : 1;  // of the flows
  flow_leaves_ = std::bit_ceil(std::max<size_t>(1, flows));
  first_source_leaf_ = 2 * leaves;
  first_timer_leaf_ = root * flow_leaves_;
  tree_.assign(std::max(3 * leaves, (root + 1) * flow_leaves_), kNever);
  timers_ = &tree_[first_timer_leaf_];
  for (uint32_t i = 0; i < first_flow_ + flows; ++i) update(i);
}

// The source of the root's time; the lowest of equals.
uint32_t World::first_source() const {
  const Time first = tree_[1];
  size_t node = 1;
  if (first_flow_ > 0) {
    node = tree_[2] == first ? 2 : 3;
    if (node == 2) {
      while (node < first_source_leaf_) node = 2 * node + (tree_[2 * node] != first);
      return static_cast<uint32_t>(node - first_source_leaf_);
    }
  }
  while (node < first_timer_leaf_) node = 2 * node + (tree_[2 * node] != first);
  return first_flow_ + static_cast<uint32_t>(node - first_timer_leaf_);
}

Time World::next_of(uint32_t source) const {
  if (source < first_flow_) return sources_[source]->next();
  const Flow* flow = by_index_[source - first_flow_];
  return flow ? flow->next_timer() : kNever;
}

// ---- running

void World::check_until(Time until) const {
  if (until >= now_ && until < kNever) return;
  throw std::invalid_argument("until_ns = " + std::to_string(until) + ": must be in [" + std::to_string(now_) +
                              ", 2^61)");
}

void World::run(Time until) {
  EventBudget alone;
  EventBudget& budget = budget_ ? *budget_ : alone;
  while (!run(until, budget.left)) budget.renew();
}

// Into the cache, while the next of a lane is run, what the one after it will look at.
inline void World::prefetch_second(uint32_t lane) const {
  const Flight* const second = network_.flights.second(lane);
  if (!second) return;
  const Destination to = second->packet.destination();
  const Flow* const flow = by_index_[to.flow()];
  if (!flow) return;
  const auto fetch = [](const void* at, size_t bytes) {
    for (size_t i = 0; i < bytes; i += 64) __builtin_prefetch(static_cast<const char*>(at) + i);
  };
  fetch(flow, 192);                      // timers, path
  if (to.stage() == kAtReceiver) {
    fetch(&flow->receiver, 192);
  } else {
    fetch(&flow->sender, 576);
  }
}

bool World::run(Time until, uint32_t& events) {
  check_until(until);
  if (one_by_one_) {
    for (; next_event() <= until; --events) {
      if (events == 0) return false;
      run_next();
    }
    now_ = until;
    return true;
  }
  if (!looked_ahead_) [[unlikely]] look_ahead();
  if (lead_ > 0) return run_apart(until, events);
  constexpr size_t kMany = 512;          // flows: more than the first caches hold
  const bool many = by_index_.size() >= kMany;
  uint32_t left = events;
  for (; left > 0; --left) {
    const uint32_t lane = network_.flights.first();
    const Time packet = network_.flights.time(lane), other = tree_[1];
    if (packet < other || (packet == other && packet < kNever && packet_first(lane))) [[likely]] {
      if (packet > until) break;
      now_ = packet;
      if (many) [[unlikely]] prefetch_second(lane);
      run_packet(lane);
    } else {
      if (other > until) break;
      now_ = other;
      run_source(first_source());
    }
  }
  events = left;
  const bool done = next_event() > until;
  end(done ? until : now_);              // counters are right between slices too
  return done;
}

// Those that may be deferred (Link::defer()): nobody but the switch and what it tells reads them as the world runs, nothing
// is drawn, and what arrives at one instant at one place has come one way.
void World::find_ports(const WorldConfig& config) {
  if (one_by_one_ || profile_->orders_ties || !one_ways_.empty() || !config.hosts.empty()) return;
  const auto draws = [](const Link& link) { return link.loses() || link.changes() || link.duplicates(); };
  if (std::any_of(network_.links.begin(), network_.links.end(), draws)) return;
  const auto turns = [](const FlowConfig& flow) { return !flow.routes.empty(); };
  if (std::any_of(config.flows.begin(), config.flows.end(), turns)) return;
  for (const TrafficConfig& traffic : config.traffic) {
    if (std::any_of(traffic.senders.begin(), traffic.senders.end(), turns)) return;
  }
  for (const SwitchConfig& sw : config.switches) {
    for (const uint32_t port : sw.ports) deferred_.push_back(&network_.links[port]);
  }
}

// ---- receivers apart
//
// What a receiver does upon data shows in nothing but its ACKs (Receiver::alone()), and these need a while on their way
// (Flow::receiver_lead()). So whatever happens within that while of the first arrival that has not been run does not
// depend on this and later ones, and all the rest can be run before them: then receivers run in a train of packets what
// they would have run in as many turns. Both parts keep their own order; what belongs to both commutes:
// - links: those that ACKs enter are entered by ACKs alone (look_ahead()), each of which receivers send in order of time, and
//   lose none at random: all of chance is drawn by the rest, in its order;
// - flights: in order of time and destination, whenever they were placed;
// - timers: one of a receiver's waits for arrivals before it (run_but_arrivals()), and what receivers set to go off before
//   others have got is run among their arrivals (run_receivers());
// - EchoedRoundTrips: an ACK that arrives reaches only those that left before it, which have been run, and one that has
//   arrived after a packet left is no echo of this packet. Without SACK two ACKs can be alike (Receiver::alone()).
// At the end of run() nobody is ahead of anybody.

// Once flows are as they stay, and before anything is on its way.
void World::look_ahead() {
  looked_ahead_ = true;
  std::erase_if(deferred_, [](Link* port) { return !port->defer(); });
  constexpr size_t kFew = 32;            // of more flows trains are short, and turns cost less
  if (one_by_one_ || profile_->orders_ties || flow_arrivals_ || flows_.empty() || flows_.size() > kFew) return;
  Time lead = kNever;
  std::vector<uint32_t> entered(network_.links.size(), 0);  // by ACKs first
  for (const Flow& flow : flows_) {
    lead = std::min(lead, flow.receiver_lead());
    ++entered[flow.path.first_link_back()];
  }
  for (size_t i = 0; i < entered.size(); ++i) {
    if (entered[i] > 0 && entered[i] != network_.uses[i].count) return;
  }
  lead_ = lead;
  if (lead_ == 0) return;
  network_.arrivals = &network_.apart;
  for (Flow& flow : flows_) flow.path.travel_in_trains(flow.sender.tcb.mss);
}

bool World::run_apart(Time until, uint32_t& events) {
  constexpr uint32_t kMost = 64;         // events by which others get ahead: what receivers take in then is still cached
  uint32_t left = events;
  for (;;) {
    const Time next = next_event();
    if (next > until) break;
    if (left == 0) return events = 0, false;
    Time done;
    uint32_t run = run_but_arrivals(std::min(until, next + lead_ - 1), std::min(left, kMost), done);
    const Time last = now_;              // some of this instant may be left
    run += run_receivers(done, done + 1);
    now_ = std::max(done, last);
    left -= std::min(left, run);
  }
  events = left;
  now_ = until;
  return true;
}

// At most so many events, up to until, and how many; done: up to where there is nothing left to do.
uint32_t World::run_but_arrivals(Time until, uint32_t most, Time& done) {
  for (uint32_t run = 0;;) {
    const uint32_t lane = network_.flights.first();
    const Time packet = network_.flights.time(lane), other = tree_[1];
    const bool is_packet = packet < other || (packet == other && packet < kNever && packet_first(lane));
    const Time next = is_packet ? packet : other;
    if (next > until || run >= most) [[unlikely]] {
      done = std::min(until, next - 1);
      return run;
    }
    if (is_packet) [[likely]] {
      run += run_acks(lane, until, most - run);
      continue;
    }
    ++run;
    const uint32_t source = first_source();
    if (source >= first_flow_ && by_index_[source - first_flow_]->next_timer_is_receivers()) {
      run += run_receivers(next, next);
      if (tree_[1] != next || first_source() != source) continue;
    }
    now_ = next;
    run_source(source);
  }
}

bool World::arrival_first(uint32_t lane) const {
  const Time time = network_.apart.time(lane), other = tree_[1];
  if (time != other) return time < other;
  const uint32_t source = first_source();
  return source >= first_flow_ && network_.apart.destination(lane).flow() <= source - first_flow_;
}

void World::run_arrival(uint32_t lane) {
  Flights& arrivals = network_.apart;
  Flight flight = arrivals.front(lane);
  const uint32_t index = flight.packet.flow();
  Flow& flow = *by_index_[index];
  if (followers(flight.packet) == 0) {
    arrivals.pop(lane, flight);
  } else {
    arrivals.take(lane, 1, 1, flow.path.spacing());
    flight.packet.to = flight.packet.destination().word();
    flight.packet.kind = kData;
  }
  now_ = flight.packet.time;
  flow.arrive(flight, kAtReceiver);
  after_flow(index, flow);
}

// Arrivals up to then, and timers that they set, as far as they go off before that time. How many.
uint32_t World::run_receivers(Time until, Time timers_before) {
  Flights& arrivals = network_.apart;
  for (uint32_t run = 0;;) {
    const uint32_t lane = arrivals.first();
    const Time time = arrivals.time(lane), timer = tree_[1];
    if (time >= timer && !arrival_first(lane)) [[unlikely]] {
      if (timer >= timers_before) return run;
      now_ = timer;
      run_source(first_source());
      ++run;
      continue;
    }
    if (time > until) return run;
    for (Time end = std::min(until + 1, timer);;) {  // what this lane holds before anything else happens
      end = std::min(end, arrivals.next_beside(lane));
      const Packet& packet = arrivals.front(lane).packet;
      const uint32_t index = arrivals.destination(lane).flow();
      Flow& flow = *by_index_[index];
      const uint32_t count = flow.receiver.receive_train(packet, end);
      run += count;
      if (count > followers(packet)) [[likely]] {
        arrivals.drop(lane);
      } else if (count > 0) {
        arrivals.take(lane, count, 1, flow.path.spacing());
      } else {
        run_arrival(lane);
        ++run;
        break;
      }
      if (flow.next_timer() != timers_[index]) [[unlikely]] {
        update_timer(index, flow.next_timer());
        break;
      }
      if (arrivals.time(lane) >= end) break;
    }
  }
}

// ACKs of a lane up to then, at most so many, of a train or one by one, before anything else happens. How many.
inline uint32_t World::run_acks(uint32_t lane, Time until, uint32_t most) {
  Flights& flights = network_.flights;
  uint32_t run = 0;
  Time end = until + 1;
  do {
    const Flight& head = flights.front(lane);
    now_ = head.ack.time;
    if (followers(head.ack) > 0) return run + run_ack_train(lane, head.ack, until, most - run);
    Ack ack = head.ack;
    const uint32_t index = flights.destination(lane).flow();
    Flow& flow = *by_index_[index];
    flights.drop(lane);
    flow.path.arrived();
    flow.sender.receive(ack);
    if (flow.next_timer() != timers_[index]) [[unlikely]] update_timer(index, flow.next_timer());
    end = std::min(end, flights.next_beside(lane));
  } while (++run < most && flights.time(lane) < end && flights.time(lane) < tree_[1]);
  return run;
}

uint32_t World::run_ack_train(uint32_t lane, Ack ack, Time until, uint32_t most) {
  Flights& flights = network_.flights;
  const uint32_t index = flights.destination(lane).flow();
  Flow& flow = *by_index_[index];
  most = std::min(most, followers(ack) + 1);
  const uint32_t step = flow.path.ack_step();
  const Time spacing = flow.path.ack_spacing(), end = std::min(until + 1, flights.next_beside(lane));
  ack.sack = 0;
  uint32_t run = 0;
  do {
    now_ = ack.time;
    flow.path.arrived();
    flow.sender.receive(ack);
    ack.time += spacing;
    ack.ack += step;
    if (flow.next_timer() != timers_[index]) [[unlikely]] update_timer(index, flow.next_timer());
  } while (++run < most && ack.time < end && ack.time < tree_[1]);
  flights.take(lane, run, step, spacing);
  return run;
}

// Until what is counted of these flows has grown.
template <class Count>
bool World::run_to(std::span<const uint32_t> flows, Time until, Count&& count) {
  check_until(until);
  if (!looked_ahead_) [[unlikely]] look_ahead();
  const auto counted = [&] {
    uint64_t sum = 0;
    for (const uint32_t flow : flows) sum += count(flows_[flow]);
    return sum;
  };
  const uint64_t before = counted();
  while (next_event() <= until) {
    if (budget_ && budget_->left-- == 0) {
      end(now_);                           // who asks for signals may leave
      budget_->renew();
    }
    run_next();
    if (counted() != before) return end(now_), true;
  }
  end(until);
  return false;
}

bool World::run_to_ack(std::span<const uint32_t> flows, Time until) {
  return run_to(flows, until, [](const Flow& flow) { return flow.sender.counters.acks; });
}

bool World::run_to_data(std::span<const uint32_t> flows, Time until) {
  return run_to(flows, until, [](const Flow& flow) { return flow.receiver.counters().packets_received; });
}

// Sources come before flows, lower flows before higher, and of one flow what arrives at an end before its timers.
bool World::packet_first(uint32_t lane) const {
  const uint32_t source = first_source();
  if (source < first_flow_) return false;
  const Destination to = network_.flights.destination(lane);
  const uint32_t flow = source - first_flow_;
  return to.flow() != flow ? to.flow() < flow : to.stage() <= kAtSender;
}

void World::run_next() {
  if (lead_ > 0) {
    const uint32_t arrival = network_.apart.first(), other = network_.flights.first();
    const auto order = [](const Flights& flights, uint32_t lane) {
      return std::pair(flights.time(lane), flights.destination(lane));
    };
    if (arrival_first(arrival) && order(network_.apart, arrival) < order(network_.flights, other)) {
      return run_arrival(arrival);
    }
    if (const Time next = network_.flights.time(other);
        next < tree_[1] || (next == tree_[1] && next < kNever && packet_first(other))) {
      run_acks(other, next, 1);
      return;
    }
  }
  const uint32_t lane = network_.flights.first();
  const Time packet = network_.flights.time(lane), other = tree_[1];
  now_ = std::min(packet, other);
  const bool is_packet = packet < other || (packet == other && packet_first(lane));
  if (one_by_one_) {
    if (ordered_ && (is_packet || first_source() >= first_flow_)) return run_tied();
    if (is_packet && log_) log_arrival(lane);
  }
  is_packet ? run_packet(lane) : run_source(first_source());
}

void World::run_source(uint32_t source) {
  if (source >= first_flow_) {
    Flow& flow = *by_index_[source - first_flow_];
    flow.run_timer();
    return after_flow(source - first_flow_, flow);
  }
  EventSource& one = *sources_[source];
  // What arrives at this very moment still finds the queue as it was: a device takes its next packet after that (ns-3).
  if (one.runs_last() && tied(source)) {
    update(source, kNever);
    while (next_event() == now_) run_next();
  }
  if (one.next() <= now_) one.run(now_);
  update(source);
  if (!touched_.empty()) take_notice();
}

void World::after_end(uint32_t index) {
  catch_up();
  flow_arrivals_->after_event(index, now_);
  const Flow* flow = by_index_[index];
  const Time next = flow ? flow->next_timer() : kNever;
  if (next != timers_[index]) update_timer(index, next);
  if (!touched_.empty()) take_notice();
}

void World::take_notice() {
  for (size_t i = 0; i < touched_.size(); ++i) {
    const uint32_t source = touched_[i], index = source - first_flow_;
    if (source >= first_flow_ + static_flows_ && by_index_[index]) {
      catch_up();
      flow_arrivals_->after_event(index, now_);
    }
    update(source);
  }
  touched_.clear();
}

// Whether something else is due when this source is, whose turn it is.
bool World::tied(uint32_t source) const {
  if (network_.flights.next() == now_) return true;
  for (size_t node = leaf(source); node > 1; node /= 2) {
    if (tree_[node ^ 1] == now_) return true;
  }
  return false;
}

void World::log_arrival(uint32_t lane) {
  const Flight& flight = network_.flights.front(lane);
  by_index_[flight.packet.flow()]->path.log_arrival(flight);
}

// The events of all flows that are due now, one of each, in the order in which they were scheduled.
void World::run_tied() {
  struct Due {
    Flow::Turn turn;
    uint32_t flow;
    bool timer;
    Flight flight;
  };
  std::vector<Due> due;
  std::vector<Flight> later;
  Flights& flights = network_.flights;
  for (;;) {
    const uint32_t lane = flights.first();
    const bool packet = flights.time(lane) == now_;
    const bool timer = tree_[1] == now_ && first_source() >= first_flow_;
    if (!packet && !timer) break;
    if (packet && (!timer || packet_first(lane))) {
      Flight flight;
      if (log_) [[unlikely]] log_arrival(lane);
      flights.pop(lane, flight);
      const uint32_t index = flight.packet.flow();
      if (!due.empty() && due.back().flow == index) {
        later.push_back(flight);
      } else {
        due.push_back({by_index_[index]->turn(flight), index, false, flight});
      }
    } else {
      const uint32_t source = first_source(), index = source - first_flow_;
      if (due.empty() || due.back().flow != index) due.push_back({by_index_[index]->timer_turn(), index, true, {}});
      update(source, kNever);
    }
  }
  uint8_t hint = 0;
  for (const Flight& flight : later) flights.push(flight, hint);
  std::sort(due.begin(), due.end(), [](const Due& a, const Due& b) {
    return a.turn != b.turn ? a.turn < b.turn : a.flow < b.flow;
  });
  for (Due& one : due) {
    if (!by_index_[one.flow]) continue;  // forgotten since, when the other leg of its relay failed
    if (one.timer) {
      if (next_of(first_flow_ + one.flow) == now_) by_index_[one.flow]->run_timer();
    } else {
      by_index_[one.flow]->arrive(one.flight, one.flight.packet.stage());
    }
    after_flow(one.flow, *by_index_[one.flow]);
  }
}

// ---- what links and traffic tell

void World::sent(const Queued& item, Time arrival) {
  if (item.owner >= kOneWayOwner) {
    if (item.owner == kNobody) return;
    const uint32_t index = item.owner - kOneWayOwner;
    one_ways_[index]->resume(item, arrival);
    touched_.push_back(first_one_way_ + index);
    return;
  }
  Path& path = by_index_[item.owner]->path;
  path.resume(item, arrival);
  if (item.owner >= static_flows_ && path.empty()) touched_.push_back(first_flow_ + item.owner);
}

void World::lost(const Queued& item, Link::Fate fate) {
  if (item.owner >= kOneWayOwner) {
    if (item.owner != kNobody) one_ways_[item.owner - kOneWayOwner]->lost(item, fate);
    return;
  }
  by_index_[item.owner]->path.lost(item, fate);
}

void World::altered(const Queued& item, PacketEvent event) {
  if (item.owner >= kOneWayOwner) return one_ways_[item.owner - kOneWayOwner]->altered(item, event);
  by_index_[item.owner]->path.altered(item, event);
}

void World::opened(uint32_t index, Flow& flow) {
  if (index == by_index_.size()) {
    by_index_.push_back(&flow);
    if (by_index_.size() > flow_leaves_) return build_tree();
  }
  by_index_[index] = &flow;
  update(first_flow_ + index);
}

void World::forgotten(uint32_t index) { by_index_[index] = nullptr; }

void World::set_window(uint32_t index, double bytes) {
  flows_[index].agent_window(now_, bytes);
  update(first_flow_ + index);
  if (!touched_.empty()) take_notice();
}

void World::resize_ring(uint32_t index, int64_t packets) {
  netbuf::Host& host = network_.hosts[index];
  HostConfig& settings = host.settings();
  if (packets == settings.ring_packets) return;
  settings.ring_packets = packets;
  const Time until = now_ + settings.ring_stall_ns;
  for (const uint32_t device : settings.devices) {
    Link& link = network_.links[device];
    link.resize_queue(packets);
    if (link.managed() && until > now_) link.stall(now_, until);
  }
  host.interrupt(now_, until);
  take_notice();
}

Hot World::hot() const {
  Hot hot;
  const auto add_up_to = [&hot](const void* from, const void* to) {
    hot.add(from, static_cast<size_t>(static_cast<const char*>(to) - static_cast<const char*>(from)));
  };
  if (flow_arrivals_) {                  // nothing is run apart
    add_up_to(this, &network_.apart);
    add_up_to(&network_.arrivals, &network_.profiles);
    add_up_to(&touched_, &rng_);
  } else {
    add_up_to(this, &rng_);
  }
  for (size_t i = 0; i < std::min<size_t>(network_.links.size(), 2); ++i) network_.links[i].add_to(hot);
  if (!switches_.empty()) switches_.front()->add_to(hot);
  if (!flows_.empty()) {
    const Flow& flow = flows_.front();
    hot.add(&flow, sizeof flow);
    hot.add(by_index_.data(), sizeof(Flow*));
    flow.sender.add_to(hot);
    flow.receiver.add_to(hot);
  }
  hot.lasting = hot.count;
  warm(hot);
  return hot;
}

void World::warm(Hot& hot) const {
  hot.count = hot.lasting;
  hot.add(tree_.data(), std::min<size_t>(tree_.size() * sizeof(Time), 256));
  if (!flows_.empty()) flows_.front().sender.board.add_to(hot);
  network_.flights.add_to(hot);
  if (lead_ > 0) network_.apart.add_to(hot);
  if (!switches_.empty()) switches_.front()->add_next_to(hot);
  if (!flow_arrivals_) return;
  network_.flights.visit_next([&](uint32_t flow) { hot.add(by_index_[flow], sizeof(Flow)); });
}

size_t World::memory_bytes() const {
  size_t bytes = sizeof *this + tree_.capacity() * sizeof(Time) + network_.flights.memory_bytes() +
                 network_.apart.memory_bytes();
  for (const Link& link : network_.links) bytes += link.memory_bytes();
  for (const Flow& flow : flows_) bytes += flow.memory_bytes();
  for (const auto& sw : switches_) bytes += sw->memory_bytes();
  for (const SharedMedium& shared : media_) bytes += shared.medium->memory_bytes();
  return bytes + (flow_arrivals_ ? flow_arrivals_->memory_bytes() : 0);
}

}  // namespace netbuf
