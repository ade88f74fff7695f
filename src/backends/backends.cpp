// Registers the backends: the only file that includes them. CMake defines PRISM_HAS_X for each one switched on.
#include "backends/backends.h"

#if __has_include("runtime/backend.h")
#include "runtime/backend.h"

#ifdef PRISM_HAS_CUDA
#include "backends/cuda/cuda_backend.h"
#endif
#ifdef PRISM_HAS_HIP
#include "backends/hip/hip_backend.h"
#endif
#ifdef PRISM_HAS_METAL
#include "backends/metal/metal_backend.h"
#endif
#ifdef PRISM_HAS_SYCL
#include "backends/sycl/sycl_backend.h"
#endif
#ifdef PRISM_HAS_VULKAN
#include "backends/vulkan/vulkan_backend.h"
#endif
#ifdef PRISM_HAS_OPENCL
#include "backends/opencl/opencl_backend.h"
#endif
#ifdef PRISM_HAS_WEBGPU
#include "backends/webgpu/webgpu_backend.h"
#endif
#ifdef PRISM_HAS_CPU
#include "backends/cpu/cpu_backend.h"
#endif
#ifdef PRISM_HAS_NULL
#include "backends/null/null_backend.h"
#endif

namespace prism {

std::vector<std::unique_ptr<Backend>> make_backends() {
  std::vector<std::unique_ptr<Backend>> backends;
#ifdef PRISM_HAS_CUDA
  backends.push_back(make_cuda_backend());
#endif
#ifdef PRISM_HAS_HIP
  backends.push_back(make_hip_backend());
#endif
#ifdef PRISM_HAS_METAL
  backends.push_back(make_metal_backend());
#endif
#ifdef PRISM_HAS_SYCL
  backends.push_back(make_sycl_backend());
#endif
#ifdef PRISM_HAS_VULKAN
  backends.push_back(make_vulkan_backend());
#endif
#ifdef PRISM_HAS_OPENCL
  backends.push_back(make_opencl_backend());
#endif
#ifdef PRISM_HAS_WEBGPU
  backends.push_back(make_webgpu_backend());
#endif
#ifdef PRISM_HAS_CPU
  backends.push_back(make_cpu_backend());
#endif
#ifdef PRISM_HAS_NULL
  backends.push_back(make_null_backend());
#endif
  return backends;
}

}  // namespace prism
#endif
