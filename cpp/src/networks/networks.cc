#include "netbuf/networks.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>

#include "netbuf/pool.h"

namespace netbuf {

namespace {

constexpr size_t kPadding = 16;        // floats: whole registers of any kind
constexpr size_t kBlock = 96;          // rows at a time: their inputs and values stay in the caches
constexpr size_t kChunk = 16 * kBlock;  // rows with a sum of gradients of their own, whoever computes them
constexpr size_t kSequences = 48;      // sequences at a time

size_t pad(size_t width) { return (width + kPadding - 1) / kPadding * kPadding; }

struct Kernels {
  size_t tile_rows;
  void (*multiply)(size_t rows, const float* const* in, size_t depth, const float* packed, size_t width, const float* start,
                   size_t start_stride, float* out, size_t out_stride);
  void (*add_outer)(size_t rows, const float* left, size_t outputs, size_t left_stride, const float* right, size_t width,
                    size_t right_stride, float* out);
  void (*add_rows)(size_t rows, const float* values, size_t stride, size_t width, float* sums);
  void (*pack)(const float* matrix, size_t depth, size_t columns, size_t depth_stride, size_t column_stride, size_t width,
               float* packed);
  void (*activate)(Activation activation, float* values, size_t count);
  void (*differentiate)(Activation activation, const float* values, float* gradients, size_t count);
  void (*step_cells)(size_t rows, size_t width, float* gates, size_t gates_stride, const float* cells_before, float* cells,
                     float* outputs);
  void (*step_cells_back)(size_t rows, size_t width, const float* gates, const float* cells_before, const float* cells,
                          const float* grad_outputs, float* grad_cells, float* grad_gates);
};

namespace plain {
#define NETBUF_LANES 4
#define NETBUF_VECTORS 2
#define NETBUF_ROWS 4
#include "kernels.inc"
#undef NETBUF_LANES
#undef NETBUF_VECTORS
#undef NETBUF_ROWS
}  // namespace plain

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define NETBUF_WIDE 1
#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace avx2 {
#define NETBUF_LANES 8
#define NETBUF_VECTORS 2
#define NETBUF_ROWS 6
#include "kernels.inc"
#undef NETBUF_LANES
#undef NETBUF_VECTORS
#undef NETBUF_ROWS
}  // namespace avx2
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx2,fma,avx512f,avx512dq,avx512vl,avx512bw,prefer-vector-width=512")
namespace avx512 {
#define NETBUF_LANES 16
#define NETBUF_VECTORS 4
#define NETBUF_ROWS 6
#include "kernels.inc"
}  // namespace avx512
#pragma GCC pop_options
#endif

const Kernels& kernels() {
#ifdef NETBUF_WIDE
  static const Kernels& best = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                                       __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw")
                                   ? avx512::kKernels
                               : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? avx2::kKernels
                                                                                                 : plain::kKernels;
  return best;
#else
  return plain::kKernels;
#endif
}

using Floats = std::vector<float>;

// Calls job(chunk, scratch) for all chunks, each in one of the threads. Threads are kept for the next call; where another
// caller has them, or the process was forked, the chunks are done here.
template <class Job>
void share(size_t chunks, uint32_t threads, const Job& job) {
  static std::mutex mutex;
  static std::unique_ptr<Pool> pool;
  std::unique_lock lock(mutex, std::try_to_lock);
  if (threads < 2 || chunks < 2 || !lock) {
    for (size_t chunk = 0; chunk < chunks; ++chunk) job(chunk);
    return;
  }
  if (pool && pool->lost()) static_cast<void>(pool.release());
  if (!pool || pool->parts() != threads) {
    pool.reset();
    pool = std::make_unique<Pool>(threads);
  }
  std::atomic<size_t> next{0};
  pool->run([&](uint32_t, EventBudget&) {
    for (size_t chunk; (chunk = next.fetch_add(1)) < chunks;) job(chunk);
  }, {});
}

size_t count_chunks(size_t rows, size_t chunk) { return (rows + chunk - 1) / chunk; }

struct Packed {
  Floats weights, bias;
};

// W^T for x W^T, or W itself for gradients.
Floats pack_forward(const float* weight, size_t inputs, size_t outputs) {
  Floats packed(inputs * pad(outputs));
  kernels().pack(weight, inputs, outputs, 1, inputs, pad(outputs), packed.data());
  return packed;
}
Floats pack_back(const float* weight, size_t inputs, size_t outputs) {
  Floats packed(outputs * pad(inputs));
  kernels().pack(weight, outputs, inputs, inputs, 1, pad(inputs), packed.data());
  return packed;
}

// Sums of gradients, a part for each chunk, added up in the chunks' order.
class GradientSums {
 public:
  GradientSums(size_t chunks, size_t size) : size_(size), sums_(chunks * size) {}
  float* of(size_t chunk) { return sums_.data() + chunk * size_; }
  void add_up() {
    float* first = sums_.data();
    for (size_t chunk = 1; chunk * size_ < sums_.size(); ++chunk) {
      const float* other = of(chunk);
      for (size_t i = 0; i < size_; ++i) first[i] += other[i];
    }
  }
  // Rows [rows][pad(width)] from an offset, without their padding.
  void take(size_t offset, size_t rows, size_t width, float* out) const {
    for (size_t row = 0; row < rows; ++row) std::copy_n(sums_.data() + offset + row * pad(width), width, out + row * width);
  }

