#include "netbuf/emulator.h"

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "netbuf/reject.h"

namespace netbuf {

namespace {

constexpr uint32_t kChunk = 256;        // packets
constexpr int kTurn = 4;                // packets of one node before the next has its turn
constexpr Time kHeld = kMillisecond;    // then whoever waits for the lock has it, if there is ever more to read
constexpr Time kNap = 20 * kMicrosecond;  // shorter sleeps may have been none
constexpr uint32_t kHeader = 20;        // of IPv4, the least
enum Ecn : uint8_t { kEct1 = 1, kCe = 3 };  // of the second byte's last two bits (RFC 3168, RFC 9331)

uint8_t ecn_of(const uint8_t* packet) { return packet[1] & 3; }

// Congestion was experienced. The header's checksum follows (RFC 1624, equation 3).
void set_ce(uint8_t* packet) {
  const auto word = [&](size_t at) { return uint32_t{packet[at]} << 8 | packet[at + 1]; };
  const uint32_t before = word(0);
  packet[1] |= kCe;
  uint32_t sum = (~word(10) & 0xffff) + (~before & 0xffff) + word(0);
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  packet[10] = static_cast<uint8_t>(~sum >> 8), packet[11] = static_cast<uint8_t>(~sum);
}

void check(const Emulator::Setting& setting) {
  const size_t nodes = setting.nodes.size(), links = setting.world.links.size();
  if (nodes < 2 || nodes > Emulator::kMaxNodes) reject("nodes", nodes, "2 to 250 descriptors");
  if (setting.routes.size() > Emulator::kMaxRoutes) reject("routes", setting.routes.size(), "at most 65536");
  if (setting.mtu < 68 || setting.mtu > 65535) reject("mtu", setting.mtu, "in [68, 65535]");
  for (size_t i = 0; i < links; ++i) {
    const std::string& medium = setting.world.links[i].medium;
    if (!medium.empty()) reject("links[" + std::to_string(i) + "].medium", medium, "empty for the emulator");
  }
  for (size_t r = 0; r < setting.routes.size(); ++r) {
    const Route& route = setting.routes[r];
    const std::string at = "routes[" + std::to_string(r) + "]";
    if (route.sender_node >= nodes) reject(at + ".sender_node", route.sender_node, "the number of a node");
    if (route.receiver_node >= nodes || route.receiver_node == route.sender_node) {
      reject(at + ".receiver_node", route.receiver_node, "the number of another node than sender_node");
    }
    for (const auto* path : {&route.path, &route.return_path}) {
      if (path->empty() || path->size() > 127) reject(at + ".path", path->size(), "1 to 127 links");
      for (const uint32_t link : *path) {
        if (link >= links) reject(at + ".path", link, "numbers of links");
      }
    }
  }
}

}  // namespace

Emulator::Emulator(const Setting& setting)
    : nodes_(setting.nodes),
      routes_(setting.routes),
      mtu_(setting.mtu),
      ask_realtime_(setting.realtime),
      rng_(setting.seed) {
  const WorldConfig& world = setting.world;
  validate(world);
  check(setting);
  network_.clock = &now_;
  build_links(world, &rng_, this, network_.links, switches_,
              [this](uint32_t link) { managed_.push_back(&network_.links[link]); });
  for (const ProbeConfig& probe : world.probes) {
    one_ways_.push_back(&probes_.emplace_back(probe, static_cast<uint32_t>(one_ways_.size()), network_));
  }
  Rng seeds(setting.seed ^ 0x6461746167726d73);  // as World has it: the same periods
  for (const UdpConfig& udp : world.udp) {
    const auto index = static_cast<uint32_t>(one_ways_.size());
    udp_.push_back(make_udp_source(udp, stack_profile(world.stack), seeds.next(), index, network_));
    one_ways_.push_back(udp_.back().get());
  }
  taps_.resize(routes_.size());
  meters_.resize(routes_.size());
  empty_at_.resize(nodes_.size());
  rates_.resize(network_.links.size());
  for (size_t i = 0; i < rates_.size(); ++i) rates_[i].limited = std::isfinite(network_.links[i].mean_rate_bps());
}

Emulator::~Emulator() { stop(); }

void Emulator::start(Time epoch) {
  if (started_) throw std::logic_error("the emulator was started before");
  started_ = true;
  epoch_ = epoch;
  thread_.start("nb-emulator", ask_realtime_ ? kEmulatorPriority : 0, [this] { run(); });
}

void Emulator::stop() { thread_.stop(); }

void Emulator::meter(uint32_t route, std::unique_ptr<ReceiverMeter> meter) {
  if (route >= meters_.size()) reject("route", route, "the number of a route");
  meters_[route] = std::move(meter);
}

EmulatorCounters Emulator::counters() const { return counters_; }

// ---- the thread

void Emulator::run() {
  const RunDelay delay;
  std::vector<pollfd> ready;
  for (const int fd : nodes_) ready.push_back({fd, POLLIN, 0});
  ready.push_back({thread_.waker(), POLLIN, 0});
  readable_.resize(nodes_.size());
  std::iota(readable_.begin(), readable_.end(), 0u);
  for (Time delayed = delay.total(); !thread_.stopping();) {
    Time due;
    {
      const Guard guard = hold();
      serve();
      ++counters_.wakes;
      timespec used;
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
      counters_.busy_s = static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
      due = next();
    }
    const Time asleep = now();
    const Time wait = readable_.empty() ? std::clamp<Time>(due - asleep, 0, kSecond) : 0;
    const timespec timeout{wait / kSecond, wait % kSecond};
    if (::ppoll(ready.data(), ready.size(), &timeout, nullptr) < 0 && errno != EINTR) fail_system("ppoll");
    const Time awake = now(), before = delayed;
    delayed = delay.total();
    note_wake(ready, asleep, awake, std::max(delayed - before, awake - due));
    if (ready.back().revents) thread_.woken();
  }
}

// late: by how much the thread ran after it was to. If it slept, there was nothing at any node until it was woken.
void Emulator::note_wake(const std::vector<pollfd>& ready, Time asleep, Time awake, Time late) {
  const bool slept = readable_.empty() && awake - asleep > kNap;
  const Time woken = slept ? std::max(asleep, awake - late) : asleep;
  readable_.clear();
  const auto nodes = static_cast<uint32_t>(nodes_.size());
  for (uint32_t i = 0; i < nodes; ++i) {
    const uint32_t node = (first_ + i) % nodes;
    if (slept || !ready[node].revents) empty_at_[node] = woken;
    if (ready[node].revents) readable_.push_back(node);
  }
}

void Emulator::poll() {
  readable_.resize(nodes_.size());
  for (uint32_t i = 0; i < readable_.size(); ++i) readable_[i] = (first_ + i) % static_cast<uint32_t>(nodes_.size());
  serve();
}

// Each node in turn has a few packets read, and another one is first in the next round.
void Emulator::serve() {
  if (!readable_.empty()) first_ = (readable_.front() + 1) % static_cast<uint32_t>(nodes_.size());
  for (const Time begun = now(); !readable_.empty() && now() - begun < kHeld && !thread_.stopping();) {
    size_t left = 0;
    for (const uint32_t node : readable_) {
      if (read_node(node)) readable_[left++] = node;
    }
    readable_.resize(left);
    if (left > 1) std::rotate(readable_.begin(), readable_.begin() + 1, readable_.end());
  }
  run_until(now());
}

Time Emulator::advance() {
  if (thread_.stopping()) return now_;   // the nodes' descriptors may be closed, or somebody else's
  const Time at = now();
  run_until(at);
  return at;
}

Time Emulator::next() const {
  Time next = coming_.empty() ? kNever : coming_.front().time;
  for (const Link* link : managed_) next = std::min(next, link->next());
  for (const OneWay* one : one_ways_) next = std::min(next, one->next());
  return next;
}

void Emulator::run_until(Time now) {
  for (;;) {
    Time due = coming_.empty() ? kNever : coming_.front().time;
    EventSource* source = nullptr;
    for (Link* link : managed_) {
      if (link->next() < due) due = link->next(), source = link;
    }
    for (OneWay* one : one_ways_) {
      if (one->next() < due) due = one->next(), source = one;
    }
    if (due > now) break;
    now_ = due;
    if (source) {
      source->run(due);
      continue;
    }
    const uint32_t slot = coming_.front().slot;
    std::pop_heap(coming_.begin(), coming_.end());
    coming_.pop_back();
    move(slot, due);
  }
  now_ = std::max(now_, now);
}

// A few of the packets that have come from a node, each at the time at which it is read; whether there may be more.
bool Emulator::read_node(uint32_t node) {
  Time at = now();
  for (int i = 0; i < kTurn; ++i) {
    const uint32_t index = take_slot();
    Slot& slot = slots_[index];
    const ssize_t length = ::read(nodes_[node], slot.data, mtu_);
    if (length <= 0) {
      free_.push_back(index);
      if (length < 0 && errno == EINTR) return true;
      if (length < 0 && errno != EAGAIN) fail_system("reading from node " + std::to_string(node));
      empty_at_[node] = at;        // before it was asked
      return false;
    }
    at = now();
    reading_.add(empty_at_[node], at);
    run_until(at);
    ++counters_.packets_read;
    if (!place(slot, node, static_cast<uint32_t>(length))) {
      ++counters_.strays;
      free_.push_back(index);
      continue;
    }
    slot.read_at = at;
    slot.unread = std::max<Time>(0, at - empty_at_[node]);
    slot.mark = {};
    if (!slot.backward) taps_[slot.route].sent(at, slot.seen);
    if (ReceiverMeter* meter = meters_[slot.route].get(); meter && slot.backward) {
      meter->answer(monotonic(), slot.data, slot.bytes);
    }
    move(index, at);
  }
  return true;
}

bool Emulator::place(Slot& slot, uint32_t node, uint32_t length) {
  const uint8_t* p = slot.data;
  const uint32_t header = (p[0] & 15u) * 4;
  if (length < kHeader || p[0] >> 4 != 4 || header < kHeader || header > length) return false;
  const auto route_of = [](const uint8_t* address) { return uint32_t{address[2]} << 8 | address[3]; };
  const uint8_t *from = p + 12, *to = p + 16;
  const uint32_t number = route_of(to);
  if (from[0] != 10 || to[0] != 10 || from[1] != node || route_of(from) != number || number >= routes_.size()) {
    return false;
  }
  const Route& route = routes_[number];
  slot.backward = route.receiver_node == node;
  if ((slot.backward ? route.sender_node : route.receiver_node) != to[1] ||
      (!slot.backward && route.sender_node != node)) {
    return false;
  }
  slot.route = number;
  slot.bytes = length;
  slot.hop = 0;
  slot.priority = p[1] >> 2;
  slot.seen = TapSeen::read(p, length, slot.backward);
  // Of a connection, both directions alike; never that of a one-way source.
  const uint32_t mixed = slot.seen.ports * 0x9e3779b1u ^ number * 0x85ebca6bu;
  slot.owner = (mixed ^ mixed >> 31) & ~kOneWayOwner;
  return true;
}

// What a filter goes by. A FIN stays and makes older ACKs superfluous; what else is no plain ACK does neither. That a
// window has opened is not seen.
static uint8_t flags_of(const TapSeen& seen) {
  if (!seen.tcp || seen.syn || seen.reset) return kAckUntrue;
  return static_cast<uint8_t>((seen.echo ? kAckEcho : 0) | (seen.sacked ? kAckHasSack : 0) | (seen.fin ? kAckFin : 0));
}
// An ACK has its slot in place of its window.
static uint32_t slot_of(const Queued& item) { return item.is_ack ? item.ack.window : item.packet.segment; }

// As in the simulator what goes from a sender to its receiver counts as data, the handshake too.
void Emulator::move(uint32_t index, Time now) {
  Slot& slot = slots_[index];
  const Route& route = routes_[slot.route];
  const std::vector<uint32_t>& path = slot.backward ? route.return_path : route.path;
  if (slot.hop == path.size()) return write_out(index, now);
  const bool is_data = !slot.backward || slot.seen.data();
  Link& link = network_.links[path[slot.hop]];
  if (link.managed()) {
    Queued item{};
    item.packet = {now, slot.read_at, 0, index, 0, is_data ? kData : kHandshakeAck, false};
    item.owner = slot.owner;
    item.bytes = slot.bytes;
    item.hop = slot.hop;
    item.priority = slot.priority;
    item.is_ack = !is_data;
    if (item.is_ack) item.ack = {now, 0, 0, flags_of(slot.seen), 0, slot.seen.ack, index};
    const uint8_t ecn = ecn_of(slot.data);
    item.ecn = ecn != 0;
    item.l4s = ecn == kEct1;
    item.marked = ecn == kCe;
    return link.offer(now, item);
  }
  const Time free_at = link.free_at();
  const Link::Outcome outcome = link.transmit(now, slot.bytes, is_data);
  if (outcome.fate != Link::Fate::queue_drop) note_transmission(path[slot.hop], &slot, now - free_at, free_at - now);
  if (outcome.fate == Link::Fate::delivered) return travel(index, outcome.arrival);
  lose(index, outcome.fate);
}

// Of a packet that came to a link that had been idle for so long, or negative: was busy, and waited there. slot: none
// of a packet of a source of the emulator's own.
void Emulator::note_transmission(uint32_t link, Slot* slot, Time idle, Time waited) {
  Rate& rate = rates_[link];
  if (!rate.limited) return;
  const bool saturated = rate.check.take(idle, slot ? slot->unread : 0);
  if (!slot) return;
  slot->unread = std::max<Time>(0, slot->unread - std::max<Time>(0, waited));
  if (saturated || slot->mark.link == UINT32_MAX) {
    slot->mark = {link, rate.check.period(), network_.links[link].taken_bytes(), network_.links[link].free_at()};
  }
}

RateKept Emulator::rate_kept() const {
  RateKept sum;
  for (size_t i = 0; i < rates_.size(); ++i) {
    const RateKept one = rates_[i].check.kept(network_.links[i]);
    sum.busy_s += one.busy_s;
    sum.error_s += one.error_s;
  }
  return sum;
}

void Emulator::travel(uint32_t index, Time arrival) {
  ++slots_[index].hop;
  coming_.push_back({arrival, number_++, index});
  std::push_heap(coming_.begin(), coming_.end());
}

void Emulator::lose(uint32_t index, Link::Fate fate) {
  const Slot& slot = slots_[index];
  if (!slot.backward) {
    Tap& tap = taps_[slot.route];
    fate == Link::Fate::queue_drop ? tap.dropped(slot.seen) : tap.lost(slot.seen);
  }
  free_.push_back(index);
}

void Emulator::write_out(uint32_t index, Time due) {
  const Slot& slot = slots_[index];
  const Route& route = routes_[slot.route];
  Tap& tap = taps_[slot.route];
  const uint32_t node = slot.backward ? route.sender_node : route.receiver_node;
  ReceiverMeter* meter = meters_[slot.route].get();
  if (meter && !slot.backward) meter->data(monotonic(), slot.data, slot.bytes);
  const ssize_t written = ::write(nodes_[node], slot.data, slot.bytes);
  const Time done = now();
  lateness_.add(due, done);
  if (slot.mark.link != UINT32_MAX) {
    rates_[slot.mark.link].check.write(network_.links[slot.mark.link], slot.mark, done - due);
  }
  if (written < 0) {
    ++counters_.refused;
  } else {
    ++counters_.packets_written;
    counters_.data_received += slot.seen.data();
    slot.backward ? tap.answered(done, slot.seen) : tap.received(slot.seen, ecn_of(slot.data) == kCe);
  }
  free_.push_back(index);
}

uint32_t Emulator::take_slot() {
  if (free_.empty()) {
    chunks_.push_back(std::make_unique<uint8_t[]>(size_t{kChunk} * mtu_));
    for (uint32_t i = 0; i < kChunk; ++i) {
      free_.push_back(static_cast<uint32_t>(slots_.size()));
      slots_.push_back({});
      slots_.back().data = chunks_.back().get() + size_t{i} * mtu_;
    }
  }
  const uint32_t slot = free_.back();
  free_.pop_back();
  return slot;
}

// ---- what managed links tell

// Its transmission has begun.
void Emulator::note_managed(const Queued& item) {
  const bool ours = item.owner >= kOneWayOwner;
  Slot* slot = ours ? nullptr : &slots_[slot_of(item)];
  uint32_t link;
  if (ours) {
    link = one_ways_[item.owner - kOneWayOwner]->link_of(item);
  } else {
    const Route& route = routes_[slot->route];
    link = (slot->backward ? route.return_path : route.path)[slot->hop];
  }
  note_transmission(link, slot, item.arrived - rates_[link].free_at, now_ - item.arrived);
  rates_[link].free_at = network_.links[link].free_at();
}

void Emulator::sent(const Queued& item, Time arrival) {
  note_managed(item);
  if (item.owner >= kOneWayOwner) return one_ways_[item.owner - kOneWayOwner]->resume(item, arrival);
  if (item.marked) set_ce(slots_[slot_of(item)].data);
  travel(slot_of(item), arrival);
}

void Emulator::lost(const Queued& item, Link::Fate fate) {
  if (fate == Link::Fate::random_loss) note_managed(item);
  if (item.owner >= kOneWayOwner) return one_ways_[item.owner - kOneWayOwner]->lost(item, fate);
  lose(slot_of(item), fate);
}

}  // namespace netbuf
