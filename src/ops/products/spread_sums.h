// Many sums at once over the lanes of a subgroup (reduce-scatter). Private to kernels.
#pragma once

#include <vector>

#include "prism/kernel.h"

namespace prism::ops {

// A lane's part of the totals: held[i] is total number first + i.
struct SpreadSums {
  std::vector<dsl::Value> held;
  dsl::Value first;
  dsl::Value mine;  // false in lanes that duplicate an earlier lane
};

// Adds each of the sums (f32) over the lanes of a subgroup of 32 whose numbers differ by a multiple
// of `apart`, a power of two. among: the same for each run of so many lanes (a power of two, at
// most the subgroup's size) instead of a subgroup of 32. In each step a lane keeps half of its sums
// and sends the other half: four sums over 32 lanes take 6 shuffles instead of 20. Totals beyond
// the last, up to a power of two, are zeros.
SpreadSums spread_sums(std::vector<dsl::Value> sums, uint32_t apart = 1, uint32_t among = 32);

}  // namespace prism::ops
