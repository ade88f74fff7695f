// How many programs a device has compiled: the suites of tests keep the number small.
#pragma once

#include <cstddef>

#include "prism/device.h"

namespace prism {

// Kept in memory so far, variants of one kernel counted.
size_t compiled_programs(const Device& device);

}  // namespace prism
