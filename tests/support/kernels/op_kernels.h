// Small kernels that together use every operation of the kernel language, for tests of printers and
// devices.
#pragma once

#include <vector>

#include "prism/kernel_ir.h"

namespace prism::test {

// Each is named after its operations. They run on any device: missing features are lowered. Kernels
// with f16, i64 or f64 values, fences or fragments are in the optional lists below.
std::vector<ir::Kernel> op_kernels();
std::vector<ir::Kernel> f16_kernels();
std::vector<ir::Kernel> i64_kernels();
std::vector<ir::Kernel> f64_kernels();
std::vector<ir::Kernel> fence_kernels();
std::vector<ir::Kernel> fragment_kernels();  // f16 operands, f32 accumulators, 16 x 16 x 16

}  // namespace prism::test
