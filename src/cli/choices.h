// Kernels and devices by the names that users type, with errors that list the valid names.
#pragma once

#include <string>
#include <vector>

#include "prism/device.h"
#include "sample_kernels/sample_library.h"

namespace prism::cli {

// A name without a type means the f32 kernel: "vector_add". Throws kNotFound with the nearest name
// and the list.
const SampleKernel& kernel_named(const std::string& name);

// Returns the device of that name, or every device for "all". Throws kNotFound if there is none.
std::vector<Device> devices_named(const std::string& spelling);

}  // namespace prism::cli
