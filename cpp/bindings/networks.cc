// Networks of learners, on arrays that numpy or torch made.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <stdexcept>

#include "bindings.h"
#include "netbuf/networks.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace netbuf {

namespace {

template <class T, size_t N>
using Array = nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
using In = Array<const float, 2>;
using Out = Array<float, 2>;
using Indices = std::optional<Array<const int64_t, 1>>;

void require(bool holds, const char* name, const char* shape) {
  if (!holds) throw std::invalid_argument(std::string(name) + " must have shape " + shape);
}

template <class T>
T* data_of(const std::optional<Array<T, 2>>& array) {
  return array ? array->data() : nullptr;
}

// Rows of a matrix, all of which are in it.
InputRows checked(const In& inputs, const Indices& rows, size_t width, size_t count) {
  require(inputs.shape(1) == width, "inputs", "(rows, inputs of the layer)");
  if (!rows) {
    require(inputs.shape(0) == count, "inputs", "(rows, inputs of the layer)");
    return {inputs.data(), width, nullptr};
  }
  require(rows->shape(0) == count, "rows", "(rows,)");
  for (size_t i = 0; i < count; ++i) {
    const int64_t row = rows->data()[i];
    if (row < 0 || static_cast<size_t>(row) >= inputs.shape(0)) {
      throw std::out_of_range("rows[" + std::to_string(i) + "] = " + std::to_string(row) + "; valid: 0 to " +
                              std::to_string(inputs.shape(0)) + " - 1");
    }
  }
  return {inputs.data(), width, rows->data()};
}

class Perceptron {
 public:
  Perceptron(std::vector<In> weights, std::vector<Array<const float, 1>> biases, const std::string& activation)
      : weights_(std::move(weights)), biases_(std::move(biases)) {
    if (activation != "tanh" && activation != "relu") {
      throw std::invalid_argument("activation = '" + activation + "'; valid: tanh, relu");
    }
    activation_ = activation == "tanh" ? Activation::tanh : Activation::relu;
    require(!weights_.empty() && weights_.size() == biases_.size(), "weights", "[one a layer], as biases");
    for (size_t i = 0; i < weights_.size(); ++i) {
      const In& weight = weights_[i];
      require(weight.shape(0) && weight.shape(1) && (!i || weight.shape(1) == layers_.back().outputs), "weights",
              "(outputs, inputs), inputs being the layer's outputs before");
      require(biases_[i].shape(0) == weight.shape(0), "biases", "(outputs,)");
      layers_.push_back({weight.data(), biases_[i].data(), weight.shape(1), weight.shape(0)});
    }
  }

  size_t kept() const { return kept_floats(layers_); }

  void forward(const In& inputs, const Indices& rows, const Out& out, const std::optional<Out>& kept, uint32_t threads) {
    const size_t count = out.shape(0);
    const InputRows in = checked(inputs, rows, layers_.front().inputs, count);
    require(out.shape(1) == layers_.back().outputs, "out", "(rows, outputs)");
    require(!kept || (kept->shape(0) == count && kept->shape(1) == this->kept()), "kept", "(rows, kept)");
    nb::gil_scoped_release nobody_waits;
    run_perceptron(layers_, activation_, count, in, out.data(), data_of(kept), threads);
  }

  void backward(const In& inputs, const Indices& rows, const In& kept, const In& grad_out, const std::vector<Out>& grad_weights,
                const std::vector<Array<float, 1>>& grad_biases, const std::optional<Out>& grad_inputs, uint32_t threads) {
    const size_t count = grad_out.shape(0), width = layers_.front().inputs;
    const InputRows in = checked(inputs, rows, width, count);
    require(grad_out.shape(1) == layers_.back().outputs, "grad_out", "(rows, outputs)");
    require(kept.shape(0) == count && kept.shape(1) == this->kept(), "kept", "(rows, kept)");
    require(grad_weights.size() == layers_.size() && grad_biases.size() == layers_.size(), "grad_weights", "[one a layer]");
    require(!grad_inputs || (grad_inputs->shape(0) == count && grad_inputs->shape(1) == width), "grad_inputs", "(rows, inputs)");
    std::vector<LinearGradients> gradients;
    for (size_t i = 0; i < layers_.size(); ++i) {
      require(grad_weights[i].shape(0) == layers_[i].outputs && grad_weights[i].shape(1) == layers_[i].inputs, "grad_weights",
              "of the weights");
      require(grad_biases[i].shape(0) == layers_[i].outputs, "grad_biases", "of the biases");
      gradients.push_back({grad_weights[i].data(), grad_biases[i].data()});
    }
    nb::gil_scoped_release nobody_waits;
    run_perceptron_back(layers_, activation_, count, in, kept.data(), grad_out.data(), gradients, data_of(grad_inputs), threads);
  }

