#include "netbuf/rows.h"

#include <algorithm>

namespace netbuf {

namespace {

constexpr size_t kBlock = 16;  // floats in a cache line: each line of a transposed array is written at one go

}  // namespace

void take_in(const double* telemetry, size_t rows, size_t fields, float* last) {
  for (size_t begin = 0; begin < rows; begin += kBlock) {
    const size_t count = std::min(kBlock, rows - begin);
    for (size_t field = 0; field < fields; ++field) {
      const double* from = telemetry + begin * fields + field;
      float* known = last + field * rows + begin;
      __builtin_prefetch(known + kBlock, 1);  // the next block's line: no processor foresees so many strands
      for (size_t i = 0; i < count; ++i) {
        const float value = static_cast<float>(from[i * fields]);
        known[i] = value == value ? value : known[i];
      }
    }
  }
}

void put_vectors(const float* vectors, size_t rows, size_t width, float* out) {
  for (size_t begin = 0; begin < rows; begin += kBlock) {
    const size_t count = std::min(kBlock, rows - begin);
    for (size_t i = 0; i < width; ++i) {
      const float* from = vectors + i * rows + begin;
      float* to = out + begin * width + i;
      for (size_t row = 0; row < count; ++row) to[row * width] = from[row];
    }
  }
}

void stack_vectors(const float* ring, size_t rows, size_t width, size_t depth, size_t first, float* out) {
  for (size_t row = 0; row < rows; ++row) {
    size_t at = first;
    for (size_t k = 0; k < depth; ++k, out += width) {
      std::copy_n(ring + (at * rows + row) * width, width, out);
      at = at + 1 == depth ? 0 : at + 1;
    }
  }
}

}  // namespace netbuf
