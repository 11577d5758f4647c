// The arithmetic of networks for one kind of vector registers; networks.cc includes this file once for each of them, in a namespace
// and with instructions of its own. NETBUF_LANES: floats in a register, NETBUF_VECTORS times NETBUF_ROWS: sums kept in registers.
// Nothing of the standard library may be called here: a template compiled with these instructions could be linked in elsewhere.

constexpr size_t kLanes = NETBUF_LANES;
constexpr size_t kVectors = NETBUF_VECTORS;  // in a panel of columns
constexpr size_t kRows = NETBUF_ROWS;        // in a tile

typedef float Lanes __attribute__((vector_size(4 * NETBUF_LANES)));
typedef int32_t Whole __attribute__((vector_size(4 * NETBUF_LANES)));
typedef float Memory __attribute__((vector_size(4 * NETBUF_LANES), aligned(4), may_alias));

inline Lanes load(const float* from) { return *reinterpret_cast<const Memory*>(from); }
inline void store(float* to, Lanes values) { *reinterpret_cast<Memory*>(to) = values; }

// e^x = 2^n (1 + p), with p = e^r - 1 by Taylor's series to r^7 for |r| <= ln 2 / 2; x within 87 of 0, NaN stays NaN.
struct Exponential {
  Lanes power, p;
};
inline Exponential exponential(Lanes x) {
  const Lanes most = Lanes{} + 87.0f;
  x = x > most ? most : x;
  x = x < -most ? -most : x;
  const Lanes shift = Lanes{} + 12582912.0f;  // 1.5 * 2^23: rounds to whole numbers
  const Lanes shifted = x * 1.44269504f + shift;
  const Lanes n = shifted - shift;
  const Lanes r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  Lanes p = r * (1.0f / 5040) + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = (p * r) * r + r;
  return {(Lanes)(((Whole)shifted + 127) << 23), p};
}
// e^x - 1, exact near 0.
inline Lanes exp_minus_one(Lanes x) {
  const Exponential e = exponential(x);
  return e.power * e.p + (e.power - 1.0f);
}

inline Lanes sigmoid(Lanes x) { return 1.0f / (exp_minus_one(-x) + 2.0f); }

inline Lanes tanh(Lanes x) {
  const Lanes most = Lanes{} + 40.0f;
  x = x > most ? most : x;
  x = x < -most ? -most : x;
  const Lanes e = exp_minus_one(x + x);
  return e / (e + 2.0f);
}

// out[row][..] = start[row][..] + sum over k of in[row][k] * panel[k][..] of one tile.
template <size_t R, size_t V>
void product_tile(const float* const* in, size_t depth, const float* panel, const float* start, size_t start_stride, float* out,
                  size_t out_stride) {
  Lanes sums[R][V];
  for (size_t r = 0; r < R; ++r) {
    for (size_t v = 0; v < V; ++v) sums[r][v] = load(start + r * start_stride + v * kLanes);
  }
  const float* rows[R];
  for (size_t r = 0; r < R; ++r) rows[r] = in[r];
  for (size_t k = 0; k < depth; ++k, panel += V * kLanes) {
    Lanes columns[V];
    for (size_t v = 0; v < V; ++v) columns[v] = load(panel + v * kLanes);
    for (size_t r = 0; r < R; ++r) {
      const float value = rows[r][k];
      for (size_t v = 0; v < V; ++v) sums[r][v] += value * columns[v];
    }
  }
  for (size_t r = 0; r < R; ++r) {
    for (size_t v = 0; v < V; ++v) store(out + r * out_stride + v * kLanes, sums[r][v]);
  }
}

template <size_t R>
void product_tiles(size_t vectors, const float* const* in, size_t depth, const float* panel, const float* start,
                   size_t start_stride, float* out, size_t out_stride) {
  switch (vectors) {
    case 1: return product_tile<R, 1>(in, depth, panel, start, start_stride, out, out_stride);
    case 2: return product_tile<R, 2>(in, depth, panel, start, start_stride, out, out_stride);
#if NETBUF_VECTORS > 2
    case 3: return product_tile<R, 3>(in, depth, panel, start, start_stride, out, out_stride);
    default: return product_tile<R, 4>(in, depth, panel, start, start_stride, out, out_stride);
#else
    default: return;
#endif
  }
}

