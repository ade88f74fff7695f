// Printers: lowered IR to the text or bytes a device's compiler takes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "prism/capabilities.h"
#include "prism/kernel_ir.h"

namespace prism {

// A printed kernel. Every dialect passes the buffers in binding order (pieces of a split buffer one
// after another), then the params in order, each 32 bits; `params_as_block` says they travel as one
// block of words (SPIR-V: push constants; WGSL: a uniform buffer, the last binding; Metal: the last
// buffer index) rather than as arguments.
struct PrintedKernel {
  std::string entry;            // name of the entry point
  std::string text;             // empty for SPIR-V
  std::vector<uint32_t> words;  // SPIR-V only
  bool params_as_block = false;
};

// dialect: cuda, hip, opencl, metal, sycl, wgsl, spirv (capabilities.dialect). The kernel must have
// been lowered with the same capabilities. Throws kNotSupported for what the dialect cannot say.
PrintedKernel print(const ir::Kernel& lowered, const ir::Capabilities& capabilities);

// Many kernels in one text with one prelude (cuda, hip, opencl, metal, sycl), for compilers that
// start slowly.
std::string print_together(const std::vector<ir::Kernel>& lowered,
                           const ir::Capabilities& capabilities);

// The dialects by name, and capabilities to print with when no device is at hand (`prism kernel
// show`).
const std::vector<std::string>& dialects();
ir::Capabilities typical_capabilities(const std::string& dialect);

// WGSL's dialect_level for a library that has subgroups without the directive that asks for them.
inline constexpr uint32_t kWgslSubgroupsUnasked = 1;

// One function a dialect, each in its own file.
PrintedKernel print_cuda(const ir::Kernel& lowered, const ir::Capabilities& capabilities);
PrintedKernel print_hip(const ir::Kernel& lowered, const ir::Capabilities& capabilities);
PrintedKernel print_opencl(const ir::Kernel& lowered, const ir::Capabilities& capabilities);
PrintedKernel print_metal(const ir::Kernel& lowered, const ir::Capabilities& capabilities);
PrintedKernel print_sycl(const ir::Kernel& lowered, const ir::Capabilities& capabilities);
PrintedKernel print_wgsl(const ir::Kernel& lowered, const ir::Capabilities& capabilities);
PrintedKernel print_spirv(const ir::Kernel& lowered, const ir::Capabilities& capabilities);

}  // namespace prism
