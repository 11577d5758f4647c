// Arrays of all agents between a plant and a learner, moved in one pass: agents first (as plants measure and learners
// read) and fields first (as rules compute).
#pragma once
#include <cstddef>

namespace netbuf {

// Of the telemetry of one interval, [rows][fields], whatever is no NaN into last, [fields][rows].
void take_in(const double* telemetry, size_t rows, size_t fields, float* last);

// Vectors of all rows, [width][rows], into out, [rows][width].
void put_vectors(const float* vectors, size_t rows, size_t width, float* out);

// The last `depth` vectors of all rows, a ring [depth][rows][width] whose oldest is number `first`, into out,
// oldest first, [rows][depth][width].
void stack_vectors(const float* ring, size_t rows, size_t width, size_t depth, size_t first, float* out);

}  // namespace netbuf