// out = start + in * packed, over `width` columns, a multiple of kPadding; see pack. A start_stride of 0: one vector for all.
void multiply(size_t rows, const float* const* in, size_t depth, const float* packed, size_t width, const float* start,
              size_t start_stride, float* out, size_t out_stride) {
  for (size_t column = 0; column < width; column += kVectors * kLanes) {
    const size_t left = (width - column) / kLanes;
    const size_t vectors = left < kVectors ? left : kVectors;
    for (size_t row = 0; row < rows; row += kRows) {
      const float* from = start + row * start_stride + column;
      float* to = out + row * out_stride + column;
      switch (rows - row) {
        case 1: product_tiles<1>(vectors, in + row, depth, packed, from, start_stride, to, out_stride); break;
        case 2: product_tiles<2>(vectors, in + row, depth, packed, from, start_stride, to, out_stride); break;
        case 3: product_tiles<3>(vectors, in + row, depth, packed, from, start_stride, to, out_stride); break;
#if NETBUF_ROWS > 4
        case 4: product_tiles<4>(vectors, in + row, depth, packed, from, start_stride, to, out_stride); break;
        case 5: product_tiles<5>(vectors, in + row, depth, packed, from, start_stride, to, out_stride); break;
#endif
        default: product_tiles<kRows>(vectors, in + row, depth, packed, from, start_stride, to, out_stride);
      }
    }
    packed += depth * vectors * kLanes;
  }
}

// sums[r][..] += sum over rows of left[row][r] * right[row][..] of one tile.
template <size_t R, size_t V>
void outer_tile(size_t rows, const float* left, size_t left_stride, const float* right, size_t right_stride, float* out,
                size_t out_stride) {
  Lanes sums[R][V];
  for (size_t r = 0; r < R; ++r) {
    for (size_t v = 0; v < V; ++v) sums[r][v] = load(out + r * out_stride + v * kLanes);
  }
  for (size_t row = 0; row < rows; ++row, left += left_stride, right += right_stride) {
    Lanes columns[V];
    for (size_t v = 0; v < V; ++v) columns[v] = load(right + v * kLanes);
    for (size_t r = 0; r < R; ++r) {
      const float value = left[r];
      for (size_t v = 0; v < V; ++v) sums[r][v] += value * columns[v];
    }
  }
  for (size_t r = 0; r < R; ++r) {
    for (size_t v = 0; v < V; ++v) store(out + r * out_stride + v * kLanes, sums[r][v]);
  }
}

template <size_t R>
void outer_tiles(size_t vectors, size_t rows, const float* left, size_t left_stride, const float* right, size_t right_stride,
                 float* out, size_t out_stride) {
  switch (vectors) {
    case 1: return outer_tile<R, 1>(rows, left, left_stride, right, right_stride, out, out_stride);
    case 2: return outer_tile<R, 2>(rows, left, left_stride, right, right_stride, out, out_stride);
#if NETBUF_VECTORS > 2
    case 3: return outer_tile<R, 3>(rows, left, left_stride, right, right_stride, out, out_stride);
    default: return outer_tile<R, 4>(rows, left, left_stride, right, right_stride, out, out_stride);
#else
    default: return;
#endif
  }
}

// out[n][k] += sum over rows of left[row][n] * right[row][k]; `width` columns k, a multiple of kPadding.
void add_outer(size_t rows, const float* left, size_t outputs, size_t left_stride, const float* right, size_t width,
               size_t right_stride, float* out) {
  for (size_t column = 0; column < width; column += kVectors * kLanes) {
    const size_t remaining = (width - column) / kLanes;
    const size_t vectors = remaining < kVectors ? remaining : kVectors;
    for (size_t n = 0; n < outputs; n += kRows) {
      float* to = out + n * width + column;
      const float *a = left + n, *b = right + column;
      switch (outputs - n) {
        case 1: outer_tiles<1>(vectors, rows, a, left_stride, b, right_stride, to, width); break;
        case 2: outer_tiles<2>(vectors, rows, a, left_stride, b, right_stride, to, width); break;
        case 3: outer_tiles<3>(vectors, rows, a, left_stride, b, right_stride, to, width); break;
#if NETBUF_ROWS > 4
        case 4: outer_tiles<4>(vectors, rows, a, left_stride, b, right_stride, to, width); break;
        case 5: outer_tiles<5>(vectors, rows, a, left_stride, b, right_stride, to, width); break;
#endif
        default: outer_tiles<kRows>(vectors, rows, a, left_stride, b, right_stride, to, width);
      }
    }
  }
}

