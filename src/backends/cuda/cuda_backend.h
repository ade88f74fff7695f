// The CUDA backend: NVIDIA GPUs through the driver interface, with kernels compiled by NVRTC.
#pragma once

#include <memory>

#include "runtime/driver.h"

namespace prism {

std::unique_ptr<Backend> make_cuda_backend();

}  // namespace prism
