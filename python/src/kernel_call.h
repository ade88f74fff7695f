// Calls of kernels with buffers and parameters by name.
#pragma once

#include "bindings.h"
#include "prism/kernel.h"

namespace prism::python {

// groups: an integer or up to three. arguments: every buffer and parameter of the kernel. Returns
// the written buffers: one tensor, or a tuple. Throws TypeError that names missing and unknown
// arguments.
nb::object run_kernel(const Kernel& kernel, nb::handle groups, const Device& device,
                      const nb::kwargs& arguments);
nb::object interpret_kernel(const Kernel& kernel, nb::handle groups, const nb::kwargs& arguments);

}  // namespace prism::python
