// What the threads of the live plant have in common: the monotonic clock, a lock that lends its holder the priority of who waits, and
// a thread that sleeps until it is woken.
#pragma once
#include <pthread.h>
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

// BasicLockable. The emulator's thread may have a real-time priority: whoever it waits for must not be kept from running.
class PriorityLock {
 public:
  PriorityLock();
  ~PriorityLock() { pthread_mutex_destroy(&mutex_); }
  PriorityLock(const PriorityLock&) = delete;
  PriorityLock& operator=(const PriorityLock&) = delete;
  void lock() { pthread_mutex_lock(&mutex_); }
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

// A thread that runs `body` until stopped; it is to return when `stopping()`, and sleeps with the waker among what it waits for.
class LiveThread {
 public:
  LiveThread();
  ~LiveThread() { stop(); }
  LiveThread(const LiveThread&) = delete;
  LiveThread& operator=(const LiveThread&) = delete;

  void start(const char* name, bool realtime, std::function<void()> body);
  void stop();                                  // waits for its end; again, or before the start, nothing
  bool stopping() const { return stopping_; }
  bool running() const { return thread_.joinable(); }
  bool realtime() const { return realtime_; }   // whether the priority that was asked for was given
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