 private:
  std::vector<In> weights_;  // kept alive
  std::vector<Array<const float, 1>> biases_;
  std::vector<LinearLayer> layers_;
  Activation activation_;
};

class Lstm {
 public:
  Lstm(In weight_inputs, In weight_hidden, Array<const float, 1> bias_inputs, Array<const float, 1> bias_hidden)
      : weights_{weight_inputs, weight_hidden}, biases_{bias_inputs, bias_hidden} {
    const size_t width = weight_hidden.shape(1), wide = 4 * width;
    require(width && width % 16 == 0 && weight_hidden.shape(0) == wide, "weight_hidden",
            "(4 * width, width), width a multiple of 16");
    require(weight_inputs.shape(0) == wide && weight_inputs.shape(1), "weight_inputs", "(4 * width, inputs)");
    require(bias_inputs.shape(0) == wide && bias_hidden.shape(0) == wide, "bias_inputs and bias_hidden", "(4 * width,)");
    layer_ = {weight_inputs.data(), weight_hidden.data(), bias_inputs.data(), bias_hidden.data(), weight_inputs.shape(1), width};
  }

  void forward(const In& inputs, const Indices& rows, const In& hidden, const In& cells_before, const std::optional<In>& starts,
               const Array<float, 3>& outputs, const Array<float, 3>& cells, const std::optional<Array<float, 3>>& gates,
               uint32_t threads) {
    const LstmRun run = checked_run(inputs, rows, hidden, cells_before, starts, outputs, cells,
                                    gates ? std::optional<Array<float, 3>>(*gates) : std::nullopt);
    nb::gil_scoped_release nobody_waits;
    run_lstm(layer_, run, threads);
  }

  void backward(const In& inputs, const Indices& rows, const In& hidden, const In& cells_before, const std::optional<In>& starts,
                const Array<float, 3>& outputs, const Array<float, 3>& cells, const Array<float, 3>& gates,
                const Array<const float, 3>& grad_outputs, const Out& grad_weight_inputs, const Out& grad_weight_hidden,
                const Array<float, 1>& grad_bias, const std::optional<Out>& grad_inputs, uint32_t threads) {
    const LstmRun run = checked_run(inputs, rows, hidden, cells_before, starts, outputs, cells, gates);
    const size_t wide = 4 * layer_.width;
    require(grad_outputs.shape(0) == run.steps && grad_outputs.shape(1) == run.sequences && grad_outputs.shape(2) == layer_.width,
            "grad_outputs", "(steps, sequences, width)");
    require(grad_weight_inputs.shape(0) == wide && grad_weight_inputs.shape(1) == layer_.inputs, "grad_weight_inputs",
            "(4 * width, inputs)");
    require(grad_weight_hidden.shape(0) == wide && grad_weight_hidden.shape(1) == layer_.width, "grad_weight_hidden",
            "(4 * width, width)");
    require(grad_bias.shape(0) == wide, "grad_bias", "(4 * width,)");
    require(!grad_inputs || (grad_inputs->shape(0) == run.steps * run.sequences && grad_inputs->shape(1) == layer_.inputs),
            "grad_inputs", "(steps * sequences, inputs)");
    nb::gil_scoped_release nobody_waits;
    run_lstm_back(layer_, run, grad_outputs.data(), {grad_weight_inputs.data(), grad_weight_hidden.data(), grad_bias.data()},
                  data_of(grad_inputs), threads);
  }

