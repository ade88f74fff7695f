// Assignment in place: new values in the memory of a tensor, for weights that persist between runs.
#pragma once

#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism {

// Writes value into the memory of target when the result is evaluated; value is broadcast and cast
// to target's shape and type. target must be a whole, evaluated tensor and not an input of a
// compiled function; the result shares its memory, and every handle to target sees the new values.
// In one plan, ops that read target and do not depend on the result read the old values. Has no
// gradient.
Tensor assign(const Tensor& target, const Tensor& value);

}  // namespace prism

#pragma GCC visibility pop
