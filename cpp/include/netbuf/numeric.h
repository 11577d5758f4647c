// Arithmetic of the package that numpy takes many passes for, and scipy a long import.
#pragma once
#include <cstddef>
#include <cstdint>

namespace netbuf {

// y[n] = x[n] - first * y[n - 1] - second * y[n - 2] in place, from rest; the bits of scipy.signal.lfilter.
void filter_recursively(double* values, size_t count, double first, double second);

// Scores in ascending order, with their weights, which belong to units.
struct WeightedScores {
  const double* values;
  const double* weights;
  const int64_t* units;
  size_t count;
};

// Of bootstrap samples, the mean of the middle half of all weight. counts: how often each sample holds each unit,
// [units][samples]; the weights of a sample, so many times each, add up to 1. out and the two others: [samples].
void average_middle(const WeightedScores& scores, const double* counts, size_t samples, double* upto, double* kept_sum,
                    double* out);

}  // namespace netbuf
