// Sums over the lanes of a subgroup, many of them together. For .cpp files of kernels only.
#pragma once

#include <vector>

#include "prism/kernel.h"

namespace prism::ops {

// What a lane has of the totals: held[i] is that of number first + i.
struct SpreadSums {
  std::vector<dsl::Value> held;
  dsl::Value first;
  dsl::Value mine;  // false in lanes that have the same as one before them
};

// Adds each of the sums (f32) over the lanes of a subgroup of 32 whose numbers differ by a multiple
// of `apart`, a power of two. In each step a lane keeps half of its sums and gives the other half
// away: four over 32 lanes take 6 exchanges, one by one they would take 20. Numbers beyond the
// last, up to a power of two, are zeros.
SpreadSums spread_sums(std::vector<dsl::Value> sums, uint32_t apart = 1);

}  // namespace prism::ops
