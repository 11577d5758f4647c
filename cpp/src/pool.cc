#include "netbuf/pool.h"

#include <pthread.h>

#include <chrono>

namespace netbuf {

namespace {
std::atomic<uint64_t> fork_count{0};
constexpr auto kPatience = std::chrono::milliseconds(50);  // between two looks at whether to go on
}  // namespace

uint64_t forks() {
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { fork_count.fetch_add(1, std::memory_order_relaxed); });
  (void)registered;
  return fork_count.load(std::memory_order_relaxed);
}

Pool::Pool(uint32_t threads) : forks_(forks()) {
  try {
    for (uint32_t part = 1; part < threads; ++part) threads_.emplace_back([this, part] { work(part); });
  } catch (...) {  // the system has no more of them
    stop();
    throw;
  }
}

Pool::~Pool() { stop(); }

void Pool::stop() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  start_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Pool::run(const Job& job, const std::function<void()>& ask) {
  {
    std::lock_guard lock(mutex_);
    job_ = &job;
    running_ = parts() - 1;
    fault_ = nullptr;
    cancelled_ = false;
    ++generation_;
  }
  start_.notify_all();
  std::exception_ptr own;
  const auto guarded = [&](const auto& call) {
    try {
      call();
    } catch (...) {
      own = std::current_exception();
      cancelled_ = true;
    }
  };
  guarded([&] {
    EventBudget budget{&ask};
    job(0, budget);
  });
  std::unique_lock lock(mutex_);
  while (!done_.wait_for(lock, kPatience, [&] { return running_ == 0; })) {
    if (own || !ask) continue;
    lock.unlock();
    guarded(ask);
    lock.lock();
  }
  if (own) std::rethrow_exception(own);
  if (fault_) std::rethrow_exception(fault_);
}

void Pool::work(uint32_t part) {
  const std::function<void()> ask = [this] {
    if (cancelled_.load(std::memory_order_relaxed)) throw Abort{};
  };
  uint64_t seen = 0;
  for (;;) {
    std::unique_lock lock(mutex_);
    start_.wait(lock, [&] { return stop_ || generation_ != seen; });
    if (stop_) return;
    seen = generation_;
    const Job& job = *job_;
    lock.unlock();
    std::exception_ptr fault;
    try {
      EventBudget budget{&ask};
      job(part, budget);
    } catch (...) {
      fault = std::current_exception();
    }
    lock.lock();
    if (fault && !fault_) fault_ = fault;
    if (--running_ == 0) done_.notify_one();
  }
}

}  // namespace netbuf
