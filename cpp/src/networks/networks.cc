#include "netbuf/networks.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>

#include "netbuf/pool.h"

namespace netbuf {

namespace {

constexpr size_t kPadding = 16;        // floats: whole registers of any kind
constexpr size_t kBlock = 96;          // rows at a time: their inputs and values stay in the caches
constexpr size_t kChunk = 10 * kBlock;  // rows with a sum of gradients of their own, whoever computes them
constexpr size_t kSequences = 16;       // sequences at a time: their gates stay in the caches
constexpr size_t kAhead = 12;           // rows of targets are fetched before they are read
constexpr size_t kSequenceChunk = 64;   // as kChunk

size_t pad(size_t width) { return (width + kPadding - 1) / kPadding * kPadding; }

struct Kernels {
  void (*multiply)(size_t rows, const float* const* in, size_t depth, const float* packed, size_t width, const float* start,
                   size_t start_stride, float* out, size_t out_stride);
  void (*add_outer)(size_t rows, const float* left, size_t outputs, size_t left_stride, const float* right, size_t width,
                    size_t right_stride, float* out);
  void (*add_rows)(size_t rows, const float* values, size_t stride, size_t width, float* sums);
  void (*pack)(const float* matrix, size_t depth, size_t columns, size_t depth_stride, size_t column_stride, size_t width,
               float* packed);
  void (*exponentiate)(const float* values, size_t count, float* out);
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
#include "kernels.h"
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
#include "kernels.h"
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
#include "kernels.h"
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

// Calls job(chunk) for all chunks, each in one of the threads. These are kept for the next call, and to the end of the process,
// since a forked one cannot end them; where another caller has them, the chunks are done here.
template <class Job>
void share(size_t chunks, uint32_t threads, const Job& job) {
  static std::mutex mutex;
  static Pool* pool = nullptr;
  std::unique_lock lock(mutex, std::try_to_lock);
  if (threads < 2 || chunks < 2 || !lock) {
    for (size_t chunk = 0; chunk < chunks; ++chunk) job(chunk);
    return;
  }
  if (pool && pool->lost()) pool = nullptr;
  if (!pool || pool->parts() != threads) {
    delete pool;
    pool = nullptr;
    pool = new Pool(threads);
  }
  std::atomic<size_t> next{0};
  pool->run([&](uint32_t, EventBudget&) {
    for (size_t chunk; (chunk = next.fetch_add(1)) < chunks;) job(chunk);
  }, {});
}

size_t count_chunks(size_t rows, size_t chunk) { return (rows + chunk - 1) / chunk; }

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

// A perceptron's weights as the kernels want them: W^T for outputs, and W for gradients.
class PackedPerceptron {
 public:
  explicit PackedPerceptron(const Perceptron& network, bool learns = false, bool inputs_too = false) : network_(network) {
    const Kernels& kernel = kernels();
    for (const LinearLayer& layer : network.layers) {
      const size_t width = pad(layer.outputs), below = pad(layer.inputs);
      Floats forward(layer.inputs * width), bias(width), back;
      kernel.pack(layer.weight, layer.inputs, layer.outputs, 1, layer.inputs, width, forward.data());
      std::copy_n(layer.bias, layer.outputs, bias.data());
      if (learns && (inputs_too || !forward_.empty())) {
        back.resize(layer.outputs * below);
        kernel.pack(layer.weight, layer.outputs, layer.inputs, layer.inputs, 1, below, back.data());
      }
      forward_.push_back(std::move(forward)), bias_.push_back(std::move(bias)), back_.push_back(std::move(back));
      offsets_.push_back(gradients_);
      gradients_ += layer.outputs * below + width;
      values_.push_back(kept_);
      kept_ += kBlock * width;
      widest_ = std::max({widest_, width, below});
    }
    zeros_.resize(widest_);
  }

  size_t gradients() const { return gradients_; }  // floats, padded
  size_t scratch() const { return kept_ + 2 * kBlock * widest_; }
  size_t width() const { return pad(network_.layers.back().outputs); }

  // Outputs [count][width()] of up to kBlock rows, within the scratch memory.
  float* forward(const float* const* rows, size_t count, float* scratch) const {
    const Kernels& kernel = kernels();
    const float* at[kBlock];
    std::copy_n(rows, count, at);
    for (size_t l = 0;; ++l) {
      const size_t width = pad(network_.layers[l].outputs);
      float* values = scratch + values_[l];
      kernel.multiply(count, at, network_.layers[l].inputs, forward_[l].data(), width, bias_[l].data(), 0, values, width);
      if (l + 1 == network_.layers.size()) return values;
      kernel.activate(network_.activation, values, count * width);
      point_at(at, values, count, width);
    }
  }

