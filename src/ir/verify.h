// The rules of the kernel language, checked when a kernel is built.
#pragma once

#include <vector>

#include "prism/kernel_ir.h"

namespace prism::ir {

// Throws Error(kInvalidKernel) naming kernel, place and rule. Puts a missing wait_previous,
// and before it a missing launch_next, at the start.
void verify(Kernel& kernel);

// For each value: is it the same in every lane of a group?
std::vector<bool> uniform_values(const Kernel& kernel);

}  // namespace prism::ir
