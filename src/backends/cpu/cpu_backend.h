// The CPU as a device: kernels run by the interpreter over whole groups on all cores.
#pragma once

#include <memory>

#include "runtime/driver.h"

namespace prism {

std::unique_ptr<Backend> make_cpu_backend();

}  // namespace prism
