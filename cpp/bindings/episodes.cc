// Starts of rows, and ends of decisions and episodes.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

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

using AnyArray = nb::ndarray<nb::c_contig, nb::device::cpu>;

void require_range(size_t first, size_t stop, size_t rows) {
  if (first > stop || stop > rows) {
    throw std::invalid_argument("first..stop must be within 0.." + std::to_string(rows));
  }
}

// Arrays whose last axis are rows, with what they hold of a row that starts.
class RowStarts {
 public:
  explicit RowStarts(const std::vector<AnyArray>& arrays) : arrays_(arrays) {
    for (const AnyArray& array : arrays) {
      const size_t axes = array.ndim();
      if (axes == 0 || array.shape(axes - 1) == 0 || array.shape(axes - 1) != arrays[0].shape(arrays[0].ndim() - 1)) {
        throw std::invalid_argument("arrays must have rows, all the same number, as their last axis");
      }
      rows_ = array.shape(axes - 1);
      const size_t size = array.itemsize();
      const char* data = static_cast<const char*>(array.data());
      for (size_t i = 0; i < array.size() / rows_; ++i) {
        Field field{const_cast<char*>(data) + i * rows_ * size, size, {}};
        std::memcpy(field.start, field.data, std::min(size, sizeof field.start));
        if (size > sizeof field.start) throw std::invalid_argument("arrays must have items of 8 bytes at most");
        fields_.push_back(field);
      }
    }
  }

  void restore(size_t first, size_t stop) const {
    require_range(first, stop, rows_);
    for (const Field& field : fields_) {
      char* to = field.data + first * field.size;
      for (size_t row = first; row < stop; ++row, to += field.size) std::memcpy(to, field.start, field.size);
    }
  }

 private:
  struct Field {
    char* data;
    size_t size;
    char start[8];
  };
  std::vector<AnyArray> arrays_;  // kept alive
  std::vector<Field> fields_;
  size_t rows_ = 0;
};

// Arrays of a number a row, which are given values together.
class RowValues {
 public:
  using Arrays = std::vector<std::variant<Vector<float>, Vector<double>, Vector<int64_t>>>;
  using Values = std::variant<double, std::vector<double>>;  // one for all rows, or one for each

  explicit RowValues(const Arrays& arrays) : arrays_(arrays) {
    rows_ = arrays.empty() ? 0 : std::visit([](const auto& array) { return array.shape(0); }, arrays[0]);
    for (const auto& array : arrays) {
      std::visit([&](const auto& one) {
        if (one.shape(0) != rows_) throw std::invalid_argument("arrays must have the same number of rows");
      }, array);
    }
  }

  void write(size_t first, size_t stop, const std::vector<Values>& values) const {
    require_range(first, stop, rows_);
    if (values.size() != arrays_.size()) throw std::invalid_argument("values must be as many as there are arrays");
    for (size_t k = 0; k < values.size(); ++k) {
      const auto* each = std::get_if<std::vector<double>>(&values[k]);
      if (each != nullptr && each->size() != stop - first) {
        throw std::invalid_argument("values must be one for all rows, or one for each");
      }
      std::visit([&](const auto& array) {
        auto* to = array.data();
        using Item = std::remove_pointer_t<decltype(to)>;
        for (size_t row = first; row < stop; ++row) {
          to[row] = static_cast<Item>(each != nullptr ? (*each)[row - first] : std::get<double>(values[k]));
        }
      }, arrays_[k]);
    }
  }

 private:
  Arrays arrays_;
  size_t rows_;
};

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
  nb::class_<RowStarts>(m, "RowStarts",
                        "What arrays, (..., rows), hold of a row that starts: what they have of the first one now.")
      .def(nb::init<const std::vector<AnyArray>&>(), "arrays"_a.noconvert())
      .def("restore", &RowStarts::restore, "first"_a, "stop"_a, "Writes it into these rows of all of them.");
  nb::class_<RowValues>(m, "RowValues", "Arrays, (rows,), that are given values together.")
      .def(nb::init<const RowValues::Arrays&>(), "arrays"_a.noconvert())
      .def("write", &RowValues::write, "first"_a, "stop"_a, "values"_a,
           "Writes into these rows of each array a value, or one for each of the rows.");
  nb::class_<Episodes>(m, "Episodes", "Times, decisions, rewards and ends of the episodes of worlds, on an engine's arrays.")
      .def(nb::init<Vector<int64_t>, Vector<int64_t>, Vector<int64_t>, Vector<float>, Array<bool, 2>>(),
           "time_ns"_a.noconvert(), "end_ns"_a.noconvert(), "steps"_a.noconvert(), "rewards"_a.noconvert(),
           "over"_a.noconvert(), "over, (3, worlds): terminated, truncated, ended.")
      .def("pass_time", &Episodes::pass_time, "elapsed_ns"_a, "Adds these times, (worlds,), to the worlds'.")
      .def("end_decision", &Episodes::end_decision, "terms"_a, "most_steps"_a,
           "Makes the terms' sum the rewards, counts a decision, and truncates and ends what is over.");
}

}  // namespace netbuf