 private:
  size_t size_;
  Floats sums_;
};

// Fetches rows that are needed next: they lie anywhere.
void fetch(const InputRows& inputs, size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i) {
    const float* row = inputs.row(i);
    for (size_t j = 0; j < inputs.width; j += 16) __builtin_prefetch(row + j);
  }
}

void point_at(const float** rows, const float* values, size_t count, size_t stride) {
  for (size_t i = 0; i < count; ++i) rows[i] = values + i * stride;
}

void copy_rows(const float* const* rows, size_t count, size_t width, float* out) {
  for (size_t i = 0; i < count; ++i) {
    float* to = std::copy_n(rows[i], width, out + i * pad(width));
    std::fill(to, out + (i + 1) * pad(width), 0.0f);
  }
}

}  // namespace

size_t kept_floats(const std::vector<LinearLayer>& layers) {
  size_t floats = 0;
  for (size_t i = 0; i + 1 < layers.size(); ++i) floats += pad(layers[i].outputs);
  return floats;
}

void run_perceptron(const std::vector<LinearLayer>& layers, Activation activation, size_t rows, const InputRows& inputs, float* out,
                    float* kept, uint32_t threads) {
  const Kernels& kernel = kernels();
  std::vector<Packed> packed;
  size_t widest = 0;
  for (const LinearLayer& layer : layers) {
    packed.push_back({pack_forward(layer.weight, layer.inputs, layer.outputs), Floats(pad(layer.outputs))});
    std::copy_n(layer.bias, layer.outputs, packed.back().bias.data());
    widest = std::max(widest, pad(layer.outputs));
  }
  share(count_chunks(rows, kChunk), threads, [&](size_t chunk) {
    Floats scratch(2 * kBlock * widest);
    const float* at[kBlock];
    const size_t end = std::min(rows, (chunk + 1) * kChunk);
    for (size_t begin = chunk * kChunk; begin < end; begin += kBlock) {
      const size_t count = std::min(kBlock, end - begin);
      for (size_t i = 0; i < count; ++i) at[i] = inputs.row(begin + i);
      fetch(inputs, begin + count, std::min(end, begin + count + kBlock));
      float* of_layer = kept;
      for (size_t l = 0; l < layers.size(); ++l) {
        const size_t width = pad(layers[l].outputs);
        const bool last = l + 1 == layers.size();
        float* values = kept && !last ? of_layer + begin * width : scratch.data() + l % 2 * kBlock * widest;
        kernel.multiply(count, at, layers[l].inputs, packed[l].weights.data(), width, packed[l].bias.data(), 0, values, width);
        if (last) {
          for (size_t i = 0; i < count; ++i) {
            std::copy_n(values + i * width, layers[l].outputs, out + (begin + i) * layers[l].outputs);
          }
          break;
        }
        kernel.activate(activation, values, count * width);
        point_at(at, values, count, width);
        if (kept) of_layer += rows * width;
      }
    }
  });
}

