// Compares kernels as written with what lowering makes of them, for a device that lacks one thing
// or another.
#pragma once

#include <cstdint>
#include <vector>

#include "prism/capabilities.h"
#include "prism/kernel_ir.h"
#include "support/kernels/interpreted.h"

namespace prism::test {

// A device that lacks nothing: tests take away what they are about.
ir::Capabilities full_capabilities();

// Both ways of running must leave the same bytes, and no instruction may be left that a printer
// never meets.
void expect_same_when_lowered(const ir::Kernel& kernel, const Launch& launch,
                              const ir::Capabilities& capabilities);

uint32_t count_ops(const ir::Kernel& kernel, ir::Op op);

// Numbers that programs stumble over, then pseudo-random ones.
std::vector<uint32_t> awkward_words(size_t count, uint64_t seed = 1);
std::vector<float> awkward_floats(size_t count, uint64_t seed = 1);

}  // namespace prism::test
