// The keys under which devices keep compiled kernels.
#pragma once

#include <string>

#include "prism/kernel_ir.h"

namespace prism {

// The hash of the kernel's text.
std::string kernel_key(const ir::Kernel& kernel);
// Remembers the key of a kernel that is never changed nor destroyed. Making the text of a large
// kernel takes half a millisecond, and a plan of a language model has hundreds of launches.
void remember_key(const ir::Kernel& kernel);

}  // namespace prism
