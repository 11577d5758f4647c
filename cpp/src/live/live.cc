#include "netbuf/live.h"

#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace netbuf {

void fail_system(const std::string& what) { throw std::system_error(errno, std::generic_category(), what); }

PriorityLock::PriorityLock() {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
  if (pthread_mutex_init(&mutex_, &attributes) != 0) pthread_mutex_init(&mutex_, nullptr);  // a kernel without it
  pthread_mutexattr_destroy(&attributes);
}

void Descriptor::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

LiveThread::LiveThread() : waker_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (!waker_) fail_system("eventfd");
}

void LiveThread::start(const char* name, bool realtime, std::function<void()> body) {
  // Signals are for the interpreter's main thread.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this, name, realtime, body = std::move(body)] {
    prctl(PR_SET_NAME, name);
    prctl(PR_SET_TIMERSLACK, 1UL);
    if (realtime) {
      sched_param priority{};
      priority.sched_priority = 1;
      realtime_ = pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority) == 0;
    }
    try {
      body();
    } catch (const std::exception& error) {
      failure_ = error.what();
      failed_ = true;
    }
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
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
