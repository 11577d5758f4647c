// Congestion controls that are Python code. What they see is what a sender can see; loss detection, retransmission and
// time-outs stay the core's.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cmath>

#include "bindings.h"
#include "netbuf/pool.h"
#include "netbuf/stack.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace netbuf {
namespace {

constexpr const char* kStates[] = {"open", "disorder", "cwr", "recovery", "loss"};

// The sender as it is, and what the ACK at hand brought.
struct View {
  Tcb tcb;
  AckEvent ack;

  std::optional<double> rtt() const { return ack.rtt < 0 ? std::nullopt : std::optional(seconds(ack.rtt)); }
  std::optional<double> min_rtt() const {
    return tcb.min_rtt >= kNever ? std::nullopt : std::optional(seconds(tcb.min_rtt));
  }
  std::optional<double> srtt() const { return tcb.srtt <= 0 ? std::nullopt : std::optional(seconds(tcb.srtt)); }
  std::optional<double> delivery_rate() const {
    if (ack.rate.delivered < 0 || ack.rate.interval <= 0) return std::nullopt;
    return static_cast<double>(ack.rate.delivered) * tcb.mss * 8e9 / static_cast<double>(ack.rate.interval);
  }
};

class PythonControl final : public CongestionControl {
 public:
  // Inside the interpreter.
  PythonControl(nb::object control, std::string name) : name_(std::move(name)), control_(std::move(control)) {
    start_ = hook("start"), on_loss_ = hook("on_loss"), on_timeout_ = hook("on_timeout");
    owns_window_ = truth("owns_window", !on_loss_.is_valid());
    wants_rate_ = truth("wants_rate", false);
  }

  ~PythonControl() override {
    if (!Py_IsInitialized()) {  // the interpreter is gone, and its objects with it
      for (nb::object* object : {&control_, &start_, &on_loss_, &on_timeout_}) object->release();
      return;
    }
    Inside inside;
    for (nb::object* object : {&control_, &start_, &on_loss_, &on_timeout_}) object->reset();
  }

  void init(Tcb& tcb) override {
    if (start_.is_valid()) call(start_, "start", tcb, {}, true);
  }
  void control(Tcb& tcb, const AckEvent& ack) override { call(control_, "the call", tcb, ack, true); }
  void increase_window(Tcb& tcb, const AckEvent& ack) override { call(control_, "the call", tcb, ack, true); }

  int64_t ssthresh(Tcb& tcb) override {
    const int64_t least = 2 * int64_t{tcb.mss};
    const std::optional<int64_t> own = on_loss_.is_valid() ? call(on_loss_, "on_loss", tcb, {}, false) : std::nullopt;
    return std::max(least, own.value_or(tcb.bytes_in_flight() / 2));
  }

  void on_state(Tcb& tcb, CaState state) override {
    if (state == CaState::loss && on_timeout_.is_valid()) call(on_timeout_, "on_timeout", tcb, {}, false);
  }

 private:
  nb::object hook(const char* name) const {
    nb::object found = nb::getattr(control_, name, nb::none());
    if (found.is_none()) return {};
    if (!PyCallable_Check(found.ptr())) refuse(name, found, "a method");
    return found;
  }

  bool truth(const char* name, bool otherwise) const {
    const nb::object found = nb::getattr(control_, name, nb::none());
    if (found.is_none()) return otherwise;
    if (!PyBool_Check(found.ptr())) refuse(name, found, "True or False");
    return found.is(nb::handle(Py_True));
  }

  [[noreturn]] void refuse(const char* what, nb::handle value, const char* valid) const {
    const std::string said = std::string(what).ends_with("gave") ? " " : " = ";
    raise_error("ControlError",
                "congestion control " + name_ + ": " + what + said + nb::repr(value).c_str() + "; valid: " + valid);
  }

  // The number that it gave; nothing for None.
  std::optional<double> number(const char* what, nb::handle value, const char* valid, double least, double most) const {
    if (value.is_none()) return std::nullopt;
    const double read =
        PyBool_Check(value.ptr()) || PyUnicode_Check(value.ptr()) ? std::nan("") : PyFloat_AsDouble(value.ptr());
    if (PyErr_Occurred()) PyErr_Clear();
    if (!(read >= least && read <= most)) refuse(what, value, valid);
    return read;
  }

