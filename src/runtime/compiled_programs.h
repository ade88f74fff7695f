// The number of programs a device has compiled, so that test suites can bound it.
#pragma once

#include <cstddef>

#include "prism/device.h"

namespace prism {

// Programs in memory so far; each variant of a kernel counts.
size_t compiled_programs(const Device& device);

}  // namespace prism