  // Adds to the sums of gradients; inputs: [count][pad(inputs)] of forward, whose scratch memory has the outputs' gradients in
  // the outputs' place. Returns those of the inputs, if wanted.
  float* back(const float* inputs, size_t count, float* scratch, float* sums, bool inputs_too) const {
    const Kernels& kernel = kernels();
    const float* at[kBlock];
    float *gradient = scratch + values_.back(), *next = scratch + kept_, *other = next + kBlock * widest_;
    for (size_t l = network_.layers.size(); l-- > 0;) {
      const LinearLayer& layer = network_.layers[l];
      const size_t width = pad(layer.outputs), below = pad(layer.inputs);
      const float* values = l ? scratch + values_[l - 1] : inputs;
      float* sum = sums + offsets_[l];
      kernel.add_outer(count, gradient, layer.outputs, width, values, below, below, sum);
      kernel.add_rows(count, gradient, width, width, sum + layer.outputs * below);
      if (!l && !inputs_too) return nullptr;
      point_at(at, gradient, count, width);
      kernel.multiply(count, at, layer.outputs, back_[l].data(), below, zeros_.data(), 0, next, below);
      if (l) kernel.differentiate(network_.activation, values, next, count * below);
      gradient = next;
      std::swap(next, other);
    }
    return gradient;
  }

  void take(const GradientSums& sums, size_t offset, const std::vector<LinearGradients>& gradients) const {
    for (size_t l = 0; l < network_.layers.size(); ++l) {
      const LinearLayer& layer = network_.layers[l];
      sums.take(offset + offsets_[l], layer.outputs, layer.inputs, gradients[l].weight);
      sums.take(offset + offsets_[l] + layer.outputs * pad(layer.inputs), 1, layer.outputs, gradients[l].bias);
    }
  }

 private:
  const Perceptron& network_;
  std::vector<Floats> forward_, bias_, back_;
  Floats zeros_;
  std::vector<size_t> offsets_, values_;
  size_t gradients_ = 0, kept_ = 0, widest_ = 0;
};

// States before a step: those after the one before, or the first, reset where an episode starts. By sequence, [count][width].
const float* states_before(const float* starts, size_t count, size_t width, const float* before, float* scratch) {
  if (!starts || std::all_of(starts, starts + count, [](float start) { return start == 0; })) return before;
  for (size_t i = 0; i < count; ++i) {
    const float keep = 1.0f - starts[i];
    for (size_t j = 0; j < width; ++j) scratch[i * width + j] = keep * before[i * width + j];
  }
  return scratch;
}

// Likewise of a layer of memory; computes some sequences, whose states are [steps][stride][width], at a time.
class PackedLstm {
 public:
  explicit PackedLstm(const LstmLayer& layer, bool learns = false)
      : layer_(layer), wide_(4 * layer.width), inputs_(layer.inputs * wide_), hidden_(layer.width * wide_),
        bias_(layer.bias_inputs, layer.bias_inputs + wide_), zeros_(layer.width) {
    const Kernels& kernel = kernels();
    kernel.pack(layer.weight_inputs, layer.inputs, wide_, 1, layer.inputs, wide_, inputs_.data());
    kernel.pack(layer.weight_hidden, layer.width, wide_, 1, layer.width, wide_, hidden_.data());
    for (size_t i = 0; i < wide_; ++i) bias_[i] += layer.bias_hidden[i];
    if (!learns) return;
    back_.resize(wide_ * layer.width);
    kernel.pack(layer.weight_hidden, wide_, layer.width, layer.width, 1, layer.width, back_.data());
  }

  size_t gradients() const { return wide_ * (pad(layer_.inputs) + layer_.width + 1); }
  size_t scratch() const { return kBlock * (4 * layer_.width + pad(layer_.inputs)); }