  // Asks it; what it gives is in force at once where `sets`.
  std::optional<int64_t> call(const nb::object& function, const char* what, Tcb& tcb, const AckEvent& ack, bool sets) {
    Inside inside;
    try {
      nb::object given = function(View{tcb, ack});
      const std::string gave = std::string(what) + " gave";
      const std::string bytes = std::to_string(tcb.mss) + " bytes (one segment) to 2**40, or None";
      const std::string valid =
          bytes + (sets ? "; or a tuple of that and a pacing rate, bit/s" : " to leave the window as it is");
      nb::object rate;
      if (sets && PyTuple_Check(given.ptr())) {
        if (PyTuple_GET_SIZE(given.ptr()) != 2) refuse(gave.c_str(), given, valid.c_str());
        rate = nb::borrow(PyTuple_GET_ITEM(given.ptr(), 1));
        given = nb::borrow(PyTuple_GET_ITEM(given.ptr(), 0));
      }
      const auto window = number(gave.c_str(), given, valid.c_str(), tcb.mss, static_cast<double>(kInfiniteWindow));
      if (rate.is_valid() && !rate.is_none()) {
        const auto bits = number("pacing rate", rate, "1 to 1e15 bit/s, or None to leave it", 1, 1e15);
        if (!stack_profile(tcb.stack).paces) refuse("pacing rate", rate, "None: own controls do not pace in the ns3 stack");
        tcb.pacing_rate = *bits / 8;
      }
      if (!window) return std::nullopt;
      const auto set = static_cast<int64_t>(*window);
      if (sets && set != tcb.cwnd) tcb.set_cwnd(set);
      return set;
    } catch (...) {
      throw Abort{std::current_exception()};
    }
  }

  std::string name_;
  nb::object control_, start_, on_loss_, on_timeout_;
};

}  // namespace

void bind_controls(nb::module_& m, nb::class_<FlowConfig>& flow) {
  nb::class_<View>(m, "AckEvent", "What a congestion control in Python is told; see netbuf_gym.scenarios.AckEvent.")
      .def_prop_ro("time_s", [](const View& v) { return seconds(v.tcb.now); }, "The virtual time.")
      .def_prop_ro("acked_packets", [](const View& v) { return v.ack.acked; },
                   "Newly acknowledged, cumulatively (ns3 stack: as ns-3 counts them).")
      .def_prop_ro("acked_bytes", [](const View& v) { return v.ack.acked_bytes; }, "Likewise, bytes.")
      .def_prop_ro("delivered_packets", [](const View& v) { return v.ack.delivered; },
                   "Newly acknowledged, cumulatively or selectively.")
      .def_prop_ro("lost_packets", [](const View& v) { return v.ack.lost; }, "Newly found lost.")
      .def_prop_ro("rtt_s", &View::rtt, "Of the newest packet acknowledged that was sent once; None: there is none.")
      .def_prop_ro("min_rtt_s", &View::min_rtt, "The least so far.")
      .def_prop_ro("srtt_s", &View::srtt, "Smoothed (RFC 6298).")
      .def_prop_ro("delivery_rate_bps", &View::delivery_rate,
                   "A sample, where the control has wants_rate = True; else None.")
      .def_prop_ro("app_limited", [](const View& v) { return v.ack.rate.app_limited; },
                   "Whether the application limited that sample.")
      .def_prop_ro("in_flight_packets", [](const View& v) { return v.tcb.in_flight(); },
                   "On their way, as the sender reckons.")
      .def_prop_ro("in_flight_bytes", [](const View& v) { return v.tcb.bytes_in_flight(); }, "Likewise, bytes.")
      .def_prop_ro("prior_in_flight_packets", [](const View& v) { return v.ack.prior_in_flight; }, "Before this ACK.")
      .def_prop_ro("cwnd_bytes", [](const View& v) { return v.tcb.cwnd; }, "The congestion window.")
      .def_prop_ro("cwnd_packets", [](const View& v) { return v.tcb.cwnd_packets; }, "Whole packets in it.")
      .def_prop_ro("ssthresh_bytes", [](const View& v) { return v.tcb.ssthresh; }, "2**40 until something was lost.")
      .def_prop_ro("mss_bytes", [](const View& v) { return v.tcb.mss; }, "A full segment's payload.")
      .def_prop_ro("delivered_packets_total", [](const View& v) { return v.tcb.delivered; }, "Since the start.")
      .def_prop_ro("lost_packets_total", [](const View& v) { return v.tcb.lost; }, "Since the start.")
      .def_prop_ro("state", [](const View& v) { return kStates[static_cast<size_t>(v.tcb.state)]; },
                   "open, disorder, cwr (giving way to marks), recovery or loss.")
      .def_prop_ro("echo", [](const View& v) { return v.ack.echo; },
                   "Tells of packets that were marked on the way (ECN).")
      .def_prop_ro("cwnd_limited", [](const View& v) { return v.tcb.cwnd_limited; },
                   "Whether the window, not the application, limits the sender.")
      .def_prop_ro("duplicate", [](const View& v) { return v.ack.duplicate; },
                   "Tells of a segment that arrived twice (D-SACK).");

  flow.def("set_own_control", [](FlowConfig& config, nb::object make, const std::string& name) {
    // Flows are copied and made without the interpreter's lock: the object is counted by threads, not by Python.
    const std::shared_ptr<nb::object> maker(new nb::object(std::move(make)), [](nb::object* object) {
      if (Py_IsInitialized()) {
        Inside inside;
        object->reset();
      } else {
        object->release();
      }
      delete object;
    });
    config.cc = name;
    config.own_control = [maker, name](Stack) -> std::unique_ptr<CongestionControl> {
      Inside inside;
      try {
        return std::make_unique<PythonControl>((*maker)(), name);
      } catch (...) {
        throw Abort{std::current_exception()};
      }
    };
  }, "make"_a, "name"_a, "Each connection's congestion control is what make() gives it.");
}

}  // namespace netbuf
