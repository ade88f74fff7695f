// Weights of small matrices whose rows and columns sum to one.
#pragma once

#include "prism/tensor.h"

namespace prism {

inline constexpr int64_t kMostSinkhornSize = 8;

// logits f32 [..., n, n] with n up to kMostSinkhornSize. A softmax of each row, plus epsilon; then
// Sinkhorn's steps: columns are divided by their sum plus epsilon, and before each step but the
// first, rows are divided by theirs. At least 1 step. There is no gradient.
Tensor sinkhorn(const Tensor& logits, int64_t steps, double epsilon);

}  // namespace prism
