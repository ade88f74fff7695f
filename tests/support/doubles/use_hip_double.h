// Replaces ROCm's HIP runtime and hiprtc by their double.
#pragma once

#include "backends/hip/hip_backend.h"
#include "support/doubles/driver_double.h"

namespace prism::test {

struct HipDouble : DriverDouble {
  HipDouble()
      : DriverDouble("hip", {"PRISM_HIP_LIBRARY", "PRISM_HIPRTC_LIBRARY"}, make_hip_backend) {}
};

}  // namespace prism::test
