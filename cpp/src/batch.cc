#include "netbuf/batch.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

namespace netbuf {

namespace {
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr uint32_t kManyWorlds = 64;  // more than a core's own caches hold
}

Batch::Batch(uint32_t worlds, uint32_t agents, uint32_t threads, std::unique_ptr<Agent> kind)
    : worlds_count_(worlds),
      agents_count_(agents),
      kind_(std::move(kind)),
      controls_(kind_->controls()),
      fields_(kind_->fields().size()),
      worlds_(worlds),
      telemetry_(size_t{worlds} * agents * fields_, kNaN),
      control_(size_t{worlds} * agents * controls_.size(), kNaN),
      mask_(size_t{worlds} * agents, 0),
      agents_(size_t{worlds} * agents, 0),
      counts_(worlds, 0) {
  for (const Control& control : controls_) least_.push_back(control.low), most_.push_back(control.high);
  if (worlds >= kManyWorlds) hot_.resize(worlds);
  if (worlds == 0) throw std::invalid_argument("n_worlds = 0: must be at least 1");
  if (agents == 0) throw std::invalid_argument("n_agents = 0: must be at least 1");
  if (threads == 0 || threads > 256) {
    throw std::invalid_argument("threads = " + std::to_string(threads) + ": must be in [1, 256]");
  }
  threads_ = std::min(threads, worlds);
  if (threads_ > 1) pool_ = std::make_unique<Pool>(threads_);
}

Batch::~Batch() { forget_lost_pool(); }

// The threads of a process that was forked are not in the child: what they were held by is left alone.
void Batch::forget_lost_pool() {
  if (pool_ && pool_->lost()) static_cast<void>(pool_.release());
}

World& Batch::world(uint32_t index) {
  if (index >= worlds_count_) {
    throw std::out_of_range("world = " + std::to_string(index) + ": must be below " + std::to_string(worlds_count_));
  }
  if (!worlds_[index]) throw std::logic_error("world " + std::to_string(index) + " was never reset");
  return *worlds_[index];
}

void Batch::reset(uint32_t index, const WorldConfig& config, uint64_t seed) {
  if (index >= worlds_count_) {
    throw std::out_of_range("world = " + std::to_string(index) + ": must be below " + std::to_string(worlds_count_));
  }
  auto world = std::make_unique<World>(config, seed);
  const std::vector<uint32_t> found = kind_->find(*world);
  if (found.empty() || found.size() > agents_count_) {
    throw std::invalid_argument(std::string(kind_->what()) + " = " + std::to_string(found.size()) +
                                ": must be in [1, " + std::to_string(agents_count_) + "]");
  }
  worlds_[index] = std::move(world);
  if (!hot_.empty()) hot_[index] = worlds_[index]->hot();
  const size_t row = size_t{index} * agents_count_;
  for (uint32_t a = 0; a < agents_count_; ++a) mask_[row + a] = a < found.size();
  std::copy(found.begin(), found.end(), &agents_[row]);
  counts_[index] = static_cast<uint32_t>(found.size());
  std::fill_n(&control_[row * controls_.size()], agents_count_ * controls_.size(), kNaN);
  std::fill_n(&telemetry_[row * fields_], agents_count_ * fields_, kNaN);
}

void Batch::check_control(uint32_t index) const {
  const size_t count = controls_.size();
  const double *const least = least_.data(), *const most = most_.data();
  for (uint32_t a = 0; a < counts_[index]; ++a) {
    const double* const row = &control_[(size_t{index} * agents_count_ + a) * count];
    for (size_t i = 0; i < count; ++i) {
      if (!(row[i] < least[i] || row[i] > most[i])) [[likely]] continue;  // nor NaN
      throw std::invalid_argument("control[" + std::to_string(index) + "][" + std::to_string(a) + "] = " +
                                  std::to_string(row[i]) + ": must be " + controls_[i].valid + ", or NaN");
    }
  }
}

void Batch::run_all(const Agent::Advance& advance, const uint8_t* selected) {
  if (broken_) throw std::logic_error("an advance was given up half-way: the batch is of no further use");
  if (advance.interval <= 0 || advance.interval >= kNever / 2) {
    throw std::invalid_argument("interval_ns = " + std::to_string(advance.interval) +
                                ": must be positive and below 2^60");
  }
  if (advance.max_intervals == 0 || advance.max_intervals > kNever / 2 / advance.interval) {
    throw std::invalid_argument("max_intervals = " + std::to_string(advance.max_intervals) +
                                ": must be at least 1, and the intervals together below 2^60 ns");
  }
  for (uint32_t i = 0; i < worlds_count_; ++i) {
    if (selected && !selected[i]) continue;
    world(i);  // throws when it was never reset
    check_control(i);
  }
  const auto job = [&](uint32_t begin, uint32_t end, EventBudget& budget) {
    for (uint32_t i = begin; i < end; ++i) {
      if (selected && !selected[i]) continue;
      const size_t row = size_t{i} * agents_count_;
      if (!hot_.empty() && i + 1 < end) hot_[i + 1].prefetch();
      try {
        worlds_[i]->set_budget(&budget);
        kind_->step(*worlds_[i], agents_of(i), advance, &control_[row * controls_.size()], &telemetry_[row * fields_]);
        if (!hot_.empty()) worlds_[i]->warm(hot_[i]);
      } catch (const std::exception& error) {
        throw std::runtime_error("simulator fault in world " + std::to_string(i) + ": " + error.what());
      }
    }
  };
  broken_ = true;  // unless all of it comes to its end
  if (threads_ == 1) {
    EventBudget budget{&ask_};
    job(0, worlds_count_, budget);
  } else {
    forget_lost_pool();
    if (!pool_) pool_ = std::make_unique<Pool>(threads_);
    const uint64_t worlds = worlds_count_, parts = pool_->parts();
    pool_->run([&](uint32_t part, EventBudget& budget) {
      job(static_cast<uint32_t>(worlds * part / parts), static_cast<uint32_t>(worlds * (part + uint64_t{1}) / parts),
          budget);
    }, ask_);
  }
  broken_ = false;
}

void Batch::advance(Time interval, const uint8_t* selected) { run_all({interval}, selected); }
void Batch::advance_to_event(Time interval, uint32_t max_intervals, const uint8_t* selected) {
  run_all({interval, max_intervals, true}, selected);
}

}  // namespace netbuf
