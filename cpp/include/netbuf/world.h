// A world: links, flows and one clock. Deterministic: the same configuration and seed give the same bits.
#pragma once
#include <vector>

#include "netbuf/flow.h"

namespace netbuf {

class World {
 public:
  World(const WorldConfig& config, uint64_t seed);  // std::invalid_argument on a bad configuration
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  void run(Time until);                  // handles every event up to and including until
  // Runs until an agent's flow has received an ACK after now, at most to until. True if one came.
  bool run_to_agent_ack(Time until);
  Time now() const { return now_; }

  std::vector<Flow>& flows() { return flows_; }
  std::vector<Link>& links() { return links_; }
  const std::vector<uint32_t>& agents() const { return agents_; }  // flows under an agent's control
  void agent_window(uint32_t agent, double bytes);
  size_t memory_bytes() const;

 private:
  // Tournament tree over the flows' next events: node 1 is the root, leaves follow the inner nodes. Ties go to the
  // lower index.
  struct Entry {
    Time time;
    uint32_t flow;
  };
  void check_until(Time until) const;
  void build_tree();
  void update_woken();
  void order_ties(const WorldConfig& config);
  void update(uint32_t flow) {           // its next event has changed
    size_t node = tree_.size() / 2 + flow;
    Entry best{flows_[flow].next(), flow};
    tree_[node] = best;
    for (; node > 1; node /= 2) {
      const Entry& rival = tree_[node ^ 1];
      const bool wins = rival.time < best.time + static_cast<Time>(node & 1);
      best.time = wins ? rival.time : best.time;
      best.flow = wins ? rival.flow : best.flow;
      tree_[node / 2] = best;
    }
  }

  Time now_ = 0;
  Rng rng_;
  std::vector<Link> links_;
  std::vector<Flow> flows_;
  std::vector<uint32_t> agents_;
  std::vector<uint32_t> woken_;          // flows whose next event a relay has changed
  std::vector<Entry> tree_;
};

}  // namespace netbuf
