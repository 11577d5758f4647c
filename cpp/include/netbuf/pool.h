// Threads that share a job by number, the same part each time; and how work is interrupted.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace netbuf {

// How often this process, or one that it comes from, was forked since the first call: whoever remembers another number
// has lost every thread but the one that forked.
uint64_t forks();

// Not a fault of the simulator's: whoever waits for the work wants to stop, or code that is not ours has thrown `why`.
struct Abort {
  std::exception_ptr why;
};

// How many events may be handled until whoever waits is asked whether to go on; asking throws Abort where not.
struct EventBudget {
  static constexpr uint32_t kEvents = 1 << 15;  // some milliseconds
  const std::function<void()>* ask = nullptr;
  uint32_t left = kEvents;

  void renew() {
    left = kEvents;
    if (ask && *ask) (*ask)();
  }
};

class Pool {
 public:
  using Job = std::function<void(uint32_t part, EventBudget& budget)>;

  explicit Pool(uint32_t threads);         // at least 2, the calling one included
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  uint32_t parts() const { return static_cast<uint32_t>(threads_.size() + 1); }
  // The process was forked since: there are no threads, and nothing may be done with the pool, not even to end it.
  bool lost() const { return forks_ != forks(); }
  // Every part of the job, the first in the calling thread; what one of them throws, when all have come to an end.
  void run(const Job& job, const std::function<void()>& ask);

 private:
  void work(uint32_t part);
  void stop();

  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable start_, done_;
  const Job* job_ = nullptr;
  uint64_t generation_ = 0;
  uint32_t running_ = 0;
  bool stop_ = false;
  std::atomic<bool> cancelled_ = false;
  std::exception_ptr fault_;
  uint64_t forks_;
};

}  // namespace netbuf
