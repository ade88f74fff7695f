// The part of the HIP interface that Prism calls, declared here so that building needs no ROCm
// headers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/gpu_runtime/gpu_api.h"

namespace prism::hip {

using gpu::Absence;
using gpu::kNoDevice;
using gpu::kSuccess;
using gpu::Result;

inline constexpr Result kNoBinaryForGpu = 209;  // hipErrorNoBinaryForGpu: an unknown chip

// hipDeviceAttribute_t; the numbers are stable since ROCm 4.
inline constexpr int kIntegrated = 16;
inline constexpr int kMaxGridX = 29;
inline constexpr int kMaxThreadsPerBlock = 56;
inline constexpr int kMultiprocessors = 63;
inline constexpr int kSharedPerBlock = 74;
inline constexpr int kWarpSize = 87;

// version: 50221153 is 5.2
struct Api : gpu::Api {
  Result (*init)(unsigned flags) = nullptr;
  Result (*runtime_version)(int*) = nullptr;
  const char* (*error_name)(Result) = nullptr;
  const char* (*error_text)(Result) = nullptr;
  Result (*device_count)(int*) = nullptr;
  Result (*device_get)(int* current) = nullptr;
  Result (*device_set)(int) = nullptr;
  Result (*device_name)(char*, int, int) = nullptr;
  Result (*device_attribute)(int*, int, int) = nullptr;
  Result (*device_total)(size_t*, int) = nullptr;
  Result (*device_pci)(char*, int, int) = nullptr;
  Result (*device_properties)(void*, int) = nullptr;

  std::string words(Result result) const override;
  std::string version_text() const;            // "5.2"
  int attribute(int which, int device) const;  // 0 if unknown
  std::string gfx(int device) const;           // "gfx90a"; empty if not reported
};

// Candidate paths of a ROCm library: the variable's value alone if set, else ROCM_PATH, the
// system's search path and /opt/rocm. stem: "libamdhip64".
std::vector<std::string> library_names(const char* variable, const std::string& stem);

// Opens the runtime (PRISM_HIP_LIBRARY, else the system's if its kernel driver is loaded) and calls
// hipInit. Returns null and fills *absence on failure.
std::shared_ptr<Api> open_api(Absence* absence);

}  // namespace prism::hip
