// Gated activations: one half of a layer's output opens the other.
#pragma once

#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism {

// silu(gate) * up.
Tensor swiglu(const Tensor& gate, const Tensor& up);
// gelu(gate) * up; by tanh, as models are trained with, unless exact.
Tensor geglu(const Tensor& gate, const Tensor& up, bool exact = false);
// The same of one tensor whose last axis holds the gates and then the ups.
Tensor swiglu(const Tensor& both);
Tensor geglu(const Tensor& both, bool exact = false);

}  // namespace prism

#pragma GCC visibility pop
