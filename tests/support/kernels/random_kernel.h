// Small random programs of the kernel language, with inputs, for comparing devices.
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
  bool by_subgroups = false;  // the result depends on the size of subgroups
};

// The same program for the same seed and index, on every machine. It follows every rule of the
// language: no races, no place out of bounds, every result defined to the last bit whatever the
// order of lanes.
RandomProgram random_program(uint64_t seed, uint32_t index);

}  // namespace prism::test
