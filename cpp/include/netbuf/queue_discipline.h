// A queue discipline: what a link keeps its waiting packets in, which of them it drops, and which it sends next.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "netbuf/catalogue.h"
#include "netbuf/packet.h"
#include "netbuf/parameter.h"
#include "netbuf/ring.h"
#include "netbuf/rng.h"
#include "netbuf/types.h"

namespace netbuf {

// A packet that waits: what it is, and whose.
struct Queued {
  union {
    Packet packet;
    Ack ack;             // when is_ack
  };
  Time arrived;          // when it came to the link
  uint32_t owner;        // index of the flow, or kOneWayOwner + index of the probe or source of datagrams
  uint32_t bytes;        // on the wire
  uint8_t hop;           // of its owner's path (or return path)
  uint8_t priority;      // queue at a shared-buffer switch
  bool is_ack;
  bool ecn;              // can be marked instead of being dropped
  bool marked;
  bool l4s;              // ECT(1): of a flow that answers marks by their number (RFC 9331)
  bool stepped = false;  // dualpi2: marked if it waits too long
  bool counts_marks = false;  // an ACK that tells how many packets were marked (kMarkCount)
};
inline constexpr uint32_t kOneWayOwner = uint32_t{1} << 31;
inline constexpr uint32_t kNobody = UINT32_MAX;  // owner of what was corrupted: it is counted as lost already

// Told of packets that a discipline drops, marks, copies or damages.
class DropSink {
 public:
  virtual void dropped(const Queued& item) = 0;
  virtual void marked(const Queued&) {}
  virtual void duplicated(const Queued&) {}  // a copy comes besides
  virtual void corrupted(const Queued&) {}   // nobody will get it

 protected:
  ~DropSink() = default;
};

// Marks a packet of a flow that speaks ECN (RFC 3168); false: it does not.
inline bool mark(Queued& item, DropSink& sink) {
  if (!item.ecn) return false;
  item.marked = true;
  sink.marked(item);
  return true;
}
inline constexpr Parameter kEcnParameter = truth(
    "ecn", true, "packets of flows that speak ECN are marked where others are dropped at random or for their delay");

// Calls come in order of time. The link owns the time: a discipline has no events of its own, and brings itself up to
// date (PIE's periodic update) when it is called.
class QueueDiscipline {
 public:
  virtual ~QueueDiscipline() = default;
  virtual void enqueue(Time now, const Queued& item) = 0;   // stores it, or reports it (or others) to the sink
  virtual bool dequeue(Time now, Queued& item) = 0;         // the next to send; false when none is left
  virtual Time ready(Time now) { return now; }              // when what is next may leave; asked when something waits
  virtual uint32_t packets() const = 0;
  virtual int64_t bytes() const = 0;
  virtual void resize(int64_t) {}                           // where the limit of packets can be another one: it is
  virtual void reset(Time) {}                               // its link went down, and what waited is gone
  virtual void forget(uint32_t) {}                          // the owner has nothing here, and its number goes to another
  virtual bool paces() const { return false; }              // whether TCP paces flows whose host's queue it is
  virtual size_t memory_bytes() const = 0;
};

// Where a packet comes from and goes to: numbers of hosts, of either kind apart.
struct PacketEnds {
  uint64_t source, destination;
};

// What a discipline is made with.
struct DisciplineSetting {
  int64_t limit_packets, limit_bytes;        // of the queue; INT64_MAX: no limit
  double rate_bps;                           // of the link (mean of a trace); infinity when unlimited
  Parameters parameters;                     // complete: defaults filled in
  DropSink* sink;
  Rng* rng;
  // The ends of a packet; empty: each flow has hosts of its own.
  std::function<PacketEnds(const Queued&)> ends = {};
};

// What the file of a discipline ends in: an Entry of one of these.
struct DisciplineRecord {
  static constexpr std::string_view kWhat = "queue discipline";

  std::string_view name, meaning;
  std::unique_ptr<QueueDiscipline> (*make)(const DisciplineSetting&);
  std::vector<Parameter> parameters = {};
  // What parameters must keep to together; throws std::invalid_argument "name = value is ...".
  void (*check)(const Parameters&) = [](const Parameters&) {};
};

// For records.
template <class Discipline>
std::unique_ptr<QueueDiscipline> make(const DisciplineSetting& setting) {
  return std::make_unique<Discipline>(setting);
}

// Throws std::invalid_argument: an unknown discipline or parameter, or a value out of range.
Parameters discipline_parameters(std::string_view name, const Given& given, const std::string& field);
std::unique_ptr<QueueDiscipline> make_discipline(std::string_view name, const Given& given, DisciplineSetting setting);

}  // namespace netbuf
