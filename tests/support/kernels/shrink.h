// Reduces a failing kernel to a readable size.
#pragma once

#include <functional>

#include "prism/kernel_ir.h"

namespace prism::test {

// Removes statements one by one while still_wrong returns true for the remainder. still_wrong may
// throw for a kernel that has become invalid: that counts as false. It is called at most `tries`
// times.
ir::Kernel shrink(const ir::Kernel& kernel,
                  const std::function<bool(const ir::Kernel&)>& still_wrong, int tries = 120);

}  // namespace prism::test
