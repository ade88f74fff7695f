// Assigns rows to the nearest of a few centers, for k-means.
#pragma once

#include <cstdint>

#include "base/system/thread_pool.h"

namespace prism::cpu {

// nearest[i] = the center [centers][width] with the least squared distance to row i of
// x [count][width]; the smaller number where f32 sums are equal.
void nearest_centers(ThreadPool& pool, const float* x, uint64_t count, const float* centers,
                     uint64_t center_count, uint64_t width, uint32_t* nearest);

}  // namespace prism::cpu
