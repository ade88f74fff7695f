// Kernels that a printer is likely to get wrong, beyond those of op_kernels.h.
#pragma once

#include <vector>

#include "prism/kernel_ir.h"

namespace prism::test {

// Values that must keep the time at which they were read, names that languages have taken, signed
// overflow, literals.
std::vector<ir::Kernel> printer_kernels();

// Fragments in every layout, element type and space, mapped, reduced and converted; groups of 64
// lanes. They want small whole numbers as input, so that every order of summation gives the same
// bits.
std::vector<ir::Kernel> fragment_layout_kernels();

}  // namespace prism::test
