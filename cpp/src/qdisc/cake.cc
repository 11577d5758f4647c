// CAKE: a shaper that counts what a line's framing adds, tins by DSCP, and in each tin queues of flows served in turn
// under COBALT, so that hosts get equal shares, and flows of a host.
//
// Sources: Hoeiland-Joergensen, Taht and Morton, "Piece of CAKE: a comprehensive queue management solution for home
// gateways", LANMAN 2018; behaviour, tables and defaults of net/sched/sch_cake.c (Linux 6.18) and tc-cake(8). Hosts are
// told apart exactly, by the flows' (Flow.sender_host and receiver_host), and loads are divided without a table.
#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_map>

#include "qdisc/cake_tins.h"
#include "qdisc/cobalt.h"
#include "qdisc/flow_queues.h"

namespace netbuf {
namespace {

constexpr uint32_t kQueues = 1024, kWays = 8;
constexpr uint32_t kMtu = 1514;
constexpr int64_t kLeastMemory = 4 << 20, kMostMemory = int64_t{10'240} * kMtu;

// Isolation, as the kernel counts its modes: bits.
enum Isolation : uint32_t { kBySource = 1, kByDestination = 2, kByFlow = 4 };
enum class Framing : uint8_t { none, atm, ptm };
constexpr double kRoundTripsMs[] = {0.1, 1, 10, 30, 100, 300, 1000, 3'600'000};

// A tin: its share of the rate, its weight in turns without a shaper, and whether its interval is the target.
struct Kind {
  double share;
  int32_t quantum;
  bool brisk = false;
};
std::vector<Kind> list_tins(int diffserv) {
  switch (diffserv) {
    case 0: return {{1, 65'535}};
    case 1: return {{1, 1024}, {1.0 / 16, 64}, {0.25, 256, true}};
    case 2: return {{1, 1024}, {1.0 / 16, 64}, {0.5, 512}, {0.25, 256, true}};
    default: break;
  }
  std::vector<Kind> kinds;
  for (Kind kind{1, 256}; kinds.size() < 8; kind = {kind.share * 7 / 8, kind.quantum * 7 >> 3}) kinds.push_back(kind);
  return kinds;
}

class Cake final : public QueueDiscipline {
 public:
  explicit Cake(const DisciplineSetting& setting)
      : isolation_(setting.parameters.as<uint32_t>("isolation")),
        tin_of_(*kTinsOf[setting.parameters.as<size_t>("diffserv")]),
        shaped_(!setting.parameters.automatic("rate_mbps")),
        ns_per_byte_(shaped_ ? 8e3 / setting.parameters["rate_mbps"] : 0),
        overhead_(setting.parameters.as<int32_t>("overhead_bytes")),
        mpu_(setting.parameters.as<int32_t>("mpu_bytes")),
        framing_(static_cast<Framing>(setting.parameters.as<uint8_t>("framing"))),
        limit_packets_(setting.limit_packets),
        hash_(setting),
        sink_(setting.sink),
        rng_(setting.rng),
        ends_(setting.ends) {
    const Parameters& given = setting.parameters;
    const double rtt_ms = given.or_else("rtt_ms", kRoundTripsMs[given.as<size_t>("path")]);
    const double bytes_per_s = shaped_ ? given["rate_mbps"] * 1e6 / 8 : 0;
    const Cobalt::Setting whole{from_seconds(given.or_else("target_ms", std::max(rtt_ms / 20, 1e-3)) * 1e-3),
                                from_seconds(rtt_ms * 1e-3), 0, given.is("ecn")};
    const int64_t memory = shaped_ ? static_cast<int64_t>(std::min(4e-3 * bytes_per_s * rtt_ms, 1e15)) : kMostMemory;
    limit_bytes_ = std::min(setting.limit_bytes, given.automatic("memory_bytes")
                                                     ? std::clamp(memory, kLeastMemory, kMostMemory)
                                                     : given.as<int64_t>("memory_bytes"));
    const std::vector<Kind> kinds = list_tins(given.as<int>("diffserv"));
    tins_.resize(kinds.size());
    for (size_t i = 0; i < kinds.size(); ++i) set_up(tins_[i], kinds[i], whole, bytes_per_s);
  }

  void enqueue(Time now, const Queued& item) override {
    if (limit_packets_ < 1 || item.bytes > limit_bytes_) return sink_->dropped(item);
    Tin& tin = tins_[tin_of_[item.priority]];
    const auto at = static_cast<double>(now);
    if (tin.queues.packets() == 0) tin.next = std::max(tin.next, at);
    if (packets_ == 0) next_ = std::max(next_, at);
    const uint32_t index = find(tin, item);
    Flow& flow = tin.queues[index];
    tin.queues.append(flow, item);
    ++packets_;
    bytes_ += item.bytes;
    State& state = flow.state;
    if (state.set == Set::none || state.set == Set::decaying) {
      if (state.set == Set::decaying) tin.queues.erase(tin.decaying, index);
      tin.queues.push(tin.fresh, index);
      state.set = Set::sparse;
      ++tin.active;
      flow.deficit = quantum(tin, state);
    } else if (state.set == Set::sparse_waiting) {
      state.set = Set::bulk;
      count(state, +1);
    }
    while (packets_ > limit_packets_ || bytes_ > limit_bytes_) drop_from_fattest(now);
  }

  Time ready(Time now) override { return shaped_ ? std::max(now, static_cast<Time>(std::ceil(next_))) : now; }

  bool dequeue(Time now, Queued& item) override {
    for (bool first = true; packets_ > 0; first = false) {
      if (serve(choose(now), now, item, first)) return true;
    }
    return false;
  }

  uint32_t packets() const override { return packets_; }
  int64_t bytes() const override { return bytes_; }
  void resize(int64_t packets) override { limit_packets_ = packets; }
  void reset(Time now) override { next_ = static_cast<double>(now); }
  void forget(uint32_t owner) override { hash_.forget(owner); }
  size_t memory_bytes() const override {
    size_t sum = sizeof *this + tins_.capacity() * sizeof(Tin) + hash_.memory_bytes();
    for (const Tin& tin : tins_) {
      sum += tin.queues.memory_bytes() + tin.tags.capacity() * sizeof(uint64_t);
      sum += (tin.sources.size() + tin.destinations.size()) * sizeof(std::pair<uint64_t, uint32_t>);
    }
    return sum;
  }

 private:
  // none: at rest. sparse: new. sparse_waiting: empty, in line with bulk. decaying: empty, its COBALT not at rest.
  enum class Set : uint8_t { none, sparse, sparse_waiting, bulk, decaying };
  struct State {
    Cobalt cobalt;
    Set set = Set::none;
    uint32_t* sources = nullptr;          // bulk flows of the host that it comes from, and of that it goes to
    uint32_t* destinations = nullptr;
  };
  using Queues = FlowQueues<State>;
  using Flow = Queues::Flow;
  struct Tin {
    Queues queues{kQueues};
    std::vector<uint64_t> tags = std::vector<uint64_t>(kQueues);  // of flows, by queue
    Queues::List fresh, old, decaying;
    uint32_t active = 0;                  // flows in fresh and old
    std::unordered_map<uint64_t, uint32_t> sources, destinations;
    Cobalt::Setting cobalt;
    double ns_per_byte = 0, next = 0;     // its share of the rate, and when it will have had it
    int32_t flow_quantum, quantum, deficit = 0;
  };

  static void set_up(Tin& tin, const Kind& kind, const Cobalt::Setting& whole, double bytes_per_s) {
    const double rate = bytes_per_s * kind.share;
    tin.ns_per_byte = rate > 0 ? 1e9 / rate : 0;
    tin.flow_quantum = rate > 0 ? static_cast<int32_t>(std::clamp(rate / 4096, 300.0, 1514.0)) : 1514;
    tin.quantum = kind.quantum;
    const auto mtu_time = static_cast<Time>(kMtu * tin.ns_per_byte);
    const Time target = std::max(mtu_time * 3 / 2, whole.target);
    const Time interval = kind.brisk ? whole.target : whole.interval;
    tin.cobalt = {target, std::max(interval + target - whole.target, 2 * target), mtu_time, whole.ecn};
  }

  uint64_t hosts_of(const PacketEnds& ends) const {
    return (isolation_ & kBySource ? scramble(ends.source + 1) : 0) ^
           (isolation_ & kByDestination ? scramble(~ends.destination) : 0);
  }
  static uint32_t queue_of(uint64_t tag) { return static_cast<uint32_t>(tag >> 32) % kQueues; }
  // The queue of a packet's flow: its own, or another of its set of eight that is at rest, or else one shared.
  uint32_t find(Tin& tin, const Queued& item) {
    const PacketEnds ends = ends_of(item);
    const uint64_t tag = isolation_ & kByFlow ? hash_(item) : hash_(hosts_of(ends));
    const uint32_t direct = queue_of(tag), set = direct - direct % kWays;
    const auto held = [&](uint32_t i) { return tin.queues[i].state.set != Set::none; };
    uint32_t found = direct;
    if (!held(direct) || tin.tags[direct] != tag) {
      uint32_t free = held(direct) ? kQueues : direct, own = kQueues;
      for (uint32_t i = set; i < set + kWays; ++i) {
        if (held(i) && tin.tags[i] == tag) own = i;
        if (!held(i) && free == kQueues) free = i;
      }
      found = own != kQueues ? own : free != kQueues ? free : direct;
      if (own == kQueues) assign(tin, tin.queues[found].state, ends);
    }
    tin.tags[found] = tag;
    return found;
  }
  void assign(Tin& tin, State& state, const PacketEnds& ends) {
    if (state.set == Set::bulk) count(state, -1);
    state.sources = (isolation_ & (kByFlow | kBySource)) == (kByFlow | kBySource) ? &tin.sources[ends.source] : nullptr;
    state.destinations =
        (isolation_ & (kByFlow | kByDestination)) == (kByFlow | kByDestination) ? &tin.destinations[ends.destination]
                                                                                : nullptr;
    if (state.set == Set::bulk) count(state, +1);
  }
  PacketEnds ends_of(const Queued& item) const {
    if (ends_) return ends_(item);
    const uint64_t own = flow_key(item);
    return {own, own};
  }
  static void count(State& state, int32_t change) {
    if (state.sources) *state.sources += static_cast<uint32_t>(change);
    if (state.destinations) *state.destinations += static_cast<uint32_t>(change);
  }
  // Of a turn: a host's is divided among its bulk flows. Fractions of bytes are rounded by chance.
  int32_t quantum(const Tin& tin, const State& state) {
    uint32_t load = 1;
    if (state.sources) load = std::max(load, *state.sources);
    if (state.destinations) load = std::max(load, *state.destinations);
    if (load == 1) return tin.flow_quantum;
    return static_cast<int32_t>(tin.flow_quantum / static_cast<double>(load) + rng_->uniform());
  }

  // Unshaped, tins take turns by weight. Shaped, the tin whose share has come; of several the one of the highest index
  // among those, of none the first that will.
  Tin& choose(Time now) {
    if (!shaped_) {
      while (tins_[current_].deficit < 0 || tins_[current_].active == 0) {
        Tin& tin = tins_[current_];
        if (tin.deficit <= 0) tin.deficit += tin.quantum;
        current_ = (current_ + 1) % tins_.size();
      }
      return tins_[current_];
    }
    double best = kNever;
    for (size_t i = 0; i < tins_.size(); ++i) {
      const double wait = tins_[i].next - static_cast<double>(now);
      if (tins_[i].active == 0 || (wait > 0 && wait > best)) continue;
      best = wait;
      current_ = i;
    }
    return tins_[current_];
  }

  // A packet of the tin; false: none yet, the tins are looked at again. first: of a call, when one queue at most is
  // asked whether it has come to rest.
  bool serve(Tin& tin, Time now, Queued& item, bool first) {
    for (;; first = false) {
      Queues::List& list = first && !tin.decaying.empty() ? tin.decaying : !tin.fresh.empty() ? tin.fresh : tin.old;
      const uint32_t index = list.head;
      Flow& flow = tin.queues[index];
      State& state = flow.state;
      if (flow.deficit <= 0) {
        if (state.set == Set::sparse) {
          state.set = flow.empty() ? Set::sparse_waiting : Set::bulk;
          if (state.set == Set::bulk) count(state, +1);
        }
        flow.deficit += quantum(tin, state);
        tin.queues.pop(list);
        tin.queues.push(state.set == Set::decaying ? tin.decaying : tin.old, index);
        continue;
      }
      while (take(tin, flow, item)) {
        if (state.cobalt.judge(now, tin.cobalt, item, *rng_, *sink_) == Cobalt::Verdict::send || flow.empty()) {
          const double length = adjusted(item.bytes);
          flow.deficit -= static_cast<int32_t>(length);
          tin.deficit -= static_cast<int32_t>(length);
          advance(tin, length, static_cast<double>(now));
          return true;
        }
        sink_->dropped(item);
      }
      retire(tin, list, index, now);
      return false;
    }
  }
  bool take(Tin& tin, Flow& flow, Queued& item) {
    if (!tin.queues.take(flow, item)) return false;
    --packets_;
    bytes_ -= item.bytes;
    return true;
  }
  // An empty queue: it leaves the line when its COBALT is at rest.
  void retire(Tin& tin, Queues::List& list, uint32_t index, Time now) {
    State& state = tin.queues[index].state;
    state.cobalt.emptied(now, tin.cobalt);
    tin.queues.pop(list);
    if (state.set == Set::bulk) count(state, -1);
    if (state.set != Set::decaying) --tin.active;
    state.set = state.cobalt.at_rest(now) ? Set::none : Set::decaying;
    if (state.set == Set::decaying) tin.queues.push(tin.decaying, index);
  }

  // As long as the packet is on the line.
  double adjusted(uint32_t bytes) const {
    int32_t length = std::max(static_cast<int32_t>(bytes) + overhead_, mpu_);
    if (framing_ == Framing::atm) length = (length + 47) / 48 * 53;
    if (framing_ == Framing::ptm) length += (length + 63) / 64;
    return length;
  }
  void advance(Tin& tin, double length, double now) {
    if (!shaped_) return;
    const double duration = length * tin.ns_per_byte;
    tin.next = tin.next < now ? tin.next + duration : std::max(tin.next, now + duration);
    next_ += length * ns_per_byte_;
  }

  // Its first packet, and COBALT is told.
  void drop_from_fattest(Time now) {
    Tin* of = nullptr;
    Flow* fattest = nullptr;
    for (Tin& tin : tins_) {
      for (const Queues::List* list : {&tin.fresh, &tin.old}) {
        for (uint32_t i = list->head; i != UINT32_MAX; i = tin.queues[i].next) {
          if (fattest && tin.queues[i].bytes <= fattest->bytes) continue;
          fattest = &tin.queues[i];
          of = &tin;
        }
      }
    }
    Queued item;
    take(*of, *fattest, item);
    fattest->state.cobalt.overflowed(now, of->cobalt);
    sink_->dropped(item);
  }

  const uint32_t isolation_;
  const TinOf& tin_of_;
  const bool shaped_;
  const double ns_per_byte_;
  const int32_t overhead_, mpu_;
  const Framing framing_;
  int64_t limit_packets_, limit_bytes_ = 0, bytes_ = 0;
  uint32_t packets_ = 0;
  FlowHash hash_;
  DropSink* sink_;
  Rng* rng_;
  const std::function<PacketEnds(const Queued&)> ends_;
  std::vector<Tin> tins_;
  size_t current_ = 0;                    // tin
  double next_ = 0;                       // when what has been sent will have passed at the rate
};

const Entry<DisciplineRecord> entry{{
    .name = "cake",
    .meaning = "fair shares of hosts and flows under COBALT, in tins by DSCP, behind a shaper (Linux' sch_cake)",
    .make = make<Cake>,
    .parameters =
        {real("rate_mbps", kAutomatic, 1e-3, 1e6, "the shaper's rate, of bytes on the line; auto: only the link limits"),
         whole("overhead_bytes", 0, -64, 256, "that the line adds to each packet's bytes"),
         whole("mpu_bytes", 0, 0, 256, "least length of a packet on the line"),
         named("framing", 0, "none,atm,ptm", "of the line: cells of 53 bytes for 48 (atm), 65 for 64 (ptm)"),
         named("isolation", 7, "flowblind,srchost,dsthost,hosts,flows,dual-srchost,dual-dsthost,triple-isolate",
               "what gets equal shares"),
         named("diffserv", 1, "besteffort,diffserv3,diffserv4,diffserv8",
               "tins, chosen by DSCP, which Flow.priority is"),
         named("path", 4, "datacentre,lan,metro,regional,internet,oceanic,satellite,interplanetary",
               "round trips: 0.1 ms, 1, 10, 30, 100, 300 ms, 1 s, 1 h"),
         real("rtt_ms", kAutomatic, 0.01, 3.6e6, "a round trip, COBALT's interval, ms; auto: the path's"),
         real("target_ms", kAutomatic, 0.001, 1e6, "acceptable standing delay, ms; auto: a twentieth of a round trip"),
         kEcnParameter,
         whole("memory_bytes", kAutomatic, 2000, 1e12,
               "what may wait at once, beside the link's limits; auto: four round trips' worth of the rate, 4 MiB at least"),
         kPerturbationParameter},
}};

}  // namespace
}  // namespace netbuf
