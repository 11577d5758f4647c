// A filter of acknowledgements: first in, first out, and what a later ACK of the same connection has made superfluous
// leaves the queue (RFC 3449, 5.2.1; Hoeiland-Joergensen, Taht, Morton: "Piece of CAKE", 2018, and the rules of Linux'
// sch_cake, behaviour). Of two ACKs that wait, the older can go when a newer comes, or already the one that waits alone
// when it is aggressive. What says more than the newer ACK stays: SACK blocks, another ECE or another number of marks
// (RFC 9768), handshake, FIN, a window that opens, and a duplicate ACK, since senders count them. CAKE lets SACK blocks go
// that the newer one repeats, too.
#include <algorithm>
#include <unordered_map>
#include <vector>

#include "netbuf/queue_discipline.h"

namespace netbuf {
namespace {

class AckFilter final : public QueueDiscipline {
 public:
  explicit AckFilter(const DisciplineSetting& setting)
      : limit_packets_(setting.limit_packets),
        limit_bytes_(setting.limit_bytes),
        aggressive_(setting.parameters["aggressive"] > 0),
        keep_one_of_(setting.parameters.automatic("keep_one_of")
                         ? UINT32_MAX
                         : setting.parameters.as<uint32_t>("keep_one_of")),
        sink_(setting.sink) {}

  void enqueue(Time, const Queued& item) override {
    if (item.is_ack && item.owner != kNobody) filter(item);
    if (packets_ >= limit_packets_ || bytes_ + item.bytes > limit_bytes_) return sink_->dropped(item);
    if (item.is_ack && item.owner != kNobody) connections_[item.owner].places.push_back(queue_.tail());
    queue_.push({item, true});
    ++packets_;
    bytes_ += item.bytes;
  }
  bool dequeue(Time, Queued& item) override {
    if (packets_ == 0) return false;
    for (; !queue_.front().waits; queue_.pop()) {}
    item = queue_.front().item;
    if (item.is_ack && item.owner != kNobody) {
      const auto found = connections_.find(item.owner);
      Connection& connection = found->second;
      connection.places.erase(connection.places.begin());
      if (connection.kept > 0) --connection.kept;
      if (connection.places.empty()) connections_.erase(found);
    }
    queue_.pop();
    --packets_;
    bytes_ -= item.bytes;
    return true;
  }
  uint32_t packets() const override { return packets_; }
  int64_t bytes() const override { return bytes_; }
  void resize(int64_t packets) override { limit_packets_ = packets; }
  size_t memory_bytes() const override {
    size_t bytes = sizeof *this + queue_.memory_bytes();
    for (const auto& [owner, one] : connections_) bytes += sizeof one + one.places.capacity() * sizeof(uint32_t);
    return bytes;
  }

 private:
  struct Waiting {
    Queued item;
    bool waits;                  // false: filtered
  };
  struct Connection {
    std::vector<uint32_t> places;  // in the queue, of its ACKs that wait, in order
    uint32_t kept = 0;           // how many of the first of these stay in any case
    uint32_t filtered = 0;       // in a row
  };

  // What the header's flags tell of marks.
  static uint64_t marks(const Queued& item) {
    if (item.counts_marks) return kAckEcho | static_cast<uint64_t>(item.ack.echo_sent & kMarkCount);
    return item.ack.flags & kAckEcho;
  }
  // Whether the newer ACK says all that the older does.
  static bool covers(const Ack& newer, const Ack& older) {
    if (older.flags & ~uint64_t{kAckEcho}) return false;
    return before(older.ack, newer.ack) || (older.ack == newer.ack && (newer.flags & kAckHasSack));
  }

  // An ACK comes: at most one that waits goes, as in sch_cake.
  void filter(const Queued& item) {
    const auto found = connections_.find(item.owner);
    if (found == connections_.end() || (item.ack.flags & (kAckSynAck | kAckUntrue))) return;
    Connection& connection = found->second;
    const std::vector<uint32_t>& places = connection.places;
    const size_t none = places.size();
    size_t first = none;         // that could go
    int count = 0;
    for (size_t i = std::min<size_t>(connection.kept, none); i < none; ++i) {
      const Queued& waiting = queue_[places[i]].item;
      if (first != none && marks(waiting) != marks(queue_[places[first]].item)) first = none, --count;
      if (!covers(item.ack, waiting.ack)) continue;
      if (first == none) first = i;
      if (count++ > 0) return drop(connection, first, item);
    }
    if (!aggressive_ || first == none || first + 1 != none) return;
    if (marks(queue_[places[first]].item) == marks(item)) drop(connection, first, item);
  }

  // For one that comes, where there is room for it then.
  void drop(Connection& connection, size_t which, const Queued& item) {
    if (packets_ > limit_packets_ || bytes_ - queue_[connection.places[which]].item.bytes + item.bytes > limit_bytes_) {
      return;
    }
    if (connection.filtered + 1 >= keep_one_of_) {
      connection.filtered = 0;
      connection.kept = static_cast<uint32_t>(which + 1);
      return;
    }
    ++connection.filtered;
    Waiting& filtered = queue_[connection.places[which]];
    filtered.waits = false;
    --packets_;
    bytes_ -= filtered.item.bytes;
    connection.places.erase(connection.places.begin() + static_cast<std::ptrdiff_t>(which));
    sink_->dropped(filtered.item);
  }

  Ring<Waiting> queue_;
  std::unordered_map<uint32_t, Connection> connections_;  // that have ACKs here
  int64_t limit_packets_, limit_bytes_, bytes_ = 0;
  uint32_t packets_ = 0;
  const bool aggressive_;
  const uint32_t keep_one_of_;
  DropSink* sink_;
};

const Entry<DisciplineRecord> entry{{
    .name = "ack_filter",
    .meaning = "first in, first out; of ACKs of a connection that wait, those that a later one has made superfluous are "
               "dropped (CAKE's filter)",
    .make = make<AckFilter>,
    .parameters =
        {truth("aggressive", false, "an ACK that waits alone is dropped for the next; else one more stays"),
         whole("keep_one_of", kAutomatic, 2, 1000,
               "of so many ACKs in a row of a connection that could be dropped one stays (RFC 3449's thinning); "
               "auto: none must")},
}};

}  // namespace
}  // namespace netbuf
