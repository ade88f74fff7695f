// Ops over the double of a driver.
#pragma once

#include <cstddef>

#include "support/doubles/driver_double.h"

namespace prism::test {

// A sample of so many cases of every op is right, most of it without the CPU's help; nothing was
// written beside a buffer, no call was undefined.
void expect_ops_sample_is_right(DriverDouble& the_double, size_t cases);

}  // namespace prism::test