  // gates: [steps][count][4 * width], or of one step where they are not to be kept.
  void forward(const Sequences& all, size_t begin, size_t count, const InputRows& inputs, float* outputs, float* cells, size_t stride,
               float* gates, bool keeps, float* scratch) const {
    const Kernels& kernel = kernels();
    const size_t width = layer_.width;
    const float *hidden_before = all.hidden + begin * width, *cells_before = all.cells + begin * width;
    const float* at[kBlock];
    for (size_t step = 0; step < all.steps; ++step) {
      const size_t row = step * all.count + begin;
      const float* starts = all.starts ? all.starts + row : nullptr;
      for (size_t i = 0; i < count; ++i) at[i] = inputs.row(row + i);
      if (step + 1 < all.steps) fetch(inputs, row + all.count, row + all.count + count);
      kernel.multiply(count, at, layer_.inputs, inputs_.data(), wide_, bias_.data(), 0, gates, wide_);
      point_at(at, states_before(starts, count, width, hidden_before, scratch), count, width);
      kernel.multiply(count, at, width, hidden_.data(), wide_, gates, wide_, gates, wide_);
      cells_before = states_before(starts, count, width, cells_before, scratch);
      kernel.step_cells(count, width, gates, wide_, cells_before, cells, outputs);
      hidden_before = outputs, cells_before = cells;
      outputs += stride * width, cells += stride * width;
      if (keeps) gates += count * wide_;
    }
  }

  // Adds to the sums of gradients from those of the outputs; all of forward with a stride of `count`. Gates are replaced by the
  // gradients of their sums.
  void back(const Sequences& all, size_t begin, size_t count, const InputRows& inputs, const float* outputs, const float* cells,
            float* gates, const float* grad_outputs, float* sums, float* scratch) const {
    const Kernels& kernel = kernels();
    const size_t width = layer_.width;
    float *grad_hidden = scratch, *grad_cells = grad_hidden + kBlock * width, *own_cells = grad_cells + kBlock * width;
    std::fill(grad_hidden, own_cells, 0.0f);
    const float* at[kBlock];
    for (size_t step = all.steps; step-- > 0;) {
      const size_t here = step * count * width;
      const float* starts = all.starts ? all.starts + step * all.count + begin : nullptr;
      for (size_t i = 0; i < count * width; ++i) grad_hidden[i] += grad_outputs[here + i];
      const float* cells_before = states_before(starts, count, width, before(all.cells, begin, cells, step, count), own_cells);
      float* of_step = gates + step * count * wide_;
      kernel.step_cells_back(count, width, of_step, cells_before, cells + here, grad_hidden, grad_cells, of_step);
      if (!step) break;
      point_at(at, of_step, count, wide_);
      kernel.multiply(count, at, wide_, back_.data(), width, zeros_.data(), 0, grad_hidden, width);
      for (size_t i = 0; starts && i < count; ++i) {
        const float keep = 1.0f - starts[i];
        for (size_t j = i * width; j < (i + 1) * width; ++j) grad_hidden[j] *= keep, grad_cells[j] *= keep;
      }
    }
    add_products(all, begin, count, inputs, outputs, gates, sums, scratch);
  }

  void take(const GradientSums& sums, const LstmGradients& gradients) const {
    const size_t below = pad(layer_.inputs);
    sums.take(0, wide_, layer_.inputs, gradients.weight_inputs);
    sums.take(wide_ * below, wide_, layer_.width, gradients.weight_hidden);
    sums.take(wide_ * (below + layer_.width), 1, wide_, gradients.bias);
  }

 private:
  const float* before(const float* first, size_t begin, const float* after, size_t step, size_t count) const {
    return step ? after + (step - 1) * count * layer_.width : first + begin * layer_.width;
  }

  // Gradients of the parameters from those of the gates' sums, for as many steps at a time as are a block of rows.
  void add_products(const Sequences& all, size_t begin, size_t count, const InputRows& inputs, const float* outputs,
                    const float* grad_gates, float* sums, float* scratch) const {
    const Kernels& kernel = kernels();
    const size_t width = layer_.width, below = pad(layer_.inputs), at_once = kBlock / count;
    float *hidden_sums = sums + wide_ * below, *bias_sums = hidden_sums + wide_ * width;
    float *own_hidden = scratch, *own_inputs = own_hidden + kBlock * width;
    const float* at[kBlock];
    for (size_t first = 0; first < all.steps; first += at_once) {
      const size_t end = std::min(all.steps, first + at_once), rows = (end - first) * count;
      for (size_t step = first; step < end; ++step) {
        const size_t row = step * all.count + begin, here = (step - first) * count;
        for (size_t i = 0; i < count; ++i) at[here + i] = inputs.row(row + i);
        float* own = own_hidden + here * width;
        const float* hidden = before(all.hidden, begin, outputs, step, count);
        if (states_before(all.starts ? all.starts + row : nullptr, count, width, hidden, own) != own) {
          std::copy_n(hidden, count * width, own);
        }
      }
      copy_rows(at, rows, layer_.inputs, own_inputs);
      for (size_t step = end; step < std::min(all.steps, end + at_once); ++step) {
        fetch(inputs, step * all.count + begin, step * all.count + begin + count);
      }
      const float* gradients = grad_gates + first * count * wide_;
      kernel.add_outer(rows, gradients, wide_, wide_, own_inputs, below, below, sums);
      kernel.add_outer(rows, gradients, wide_, wide_, own_hidden, width, width, hidden_sums);
      kernel.add_rows(rows, gradients, wide_, wide_, bias_sums);
    }
  }

