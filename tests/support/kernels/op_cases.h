// One launch of each operation kernel: inputs with edge cases, and the interpreter's results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "prism/capabilities.h"
#include "prism/kernel_ir.h"

namespace prism::test {

struct OpCase {
  ir::Kernel kernel;
  std::vector<uint32_t> params;
  std::vector<std::vector<std::byte>> buffers;  // before the launch of one group
  // Per float, relative to the larger of one and the expected value: math functions may differ in
  // their last bits.
  double tolerance = 0;
};

// Every kernel of op_kernels() without conflicting writes, and f16_kernels().
std::vector<OpCase> op_cases();

// The expected buffers after the launch on a device of these capabilities, which matter only for
// their subgroup size.
std::vector<std::vector<std::byte>> right_contents(const OpCase& one,
                                                   const ir::Capabilities& capabilities);

// "y[3] is 1, expected 2"; empty if all are equal.
std::string difference(const OpCase& one, const std::vector<std::vector<std::byte>>& right,
                       const std::vector<std::vector<std::byte>>& found);

}  // namespace prism::test
