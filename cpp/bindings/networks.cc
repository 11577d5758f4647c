// Networks of learners, on arrays that numpy or torch made.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <any>
#include <memory>
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
using Vector = Array<const float, 1>;
using Matrix = Array<const float, 2>;

void require(bool holds, const char* name, const char* shape) {
  if (!holds) throw std::invalid_argument(std::string(name) + " must have shape " + shape);
}

// Indices, all of which are below a bound.
const int64_t* checked(const char* name, const int64_t* values, size_t count, size_t bound) {
  for (size_t i = 0; i < count; ++i) {
    if (values[i] < 0 || static_cast<size_t>(values[i]) >= bound) {
      throw std::out_of_range(std::string(name) + "[" + std::to_string(i) + "] = " + std::to_string(values[i]) +
                              "; valid: 0 or more, below " + std::to_string(bound));
    }
  }
  return values;
}

// Losses with the arrays that they read, which are kept alive.
struct BoundLoss {
  std::unique_ptr<Loss> loss;
  size_t decisions, outputs;
  std::vector<std::any> arrays;
};

PolicyTargets targets(const Matrix& old, const Vector& advantages, size_t size, size_t columns, bool normalize, bool clips,
                      float clip_range, float kl_coefficient, float entropy_coefficient) {
  require(old.shape(0) == advantages.shape(0) && old.shape(1) == columns, "old", "(decisions, size of the policy's output)");
  return {old.data(), advantages.data(), size, normalize, clips, clip_range, kl_coefficient, entropy_coefficient};
}

struct BoundPerceptron {
  BoundPerceptron(std::vector<Matrix> weights, std::vector<Vector> biases, const std::string& activation)
      : weights_(std::move(weights)), biases_(std::move(biases)) {
    if (activation != "tanh" && activation != "relu") {
      throw std::invalid_argument("activation = '" + activation + "'; valid: tanh, relu");
    }
    network.activation = activation == "tanh" ? Activation::tanh : Activation::relu;
    require(!weights_.empty() && weights_.size() == biases_.size(), "weights", "[one a layer], as biases");
    for (size_t i = 0; i < weights_.size(); ++i) {
      const Matrix& weight = weights_[i];
      require(weight.shape(0) && weight.shape(1) && (!i || weight.shape(1) == network.layers.back().outputs), "weights",
              "(outputs, inputs), inputs being the outputs of the layer before");
      require(biases_[i].shape(0) == weight.shape(0), "biases", "(outputs,)");
      network.layers.push_back({weight.data(), biases_[i].data(), weight.shape(1), weight.shape(0)});
    }
  }

  size_t inputs() const { return network.layers.front().inputs; }
  size_t outputs() const { return network.layers.back().outputs; }

  void forward(const Matrix& inputs, const Array<float, 2>& out, uint32_t threads) const {
    require(inputs.shape(1) == this->inputs(), "inputs", "(rows, inputs of the first layer)");
    require(out.shape(0) == inputs.shape(0) && out.shape(1) == outputs(), "out", "(rows, outputs)");
    nb::gil_scoped_release others_run;
    run_perceptron(network, inputs.shape(0), {inputs.data(), this->inputs(), nullptr}, out.data(), threads);
  }

  // Pointers to gradients, where there is one for each parameter.
  std::vector<LinearGradients> gradients(const std::vector<Array<float, 2>>& weights, const std::vector<Array<float, 1>>& biases) const {
    require(weights.size() == weights_.size() && biases.size() == biases_.size(), "grad_weights", "[one a layer], as grad_biases");
    std::vector<LinearGradients> all;
    for (size_t i = 0; i < weights.size(); ++i) {
      require(weights[i].shape(0) == weights_[i].shape(0) && weights[i].shape(1) == weights_[i].shape(1), "grad_weights",
              "as the weights");
      require(biases[i].shape(0) == biases_[i].shape(0), "grad_biases", "as the biases");
      all.push_back({weights[i].data(), biases[i].data()});
    }
    return all;
  }

  Perceptron network;

 private:
  std::vector<Matrix> weights_;  // kept alive
  std::vector<Vector> biases_;
};

nb::tuple sums_of(const LossSums& sums) { return nb::make_tuple(sums.policy, sums.value, sums.entropy, sums.kl, sums.clipped); }

void check_loss(const BoundLoss& loss, const Matrix& inputs, const BoundPerceptron& network) {
  require(loss.decisions == inputs.shape(0), "inputs", "(decisions of the loss, inputs)");
  require(loss.outputs == network.outputs(), "the last bias", "(outputs that the loss is of,)");
}

