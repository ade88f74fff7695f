// Runs ops on a driver double.
#pragma once

#include <cstddef>

#include "support/doubles/driver_double.h"

namespace prism::test {

// A sample of this many cases of every op must be correct, mostly without falling back to the CPU,
// and without out-of-bounds writes or undefined calls.
void expect_ops_sample_is_right(DriverDouble& the_double, size_t cases);

}  // namespace prism::test
