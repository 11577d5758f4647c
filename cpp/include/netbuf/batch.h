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
  Batch(uint32_t worlds, uint32_t agents, uint32_t threads);  // agents: the most that one world has
  ~Batch();
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  uint32_t worlds() const { return worlds_count_; }
  uint32_t agents() const { return agents_count_; }
  double* telemetry() { return telemetry_.data(); }    // [worlds][agents][kTelemetryCount]
  double* control() { return control_.data(); }        // [worlds][agents]: cwnd in bytes, NaN = as it is
  uint8_t* agent_mask() { return mask_.data(); }       // [worlds][agents]
  World& world(uint32_t index);                        // std::out_of_range, std::logic_error before its reset

  void reset(uint32_t world, const WorldConfig& config, uint64_t seed);
  void advance(Time interval, const uint8_t* selected);       // selected: null = all
  void advance_to_ack(Time max_wait, const uint8_t* selected);

 private:
  void step(uint32_t world, Time interval, bool to_ack);
  void run_all(Time interval, const uint8_t* selected, bool to_ack);
  void work(uint32_t thread);

  uint32_t worlds_count_, agents_count_;
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
