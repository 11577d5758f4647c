// Congestion controls of the user's in C++: shared objects, and a guard around what they do to their connection.
#include <dlfcn.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>

#include <cmath>
#include <limits>
#include <new>

#include "bindings.h"
#include "netbuf/own_control.h"
#include "netbuf/pool.h"
#include "netbuf/stack.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace netbuf {
namespace {

constexpr double kMostPacing = 1e15;  // bit/s

[[noreturn]] void refuse(const std::string& name, const std::string& what) {
  Inside inside;
  try {
    raise_error("ControlError", "congestion control " + name + ": " + what);
  } catch (...) {
    throw Abort{std::current_exception()};
  }
}

[[noreturn]] void refuse_memory(const std::string& name, const std::string& where) {
  Inside inside;
  try {
    PyErr_SetString(PyExc_MemoryError, ("congestion control " + name + ": " + where + " asked for too much").c_str());
    throw nb::python_error();
  } catch (...) {
    throw Abort{std::current_exception()};
  }
}

std::string shown(double value) {
  char text[32];
  snprintf(text, sizeof text, "%.12g", value);
  return text;
}

// Passes everything on, and refuses what would bring the simulator out of step:
// exceptions, windows and rates that are none.
class Guarded final : public CongestionControl {
 public:
  Guarded(std::unique_ptr<CongestionControl> own, std::string name) : name_(std::move(name)), own_(std::move(own)) {
    adopt();
  }

  void init(Tcb& tcb) override {
    call("init", tcb, [&] { own_->init(tcb); });
    adopt();
  }
  void on_ack(Tcb& tcb, const AckEvent& ack) override { call("on_ack", tcb, [&] { own_->on_ack(tcb, ack); }); }
  void increase_window(Tcb& tcb, const AckEvent& ack) override {
    call("increase_window", tcb, [&] { own_->increase_window(tcb, ack); });
  }
  int64_t ssthresh(Tcb& tcb) override { return window("ssthresh", tcb, [&] { return own_->ssthresh(tcb); }); }
  void on_state(Tcb& tcb, CaState state) override { call("on_state", tcb, [&] { own_->on_state(tcb, state); }); }
  void on_lost(Tcb& tcb, const RateSample& sample) override {
    call("on_lost", tcb, [&] { own_->on_lost(tcb, sample); });
  }
  void on_idle_restart(Tcb& tcb) override { call("on_idle_restart", tcb, [&] { own_->on_idle_restart(tcb); }); }
  int64_t undo_window(Tcb& tcb, int64_t prior) override {
    return window("undo_window", tcb, [&] { return own_->undo_window(tcb, prior); });
  }
  void control(Tcb& tcb, const AckEvent& ack) override { call("control", tcb, [&] { own_->control(tcb, ack); }); }
  void on_receiver_limit() override { caught("on_receiver_limit", [&] { own_->on_receiver_limit(); }); }
  uint32_t burst_packets(const Tcb& tcb) const override {
    uint32_t packets = 0;
    caught("burst_packets", [&] { packets = own_->burst_packets(tcb); });
    if (packets < 1) refuse(name_, "burst_packets gave 0; valid: 1 or more");
    return packets;
  }
  uint32_t buffer_windows() const override {
    uint32_t windows = 0;
    caught("buffer_windows", [&] { windows = own_->buffer_windows(); });
    if (windows < 1) refuse(name_, "buffer_windows gave 0; valid: 1 or more");
    return windows;
  }

 private:
  void adopt() {
    owns_window_ = own_->owns_window(), wants_rate_ = own_->wants_rate();
    wants_losses_ = own_->wants_losses(), accurate_ecn_ = own_->accurate_ecn(), l4s_ = own_->l4s();
  }

  template <class Work>
  void caught(const char* what, Work work) const {
    try {
      work();
    } catch (const std::bad_alloc&) {
      refuse_memory(name_, what);
    } catch (const std::exception& error) {
      refuse(name_, std::string(what) + " threw: " + error.what());
    } catch (...) {
      refuse(name_, std::string(what) + " threw what is no std::exception");
    }
  }

  void require_window(const char* what, const char* did, const Tcb& tcb, int64_t bytes) const {
    if (bytes >= tcb.mss && bytes <= kInfiniteWindow) return;
    const std::string valid = std::to_string(tcb.mss) + " (one segment, or nothing is sent any more) to 2**40";
    const bool cast = bytes == std::numeric_limits<int64_t>::min();  // what x86 makes of such a double
    const std::string value =
        cast ? "what NaN (or a double beyond 2**63) is as int64_t" : std::to_string(bytes) + " bytes";
    refuse(name_, std::string(what) + did + value + "; valid: " + valid);
  }

