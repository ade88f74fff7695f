// The update of Adam and AdamW as one op.
#pragma once

#include <cstdint>

#include "prism/tensor.h"

namespace prism {

struct AdamRule {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double penalty = 0;    // times the parameter, added to the gradient
  bool shrinks = false;  // multiplies the parameter by numbers[2] first
};

struct AdamState {
  Tensor parameter, first, second;
};

// Whether a device updates these in one launch: f32 of one shape, not on the CPU.
bool has_adam_op(const AdamState& state, const Tensor& gradient);

// Changes all three in place. numbers: f32; from `at` on the learning rate with the correction of
// the first average, the correction of the second one's root, and the factor of the parameter.
// factor: of the gradient, f32 []; may be empty.
AdamState adam_step(const AdamRule& rule, const AdamState& state, const Tensor& gradient,
                    const Tensor& numbers, int64_t at, const Tensor& factor);

}  // namespace prism
