// Makes a kernel that goes wrong smaller, so that a person can read it.
#pragma once

#include <functional>

#include "prism/kernel_ir.h"

namespace prism::test {

// Takes statements away one after another while still_wrong stays true of what is left. still_wrong
// may throw for a kernel that has become invalid: that counts as false. It is called at most
// `tries` times.
ir::Kernel shrink(const ir::Kernel& kernel,
                  const std::function<bool(const ir::Kernel&)>& still_wrong, int tries = 120);

}  // namespace prism::test
