// Kernels for corner cases of printers, beyond those of op_kernels.h.
#pragma once

#include <vector>

#include "prism/kernel_ir.h"

namespace prism::test {

// Values that must not be read later than written, reserved names, signed overflow, literals.
std::vector<ir::Kernel> printer_kernels();

// Fragments in every layout, element type and space, mapped, reduced and converted; groups of 64
// lanes. Inputs must be small integers, so that every order of summation gives the same bits.
std::vector<ir::Kernel> fragment_layout_kernels();

}  // namespace prism::test
