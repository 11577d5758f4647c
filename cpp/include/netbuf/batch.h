// Many worlds stepped together: one call, outputs written into buffers bound once, sticky chunks over threads.
#pragma once
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "netbuf/report.h"

namespace netbuf {

class Batch {
 public:
  // What an agent controls: the window of a flow, or the thresholds of a switch.
  enum class Kind : uint8_t { flow, shared_buffer };

  // agents: the most that one world has; queues: of their switches, exactly.
  Batch(uint32_t worlds, uint32_t agents, uint32_t threads, Kind kind = Kind::flow, uint32_t queues = 1);
  ~Batch();
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  uint32_t worlds() const { return worlds_count_; }
  uint32_t agents() const { return agents_count_; }
  Kind kind() const { return kind_; }
  size_t fields() const { return fields_; }
  size_t controls() const { return controls_; }
  double* telemetry() { return telemetry_.data(); }    // [worlds][agents][fields]
  double* control() { return control_.data(); }        // [worlds][agents][controls]: cwnd in bytes, or alphas; NaN = as it is
  uint8_t* agent_mask() { return mask_.data(); }       // [worlds][agents]
  World& world(uint32_t index);                        // std::out_of_range, std::logic_error before its reset

  void reset(uint32_t world, const WorldConfig& config, uint64_t seed);
  void advance(Time interval, const uint8_t* selected);       // selected: null = all
  void advance_to_ack(Time max_wait, const uint8_t* selected);
  // Switches: whole intervals until the worst slowdown of the flows completed has changed, at most so many.
  void advance_to_change(Time interval, uint32_t max_intervals, const uint8_t* selected);

 private:
  enum class Until : uint8_t { time, ack, change };
  struct Advance {
    Time interval;
    Until until;
    uint32_t max_intervals;
  };
  void step(uint32_t world, const Advance& advance);
  void step_switches(uint32_t world, const Advance& advance);
  void run_all(const Advance& advance, const uint8_t* selected);
  void check_control(uint32_t world) const;
  const std::vector<uint32_t>& agents_of(const World& world) const;
  void work(uint32_t thread);

  uint32_t worlds_count_, agents_count_;
  Kind kind_;
  uint32_t queues_;
  size_t fields_, controls_;
  std::vector<std::unique_ptr<World>> worlds_;
  std::vector<double> telemetry_, control_;
  std::vector<uint8_t> mask_;

  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable start_, done_;
  std::function<void(uint32_t, uint32_t)> job_;  // over worlds [begin, end)
  uint64_t generation_ = 0;
  uint32_t running_ = 0;
  bool stop_ = false;
  std::exception_ptr fault_;
};

}  // namespace netbuf