  template <class Work>
  void call(const char* what, Tcb& tcb, Work work) const {
    const int64_t cwnd = tcb.cwnd, ssthresh = tcb.ssthresh;
    const double rate = tcb.pacing_rate;
    caught(what, work);
    if (tcb.cwnd != cwnd) {
      require_window(what, " set the window to ", tcb, tcb.cwnd);
      const int64_t bytes = tcb.cwnd;
      if (tcb.cwnd_packets != bytes / tcb.mss) tcb.cwnd = cwnd, tcb.set_cwnd(bytes);  // assigned, not by set_cwnd
    }
    if (tcb.ssthresh != ssthresh) require_window(what, " set ssthresh to ", tcb, tcb.ssthresh);
    if (tcb.pacing_rate == rate) return;
    const double bits = tcb.pacing_rate * 8;
    if (bits != 0 && !(bits >= 1 && bits <= kMostPacing)) {
      refuse(name_, std::string(what) + " set the pacing rate to " + shown(tcb.pacing_rate) +
             " bytes/s; valid: 0.125 to 1.25e14, or 0 for none");
    }
    if (bits != 0 && !stack_profile(tcb.stack).paces) {
      refuse(name_, std::string(what) + " set a pacing rate; valid: 0, the ns3 stack does not pace");
    }
  }

  template <class Work>
  int64_t window(const char* what, Tcb& tcb, Work work) const {
    int64_t bytes = 0;
    call(what, tcb, [&] { bytes = work(); });
    require_window(what, " gave ", tcb, bytes);
    return bytes;
  }

  std::string name_;
  std::unique_ptr<CongestionControl> own_;
};

// The one record of a shared object, which stays loaded. Raises ControlError inside the interpreter.
const CongestionControlRecord& record_of(const std::string& library, const std::string& name) {
  const auto fail = [&](const std::string& what) {
    raise_error("ControlError", "congestion control " + name + ": " + what);
  };
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) fail(std::string("cannot be loaded (") + dlerror() + "); valid: a file that needs netbuf/tcp.h alone");
  const auto own = reinterpret_cast<const OwnControls* (*)()>(dlsym(handle, kOwnControlsName));
  if (!own) fail("was not compiled for netbuf-gym; valid: what netbuf_gym.scenarios.compiled makes");
  if (own()->abi != OwnControls::kAbi || std::string(own()->build) != kOwnControlBuild) {
    fail("was compiled against " + std::string(own()->build) + " (version " + std::to_string(own()->abi) +
         "); valid: " + kOwnControlBuild + " (version " + std::to_string(OwnControls::kAbi) + ")");
  }
  const auto& records = *own()->records;
  if (records.size() != 1) {
    fail("has " + std::to_string(records.size()) +
         " records; valid: one `const Entry<CongestionControlRecord> entry{{...}};`");
  }
  try {
    check_defaults(records[0]->parameters, "parameters");
  } catch (const std::invalid_argument& error) {
    fail(error.what());
  }
  return *records[0];
}

}  // namespace

void bind_own_controls(nb::module_& m, nb::class_<FlowConfig>& flow) {
  m.attr("OWN_CONTROL_HEADERS") = NETBUF_HEADERS;
  m.attr("OWN_CONTROL_STRINGS") = NETBUF_AS_TEXT(_GLIBCXX_USE_CXX11_ABI);
  flow.def("set_compiled_control", [](FlowConfig& config, const std::string& library, const std::string& name,
                                      const Given& given) {
    const CongestionControlRecord& record = record_of(library, name);
    config.cc = name;
    config.own_control = [&record, name, given](Stack stack) {
      if (!record.in(stack)) {
        refuse(name, "its record has no maker for the " + std::string(name_of(stack)) +
                         " stack; valid: the other one");
      }
      std::unique_ptr<CongestionControl> made;
      try {
        made = record.in(stack)(Parameters(record.parameters, given, "parameters", stack));
      } catch (const std::bad_alloc&) {
        refuse_memory(name, "its constructor");
      } catch (const std::exception& error) {
        refuse(name, error.what());
      } catch (...) {
        refuse(name, "its constructor threw what is no std::exception");
      }
      return std::unique_ptr<CongestionControl>(std::make_unique<Guarded>(std::move(made), name));
    };
  }, "library"_a, "name"_a, "parameters"_a, "Each connection's congestion control is what the shared object makes.");
}

}  // namespace netbuf
