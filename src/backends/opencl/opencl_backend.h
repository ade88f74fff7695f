// Devices reached through OpenCL 1.2 or newer: GPUs, accelerators and CPU runtimes of every
// installed platform.
#pragma once

#include <memory>

#include "runtime/driver.h"

namespace prism {

std::unique_ptr<Backend> make_opencl_backend();

}  // namespace prism
