// Capabilities by name, and taking one away: what a device lacks is lowered, so a kernel still runs
// without it.
#pragma once

#include <string>
#include <vector>

#include "prism/capabilities.h"
#include "prism/kernel_ir.h"

namespace prism {

// The capabilities that can be switched off and that these have, those that others depend on last.
std::vector<std::string> switchable_capabilities(const ir::Capabilities& capabilities);

// Throws kInvalidArgument listing the names for one it does not know.
void switch_off_capability(ir::Capabilities& capabilities, const std::string& name);

// Whether the kernel's lowered code is another without the capability of that name.
bool capability_matters(const ir::Kernel& kernel, const ir::Capabilities& capabilities,
                        const std::string& name);

// Every capability in words, for people: "f16 storage", "subgroups of 32" ...
std::vector<std::string> describe_capabilities(const ir::Capabilities& capabilities);

}  // namespace prism
