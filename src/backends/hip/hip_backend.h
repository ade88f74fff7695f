// The HIP backend: AMD GPUs through ROCm's runtime and its run-time compiler.
#pragma once

#include <memory>

#include "runtime/driver.h"

namespace prism {

std::unique_ptr<Backend> make_hip_backend();

}  // namespace prism
