// A variant of a kernel that waits for the previous launch before it reads anything.
#pragma once

#include "prism/kernel_ir.h"

namespace prism::ir {

// The same kernel with its wait at the start, for launches whose weights are not constant for the
// whole plan.
Kernel waiting_first(Kernel kernel);

}  // namespace prism::ir
