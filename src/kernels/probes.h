// Tiny kernels by which a backend finds out what its driver does and does not say.
#pragma once

#include "ir/kernel.h"

namespace prism {

// One group: x[3] = fma(x[0], x[1], x[2]).
ir::Kernel fma_probe();

}  // namespace prism