 private:
  LstmRun checked_run(const In& inputs, const Indices& rows, const In& hidden, const In& cells_before,
                      const std::optional<In>& starts, const Array<float, 3>& outputs, const Array<float, 3>& cells,
                      const std::optional<Array<float, 3>>& gates) const {
    const size_t steps = outputs.shape(0), sequences = outputs.shape(1), width = layer_.width;
    const auto fits = [&](const Array<float, 3>& array, size_t last) {
      return array.shape(0) == steps && array.shape(1) == sequences && array.shape(2) == last;
    };
    require(fits(outputs, width), "outputs", "(steps, sequences, width)");
    require(fits(cells, width), "cells", "(steps, sequences, width)");
    require(!gates || fits(*gates, 4 * width), "gates", "(steps, sequences, 4 * width)");
    require(hidden.shape(0) == sequences && hidden.shape(1) == width, "hidden", "(sequences, width)");
    require(cells_before.shape(0) == sequences && cells_before.shape(1) == width, "cells_before", "(sequences, width)");
    require(!starts || (starts->shape(0) == steps && starts->shape(1) == sequences), "starts", "(steps, sequences)");
    return {steps, sequences, checked(inputs, rows, layer_.inputs, steps * sequences), hidden.data(), cells_before.data(),
            starts ? starts->data() : nullptr, outputs.data(), cells.data(), gates ? gates->data() : nullptr};
  }

  In weights_[2];  // kept alive
  Array<const float, 1> biases_[2];
  LstmLayer layer_;
};

}  // namespace

void bind_networks(nb::module_& m) {
  nb::class_<Perceptron>(m, "Perceptron",
                         "Linear layers with an activation between them, float32; the parameters are read where they are.")
      .def(nb::init<std::vector<In>, std::vector<Array<const float, 1>>, const std::string&>(), "weights"_a, "biases"_a,
           "activation"_a, "weights: (outputs, inputs) of each layer; activation: tanh or relu.")
      .def_prop_ro("kept", &Perceptron::kept, "Floats a row that backward needs of forward.")
      .def("forward", &Perceptron::forward, "inputs"_a, "rows"_a.none(), "out"_a.noconvert(), "kept"_a.noconvert().none(),
           "threads"_a, "Computes out, (rows, outputs), of all inputs, or of those at the indices rows.")
      .def("backward", &Perceptron::backward, "inputs"_a, "rows"_a.none(), "kept"_a, "grad_out"_a, "grad_weights"_a.noconvert(),
           "grad_biases"_a.noconvert(), "grad_inputs"_a.noconvert().none(), "threads"_a,
           "Writes the gradients of parameters and of inputs, (rows, inputs) unless None, from those of out.");
  nb::class_<Lstm>(m, "Lstm", "A layer of torch.nn.LSTM, float32; the parameters are read where they are.")
      .def(nb::init<In, In, Array<const float, 1>, Array<const float, 1>>(), "weight_inputs"_a, "weight_hidden"_a,
           "bias_inputs"_a, "bias_hidden"_a)
      .def("forward", &Lstm::forward, "inputs"_a, "rows"_a.none(), "hidden"_a, "cells_before"_a, "starts"_a.none(),
           "outputs"_a.noconvert(), "cells"_a.noconvert(), "gates"_a.noconvert().none(), "threads"_a,
           "Runs sequences from their states, which are reset where starts are 1.")
      .def("backward", &Lstm::backward, "inputs"_a, "rows"_a.none(), "hidden"_a, "cells_before"_a, "starts"_a.none(),
           "outputs"_a.noconvert(), "cells"_a.noconvert(), "gates"_a.noconvert(), "grad_outputs"_a, "grad_weight_inputs"_a.noconvert(),
           "grad_weight_hidden"_a.noconvert(), "grad_bias"_a.noconvert(), "grad_inputs"_a.noconvert().none(), "threads"_a,
           "Writes the gradients of parameters and of inputs, unless None, from those of the outputs of forward.");
}

}  // namespace netbuf