nb::tuple learn(const BoundPerceptron& network, const Matrix& inputs, const Array<const int64_t, 1>& rows, const BoundLoss& loss,
                const std::vector<Array<float, 2>>& grad_weights, const std::vector<Array<float, 1>>& grad_biases, uint32_t threads) {
  require(inputs.shape(1) == network.inputs(), "inputs", "(decisions, inputs of the first layer)");
  check_loss(loss, inputs, network);
  const InputRows in{inputs.data(), inputs.shape(1), checked("rows", rows.data(), rows.size(), inputs.shape(0))};
  const std::vector<LinearGradients> gradients = network.gradients(grad_weights, grad_biases);
  LossSums sums;
  {
    nb::gil_scoped_release others_run;
    learn_perceptron(network.network, rows.size(), in, *loss.loss, gradients, sums, threads);
  }
  return sums_of(sums);
}

class BoundLstm {
 public:
  BoundLstm(Matrix weight_inputs, Matrix weight_hidden, Vector bias_inputs, Vector bias_hidden)
      : weights_{weight_inputs, weight_hidden}, biases_{bias_inputs, bias_hidden} {
    const size_t width = weight_hidden.shape(1), wide = 4 * width;
    require(width && width % 16 == 0 && weight_hidden.shape(0) == wide, "weight_hidden",
            "(4 * width, width), width a multiple of 16");
    require(weight_inputs.shape(0) == wide && weight_inputs.shape(1), "weight_inputs", "(4 * width, inputs)");
    require(bias_inputs.shape(0) == wide && bias_hidden.shape(0) == wide, "bias_inputs and bias_hidden", "(4 * width,)");
    layer_ = {weight_inputs.data(), weight_hidden.data(), bias_inputs.data(), bias_hidden.data(), weight_inputs.shape(1), width};
  }

  void forward(const Matrix& inputs, const Matrix& hidden, const Matrix& cells, const std::optional<Matrix>& starts,
               const Array<float, 3>& outputs, const Array<float, 3>& cells_after, uint32_t threads) const {
    const Sequences sequences = checked_sequences(outputs.shape(0), outputs.shape(1), hidden, cells, starts);
    require(inputs.shape(0) == sequences.steps * sequences.count && inputs.shape(1) == layer_.inputs, "inputs",
            "(steps * sequences, inputs)");
    for (const Array<float, 3>& array : {outputs, cells_after}) {
      require(array.shape(0) == sequences.steps && array.shape(1) == sequences.count && array.shape(2) == layer_.width,
              "outputs and cells_after", "(steps, sequences, width)");
    }
    nb::gil_scoped_release others_run;
    run_lstm(layer_, sequences, {inputs.data(), layer_.inputs, nullptr}, outputs.data(), cells_after.data(), threads);
  }

  nb::tuple learn(const BoundPerceptron& network, const Matrix& inputs, const Array<const int64_t, 2>& rows, const Matrix& hidden,
                  const Matrix& cells, const std::optional<Matrix>& starts, const BoundLoss& loss,
                  const Array<float, 2>& grad_weight_inputs, const Array<float, 2>& grad_weight_hidden, const Array<float, 1>& grad_bias,
                  const std::vector<Array<float, 2>>& grad_weights, const std::vector<Array<float, 1>>& grad_biases,
                  uint32_t threads) const {
    const size_t wide = 4 * layer_.width;
    const Sequences sequences = checked_sequences(rows.shape(0), rows.shape(1), hidden, cells, starts);
    require(inputs.shape(1) == layer_.inputs, "inputs", "(decisions, inputs)");
    require(network.inputs() == layer_.width, "network", "whose inputs are the memory's width");
    check_loss(loss, inputs, network);
    require(grad_weight_inputs.shape(0) == wide && grad_weight_inputs.shape(1) == layer_.inputs, "grad_weight_inputs",
            "(4 * width, inputs)");
    require(grad_weight_hidden.shape(0) == wide && grad_weight_hidden.shape(1) == layer_.width, "grad_weight_hidden",
            "(4 * width, width)");
    require(grad_bias.shape(0) == wide, "grad_bias", "(4 * width,)");
    const InputRows in{inputs.data(), inputs.shape(1), checked("rows", rows.data(), rows.size(), inputs.shape(0))};
    const std::vector<LinearGradients> gradients = network.gradients(grad_weights, grad_biases);
    LossSums sums;
    {
      nb::gil_scoped_release others_run;
      learn_lstm(layer_, network.network, sequences, in, *loss.loss,
                 {grad_weight_inputs.data(), grad_weight_hidden.data(), grad_bias.data()}, gradients, sums, threads);
    }
    return sums_of(sums);
  }

 private:
  Sequences checked_sequences(size_t steps, size_t count, const Matrix& hidden, const Matrix& cells,
                              const std::optional<Matrix>& starts) const {
    require(hidden.shape(0) == count && hidden.shape(1) == layer_.width, "hidden", "(sequences, width)");
    require(cells.shape(0) == count && cells.shape(1) == layer_.width, "cells", "(sequences, width)");
    require(!starts || (starts->shape(0) == steps && starts->shape(1) == count), "starts", "(steps, sequences)");
    return {steps, count, hidden.data(), cells.data(), starts ? starts->data() : nullptr};
  }

  Matrix weights_[2];  // kept alive
  Vector biases_[2];
  LstmLayer layer_;
};

}  // namespace

