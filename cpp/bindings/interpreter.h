// In and out of the Python interpreter, and whose turn it is with an object that one thread at a time may use.
#pragma once
#include <nanobind/nanobind.h>

#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "netbuf/pool.h"

namespace netbuf {

// Raises an error of netbuf_gym.errors, by its name.
[[noreturn]] void raise_error(const char* error, const std::string& message);

// Holds the interpreter's lock, in any thread, taken already or not. When the interpreter is ending, a thread that
// enters stays where it is for good, and one that is inside is waited for, a second at most: the interpreter would
// unwind it, through frames that cannot be unwound.
class Inside {
 public:
  Inside();
  ~Inside();
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  PyGILState_STATE state_;
};

// Leaves the interpreter to other threads while `work` runs, and comes back, by the same rule. What `work` throws is
// thrown again inside: Abort as its reason, a lack of memory as MemoryError, a fault of the simulator's as
// netbuf_gym.errors.SimulatorFault.
void outside(const std::function<void()>& work);

// The same without leaving.
void within(const std::function<void()>& work);

// Lets Python handle signals, every now and then; throws Abort with what a handler raised. For Pool and World to ask.
void ask_for_signals();

// Kept under the interpreter's lock: nothing here is locked by a thread that a fork could leave behind.
class Turn {
 public:
  Turn() : forks_(forks()) {}

  void take();                 // BusyError where another thread, or this one further up, has it
  void wait();                 // takes it when other threads have given it back; BusyError for this one, further up
  void give() { thread_ = 0; }
  void settle();               // waits for other threads; not for this one, nor for one that a fork has left behind
  // Held by a thread that is not in this process: what it was doing will never be done.
  bool orphaned() const { return thread_ != 0 && forks_ != forks(); }

 private:
  void let_others();
  void own() { thread_ = PyThread_get_thread_ident(), forks_ = forks(); }

  unsigned long thread_ = 0;
  uint64_t forks_;
};

class Held {
 public:
  explicit Held(Turn& turn) : turn_(turn) { turn.wait(); }
  ~Held() { turn_.give(); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  Turn& turn_;
};

// Something of the core's that several Python threads may have: calls take turns.
template <class Core>
struct Shared {
  template <class... Arguments>
    requires std::is_constructible_v<Core, Arguments...>
  explicit Shared(Arguments&&... arguments) : core(std::make_unique<Core>(std::forward<Arguments>(arguments)...)) {}
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  ~Shared() {
    if (turn.orphaned()) static_cast<void>(core.release());  // changed half-way: not even to be taken apart
  }

  std::unique_ptr<Core> core;
  Turn turn;
  bool broken = false;         // left in the middle of an event
};

}  // namespace netbuf
