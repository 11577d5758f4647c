// The simulator's links in real time: IPv4 packets are read from descriptors (TUN devices, a node each), take the links
// of their route as packets of the simulator do, and are written to the descriptor of the node at the far end when they
// arrive there. A packet's times are those of the links, in nanoseconds since the start: how late the machine is delays
// a packet's reading and its writing, never the rate of a link.
//
// Routes are told from each other by addresses: 10.N.H.L is node N's end of route H * 256 + L. The differentiated
// services code point is the packet's priority at switches.
#pragma once
#include <poll.h>

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "netbuf/lateness.h"
#include "netbuf/links.h"
#include "netbuf/live.h"
#include "netbuf/path.h"
#include "netbuf/probe.h"
#include "netbuf/rate_check.h"
#include "netbuf/receiver_meter.h"
#include "netbuf/tap.h"
#include "netbuf/udp.h"

namespace netbuf {

// Between two nodes: the links that data take from the first to the second, and those of the way back.
struct Route {
  uint32_t sender_node = 0, receiver_node = 1;
  std::vector<uint32_t> path, return_path;
};

struct EmulatorCounters {
  uint64_t packets_read = 0, packets_written = 0;
  uint64_t strays = 0;             // packets of no route, or not of IPv4: not forwarded
  uint64_t refused = 0;            // by the descriptor that they were written to
  uint64_t data_received = 0;      // packets with payload that reached the node they went to
  uint64_t wakes = 0;              // of the thread
  double busy_s = 0;               // processor time of the thread
};

class Emulator final : private Link::Host {
 public:
  static constexpr uint32_t kMaxNodes = 250, kMaxRoutes = 65'536;

  struct Setting {
    WorldConfig world;
    uint64_t seed = 0;
    std::vector<Route> routes;
    std::vector<int> nodes;        // a descriptor each, which stay the caller's, non-blocking
    uint32_t mtu = 1500;           // nothing longer is read
    bool realtime = false;         // ask for a real-time priority
  };

  // std::invalid_argument: a world that validate() refuses, a route of nodes or links that are not there,
  // too many of them.
  explicit Emulator(const Setting& setting);
  ~Emulator();
  Emulator(const Emulator&) = delete;
  Emulator& operator=(const Emulator&) = delete;

  void start(Time epoch);          // time 0 by the monotonic clock; std::logic_error when it was started before
  void stop();
  Time now() const { return started_ ? monotonic() - epoch_ : 0; }
  Time epoch() const { return epoch_; }
  std::string failure() const { return thread_.failure(); }
  bool asks_realtime() const { return ask_realtime_; }
  bool realtime() const { return thread_.realtime(); }   // whether it was given

  // ---- all below take turns with the thread: hold the lock over several, and over what references refer to
  using Guard = std::unique_lock<PriorityLock>;
  Guard hold() { return Guard(lock_); }
  Time advance();  // brings everything up to now, which is returned; once stopped, the last time of that
  std::vector<Link>& links() { return network_.links; }
  std::vector<std::unique_ptr<SharedBuffer>>& switches() { return switches_; }
  const std::vector<Tap>& taps() const { return taps_; }  // of each route
  std::vector<Tap>& taps() { return taps_; }
  void meter(uint32_t route, std::unique_ptr<ReceiverMeter> meter);  // of its receiver, from now on
  ReceiverMeter* meter(uint32_t route) { return route < meters_.size() ? meters_[route].get() : nullptr; }
  size_t probes() const { return probes_.size(); }
  const ProbeResult& probe(size_t index) const { return probes_[index].result(); }
  const std::vector<std::unique_ptr<UdpSource>>& udp() const { return udp_; }
  const std::vector<Route>& routes() const { return routes_; }
  // Of what was written, against when it reached the end of its path.
  const Lateness& lateness() const { return lateness_; }
  const Lateness& reading() const { return reading_; }     // bounds of how long packets had waited when they were read
  RateKept rate_kept() const;      // by all links that have a rate
  EmulatorCounters counters() const;
  size_t in_network() const { return slots_.size() - free_.size(); }  // packets

  void poll();                     // what the thread does when it is woken, for tests without one
  Time next() const;               // when something is due; kNever: nothing before the next packet

 private:
  struct Slot {
    uint8_t* data;
    Time read_at;                  // as the links have it
    uint32_t route, owner;
    uint32_t bytes;
    Time unread;                   // how long it may have waited to be read, less what it has waited in queues since
    RateCheck::Mark mark;          // at the last link that it found saturated
    TapSeen seen;
    uint8_t hop, priority;
    bool backward;
  };
  struct Coming {
    Time time;
    uint64_t number;
    uint32_t slot;
    bool operator<(const Coming& other) const { return time != other.time ? time > other.time : number > other.number; }
  };

  // Link::Host
  void sent(const Queued& item, Time arrival) override;
  void lost(const Queued& item, Link::Fate fate) override;
  void rescheduled(uint32_t) override {}

  void run();
  void run_until(Time now);
  void serve();                            // the nodes that are readable, and what is due
  bool read_node(uint32_t node);
  void note_wake(const std::vector<pollfd>& ready, Time asleep, Time awake, Time late);
  void note_transmission(uint32_t link, Slot* slot, Time idle, Time waited);
  void note_managed(const Queued& item);
  bool place(Slot& slot, uint32_t node, uint32_t length);  // its route; false: it has none
  void move(uint32_t slot, Time now);      // reaches the link of its hop, or its end
  void travel(uint32_t slot, Time arrival);
  void lose(uint32_t slot, Link::Fate fate);
  void write_out(uint32_t slot, Time due);
  uint32_t take_slot();

  PriorityLock lock_;
  LiveThread thread_;
  Time epoch_ = 0, now_ = 0;       // now: up to where everything has happened
  bool started_ = false;
  std::vector<int> nodes_;
  std::vector<uint32_t> readable_; // nodes that may have packets, in the order of their turns
  uint32_t first_ = 0;             // the node whose turn is first
  std::vector<Time> empty_at_;     // when there was last known to be nothing at each node
  std::vector<Route> routes_;
  uint32_t mtu_;
  bool ask_realtime_;
  Rng rng_;
  Network network_;
  std::vector<std::unique_ptr<SharedBuffer>> switches_;
  std::vector<Link*> managed_;
  std::deque<Probe> probes_;
  std::vector<std::unique_ptr<UdpSource>> udp_;
  std::vector<OneWay*> one_ways_;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
  std::vector<std::unique_ptr<uint8_t[]>> chunks_;
  std::vector<Coming> coming_;     // a heap
  uint64_t number_ = 0;
  std::vector<Tap> taps_;
  std::vector<std::unique_ptr<ReceiverMeter>> meters_;  // of each route, where there is one
  Lateness lateness_, reading_;
  struct Rate {
    RateCheck check;
    Time free_at = 0;              // of a managed link, before its last transmission
    bool limited = false;          // it has a rate
  };
  std::vector<Rate> rates_;        // of each link
  EmulatorCounters counters_;
};

}  // namespace netbuf
