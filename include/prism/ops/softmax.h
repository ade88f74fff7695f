// Softmax, its logarithm, and the cross entropy of classes.
#pragma once

#include <cstdint>

#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism {

// exp(x - max) / sum along an axis; NaN along the whole of it where x has NaN or +infinity, or
// nothing but -infinity. Floats.
Tensor softmax(const Tensor& x, int axis = -1);
Tensor log_softmax(const Tensor& x, int axis = -1);

inline constexpr int32_t kNoIgnoredIndex = INT32_MIN;

// -log_softmax(logits)[target] of each row: logits [rows, classes], target i32 [rows]; f32 (f64 for
// f64 logits) [rows]. Rows whose target is ignore_index give 0; other targets outside the classes
// give NaN.
Tensor cross_entropy_rows(const Tensor& logits, const Tensor& target,
                          int32_t ignore_index = kNoIgnoredIndex);
// Their mean over the rows that are not ignored, of shape [].
Tensor cross_entropy(const Tensor& logits, const Tensor& target,
                     int32_t ignore_index = kNoIgnoredIndex);

}  // namespace prism

#pragma GCC visibility pop
