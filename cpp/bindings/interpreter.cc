#include <pthread.h>

#include <atomic>
#include <chrono>
#include <new>
#include <stdexcept>
#include <thread>

#include "bindings.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace netbuf {

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kBetweenSignals = std::chrono::milliseconds(50);
constexpr auto kNap = std::chrono::microseconds(200);
constexpr int kMostNaps = 5000;

std::atomic<bool> ending = false;
std::atomic<int> entered = 0;  // how often threads are in the interpreter, or on their way into it, from frames of ours
thread_local int mine = 0;     // this thread's share
std::thread::id ending_thread;

// Once the interpreter is ending, whoever is not the thread that ends it stays out.
// `held`: with the interpreter's lock.
void enter(bool held) {
  entered.fetch_add(1), ++mine;
  if (!ending || std::this_thread::get_id() == ending_thread) return;
  entered.fetch_sub(mine);
  if (held) PyEval_SaveThread();
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

void leave() { --mine, entered.fetch_sub(1); }

void at_exit() {
  ending_thread = std::this_thread::get_id();
  ending = true;
  PyThreadState* state = PyEval_SaveThread();
  for (int naps = 0; entered > 0 && naps < kMostNaps; ++naps) std::this_thread::sleep_for(kNap);
  PyEval_RestoreThread(state);
}

void after_fork_in_child() { entered = mine; }

}  // namespace

void raise_error(const char* error, const std::string& message) {
  PyErr_SetString(nb::module_::import_("netbuf_gym.errors").attr(error).ptr(), message.c_str());
  throw nb::python_error();
}

Inside::Inside() {
  enter(PyGILState_Check() != 0);
  state_ = PyGILState_Ensure();
}

Inside::~Inside() {
  PyGILState_Release(state_);
  leave();
}

void within(const std::function<void()>& work) {
  try {
    work();
  } catch (const Abort& abort) {
    std::rethrow_exception(abort.why);
  }
}

void outside(const std::function<void()>& work) {
  std::exception_ptr error;
  PyThreadState* state = PyEval_SaveThread();
  try {
    work();
  } catch (...) {
    error = std::current_exception();
  }
  enter(false);
  PyEval_RestoreThread(state);
  leave();
  if (!error) return;
  try {
    std::rethrow_exception(error);
  } catch (const Abort& abort) {
    std::rethrow_exception(abort.why);
  } catch (const nb::python_error&) {
    throw;
  } catch (const std::invalid_argument&) {
    throw;
  } catch (const std::out_of_range&) {
    throw;
  } catch (const std::bad_alloc&) {
    PyErr_SetString(PyExc_MemoryError, "a world asked for more memory than there is");
    throw nb::python_error();
  } catch (const std::exception& fault) {
    raise_error("SimulatorFault", fault.what());
  }
}

void ask_for_signals() {
  static thread_local Clock::time_point last;
  const Clock::time_point now = Clock::now();
  if (now - last < kBetweenSignals) return;
  last = now;
  Inside inside;
  if (PyErr_CheckSignals() == 0) return;
  try {
    nb::raise_python_error();
  } catch (...) {
    throw Abort{std::current_exception()};
  }
}

// ---- turns

void Turn::take() {
  if (thread_ == 0) return own();
  if (orphaned()) {
    raise_error("BusyError",
                "this process was forked while another thread was at work here, which is not in the child: valid: a new"
                " one made in the child (an environment may also be closed and reset)");
  }
  if (thread_ == PyThread_get_thread_ident()) {
    raise_error("BusyError",
                "called from within a call that this very thread has not come back from;"
                " valid: one call after the other");
  }
  raise_error("BusyError",
              "another thread is at work here; valid: one thread at a time, so an environment for each thread,"
              " or a threading.Lock around its calls");
}

// Until it is given back; not where that may never be.
void Turn::let_others() {
  const unsigned long me = PyThread_get_thread_ident();
  while (thread_ != 0 && thread_ != me && !orphaned() && !ending) {
    outside([] { std::this_thread::sleep_for(kNap); });
    if (PyErr_CheckSignals() != 0) nb::raise_python_error();
  }
}

void Turn::wait() {
  let_others();
  take();
}

void Turn::settle() {
  let_others();
  if (orphaned()) give();
}

void bind_interpreter(nb::module_& m) {
  nb::class_<Turn>(m, "Turn",
                   R"(Whose turn it is with something that one thread at a time may use: `with turn:` takes it.

BusyError where another thread has it, or this one further up: nobody waits, and nothing is mixed.)")
      .def(nb::init<>())
      .def("__enter__", &Turn::take)
      .def("__exit__", [](Turn& turn, nb::handle, nb::handle, nb::handle) { turn.give(); },
           "kind"_a.none(), "error"_a.none(), "traceback"_a.none())
      .def("settle", &Turn::settle, "Waits until no other thread has it; forgets one that was not forked along.");
  m.attr("_at_exit") = nb::cpp_function(&at_exit);
  nb::module_::import_("atexit").attr("register")(m.attr("_at_exit"));
  pthread_atfork(nullptr, nullptr, &after_fork_in_child);
}

}  // namespace netbuf