void bind_networks(nb::module_& m) {
  nb::class_<BoundLoss>(m, "Loss", "A loss of decisions of a rollout.");
  m.def("categorical_loss", [](const Array<const int64_t, 1>& actions, const Matrix& old, const Vector& advantages, bool normalize,
                               bool clips, float clip_range, float kl_coefficient, float entropy_coefficient) {
    const size_t size = old.shape(1);
    const PolicyTargets all = targets(old, advantages, size, size, normalize, clips, clip_range, kl_coefficient, entropy_coefficient);
    require(actions.shape(0) == advantages.shape(0), "actions", "(decisions,)");
    checked("actions", actions.data(), actions.size(), size);
    return new BoundLoss{std::make_unique<CategoricalLoss>(all, actions.data()), actions.shape(0), size,
                         {actions, old, advantages}};
  }, "actions"_a, "old"_a, "advantages"_a, "normalize"_a, "clips"_a, "clip_range"_a, "kl_coefficient"_a, "entropy_coefficient"_a,
     "PPO's loss of a policy over actions; old: log-probabilities, (decisions, actions).");
  m.def("gaussian_loss", [](const Matrix& actions, const Matrix& old, const Vector& advantages, const Vector& log_std,
                            const std::optional<Array<float, 1>>& grad_log_std, bool normalize, bool clips, float clip_range,
                            float kl_coefficient, float entropy_coefficient) {
    const size_t size = log_std.shape(0);
    const PolicyTargets all =
        targets(old, advantages, size, 2 * size, normalize, clips, clip_range, kl_coefficient, entropy_coefficient);
    require(actions.shape(0) == advantages.shape(0) && actions.shape(1) == size, "actions", "(decisions, dimensions)");
    require(!grad_log_std || grad_log_std->shape(0) == size, "grad_log_std", "(dimensions,)");
    auto* bound = new BoundLoss{std::make_unique<GaussianLoss>(all, actions.data(), log_std.data(),
                                                               grad_log_std ? grad_log_std->data() : nullptr),
                                actions.shape(0), size, {actions, old, advantages, log_std}};
    if (grad_log_std) bound->arrays.push_back(*grad_log_std);
    return bound;
  }, "actions"_a, "old"_a, "advantages"_a, "log_std"_a, "grad_log_std"_a.noconvert().none(), "normalize"_a, "clips"_a, "clip_range"_a,
     "kl_coefficient"_a, "entropy_coefficient"_a,
     "PPO's loss of a policy of normal distributions; old: means and log deviations, (decisions, 2 * dimensions).");
  m.def("value_loss", [](const Vector& returns, float coefficient) {
    return new BoundLoss{std::make_unique<ValueLoss>(returns.data(), coefficient), returns.shape(0), 1, {std::any(returns)}};
  }, "returns"_a, "coefficient"_a, "The squared error of values, times a coefficient.");

  nb::class_<BoundPerceptron>(m, "Perceptron",
                              "Linear layers with an activation between them, float32; the parameters are read where they are.")
      .def(nb::init<std::vector<Matrix>, std::vector<Vector>, const std::string&>(), "weights"_a, "biases"_a, "activation"_a,
           "weights: (outputs, inputs) of each layer; activation: tanh or relu.")
      .def("forward", &BoundPerceptron::forward, "inputs"_a, "out"_a.noconvert(), "threads"_a,
           "Computes out, (rows, outputs), of inputs, (rows, inputs).")
      .def("learn", &learn, "inputs"_a, "rows"_a, "loss"_a, "grad_weights"_a.noconvert(), "grad_biases"_a.noconvert(), "threads"_a,
           "Writes the gradients of the mean loss over the decisions at the indices rows; returns the losses' sums:"
           " policy, value, entropy, KL divergence, decisions whose ratio is beyond the clip range.");
  nb::class_<BoundLstm>(m, "Lstm", "A layer of torch.nn.LSTM, float32; the parameters are read where they are.")
      .def(nb::init<Matrix, Matrix, Vector, Vector>(), "weight_inputs"_a, "weight_hidden"_a, "bias_inputs"_a, "bias_hidden"_a)
      .def("forward", &BoundLstm::forward, "inputs"_a, "hidden"_a, "cells"_a, "starts"_a.none(), "outputs"_a.noconvert(),
           "cells_after"_a.noconvert(), "threads"_a, "Runs sequences from their states, which are reset where starts are 1.")
      .def("learn", &BoundLstm::learn, "network"_a, "inputs"_a, "rows"_a, "hidden"_a, "cells"_a, "starts"_a.none(), "loss"_a,
           "grad_weight_inputs"_a.noconvert(), "grad_weight_hidden"_a.noconvert(), "grad_bias"_a.noconvert(),
           "grad_weights"_a.noconvert(), "grad_biases"_a.noconvert(), "threads"_a,
           "As Perceptron.learn, of a network whose inputs are this layer's outputs; rows: (steps, sequences).");
}

}  // namespace netbuf
