// Small networks of learners, float32, on this processor: perceptrons and LSTM layers over many rows at once, and the gradients of
// PPO's losses. Parameters are read where they are, as torch keeps them. Results are the same whatever the number of threads;
// processors whose vector registers differ in width sum in another order.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace netbuf {

enum class Activation { tanh, relu };

// Rows of a matrix [.., width]: those at `indices`, or else all in their order.
struct InputRows {
  const float* values;
  size_t width;
  const int64_t* indices;
  const float* row(size_t i) const { return values + (indices ? static_cast<size_t>(indices[i]) : i) * width; }
};

// A linear layer, y = W x + b, with W [outputs][inputs].
struct LinearLayer {
  const float *weight, *bias;
  size_t inputs, outputs;
};
struct LinearGradients {
  float *weight, *bias;
};

// Layers one after the other, an activation between them.
struct Perceptron {
  std::vector<LinearLayer> layers;
  Activation activation;
};

// A layer of LSTM cells as torch.nn.LSTM's: gates in the order input, forget, candidate, output; width a multiple of 16.
struct LstmLayer {
  const float *weight_inputs, *weight_hidden;  // [4 * width][inputs], [4 * width][width]
  const float *bias_inputs, *bias_hidden;
  size_t inputs, width;
};
struct LstmGradients {
  float *weight_inputs, *weight_hidden, *bias;  // one bias for both, whose gradients are equal
};

// Sequences side by side: rows in the order [steps][sequences].
struct Sequences {
  size_t steps, count;
  const float *hidden, *cells;  // states before the first step, [sequences][width]
  const float* starts;          // [steps][sequences], 1 where the state is reset before the step, else 0; or null
};

// out: [rows][outputs of the last layer].
void run_perceptron(const Perceptron& network, size_t rows, const InputRows& inputs, float* out, uint32_t threads);

// outputs and cells: hidden and cell states after each step, [steps][sequences][width].
void run_lstm(const LstmLayer& layer, const Sequences& sequences, const InputRows& inputs, float* outputs, float* cells,
              uint32_t threads);

// Sums over decisions of the parts of PPO's loss (Schulman et al. 2017, arXiv:1707.06347), unweighted.
struct LossSums {
  double policy = 0, value = 0, entropy = 0, kl = 0, clipped = 0;
};

// A loss, of which each row of a network's output has a part.
class Loss {
 public:
  virtual ~Loss() = default;
  // Called before the rows of a minibatch are.
  virtual void begin(const int64_t* rows, size_t count) = 0;
  // Replaces outputs, [count][stride], whose padding is 0, by the gradients of the mean loss over the minibatch; the rows are those
  // of the rollout. Parameters of the loss's own have `own_size()` gradients, which are added to.
  virtual void differentiate(const int64_t* rows, size_t count, float* outputs, size_t stride, LossSums& sums, float* own) const = 0;
  virtual size_t own_size() const { return 0; }
  virtual float* own_gradients() const { return nullptr; }
};

// What a policy learns from, of all decisions of a rollout.
struct PolicyTargets {
  const float* old;         // policies that collected it: log-probabilities [n][size], or means and log deviations [n][2 * size]
  const float* advantages;  // [n]
  size_t size;              // actions, or dimensions of the box
  bool normalize;           // advantages, within a minibatch
  bool clips;               // the ratio to 1 +- clip_range in the loss, or only counts
  float clip_range, kl_coefficient, entropy_coefficient;
};

class PolicyLoss : public Loss {
 public:
  explicit PolicyLoss(const PolicyTargets& targets) : targets_(targets) {}
  void begin(const int64_t* rows, size_t count) override;

 protected:
  // The gradient by ln(new / old) of a decision.
  float differentiate_ratio(int64_t row, float log_ratio, LossSums& sums) const;

  PolicyTargets targets_;
  float mean_ = 0, scale_ = 1, share_ = 1;  // of the advantages; 1 / decisions
};

class CategoricalLoss : public PolicyLoss {
 public:
  CategoricalLoss(const PolicyTargets& targets, const int64_t* actions) : PolicyLoss(targets), actions_(actions) {}
  void differentiate(const int64_t* rows, size_t count, float* outputs, size_t stride, LossSums& sums, float* own) const override;

 private:
  const int64_t* actions_;
};

// Independent normal distributions, whose deviations are parameters.
class GaussianLoss : public PolicyLoss {
 public:
  GaussianLoss(const PolicyTargets& targets, const float* actions, const float* log_std, float* grad_log_std)
      : PolicyLoss(targets), actions_(actions), log_std_(log_std), grad_log_std_(grad_log_std) {}
  void differentiate(const int64_t* rows, size_t count, float* outputs, size_t stride, LossSums& sums, float* own) const override;
  size_t own_size() const override { return targets_.size; }
  float* own_gradients() const override { return grad_log_std_; }

 private:
  const float *actions_, *log_std_;
  float* grad_log_std_;
};

// coefficient * (value - return)^2.
class ValueLoss : public Loss {
 public:
  ValueLoss(const float* returns, float coefficient) : returns_(returns), coefficient_(coefficient) {}
  void begin(const int64_t*, size_t count) override { share_ = 1.0f / static_cast<float>(count); }
  void differentiate(const int64_t* rows, size_t count, float* outputs, size_t stride, LossSums& sums, float* own) const override;

 private:
  const float* returns_;
  float coefficient_, share_ = 1;
};

// Writes the gradients of the mean loss over a minibatch, and adds to the sums. inputs.indices are the minibatch's rows.
void learn_perceptron(const Perceptron& network, size_t rows, const InputRows& inputs, Loss& loss,
                      const std::vector<LinearGradients>& gradients, LossSums& sums, uint32_t threads);

// The same with a layer of memory before the perceptron; back through whole sequences, and not into the states before them.
void learn_lstm(const LstmLayer& layer, const Perceptron& network, const Sequences& sequences, const InputRows& inputs, Loss& loss,
                const LstmGradients& of_layer, const std::vector<LinearGradients>& gradients, LossSums& sums, uint32_t threads);

}  // namespace netbuf
