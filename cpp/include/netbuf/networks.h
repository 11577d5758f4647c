// Small networks of learners, float32, on this processor: perceptrons and LSTM layers over many rows at once, and their gradients.
// Parameters are read where they are, as torch keeps them. Results are the same whatever the number of threads; processors whose
// vector registers differ in width sum in another order.
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
  const float* row(size_t i) const { return values + static_cast<size_t>(indices ? indices[i] : static_cast<int64_t>(i)) * width; }
};

// A linear layer, y = W x + b, with W [outputs][inputs].
struct LinearLayer {
  const float *weight, *bias;
  size_t inputs, outputs;
};

// Gradients of a layer's parameters, which are written.
struct LinearGradients {
  float *weight, *bias;
};

// Floats per row that backward needs of forward: the hidden layers' values, each padded to whole registers.
size_t kept_floats(const std::vector<LinearLayer>& layers);

// Layers one after the other, an activation between them. out: [rows][outputs of the last]; kept: [rows][kept_floats], or null.
void run_perceptron(const std::vector<LinearLayer>& layers, Activation activation, size_t rows, const InputRows& inputs, float* out,
                    float* kept, uint32_t threads);

// Gradients of parameters, and of the inputs, [rows][inputs], unless null, from those of the output.
void run_perceptron_back(const std::vector<LinearLayer>& layers, Activation activation, size_t rows, const InputRows& inputs,
                         const float* kept, const float* grad_out, const std::vector<LinearGradients>& gradients,
                         float* grad_inputs, uint32_t threads);

// A layer of LSTM cells as torch.nn.LSTM's: gates in the order input, forget, candidate, output; width a multiple of 16.
struct LstmLayer {
  const float *weight_inputs, *weight_hidden;  // [4 * width][inputs], [4 * width][width]
  const float *bias_inputs, *bias_hidden;
  size_t inputs, width;
};

// Sequences side by side. Input rows are in the order [steps][sequences]; all others are [steps][sequences][..] as well.
struct LstmRun {
  size_t steps, sequences;
  InputRows inputs;
  const float *hidden, *cells_before;  // states before the first step, [sequences][width]
  const float* starts;                 // [steps][sequences], 1 where the state is reset before the step, else 0; or null
  float *outputs, *cells;              // hidden and cell states after each step
  float* gates;                        // [..][4 * width], which run_lstm_back needs; or null
};

void run_lstm(const LstmLayer& layer, const LstmRun& run, uint32_t threads);

struct LstmGradients {
  float *weight_inputs, *weight_hidden, *bias;
};

// Gradients of parameters, and of the inputs, [steps][sequences][inputs], unless null; none of the states before the first step.
void run_lstm_back(const LstmLayer& layer, const LstmRun& run, const float* grad_outputs, const LstmGradients& gradients,
                   float* grad_inputs, uint32_t threads);

}  // namespace netbuf