  const LstmLayer& layer_;
  size_t wide_;
  Floats inputs_, hidden_, bias_, back_, zeros_;
};

void add(LossSums& sums, const std::vector<LossSums>& parts) {
  for (const LossSums& part : parts) {
    sums.policy += part.policy, sums.value += part.value, sums.entropy += part.entropy;
    sums.kl += part.kl, sums.clipped += part.clipped;
  }
}

}  // namespace

void run_perceptron(const Perceptron& network, size_t rows, const InputRows& inputs, float* out, uint32_t threads) {
  const PackedPerceptron packed(network);
  const size_t outputs = network.layers.back().outputs, width = packed.width();
  share(count_chunks(rows, kBlock), threads, [&](size_t chunk) {
    thread_local Floats scratch;
    scratch.resize(packed.scratch());
    const float* at[kBlock];
    const size_t begin = chunk * kBlock, count = std::min(kBlock, rows - begin);
    for (size_t i = 0; i < count; ++i) at[i] = inputs.row(begin + i);
    fetch(inputs, begin + count, std::min(rows, begin + count + kBlock));
    const float* values = packed.forward(at, count, scratch.data());
    for (size_t i = 0; i < count; ++i) std::copy_n(values + i * width, outputs, out + (begin + i) * outputs);
  });
}

void run_lstm(const LstmLayer& layer, const Sequences& sequences, const InputRows& inputs, float* outputs, float* cells,
              uint32_t threads) {
  const PackedLstm packed(layer);
  share(count_chunks(sequences.count, kBlock), threads, [&](size_t chunk) {
    thread_local Floats scratch;
    scratch.resize(packed.scratch() + kBlock * 4 * layer.width);
    const size_t begin = chunk * kBlock, count = std::min(kBlock, sequences.count - begin), first = begin * layer.width;
    packed.forward(sequences, begin, count, inputs, outputs + first, cells + first, sequences.count,
                   scratch.data() + packed.scratch(), false, scratch.data());
  });
}

void learn_perceptron(const Perceptron& network, size_t rows, const InputRows& inputs, Loss& loss,
                      const std::vector<LinearGradients>& gradients, LossSums& sums, uint32_t threads) {
  const PackedPerceptron packed(network, true);
  const size_t chunks = count_chunks(rows, kChunk), below = pad(network.layers.front().inputs), own = packed.gradients();
  GradientSums found(chunks, own + pad(loss.own_size()));
  std::vector<LossSums> losses(chunks);
  loss.begin(inputs.indices, rows);
  share(chunks, threads, [&](size_t chunk) {
    thread_local Floats scratch;
    scratch.resize(packed.scratch() + kBlock * below);
    float* copied = scratch.data() + packed.scratch();
    const float* at[kBlock];
    const size_t end = std::min(rows, (chunk + 1) * kChunk);
    for (size_t begin = chunk * kChunk; begin < end; begin += kBlock) {
      const size_t count = std::min(kBlock, end - begin);
      for (size_t i = 0; i < count; ++i) at[i] = inputs.row(begin + i);
      copy_rows(at, count, inputs.width, copied);
      fetch(inputs, begin + count, std::min(end, begin + count + kBlock));
      point_at(at, copied, count, below);
      float* outputs = packed.forward(at, count, scratch.data());
      loss.differentiate(inputs.indices + begin, count, outputs, packed.width(), losses[chunk], found.of(chunk) + own);
      packed.back(copied, count, scratch.data(), found.of(chunk), false);
    }
  });
  found.add_up();
  packed.take(found, 0, gradients);
  if (loss.own_gradients()) found.take(own, 1, loss.own_size(), loss.own_gradients());
  add(sums, losses);
}

void learn_lstm(const LstmLayer& layer, const Perceptron& network, const Sequences& sequences, const InputRows& inputs, Loss& loss,
                const LstmGradients& of_layer, const std::vector<LinearGradients>& gradients, LossSums& sums, uint32_t threads) {
  const PackedLstm memory(layer, true);
  const PackedPerceptron packed(network, true, true);
  const size_t chunks = count_chunks(sequences.count, kSequenceChunk), width = layer.width, steps = sequences.steps;
  const size_t of_network = memory.gradients(), own = of_network + packed.gradients();
  GradientSums found(chunks, own + pad(loss.own_size()));
  std::vector<LossSums> losses(chunks);
  loss.begin(inputs.indices, steps * sequences.count);
  share(chunks, threads, [&](size_t chunk) {
    thread_local Floats scratch;
    thread_local std::vector<int64_t> rows;
    const size_t decisions = steps * kSequences;
    scratch.resize(memory.scratch() + packed.scratch() + decisions * 7 * width);
    rows.resize(decisions);
    float *of_packed = scratch.data() + memory.scratch(), *outputs = of_packed + packed.scratch();
    float *cells = outputs + decisions * width, *grad_outputs = cells + decisions * width, *gates = grad_outputs + decisions * width;
    const float* at[kBlock];
    const size_t end = std::min(sequences.count, (chunk + 1) * kSequenceChunk);
    for (size_t begin = chunk * kSequenceChunk; begin < end; begin += kSequences) {
      const size_t count = std::min(kSequences, end - begin);
      for (size_t step = 0; step < steps; ++step) {
        std::copy_n(inputs.indices + step * sequences.count + begin, count, rows.data() + step * count);
      }
      memory.forward(sequences, begin, count, inputs, outputs, cells, count, gates, true, scratch.data());
      for (size_t row = 0; row < steps * count; row += kBlock) {
        const size_t here = std::min(kBlock, steps * count - row);
        point_at(at, outputs + row * width, here, width);
        float* values = packed.forward(at, here, of_packed);
        loss.differentiate(rows.data() + row, here, values, packed.width(), losses[chunk], found.of(chunk) + own);
        const float* back = packed.back(outputs + row * width, here, of_packed, found.of(chunk) + of_network, true);
        std::copy_n(back, here * width, grad_outputs + row * width);
      }
      memory.back(sequences, begin, count, inputs, outputs, cells, gates, grad_outputs, found.of(chunk), scratch.data());
    }
  });
  found.add_up();
  memory.take(found, of_layer);
  packed.take(found, of_network, gradients);
  if (loss.own_gradients()) found.take(own, 1, loss.own_size(), loss.own_gradients());
  add(sums, losses);
}

void PolicyLoss::begin(const int64_t* rows, size_t count) {
  share_ = 1.0f / static_cast<float>(count);
  mean_ = 0, scale_ = 1;
  if (!targets_.normalize || count < 2) return;
  double sum = 0, squares = 0;
  for (size_t i = 0; i < count; ++i) sum += targets_.advantages[rows[i]];
  const double mean = sum / static_cast<double>(count);
  for (size_t i = 0; i < count; ++i) {
    const double from_mean = targets_.advantages[rows[i]] - mean;
    squares += from_mean * from_mean;
  }
  mean_ = static_cast<float>(mean);
  scale_ = static_cast<float>(1 / (std::sqrt(squares / static_cast<double>(count - 1)) + 1e-8));
}

float PolicyLoss::differentiate_ratio(int64_t row, float log_ratio, LossSums& sums) const {
  const float advantage = (targets_.advantages[row] - mean_) * scale_, ratio = std::exp(log_ratio);
  const bool beyond = std::fabs(ratio - 1) > targets_.clip_range;
  sums.clipped += beyond;
  if (targets_.clips && beyond) {
    const float clipped = ratio > 1 ? 1 + targets_.clip_range : 1 - targets_.clip_range;
    if (advantage * clipped <= advantage * ratio) {
      sums.policy -= advantage * clipped;
      return 0;
    }
  }
  sums.policy -= advantage * ratio;
  return -advantage * ratio;
}

void CategoricalLoss::differentiate(const int64_t* rows, size_t count, float* outputs, size_t stride, LossSums& sums, float*) const {
  const Kernels& kernel = kernels();
  const size_t size = targets_.size;
  thread_local Floats scratch;
  scratch.resize(2 * count * stride);
  float *of_old = scratch.data(), *of_new = of_old + count * stride;
  for (size_t i = 0; i < count; ++i) {
    if (i + kAhead < count) {
      const int64_t row = rows[i + kAhead];
      __builtin_prefetch(targets_.old + static_cast<size_t>(row) * size);
      __builtin_prefetch(actions_ + row);
    }
    std::copy_n(targets_.old + static_cast<size_t>(rows[i]) * size, size, of_old + i * stride);
    float* values = outputs + i * stride;
    float most = values[0];
    for (size_t j = 1; j < size; ++j) most = std::max(most, values[j]);
    for (size_t j = 0; j < size; ++j) values[j] -= most;
  }
  kernel.exponentiate(outputs, count * stride, of_new);
  kernel.exponentiate(of_old, count * stride, of_old);
  for (size_t i = 0; i < count; ++i, outputs += stride, of_old += stride, of_new += stride) {
    const float* old = targets_.old + static_cast<size_t>(rows[i]) * size;
    const size_t action = static_cast<size_t>(actions_[rows[i]]);
    float sum = 0, kl = 0, entropy = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t j = 0; j < size; ++j) sum += of_new[j];
    const float log_sum = std::log(sum), inverse = 1 / sum;
#pragma omp simd reduction(+ : kl, entropy)
    for (size_t j = 0; j < size; ++j) {
      outputs[j] -= log_sum;
      of_new[j] *= inverse;
      kl += of_old[j] * (old[j] - outputs[j]);
      entropy -= of_new[j] * outputs[j];
    }
    const float of_ratio = differentiate_ratio(rows[i], outputs[action] - old[action], sums);
    const float of_kl = targets_.clips ? 0 : targets_.kl_coefficient, of_entropy = targets_.entropy_coefficient;
    sums.policy += of_kl * kl;
    sums.kl += kl, sums.entropy += entropy;
#pragma omp simd
    for (size_t j = 0; j < size; ++j) {
      const float by_entropy = of_entropy * of_new[j] * (outputs[j] + entropy);
      outputs[j] = share_ * (of_kl * (of_new[j] - of_old[j]) + by_entropy - of_ratio * of_new[j]);
    }
    outputs[action] += share_ * of_ratio;
  }
}

void GaussianLoss::differentiate(const int64_t* rows, size_t count, float* outputs, size_t stride, LossSums& sums, float* own) const {
  const size_t size = targets_.size;
  const float of_kl = targets_.clips ? 0 : targets_.kl_coefficient;
  for (size_t i = 0; i < count; ++i, outputs += stride) {
    const float *old = targets_.old + static_cast<size_t>(rows[i]) * 2 * size, *action = actions_ + static_cast<size_t>(rows[i]) * size;
    float log_ratio = 0, kl = 0;
    for (size_t j = 0; j < size; ++j) {
      const float log_std = log_std_[j], old_log_std = old[size + j];
      const float from_new = (action[j] - outputs[j]) * std::exp(-log_std), from_old = (action[j] - old[j]) * std::exp(-old_log_std);
      log_ratio += 0.5f * (from_old * from_old - from_new * from_new) + old_log_std - log_std;
      const float moved = old[j] - outputs[j], spread = std::exp(2 * old_log_std) + moved * moved;
      kl += log_std - old_log_std + 0.5f * spread * std::exp(-2 * log_std) - 0.5f;
      sums.entropy += log_std + 1.4189385f;  // ln(2 pi e) / 2
    }
    const float of_ratio = differentiate_ratio(rows[i], log_ratio, sums);
    sums.policy += of_kl * kl;
    sums.kl += kl;
    for (size_t j = 0; j < size; ++j) {
      const float precision = std::exp(-2 * log_std_[j]), from_new = action[j] - outputs[j], moved = old[j] - outputs[j];
      const float spread = std::exp(2 * old[size + j]) + moved * moved;
      own[j] += share_ * (of_ratio * (from_new * from_new * precision - 1) + of_kl * (1 - spread * precision) -
                          targets_.entropy_coefficient);
      outputs[j] = share_ * precision * (of_ratio * from_new - of_kl * moved);
    }
  }
}

void ValueLoss::differentiate(const int64_t* rows, size_t count, float* outputs, size_t stride, LossSums& sums, float*) const {
  for (size_t i = 0; i < count; ++i, outputs += stride) {
    const float error = outputs[0] - returns_[rows[i]];
    sums.value += static_cast<double>(error) * error;
    outputs[0] = share_ * coefficient_ * 2 * error;
  }
}

}  // namespace netbuf
