#include "netbuf/batch.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

namespace netbuf {

Batch::Batch(uint32_t worlds, uint32_t agents, uint32_t threads)
    : worlds_count_(worlds),
      agents_count_(agents),
      worlds_(worlds),
      telemetry_(size_t{worlds} * agents * kTelemetryCount, std::numeric_limits<double>::quiet_NaN()),
      control_(size_t{worlds} * agents, std::numeric_limits<double>::quiet_NaN()),
      mask_(size_t{worlds} * agents, 0) {
  if (worlds == 0) throw std::invalid_argument("n_worlds = 0: must be at least 1");
  if (agents == 0) throw std::invalid_argument("n_agents = 0: must be at least 1");
  if (threads == 0 || threads > 256) throw std::invalid_argument("threads = " + std::to_string(threads) + ": must be in [1, 256]");
  threads = std::min(threads, worlds);
  for (uint32_t i = 1; i < threads; ++i) threads_.emplace_back([this, i] { work(i); });
}

Batch::~Batch() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  start_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

World& Batch::world(uint32_t index) {
  if (index >= worlds_count_) throw std::out_of_range("world = " + std::to_string(index) + ": must be below " + std::to_string(worlds_count_));
  if (!worlds_[index]) throw std::logic_error("world " + std::to_string(index) + " was never reset");
  return *worlds_[index];
}

void Batch::reset(uint32_t index, const WorldConfig& config, uint64_t seed) {
  if (index >= worlds_count_) throw std::out_of_range("world = " + std::to_string(index) + ": must be below " + std::to_string(worlds_count_));
  auto world = std::make_unique<World>(config, seed);
  if (world->agents().empty() || world->agents().size() > agents_count_) {
    throw std::invalid_argument("controlled flows = " + std::to_string(world->agents().size()) + ": must be in [1, " +
                                std::to_string(agents_count_) + "]");
  }
  worlds_[index] = std::move(world);
  const size_t row = size_t{index} * agents_count_;
  for (uint32_t a = 0; a < agents_count_; ++a) mask_[row + a] = a < worlds_[index]->agents().size();
  std::fill_n(&control_[row], agents_count_, std::numeric_limits<double>::quiet_NaN());
  std::fill_n(&telemetry_[row * kTelemetryCount], agents_count_ * kTelemetryCount, std::numeric_limits<double>::quiet_NaN());
}

void Batch::step(uint32_t index, Time interval, bool to_ack) {
  World& world = *worlds_[index];
  const size_t row = size_t{index} * agents_count_;
  const auto& agents = world.agents();
  constexpr size_t kFew = 4;
  IntervalStart few[kFew];
  std::vector<IntervalStart> many(agents.size() > kFew ? agents.size() : 0);
  IntervalStart* starts = agents.size() > kFew ? many.data() : few;
  for (uint32_t a = 0; a < agents.size(); ++a) {
    starts[a] = begin_interval(world, agents[a]);
    const double window = control_[row + a];
    if (!std::isnan(window)) world.agent_window(a, window);
  }
  if (to_ack) {
    world.run_to_agent_ack(world.now() + interval);
  } else {
    world.run(world.now() + interval);
  }
  for (uint32_t a = 0; a < agents.size(); ++a) {
    write_telemetry(world, agents[a], starts[a], &telemetry_[(row + a) * kTelemetryCount]);
  }
}

void Batch::run_all(Time interval, const uint8_t* selected, bool to_ack) {
  if (interval <= 0 || interval >= kNever / 2) {
    throw std::invalid_argument("interval_ns = " + std::to_string(interval) + ": must be positive and below 2^60");
  }
  for (uint32_t i = 0; i < worlds_count_; ++i) {
    if (selected && !selected[i]) continue;
    world(i);  // throws when it was never reset
    const size_t row = size_t{i} * agents_count_;
    for (uint32_t a = 0; a < worlds_[i]->agents().size(); ++a) {
      const double window = control_[row + a];
      if (!std::isnan(window) && !(window >= 1 && window <= static_cast<double>(kInfiniteWindow))) {
        throw std::invalid_argument("control[" + std::to_string(i) + "][" + std::to_string(a) + "] = " + std::to_string(window) +
                                    ": must be a window in [1, 2^40] bytes, or NaN");
      }
    }
  }
  const auto job = [&](uint32_t begin, uint32_t end) {
    for (uint32_t i = begin; i < end; ++i) {
      if (selected && !selected[i]) continue;
      try {
        step(i, interval, to_ack);
      } catch (const std::exception& error) {
        throw std::runtime_error("simulator fault in world " + std::to_string(i) + ": " + error.what());
      }
    }
  };
  if (threads_.empty()) return job(0, worlds_count_);

  const auto chunks = static_cast<uint32_t>(threads_.size() + 1);
  {
    std::lock_guard lock(mutex_);
    job_ = job;
    running_ = chunks - 1;
    fault_ = nullptr;
    ++generation_;
  }
  start_.notify_all();
  std::exception_ptr own;
  try {
    job(0, worlds_count_ / chunks);
  } catch (...) {
    own = std::current_exception();
  }
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return running_ == 0; });
  if (own) std::rethrow_exception(own);
  if (fault_) std::rethrow_exception(fault_);
}

void Batch::work(uint32_t thread) {
  uint64_t seen = 0;
  for (;;) {
    std::unique_lock lock(mutex_);
    start_.wait(lock, [&] { return stop_ || generation_ != seen; });
    if (stop_) return;
    seen = generation_;
    const auto job = job_;
    lock.unlock();
    const auto chunks = static_cast<uint64_t>(threads_.size() + 1);
    std::exception_ptr fault;
    try {
      job(static_cast<uint32_t>(worlds_count_ * thread / chunks), static_cast<uint32_t>(worlds_count_ * (thread + uint64_t{1}) / chunks));
    } catch (...) {
      fault = std::current_exception();
    }
    lock.lock();
    if (fault && !fault_) fault_ = fault;
    if (--running_ == 0) done_.notify_one();
  }
}

void Batch::advance(Time interval, const uint8_t* selected) { run_all(interval, selected, false); }
void Batch::advance_to_ack(Time max_wait, const uint8_t* selected) { run_all(max_wait, selected, true); }

}  // namespace netbuf
