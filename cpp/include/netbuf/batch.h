// Many worlds stepped together: one call, outputs written into buffers bound once, sticky chunks over threads.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "netbuf/agent.h"
#include "netbuf/pool.h"

namespace netbuf {

class Batch {
 public:
  // agents: the most that one world has.
  Batch(uint32_t worlds, uint32_t agents, uint32_t threads, std::unique_ptr<Agent> kind);
  ~Batch();
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  uint32_t worlds() const { return worlds_count_; }
  uint32_t agents() const { return agents_count_; }
  std::vector<std::string> fields() const { return kind_->fields(); }
  const std::vector<Control>& controls() const { return controls_; }
  double* telemetry() { return telemetry_.data(); }    // [worlds][agents][fields]
  double* control() { return control_.data(); }        // [worlds][agents][controls]; NaN leaves things as they are
  uint8_t* agent_mask() { return mask_.data(); }       // [worlds][agents]
  World& world(uint32_t index);                        // std::out_of_range, std::logic_error before its reset

  void reset(uint32_t world, const WorldConfig& config, uint64_t seed);
  // Asked every few milliseconds of an advance; throws Abort to give it up, and the batch with it.
  void ask(std::function<void()> ask) { ask_ = std::move(ask); }
  // selected: which worlds; null: all.
  void advance(Time interval, const uint8_t* selected);
  // Until something happened that the agents wait for, by whole intervals, at most so many.
  void advance_to_event(Time interval, uint32_t max_intervals, const uint8_t* selected);

 private:
  void run_all(const Agent::Advance& advance, const uint8_t* selected);
  void check_control(uint32_t world) const;
  std::span<const uint32_t> agents_of(uint32_t world) const {
    return {&agents_[size_t{world} * agents_count_], counts_[world]};
  }
  void forget_lost_pool();

  uint32_t worlds_count_, agents_count_;
  std::unique_ptr<Agent> kind_;
  std::vector<Control> controls_;
  std::vector<double> least_, most_;                   // of each control
  size_t fields_;
  std::vector<std::unique_ptr<World>> worlds_;
  std::vector<double> telemetry_, control_;
  std::vector<uint8_t> mask_;
  std::vector<Hot> hot_;                               // [worlds], as each was left; empty: they all fit the caches
  std::vector<uint32_t> agents_, counts_;              // [worlds][agents]: the index of what it controls; [worlds]

  uint32_t threads_ = 1;
  std::unique_ptr<Pool> pool_;                         // null: one thread
  std::function<void()> ask_;
  bool broken_ = false;
};

}  // namespace netbuf