// sums[..] += values[row][..], over `width` columns.
void add_rows(size_t rows, const float* values, size_t stride, size_t width, float* sums) {
  for (size_t column = 0; column < width; column += kLanes) {
    Lanes sum = load(sums + column);
    for (size_t row = 0; row < rows; ++row) sum += load(values + row * stride + column);
    store(sums + column, sum);
  }
}

// Matrix [depth][columns], by strides, as panels of kVectors registers' columns, each [depth][panel]; zeros behind the last column.
void pack(const float* matrix, size_t depth, size_t columns, size_t depth_stride, size_t column_stride, size_t width, float* packed) {
  for (size_t column = 0; column < width; column += kVectors * kLanes) {
    const size_t left = width - column;
    const size_t panel = left < kVectors * kLanes ? left : kVectors * kLanes;
    for (size_t j = 0; j < panel; ++j) {
      const float* from = column + j < columns ? matrix + (column + j) * column_stride : nullptr;
      for (size_t k = 0; k < depth; ++k) packed[k * panel + j] = from ? from[k * depth_stride] : 0.0f;
    }
    packed += depth * panel;
  }
}

void exponentiate(const float* values, size_t count, float* out) {
  for (size_t i = 0; i < count; i += kLanes) {
    const Exponential e = exponential(load(values + i));
    store(out + i, e.power * e.p + e.power);
  }
}

void activate(Activation activation, float* values, size_t count) {
  if (activation == Activation::tanh) {
    for (size_t i = 0; i < count; i += kLanes) store(values + i, tanh(load(values + i)));
  } else {
    for (size_t i = 0; i < count; i += kLanes) {
      const Lanes value = load(values + i);
      store(values + i, value < Lanes{} ? Lanes{} : value);  // NaN stays
    }
  }
}

// Gradients before an activation, in place, from those after it and its values.
void differentiate(Activation activation, const float* values, float* gradients, size_t count) {
  for (size_t i = 0; i < count; i += kLanes) {
    const Lanes value = load(values + i), gradient = load(gradients + i);
    store(gradients + i, activation == Activation::tanh ? gradient * (1.0f - value * value)
                                                        : (value > Lanes{} ? gradient : Lanes{}));
  }
}

// One step of `rows` cells from their gates' sums, [rows][4 * width]: update, forget, candidate, emit, which are squashed in place.
void step_cells(size_t rows, size_t width, float* gates, size_t gates_stride, const float* cells_before, float* cells, float* outputs) {
  for (size_t row = 0; row < rows; ++row, gates += gates_stride) {
    for (size_t i = 0; i < width; i += kLanes) {
      const Lanes update = sigmoid(load(gates + i)), forget = sigmoid(load(gates + width + i));
      const Lanes candidate = tanh(load(gates + 2 * width + i)), emit = sigmoid(load(gates + 3 * width + i));
      const size_t at = row * width + i;
      const Lanes cell = forget * load(cells_before + at) + update * candidate;
      store(gates + i, update), store(gates + width + i, forget);
      store(gates + 2 * width + i, candidate), store(gates + 3 * width + i, emit);
      store(cells + at, cell), store(outputs + at, emit * tanh(cell));
    }
  }
}

// The same back: from the gradients of outputs and of cells (after the step; replaced by those before it) to those of the gates' sums,
// which may replace the gates.
void step_cells_back(size_t rows, size_t width, const float* gates, const float* cells_before, const float* cells,
                     const float* grad_outputs, float* grad_cells, float* grad_gates) {
  for (size_t row = 0; row < rows; ++row, gates += 4 * width, grad_gates += 4 * width) {
    for (size_t i = 0; i < width; i += kLanes) {
      const Lanes update = load(gates + i), forget = load(gates + width + i);
      const Lanes candidate = load(gates + 2 * width + i), emit = load(gates + 3 * width + i);
      const size_t at = row * width + i;
      const Lanes squashed = tanh(load(cells + at)), grad_output = load(grad_outputs + at);
      const Lanes grad_cell = load(grad_cells + at) + grad_output * emit * (1.0f - squashed * squashed);
      store(grad_gates + i, grad_cell * candidate * update * (1.0f - update));
      store(grad_gates + width + i, grad_cell * load(cells_before + at) * forget * (1.0f - forget));
      store(grad_gates + 2 * width + i, grad_cell * update * (1.0f - candidate * candidate));
      store(grad_gates + 3 * width + i, grad_output * squashed * emit * (1.0f - emit));
      store(grad_cells + at, grad_cell * forget);
    }
  }
}

constexpr Kernels kKernels{multiply, add_outer, add_rows, pack, exponentiate, activate, differentiate, step_cells, step_cells_back};
