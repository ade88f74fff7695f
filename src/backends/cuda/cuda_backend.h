// NVIDIA's GPUs through the driver's own interface, with kernels compiled by NVRTC.
#pragma once

#include <memory>

#include "runtime/driver.h"

namespace prism {

std::unique_ptr<Backend> make_cuda_backend();

}  // namespace prism
