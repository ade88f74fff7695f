// Compiles printed kernels with the vendors' compilers.
#include "support/kernels/kernel_texts.h"

#include <gtest/gtest.h>

#include "print/printer.h"
#include "support/front_ends/hiprtc_front_end.h"
#include "support/front_ends/wgsl_front_end.h"

namespace prism::test {

void expect_amd_takes(const std::vector<ir::Kernel>& lowered,
                      const ir::Capabilities& capabilities) {
  const auto result = compile_hip(print_together(lowered, capabilities), "gfx90a");
  EXPECT_TRUE(result.ok) << result.log;
}

void expect_webgpu_takes(const std::vector<ir::Kernel>& lowered,
                         const ir::Capabilities& capabilities) {
  for (const ir::Kernel& kernel : lowered) {
    const PrintedKernel printed = print(kernel, capabilities);
    const auto result = compile_wgsl(kDawn, printed.text, {printed.entry});
    EXPECT_TRUE(result.ok) << kernel.name << ": " << result.log;
  }
}

}  // namespace prism::test
