// When which flows are opened. Draws from generators of its own: one seed gives the same traffic whatever else happens.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "netbuf/catalogue.h"
#include "netbuf/config.h"
#include "netbuf/rng.h"

namespace netbuf {

struct FlowArrival {
  Time start;
  uint32_t sender, priority;
  int64_t size_bytes;
  uint32_t stream = 0, user = 0;           // which of the arrivals opened it, and for whom
};

// A page that a user has got.
struct PageLoad {
  Time start, load;                        // it was asked for, and that long until its last byte was there
  uint32_t user, sender, objects;
  int64_t bytes;
};

// What the laws of arrivals of kind "web" are for.
enum class WebLaw { main_bytes, objects, object_bytes, reading_s, parsing_s, count };

// One stream of flows.
class Arrivals {
 public:
  virtual ~Arrivals() = default;
  Time next() const { return next_; }      // start of the next flow; kNever: there is none
  virtual FlowArrival pop() = 0;           // that flow
  // A flow of this user has completed, or failed, now; those that waited for it may come.
  virtual void ended(uint32_t /*user*/, Time /*now*/, bool /*failed*/) {}
  virtual const std::vector<PageLoad>* pages() const { return nullptr; }

 protected:
  Time next_ = kNever;
};

// A kind of them.
struct ArrivalsRecord {
  static constexpr const char* kWhat = "kind of arrivals";

  std::string_view name;
  // Of the kind's own fields; throws.
  void (*check)(const ArrivalsConfig& arrivals, const std::string& at, size_t senders);
  bool listens = false;                    // to what becomes of its flows
  uint32_t (*highest_priority)(const ArrivalsConfig& arrivals, const TrafficConfig& traffic);
  // delays: of requests to the senders.
  std::unique_ptr<Arrivals> (*make)(const ArrivalsConfig& arrivals, const TrafficConfig& traffic, uint64_t seed,
                                    const std::vector<Time>& delays);
};

class Traffic {
 public:
  // delays: of requests on their way to each sender, for arrivals that listen.
  Traffic(const TrafficConfig& config, uint64_t seed, const std::vector<Time>& delays = {});
  Time next() const { return next_; }      // start of the next flow; kNever: there is none
  FlowArrival pop();                       // that flow
  bool listens(uint32_t stream) const { return listens_[stream]; }
  void ended(uint32_t stream, uint32_t user, Time now, bool failed) {
    arrivals_[stream]->ended(user, now, failed);
    refresh();
  }
  std::vector<PageLoad> pages() const;     // of all streams, in order of their end

 private:
  void refresh();

  std::vector<std::unique_ptr<Arrivals>> arrivals_;
  std::vector<bool> listens_;
  size_t first_ = 0;
  Time next_ = kNever;
};

}  // namespace netbuf
