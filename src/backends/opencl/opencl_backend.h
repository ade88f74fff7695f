// The OpenCL backend: GPUs, accelerators and CPU runtimes of every platform with OpenCL 1.2 or
// newer.
#pragma once

#include <memory>

#include "runtime/driver.h"

namespace prism {

std::unique_ptr<Backend> make_opencl_backend();

}  // namespace prism
