#include "netbuf/live.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

namespace netbuf {

void fail_system(const std::string& what) { throw std::system_error(errno, std::generic_category(), what); }

PriorityLock::PriorityLock() {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
  pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
  int error = pthread_mutex_init(&mutex_, &attributes);
  if (error != 0) {                    // a kernel without it
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_NONE);
    error = pthread_mutex_init(&mutex_, &attributes);
  }
  pthread_mutexattr_destroy(&attributes);
  if (error != 0) throw std::system_error(error, std::generic_category(), "making a lock");
}

void PriorityLock::lock() {
  if (const int error = pthread_mutex_lock(&mutex_)) {
    throw std::system_error(error, std::generic_category(), "taking a lock");
  }
}

NoSignals::NoSignals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before_);
}

RunDelay::RunDelay() : file_(::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {}

Time RunDelay::total() const {
  char text[96];                       // nanoseconds run, nanoseconds waited, times run
  const ssize_t length = file_ ? ::pread(file_.get(), text, sizeof text - 1, 0) : 0;
  if (length <= 0) return 0;
  text[length] = 0;
  char* after = text;
  std::strtoll(after, &after, 10);
  return std::strtoll(after, nullptr, 10);
}

void Descriptor::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

LiveThread::LiveThread() : waker_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (!waker_) fail_system("eventfd");
}

void LiveThread::start(const char* name, int priority, std::function<void()> body) {
  const NoSignals quiet;
  thread_ = std::thread([this, name, priority, body = std::move(body)] {
    prctl(PR_SET_NAME, name);
    prctl(PR_SET_TIMERSLACK, 1UL);
    for (sched_param asked{priority}; asked.sched_priority > 0 && !realtime_; --asked.sched_priority) {
      realtime_ = pthread_setschedparam(pthread_self(), SCHED_FIFO, &asked) == 0;
    }
    try {
      body();
    } catch (const std::exception& error) {
      failure_ = error.what();
      failed_ = true;
    }
  });
}

void LiveThread::stop() {
  stopping_ = true;
  if (!thread_.joinable()) return;
  wake();
  thread_.join();
}

void LiveThread::wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(waker_.get(), &one, sizeof one);
}

void LiveThread::woken() {
  uint64_t count;
  [[maybe_unused]] const ssize_t read = ::read(waker_.get(), &count, sizeof count);
}

std::string LiveThread::failure() const { return failed_ ? failure_ : std::string(); }

}  // namespace netbuf
