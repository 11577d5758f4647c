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
};

// One stream of flows.
class Arrivals {
 public:
  virtual ~Arrivals() = default;
  Time next() const { return next_; }      // start of the next flow; kNever: there is none
  virtual FlowArrival pop() = 0;           // that flow

 protected:
  Time next_ = kNever;
};

// A kind of them.
struct ArrivalsRecord {
  static constexpr const char* kWhat = "kind of arrivals";

  std::string_view name;
  // Of the kind's own fields; throws.
  void (*check)(const ArrivalsConfig& arrivals, const std::string& at, size_t senders);
  uint32_t (*highest_priority)(const ArrivalsConfig& arrivals, const TrafficConfig& traffic);
  std::unique_ptr<Arrivals> (*make)(const ArrivalsConfig& arrivals, const TrafficConfig& traffic, uint64_t seed);
};

class Traffic {
 public:
  Traffic(const TrafficConfig& config, uint64_t seed);
  Time next() const { return next_; }      // start of the next flow; kNever: there is none
  FlowArrival pop();                       // that flow

 private:
  void refresh();

  std::vector<std::unique_ptr<Arrivals>> arrivals_;
  size_t first_ = 0;
  Time next_ = kNever;
};

}  // namespace netbuf
