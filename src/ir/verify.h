// The verifier: checks the rules of the kernel language when a kernel is built.
#pragma once

#include <vector>

#include "prism/kernel_ir.h"

namespace prism::ir {

// Throws Error(kInvalidKernel) naming kernel, location and rule. Inserts a missing wait_previous,
// preceded by a missing launch_next, at the start.
void verify(Kernel& kernel);

// For each value: whether it is uniform across the lanes of a group.
std::vector<bool> uniform_values(const Kernel& kernel);

}  // namespace prism::ir
