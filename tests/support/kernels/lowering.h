// Compares kernels before and after lowering, for devices with missing features.
#pragma once

#include <cstdint>
#include <vector>

#include "prism/capabilities.h"
#include "prism/kernel_ir.h"
#include "support/kernels/interpreted.h"

namespace prism::test {

// A device with every feature: tests remove the ones they are about.
ir::Capabilities full_capabilities();

// Both versions must give the same bytes, and the lowered one may contain no instruction that
// printers do not support.
void expect_same_when_lowered(const ir::Kernel& kernel, const Launch& launch,
                              const ir::Capabilities& capabilities);

uint32_t count_ops(const ir::Kernel& kernel, ir::Op op);

// Edge-case numbers, then pseudo-random ones.
std::vector<uint32_t> awkward_words(size_t count, uint64_t seed = 1);
std::vector<float> awkward_floats(size_t count, uint64_t seed = 1);

}  // namespace prism::test
