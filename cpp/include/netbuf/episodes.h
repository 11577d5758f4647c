// The ends of decisions in worlds that run side by side: times, rewards, and which episodes are over.
#pragma once
#include <cstddef>
#include <cstdint>

namespace netbuf {

// Arrays of the worlds, and of their agents' rows, world by world.
struct EpisodeRows {
  size_t worlds, rows;
  int64_t* time_ns;
  const int64_t* end_ns;
  int64_t* steps;
  float* rewards;             // of the rows
  const uint8_t* terminated;  // of the worlds, and the following
  uint8_t* truncated;
  uint8_t* ended;
};

// Whether all of them are above 0.
bool all_positive(const int64_t* values, size_t count);

void pass_time(EpisodeRows& e, const int64_t* elapsed_ns);

// Adds up the terms of rewards, [terms][rows], counts a decision, and says which episodes are over: those that terminated, and
// those whose time is up or that have taken `most_steps` decisions, which are truncated.
void end_decision(EpisodeRows& e, const float* terms, size_t count, int64_t most_steps);

}  // namespace netbuf
