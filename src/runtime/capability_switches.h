// Named capabilities and switching them off. A missing capability is lowered, so kernels still run
// without it.
#pragma once

#include <string>
#include <vector>

#include "prism/capabilities.h"
#include "prism/kernel_ir.h"

namespace prism {

// The capabilities that are present and can be switched off; those that others depend on come last.
std::vector<std::string> switchable_capabilities(const ir::Capabilities& capabilities);

// Whether a capability of that name can be switched off.
bool is_switchable(const std::string& name);
// Throws kInvalidArgument for an unknown name, listing the known ones.
void switch_off_capability(ir::Capabilities& capabilities, const std::string& name);

// Whether switching off the named capability changes the kernel's lowered code.
bool capability_matters(const ir::Kernel& kernel, const ir::Capabilities& capabilities,
                        const std::string& name);

// Human-readable description of every capability: "f16 storage", "subgroups of 32" ...
std::vector<std::string> describe_capabilities(const ir::Capabilities& capabilities);

}  // namespace prism
