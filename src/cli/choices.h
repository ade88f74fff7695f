// What a user names on the command line, and the errors that list what could have been named.
#pragma once

#include <string>
#include <vector>

#include "prism/device.h"
#include "sample_kernels/sample_library.h"

namespace prism::cli {

// A name without a type is that of the f32 kernel: "vector_add". Throws kNotFound with the nearest
// name and the list.
const SampleKernel& kernel_named(const std::string& name);

// The device of that spelling; for "all", every device found. Throws kNotFound when there is none.
std::vector<Device> devices_named(const std::string& spelling);

}  // namespace prism::cli
