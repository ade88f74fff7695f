// Printers: convert lowered IR to the text or bytes that a device's compiler accepts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "prism/capabilities.h"
#include "prism/kernel_ir.h"

namespace prism {

// A printed kernel. Every dialect passes the buffers in binding order (pieces of a split buffer are
// consecutive), then the params in order, each 32 bits; if `params_as_block`, they are one block of
// words (SPIR-V: push constants; WGSL: a uniform buffer, the last binding; Metal: the last buffer
// index) instead of arguments.
struct PrintedKernel {
  std::string entry;            // name of the entry point
  std::string text;             // empty for SPIR-V
  std::vector<uint32_t> words;  // SPIR-V only
  bool params_as_block = false;
};

// dialect: cuda, hip, opencl, metal, sycl, wgsl, spirv (capabilities.dialect). The kernel must have
// been lowered with the same capabilities. Throws kNotSupported for features the dialect cannot
// express.
PrintedKernel print(const ir::Kernel& lowered, const ir::Capabilities& capabilities);

// Many kernels in one source with one prelude (cuda, hip, opencl, metal, sycl), for compilers with
// a high startup cost.
std::string print_together(const std::vector<ir::Kernel>& lowered,
                           const ir::Capabilities& capabilities);

// The dialect names, and capabilities to print with if there is no device (`prism kernel show`).
const std::vector<std::string>& dialects();
ir::Capabilities typical_capabilities(const std::string& dialect);

// WGSL's dialect_level for an implementation that has subgroups without the enabling directive.
inline constexpr uint32_t kWgslSubgroupsUnasked = 1;

// One function per dialect, each in its own file.
PrintedKernel print_cuda(const ir::Kernel& lowered, const ir::Capabilities& capabilities);
PrintedKernel print_hip(const ir::Kernel& lowered, const ir::Capabilities& capabilities);
PrintedKernel print_opencl(const ir::Kernel& lowered, const ir::Capabilities& capabilities);
PrintedKernel print_metal(const ir::Kernel& lowered, const ir::Capabilities& capabilities);
PrintedKernel print_sycl(const ir::Kernel& lowered, const ir::Capabilities& capabilities);
PrintedKernel print_wgsl(const ir::Kernel& lowered, const ir::Capabilities& capabilities);
PrintedKernel print_spirv(const ir::Kernel& lowered, const ir::Capabilities& capabilities);

}  // namespace prism
