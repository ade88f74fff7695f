// One launch of each operation kernel: contents that reach its edges, and what the interpreter
// makes of them.
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
  // Of each float, against the larger of one and what is right: functions may differ in their last
  // bits.
  double tolerance = 0;
};

// Every kernel of op_kernels() whose lanes do not write over each other, and f16_kernels().
std::vector<OpCase> op_cases();

// What the buffers hold after the launch on a device of these capabilities: only its subgroups'
// size counts.
std::vector<std::vector<std::byte>> right_contents(const OpCase& one,
                                                   const ir::Capabilities& capabilities);

// "y[3] is 1, 2 is right"; empty when all is right.
std::string difference(const OpCase& one, const std::vector<std::vector<std::byte>>& right,
                       const std::vector<std::vector<std::byte>>& found);

}  // namespace prism::test
