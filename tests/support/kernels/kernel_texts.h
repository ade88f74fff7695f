// Checks that the vendors' compilers accept the printed text of kernels.
#pragma once

#include <vector>

#include "prism/capabilities.h"
#include "prism/kernel_ir.h"

namespace prism::test {

// Kernels lowered for these capabilities, in one source for gfx90a; requires
// hip_front_end("gfx90a").
void expect_amd_takes(const std::vector<ir::Kernel>& lowered, const ir::Capabilities& capabilities);
// Each in its own source, compiled by Dawn; requires kDawn.
void expect_webgpu_takes(const std::vector<ir::Kernel>& lowered,
                         const ir::Capabilities& capabilities);

}  // namespace prism::test
