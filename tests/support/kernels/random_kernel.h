// Small random programs of the kernel language, with inputs, to compare devices.
#pragma once

#include <cstdint>

#include "prism/kernel_ir.h"
#include "support/kernels/interpreted.h"

namespace prism::test {

struct RandomProgram {
  uint64_t seed = 0;
  uint32_t index = 0;
  ir::Kernel kernel;
  Launch launch;
  bool by_subgroups = false;  // the result depends on the subgroup size
};

// The same program for the same seed and index on every machine. It follows every rule of the
// language: no races, no access out of bounds, every result bit-exact for any order of lanes.
RandomProgram random_program(uint64_t seed, uint32_t index);

}  // namespace prism::test
