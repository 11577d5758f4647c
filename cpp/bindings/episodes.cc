// The ends of decisions and episodes.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <stdexcept>

#include "bindings.h"
#include "netbuf/episodes.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace netbuf {

namespace {

template <class T, size_t N>
using Array = nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
template <class T>
using Vector = Array<T, 1>;

// The arrays of an engine, bound once.
class Episodes {
 public:
  Episodes(Vector<int64_t> time_ns, Vector<int64_t> end_ns, Vector<int64_t> steps, Vector<float> rewards,
           Array<bool, 2> over)
      : time_ns_(time_ns), end_ns_(end_ns), steps_(steps), rewards_(rewards), over_(over) {
    const size_t worlds = time_ns.shape(0);
    if (end_ns.shape(0) != worlds || steps.shape(0) != worlds || over.shape(0) != 3 || over.shape(1) != worlds) {
      throw std::invalid_argument("time_ns, end_ns, steps must have shape (worlds,), over (3, worlds)");
    }
    uint8_t* flags = reinterpret_cast<uint8_t*>(over.data());
    e_ = {.worlds = worlds,
          .rows = rewards.shape(0),
          .time_ns = time_ns.data(),
          .end_ns = end_ns.data(),
          .steps = steps.data(),
          .rewards = rewards.data(),
          .terminated = flags,
          .truncated = flags + worlds,
          .ended = flags + 2 * worlds};
  }

  void pass_time(const Vector<const int64_t>& elapsed_ns) {
    if (elapsed_ns.shape(0) != e_.worlds) throw std::invalid_argument("elapsed_ns must have shape (worlds,)");
    netbuf::pass_time(e_, elapsed_ns.data());
  }

  void end_decision(const Array<const float, 2>& terms, int64_t most_steps) {
    if (terms.shape(1) != e_.rows) throw std::invalid_argument("terms must have shape (terms, rows)");
    netbuf::end_decision(e_, terms.data(), terms.shape(0), most_steps);
  }

 private:
  EpisodeRows e_;
  Vector<int64_t> time_ns_, end_ns_, steps_;  // this and the following: kept alive
  Vector<float> rewards_;
  Array<bool, 2> over_;
};

}  // namespace

void bind_episodes(nb::module_& m) {
  m.def("all_positive", [](const Vector<const int64_t>& values) {
    return all_positive(values.data(), values.shape(0));
  }, "values"_a, "Whether all of these are above 0.");
  nb::class_<Episodes>(m, "Episodes", "Times, decisions, rewards and ends of the episodes of worlds, on an engine's arrays.")
      .def(nb::init<Vector<int64_t>, Vector<int64_t>, Vector<int64_t>, Vector<float>, Array<bool, 2>>(),
           "time_ns"_a.noconvert(), "end_ns"_a.noconvert(), "steps"_a.noconvert(), "rewards"_a.noconvert(),
           "over"_a.noconvert(), "over, (3, worlds): terminated, truncated, ended.")
      .def("pass_time", &Episodes::pass_time, "elapsed_ns"_a, "Adds these times, (worlds,), to the worlds'.")
      .def("end_decision", &Episodes::end_decision, "terms"_a, "most_steps"_a,
           "Makes the terms' sum the rewards, counts a decision, and truncates and ends what is over.");
}

}  // namespace netbuf
