// The list of all backends in order of preference, and the only file that includes them.
//
// CMake defines PRISM_HAS_X for an enabled backend, and PRISM_RUNS_X if it also has a folder. A
// disabled backend stays in the list with its reason.
#include "backends/unavailable_backend.h"
#include "prism/device.h"
#include "runtime/discovery/backend_list.h"

#ifdef PRISM_RUNS_CUDA
#include "backends/cuda/cuda_backend.h"
#endif
#ifdef PRISM_RUNS_HIP
#include "backends/hip/hip_backend.h"
#endif
#ifdef PRISM_RUNS_METAL
#include "backends/metal/metal_backend.h"
#endif
#ifdef PRISM_RUNS_SYCL
#include "backends/sycl/sycl_backend.h"
#endif
#ifdef PRISM_RUNS_VULKAN
#include "backends/vulkan/vulkan_backend.h"
#endif
#ifdef PRISM_RUNS_OPENCL
#include "backends/opencl/opencl_backend.h"
#endif
#ifdef PRISM_RUNS_WEBGPU
#include "backends/webgpu/webgpu_backend.h"
#endif
#ifdef PRISM_RUNS_CPU
#include "backends/cpu/cpu_backend.h"
#endif
#ifdef PRISM_RUNS_NULL
#include "backends/null/null_backend.h"
#endif

namespace prism {
namespace {

[[maybe_unused]] std::unique_ptr<Backend> switched_off(const char* name, const char* label,
                                                       const char* variable) {
  return make_unavailable_backend(name, label, "switched off when this program was built",
                                  std::string("build with ") + variable + "=1");
}

}  // namespace

std::vector<std::string> driver_folders() {
  return {"/etc/vulkan/icd.d", "/usr/share/vulkan/icd.d", "/usr/local/share/vulkan/icd.d",
          "/etc/OpenCL/vendors"};
}

std::vector<BackendMaker> backend_makers() {
  std::vector<BackendMaker> makers;
#if defined(PRISM_RUNS_CUDA)
  makers.push_back({"cuda", make_cuda_backend});
#else
  makers.push_back({"cuda", [] { return switched_off("cuda", "CUDA", "PRISM_CUDA"); }});
#endif

#if defined(PRISM_RUNS_HIP)
  makers.push_back({"hip", make_hip_backend});
#else
  makers.push_back({"hip", [] { return switched_off("hip", "HIP", "PRISM_HIP"); }});
#endif

#if defined(PRISM_RUNS_METAL)
  makers.push_back({"metal", make_metal_backend});
#else
  makers.push_back({"metal", [] { return switched_off("metal", "Metal", "PRISM_METAL"); }});
#endif

#if defined(PRISM_RUNS_SYCL)
  makers.push_back({"sycl", [] { return make_sycl_backend(); }});
#else
  makers.push_back({"sycl", [] { return switched_off("sycl", "SYCL", "PRISM_SYCL"); }});
#endif

#if defined(PRISM_RUNS_VULKAN)
  makers.push_back({"vulkan", make_vulkan_backend});
#else
  makers.push_back({"vulkan", [] { return switched_off("vulkan", "Vulkan", "PRISM_VULKAN"); }});
#endif

#if defined(PRISM_RUNS_OPENCL)
  makers.push_back({"opencl", make_opencl_backend});
#else
  makers.push_back({"opencl", [] { return switched_off("opencl", "OpenCL", "PRISM_OPENCL"); }});
#endif

#if defined(PRISM_RUNS_WEBGPU)
  makers.push_back({"webgpu", [] { return make_webgpu_backend(); }});
#else
  makers.push_back({"webgpu", [] { return switched_off("webgpu", "WebGPU", "PRISM_WEBGPU"); }});
#endif

#if defined(PRISM_RUNS_CPU)
  makers.push_back({"cpu", make_cpu_backend});
#endif
#if defined(PRISM_RUNS_NULL)
  makers.push_back({"null", make_null_backend});
#endif
  return makers;
}

}  // namespace prism
