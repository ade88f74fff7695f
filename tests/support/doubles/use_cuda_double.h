// Replaces NVIDIA's driver and NVRTC by their double.
#pragma once

#include "backends/cuda/cuda_backend.h"
#include "support/doubles/driver_double.h"

namespace prism::test {

struct CudaDouble : DriverDouble {
  CudaDouble()
      : DriverDouble("cuda", {"PRISM_CUDA_LIBRARY", "PRISM_NVRTC_LIBRARY"}, make_cuda_backend) {}
};

}  // namespace prism::test
