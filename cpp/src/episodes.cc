#include "netbuf/episodes.h"

#include <algorithm>

namespace netbuf {

bool all_positive(const int64_t* values, size_t count) {
  return std::all_of(values, values + count, [](int64_t value) { return value > 0; });
}

void pass_time(EpisodeRows& e, const int64_t* elapsed_ns) {
  for (size_t i = 0; i < e.worlds; ++i) e.time_ns[i] += elapsed_ns[i];
}

void end_decision(EpisodeRows& e, const float* terms, size_t count, int64_t most_steps) {
  std::fill_n(e.rewards, e.rows, 0.0f);
  for (size_t term = 0; term < count; ++term, terms += e.rows) {
    for (size_t row = 0; row < e.rows; ++row) e.rewards[row] += terms[row];
  }
  for (size_t i = 0; i < e.worlds; ++i) {
    e.steps[i] += 1;
    e.truncated[i] = e.time_ns[i] >= e.end_ns[i] || e.steps[i] >= most_steps;
    e.ended[i] = e.truncated[i] | e.terminated[i];
  }
}

}  // namespace netbuf