void run_perceptron_back(const std::vector<LinearLayer>& layers, Activation activation, size_t rows, const InputRows& inputs,
                         const float* kept, const float* grad_out, const std::vector<LinearGradients>& gradients,
                         float* grad_inputs, uint32_t threads) {
  const Kernels& kernel = kernels();
  std::vector<Floats> packed;
  std::vector<size_t> offsets, of_layer;
  size_t size = 0, floats = 0, widest = 0;
  for (const LinearLayer& layer : layers) {
    const bool needed = !packed.empty() || grad_inputs;
    packed.push_back(needed ? pack_back(layer.weight, layer.inputs, layer.outputs) : Floats());
    offsets.push_back(size);
    size += layer.outputs * pad(layer.inputs) + pad(layer.outputs);
    of_layer.push_back(floats);
    floats += rows * pad(layer.outputs);
    widest = std::max({widest, pad(layer.outputs), pad(layer.inputs)});
  }
  const Floats zeros(widest);
  const size_t chunks = count_chunks(rows, kChunk), outputs = layers.back().outputs;
  GradientSums sums(chunks, size);
  share(chunks, threads, [&](size_t chunk) {
    Floats scratch(3 * kBlock * widest);
    float *gradient = scratch.data(), *other = gradient + kBlock * widest, *own = other + kBlock * widest;
    const float* at[kBlock];
    const size_t end = std::min(rows, (chunk + 1) * kChunk);
    for (size_t begin = chunk * kChunk; begin < end; begin += kBlock) {
      const size_t count = std::min(kBlock, end - begin);
      point_at(at, grad_out + begin * outputs, count, outputs);
      copy_rows(at, count, outputs, gradient);
      for (size_t l = layers.size(); l-- > 0;) {
        const LinearLayer& layer = layers[l];
        const size_t width = pad(layer.outputs), below = pad(layer.inputs);
        const float* values = own;
        if (l) {
          values = kept + of_layer[l - 1] + begin * below;
        } else {
          for (size_t i = 0; i < count; ++i) at[i] = inputs.row(begin + i);
          copy_rows(at, count, layer.inputs, own);
          fetch(inputs, begin + count, std::min(end, begin + count + kBlock));
        }
        float* sum = sums.of(chunk) + offsets[l];
        kernel.add_outer(count, gradient, layer.outputs, width, values, below, below, sum);
        kernel.add_rows(count, gradient, width, width, sum + layer.outputs * below);
        if (!l && !grad_inputs) break;
        point_at(at, gradient, count, width);
        kernel.multiply(count, at, layer.outputs, packed[l].data(), below, zeros.data(), 0, other, below);
        if (l) kernel.differentiate(activation, values, other, count * below);
        std::swap(gradient, other);
      }
      if (grad_inputs) {
        const size_t width = layers[0].inputs;
        for (size_t i = 0; i < count; ++i) std::copy_n(gradient + i * pad(width), width, grad_inputs + (begin + i) * width);
      }
    }
  });
  sums.add_up();
  for (size_t l = 0; l < layers.size(); ++l) {
    const LinearLayer& layer = layers[l];
    sums.take(offsets[l], layer.outputs, layer.inputs, gradients[l].weight);
    sums.take(offsets[l] + layer.outputs * pad(layer.inputs), 1, layer.outputs, gradients[l].bias);
  }
}

namespace {

// States before a step: those after the one before, or the first, reset where an episode starts.
const float* states_before(const LstmRun& run, size_t step, size_t begin, size_t count, size_t width, const float* first,
                           const float* after, float* scratch) {
  const float* before = (step ? after + (step - 1) * run.sequences * width : first) + begin * width;
  const float* starts = run.starts ? run.starts + step * run.sequences + begin : nullptr;
  if (!starts || std::all_of(starts, starts + count, [](float start) { return start == 0; })) return before;
  for (size_t i = 0; i < count; ++i) {
    const float keep = 1.0f - starts[i];
    for (size_t j = 0; j < width; ++j) scratch[i * width + j] = keep * before[i * width + j];
  }
  return scratch;
}

}  // namespace

void run_lstm(const LstmLayer& layer, const LstmRun& run, uint32_t threads) {
  const Kernels& kernel = kernels();
  const size_t width = layer.width, wide = 4 * width;
  const Floats of_inputs = pack_forward(layer.weight_inputs, layer.inputs, wide);
  const Floats of_hidden = pack_forward(layer.weight_hidden, width, wide);
  Floats bias(layer.bias_inputs, layer.bias_inputs + wide);
  for (size_t i = 0; i < wide; ++i) bias[i] += layer.bias_hidden[i];
  share(count_chunks(run.sequences, kSequences), threads, [&](size_t chunk) {
    Floats scratch(kSequences * (wide + 2 * width));
    float *hidden_scratch = scratch.data() + kSequences * wide, *cell_scratch = hidden_scratch + kSequences * width;
    const float* at[kSequences];
    const size_t begin = chunk * kSequences, count = std::min(kSequences, run.sequences - begin);
    for (size_t step = 0; step < run.steps; ++step) {
      const size_t row = step * run.sequences + begin;
      float* gates = run.gates ? run.gates + row * wide : scratch.data();
      for (size_t i = 0; i < count; ++i) at[i] = run.inputs.row(row + i);
      if (step + 1 < run.steps) fetch(run.inputs, row + run.sequences, row + run.sequences + count);
      kernel.multiply(count, at, layer.inputs, of_inputs.data(), wide, bias.data(), 0, gates, wide);
      point_at(at, states_before(run, step, begin, count, width, run.hidden, run.outputs, hidden_scratch), count, width);
      kernel.multiply(count, at, width, of_hidden.data(), wide, gates, wide, gates, wide);
      const float* cells = states_before(run, step, begin, count, width, run.cells_before, run.cells, cell_scratch);
      kernel.step_cells(count, width, gates, wide, cells, run.cells + row * width, run.outputs + row * width);
    }
  });
}

