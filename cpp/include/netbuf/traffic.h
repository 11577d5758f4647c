// When which flows are opened. Draws from generators of its own: one seed gives the same traffic whatever else happens.
#pragma once
#include <vector>

#include "netbuf/config.h"
#include "netbuf/rng.h"

namespace netbuf {

struct FlowArrival {
  Time start;
  uint32_t sender, priority;
  int64_t size_bytes;
};

class Traffic {
 public:
  Traffic(const TrafficConfig& config, uint64_t seed);
  Time next() const { return next_; }      // start of the next flow; kNever: there is none
  FlowArrival pop();                       // that flow

 private:
  class Generator {
   public:
    Generator(const ArrivalsConfig& config, const TrafficConfig& traffic, uint64_t seed);
    Time next() const { return next_; }
    FlowArrival pop();

   private:
    int64_t draw_size();
    void schedule(Time at) { next_ = at >= kNever || (stop_ > 0 && at >= stop_) ? kNever : at; }

    const ArrivalsConfig config_;
    std::vector<int64_t> priority_below_;
    uint32_t senders_;
    Rng rng_;
    Time stop_, next_ = kNever;
    size_t position_ = 0;                  // in the list, or in the burst
    std::vector<uint32_t> burst_;          // senders, the first fan_in of which take part
  };
  void refresh();

  std::vector<Generator> generators_;
  size_t first_ = 0;
  Time next_ = kNever;
};

}  // namespace netbuf
