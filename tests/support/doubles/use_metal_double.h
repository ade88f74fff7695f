// Replaces the Objective-C runtime and Metal by their double.
#pragma once

#include "backends/metal/metal_backend.h"
#include "support/doubles/driver_double.h"

namespace prism::test {

struct MetalDouble : DriverDouble {
  MetalDouble()
      : DriverDouble("metal", {"PRISM_METAL_LIBRARY", "PRISM_OBJC_LIBRARY"}, make_metal_backend) {}
};

}  // namespace prism::test
