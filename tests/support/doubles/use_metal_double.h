// The double of the Objective-C runtime and of Metal in the place of the real ones.
#pragma once

#include "backends/metal/metal_backend.h"
#include "support/doubles/driver_double.h"

namespace prism::test {

struct MetalDouble : DriverDouble {
  MetalDouble()
      : DriverDouble("metal", {"PRISM_METAL_LIBRARY", "PRISM_OBJC_LIBRARY"}, make_metal_backend) {}
};

}  // namespace prism::test