void run_lstm_back(const LstmLayer& layer, const LstmRun& run, const float* grad_outputs, const LstmGradients& gradients,
                   float* grad_inputs, uint32_t threads) {
  const Kernels& kernel = kernels();
  const size_t width = layer.width, wide = 4 * width, below = pad(layer.inputs);
  const Floats of_hidden = pack_back(layer.weight_hidden, width, wide);
  const Floats of_inputs = grad_inputs ? pack_back(layer.weight_inputs, layer.inputs, wide) : Floats();
  const Floats zeros(std::max(below, width));
  const size_t chunks = count_chunks(run.sequences, kSequences);
  GradientSums sums(chunks, wide * (below + width + 1));
  share(chunks, threads, [&](size_t chunk) {
    Floats scratch(kSequences * (wide + 4 * width + below));
    float* grad_gates = scratch.data();
    float *grad_hidden = grad_gates + kSequences * wide, *grad_cells = grad_hidden + kSequences * width;
    float *hidden_scratch = grad_cells + kSequences * width, *cell_scratch = hidden_scratch + kSequences * width;
    float* own = cell_scratch + kSequences * width;
    float *sum = sums.of(chunk), *hidden_sum = sum + wide * below, *bias_sum = hidden_sum + wide * width;
    const float* at[kSequences];
    const size_t begin = chunk * kSequences, count = std::min(kSequences, run.sequences - begin);
    for (size_t step = run.steps; step-- > 0;) {
      const size_t row = step * run.sequences + begin;
      const float* of_outputs = grad_outputs + row * width;
      for (size_t i = 0; i < count * width; ++i) grad_hidden[i] += of_outputs[i];
      const float* cells = states_before(run, step, begin, count, width, run.cells_before, run.cells, cell_scratch);
      kernel.step_cells_back(count, width, run.gates + row * wide, cells, run.cells + row * width, grad_hidden, grad_cells,
                             grad_gates);
      for (size_t i = 0; i < count; ++i) at[i] = run.inputs.row(row + i);
      copy_rows(at, count, layer.inputs, own);
      if (step) fetch(run.inputs, row - run.sequences, row - run.sequences + count);
      kernel.add_outer(count, grad_gates, wide, wide, own, below, below, sum);
      const float* hidden = states_before(run, step, begin, count, width, run.hidden, run.outputs, hidden_scratch);
      kernel.add_outer(count, grad_gates, wide, wide, hidden, width, width, hidden_sum);
      kernel.add_rows(count, grad_gates, wide, wide, bias_sum);
      point_at(at, grad_gates, count, wide);
      if (grad_inputs) {
        kernel.multiply(count, at, wide, of_inputs.data(), below, zeros.data(), 0, own, below);
        for (size_t i = 0; i < count; ++i) std::copy_n(own + i * below, layer.inputs, grad_inputs + (row + i) * layer.inputs);
      }
      if (!step) break;
      kernel.multiply(count, at, wide, of_hidden.data(), width, zeros.data(), 0, grad_hidden, width);
      if (!run.starts) continue;
      for (size_t i = 0; i < count; ++i) {
        if (run.starts[row + i] == 0) continue;
        const float keep = 1.0f - run.starts[row + i];
        for (size_t j = i * width; j < (i + 1) * width; ++j) grad_hidden[j] *= keep, grad_cells[j] *= keep;
      }
    }
  });
  sums.add_up();
  sums.take(0, wide, layer.inputs, gradients.weight_inputs);
  sums.take(wide * below, wide, width, gradients.weight_hidden);
  sums.take(wide * (below + width), 1, wide, gradients.bias);
}

}  // namespace netbuf
