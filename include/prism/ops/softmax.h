// Softmax, log softmax, and the cross entropy of class scores.
#pragma once

#include <cstdint>

#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism {

// exp(x - max) / sum along an axis. Floats only. A row with NaN or +infinity, or with only
// -infinity, becomes NaN.
Tensor softmax(const Tensor& x, int axis = -1);
Tensor log_softmax(const Tensor& x, int axis = -1);

inline constexpr int32_t kNoIgnoredIndex = INT32_MIN;

// -log_softmax(logits)[target] for each row: logits [rows, classes], target i32 [rows]. Result: f32
// (f64 for f64 logits) [rows]. Rows with the target ignore_index give 0; other targets out of range
// give NaN.
Tensor cross_entropy_rows(const Tensor& logits, const Tensor& target,
                          int32_t ignore_index = kNoIgnoredIndex);
// The mean over the rows that are not ignored, with shape [].
Tensor cross_entropy(const Tensor& logits, const Tensor& target,
                     int32_t ignore_index = kNoIgnoredIndex);

}  // namespace prism

#pragma GCC visibility pop
