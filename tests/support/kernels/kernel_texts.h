// The texts of kernels in front of the makers' compilers.
#pragma once

#include <vector>

#include "prism/capabilities.h"
#include "prism/kernel_ir.h"

namespace prism::test {

// Kernels lowered for these capabilities, all in one text for gfx90a; needs
// hip_front_end("gfx90a").
void expect_amd_takes(const std::vector<ir::Kernel>& lowered, const ir::Capabilities& capabilities);
// Each in a text of its own, by Dawn; needs kDawn.
void expect_webgpu_takes(const std::vector<ir::Kernel>& lowered,
                         const ir::Capabilities& capabilities);

}  // namespace prism::test
