#include "netbuf/batch.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

namespace netbuf {

namespace {
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
}

Batch::Batch(uint32_t worlds, uint32_t agents, uint32_t threads, Kind kind, uint32_t queues)
    : worlds_count_(worlds),
      agents_count_(agents),
      kind_(kind),
      queues_(queues),
      fields_(kind == Kind::flow ? kTelemetryCount : switch_telemetry_fields(queues).size()),
      controls_(kind == Kind::flow ? 1 : queues),
      worlds_(worlds),
      telemetry_(size_t{worlds} * agents * fields_, kNaN),
      control_(size_t{worlds} * agents * controls_, kNaN),
      mask_(size_t{worlds} * agents, 0) {
  if (worlds == 0) throw std::invalid_argument("n_worlds = 0: must be at least 1");
  if (agents == 0) throw std::invalid_argument("n_agents = 0: must be at least 1");
  if (queues == 0 || queues > 64) throw std::invalid_argument("queues = " + std::to_string(queues) + ": must be in [1, 64]");
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
  const size_t agents = agents_of(*world).size();
  if (agents == 0 || agents > agents_count_) {
    throw std::invalid_argument((kind_ == Kind::flow ? "controlled flows = " : "switches under an agent's control = ") +
                                std::to_string(agents) + ": must be in [1, " + std::to_string(agents_count_) + "]");
  }
  if (kind_ == Kind::shared_buffer) {
    for (const uint32_t index : world->agent_switches()) {
      const uint32_t queues = world->switches()[index]->queues();
      if (queues != queues_) throw std::invalid_argument("queues = " + std::to_string(queues) + " at a switch: must be " + std::to_string(queues_));
    }
  }
  worlds_[index] = std::move(world);
  const size_t row = size_t{index} * agents_count_;
  for (uint32_t a = 0; a < agents_count_; ++a) mask_[row + a] = a < agents;
  std::fill_n(&control_[row * controls_], agents_count_ * controls_, kNaN);
  std::fill_n(&telemetry_[row * fields_], agents_count_ * fields_, kNaN);
}

const std::vector<uint32_t>& Batch::agents_of(const World& world) const {
  return kind_ == Kind::flow ? world.agents() : world.agent_switches();
}

void Batch::step(uint32_t index, const Advance& advance) {
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
  if (advance.until == Until::ack) {
    world.run_to_agent_ack(world.now() + advance.interval);
  } else {
    world.run(world.now() + advance.interval);
  }
  for (uint32_t a = 0; a < agents.size(); ++a) {
    write_telemetry(world, agents[a], starts[a], &telemetry_[(row + a) * kTelemetryCount]);
  }
}

void Batch::step_switches(uint32_t index, const Advance& advance) {
  World& world = *worlds_[index];
  const size_t row = size_t{index} * agents_count_;
  const auto& agents = world.agent_switches();
  std::vector<SwitchIntervalStart> starts;
  for (uint32_t a = 0; a < agents.size(); ++a) {
    starts.push_back(begin_switch_interval(world, agents[a]));
    const double* alphas = &control_[(row + a) * controls_];
    for (uint32_t q = 0; q < queues_; ++q) {
      if (!std::isnan(alphas[q])) world.switches()[agents[a]]->set_alpha(q, alphas[q]);
    }
  }
  for (uint32_t n = 0; n < advance.max_intervals; ++n) {
    world.run(world.now() + advance.interval);
    if (advance.until != Until::change) break;
    bool changed = false;
    for (const uint32_t agent : agents) changed |= world.switches()[agent]->take_change();
    if (changed) break;
  }
  for (uint32_t a = 0; a < agents.size(); ++a) {
    write_switch_telemetry(world, agents[a], starts[a], &telemetry_[(row + a) * fields_]);
  }
}

void Batch::check_control(uint32_t index) const {
  const size_t row = size_t{index} * agents_count_;
  const double low = kind_ == Kind::flow ? 1 : 0, high = kind_ == Kind::flow ? static_cast<double>(kInfiniteWindow) : 1e6;
  for (size_t a = 0; a < agents_of(*worlds_[index]).size(); ++a) {
    for (size_t c = 0; c < controls_; ++c) {
      const double value = control_[(row + a) * controls_ + c];
      if (std::isnan(value) || (value >= low && value <= high)) continue;
      throw std::invalid_argument("control[" + std::to_string(index) + "][" + std::to_string(a) + "] = " + std::to_string(value) +
                                  (kind_ == Kind::flow ? ": must be a window in [1, 2^40] bytes, or NaN" : ": must be an alpha in [0, 1e6], or NaN"));
    }
  }
}

void Batch::run_all(const Advance& advance, const uint8_t* selected) {
  if (advance.interval <= 0 || advance.interval >= kNever / 2) {
    throw std::invalid_argument("interval_ns = " + std::to_string(advance.interval) + ": must be positive and below 2^60");
  }
  if (advance.max_intervals == 0) throw std::invalid_argument("max_intervals = 0: must be at least 1");
  if (kind_ == Kind::flow ? advance.until == Until::change : advance.until == Until::ack) {
    throw std::invalid_argument("this batch's agents control something else");
  }
  for (uint32_t i = 0; i < worlds_count_; ++i) {
    if (selected && !selected[i]) continue;
    world(i);  // throws when it was never reset
    check_control(i);
  }
  const auto job = [&](uint32_t begin, uint32_t end) {
    for (uint32_t i = begin; i < end; ++i) {
      if (selected && !selected[i]) continue;
      try {
        kind_ == Kind::flow ? step(i, advance) : step_switches(i, advance);
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

void Batch::advance(Time interval, const uint8_t* selected) { run_all({interval, Until::time, 1}, selected); }
void Batch::advance_to_ack(Time max_wait, const uint8_t* selected) { run_all({max_wait, Until::ack, 1}, selected); }
void Batch::advance_to_change(Time interval, uint32_t max_intervals, const uint8_t* selected) {
  run_all({interval, Until::change, max_intervals}, selected);
}

}  // namespace netbuf
