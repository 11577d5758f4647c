// Trained senders in integers: as congestion controls, and on rows of what senders have counted.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <stdexcept>

#include "../policy/policy.h"
#include "bindings.h"
#include "netbuf/compiled_agent.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace netbuf {
namespace {

template <class T, size_t N>
using Array = nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;

void require(bool holds, const char* name, const char* shape) {
  if (!holds) throw std::invalid_argument(std::string(name) + " must have shape " + shape);
}

// Connections that decide side by side.
class IntegerPolicy {
 public:
  IntegerPolicy(const nb::bytes& policy, size_t rows) : policy_(policy.c_str(), policy.size()), states_(rows) {}

  void step(const Array<const int64_t, 2>& intervals, const Array<const bool, 1>& starts,
            const Array<int64_t, 1>& actions, const Array<int64_t, 1>& windows) {
    const size_t rows = states_.size();
    require(intervals.shape(0) == rows && intervals.shape(1) == NB_INTERVAL_FIELDS, "intervals", "(rows, 15)");
    require(starts.shape(0) == rows && actions.shape(0) == rows && windows.shape(0) == rows, "starts, actions, windows",
            "(rows,)");
    for (size_t i = 0; i < rows; ++i) {
      const auto& interval = *reinterpret_cast<const nb_interval*>(intervals.data() + i * NB_INTERVAL_FIELDS);
      uint32_t action = 0;
      if (starts.data()[i]) {
        states_[i] = {};
        action = nb_start(policy_.get(), &states_[i], interval.cwnd, interval.mss);
        windows.data()[i] = 0;
      } else {
        windows.data()[i] = nb_step(policy_.get(), &states_[i], &interval, &action);
      }
      actions.data()[i] = action;
    }
  }

  void infer(const Array<const int32_t, 2>& observations, const Array<const bool, 1>& starts,
             const Array<int64_t, 1>& actions) {
    const size_t rows = states_.size(), width = policy_.get()->inputs;
    require(observations.shape(0) == rows && observations.shape(1) == width, "observations", "(rows, inputs)");
    require(starts.shape(0) == rows && actions.shape(0) == rows, "starts, actions", "(rows,)");
    for (size_t i = 0; i < rows; ++i) {
      if (starts.data()[i]) states_[i] = {};
      std::copy_n(observations.data() + i * width, width, states_[i].x);
      actions.data()[i] = nb_infer(policy_.get(), &states_[i]);
    }
  }

  void observe(const Array<int32_t, 2>& observations) const {
    const size_t width = policy_.get()->inputs;
    const bool fits = observations.shape(0) == states_.size() && observations.shape(1) == width;
    require(fits, "observations", "(rows, inputs)");
    for (size_t i = 0; i < states_.size(); ++i) std::copy_n(states_[i].x, width, observations.data() + i * width);
  }

 private:
  CompiledPolicy policy_;
  std::vector<nb_state> states_;
};

}  // namespace

void bind_policies(nb::module_& m, nb::class_<FlowConfig>& flow) {
  m.attr("POLICY_BYTES") = sizeof(nb_policy);
  nb::class_<IntegerPolicy>(m, "IntegerPolicy", "Connections of a sender in integers (cpp/policy/policy.h).")
      .def(nb::init<const nb::bytes&, size_t>(), "policy"_a, "rows"_a)
      .def("step", &IntegerPolicy::step, "intervals"_a, "starts"_a, "actions"_a, "windows"_a,
           "Decides at the end of an interval, or where a connection starts; windows in bytes, 0: as they are.")
      .def("infer", &IntegerPolicy::infer, "observations"_a, "starts"_a, "actions"_a,
           "The network alone, on features in 2^-20, those of the oldest interval first.")
      .def("observe", &IntegerPolicy::observe, "observations"_a, "Writes features of the latest decision likewise.");
  flow.def("set_compiled_agent", [](FlowConfig& config, const nb::bytes& policy, const std::string& name) {
    const auto shared = std::make_shared<const CompiledPolicy>(policy.c_str(), policy.size());
    config.cc = name;
    config.own_control = [shared](Stack stack) { return make_compiled_agent(shared, stack); };
  }, "policy"_a, "name"_a, "Each connection is a sender of that policy.");
}

}  // namespace netbuf
