// Gated activations: one half of a layer's output gates the other.
#pragma once

#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism {

// silu(gate) * up.
Tensor swiglu(const Tensor& gate, const Tensor& up);
// gelu(gate) * up. Uses the tanh approximation, as models do in training, unless exact.
Tensor geglu(const Tensor& gate, const Tensor& up, bool exact = false);
// The same for one tensor whose last axis holds gate, then up.
Tensor swiglu(const Tensor& both);
Tensor geglu(const Tensor& both, bool exact = false);

}  // namespace prism

#pragma GCC visibility pop
