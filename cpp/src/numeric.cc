#include "netbuf/numeric.h"

#include <algorithm>

namespace netbuf {

void filter_recursively(double* values, size_t count, double first, double second) {
  double next = 0, after_next = 0;  // what earlier values add to the next two
  for (size_t i = 0; i < count; ++i) {
    const double value = values[i] + next;
    next = after_next - value * first;
    after_next = -(value * second);
    values[i] = value;
  }
}

void average_middle(const WeightedScores& scores, const double* counts, size_t samples, double* upto, double* kept_sum,
                    double* out) {
  for (double* zero : {upto, kept_sum, out}) std::fill_n(zero, samples, 0.0);
  for (size_t i = 0; i < scores.count; ++i) {
    const double value = scores.values[i], weight = scores.weights[i];
    const double* held = counts + static_cast<size_t>(scores.units[i]) * samples;
    for (size_t s = 0; s < samples; ++s) {
      const double own = held[s] * weight;
      upto[s] += own;
      const double kept = std::max(std::min(upto[s], 0.75) - std::max(upto[s] - own, 0.25), 0.0);
      kept_sum[s] += kept;
      out[s] += value * kept;
    }
  }
  for (size_t s = 0; s < samples; ++s) out[s] /= kept_sum[s];
}

}  // namespace netbuf
