// What the threads of the live plant have in common: the monotonic clock, a lock that lends its holder the priority of
// who waits, and a thread that sleeps until it is woken.
#pragma once
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "netbuf/types.h"

namespace netbuf {

inline Time monotonic() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

[[noreturn]] void fail_system(const std::string& what);  // std::system_error with errno

// BasicLockable. The emulator's thread may have a real-time priority: whoever it waits for must not be kept from
// running. std::system_error: the thread holds it already.
class PriorityLock {
 public:
  PriorityLock();
  ~PriorityLock() { pthread_mutex_destroy(&mutex_); }
  PriorityLock(const PriorityLock&) = delete;
  PriorityLock& operator=(const PriorityLock&) = delete;
  void lock();
  void unlock() { pthread_mutex_unlock(&mutex_); }

 private:
  pthread_mutex_t mutex_;
};

// A descriptor of one's own.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) reset(), fd_ = other.release();
    return *this;
  }
  ~Descriptor() { reset(); }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }
  void reset();

 private:
  int fd_;
};

// The thread that makes it, and those that it starts meanwhile, get no signals:
// they are for the interpreter's main thread.
class NoSignals {
 public:
  NoSignals();
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_;
};

// How long the thread that made it has been ready to run, and not run, as its scheduler counts it
// (/proc/thread-self/schedstat).
class RunDelay {
 public:
  RunDelay();
  Time total() const;                           // 0 where the kernel does not tell

 private:
  Descriptor file_;
};

// Real-time priorities (SCHED_FIFO): the links are to be on time whatever the applications do, and these are to have
// their turn before ordinary threads. What inherited priorities do not cover is a socket's lock in the kernel, which
// the emulator may wait for while it clamps a receiver's window.
constexpr int kEmulatorPriority = 2, kFlowsPriority = 1;

// A thread that runs `body` until stopped; it is to return when `stopping()`,
// and sleeps with the waker among what it waits for.
class LiveThread {
 public:
  LiveThread();
  ~LiveThread() { stop(); }
  LiveThread(const LiveThread&) = delete;
  LiveThread& operator=(const LiveThread&) = delete;

  // priority: of real time, or what there is below it that may be had; 0: an ordinary thread.
  void start(const char* name, int priority, std::function<void()> body);
  void stop();                                  // waits for its end; again, or before the start, nothing
  bool stopping() const { return stopping_; }
  bool running() const { return thread_.joinable(); }
  bool realtime() const { return realtime_; }   // whether it was given a priority of real time
  int waker() const { return waker_.get(); }    // readable once wake() was called
  void wake();
  void woken();                                 // by the thread: makes it not readable
  std::string failure() const;                  // what the body threw; "" while it runs or has ended well

 private:
  Descriptor waker_;
  std::thread thread_;
  std::atomic<bool> stopping_ = false, realtime_ = false, failed_ = false;
  std::string failure_;
};

}  // namespace netbuf
