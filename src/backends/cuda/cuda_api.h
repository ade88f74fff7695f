// The part of NVIDIA's driver interface that Prism calls, declared here so that building needs no
// CUDA headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "backends/gpu_runtime/gpu_api.h"

namespace prism::cuda {

using gpu::Absence;
using gpu::DevicePointer;
using gpu::driver_error;
using gpu::Event;
using gpu::Function;
using gpu::kNoDevice;
using gpu::kSuccess;
using gpu::Module;
using gpu::Result;
using gpu::Stream;

using Ordinal = int;  // CUdevice
using Context = struct ContextTag*;

inline constexpr Result kStubLibrary = 34;
inline constexpr Result kNotPermitted = 800;
inline constexpr Result kSystemNotReady = 802;
inline constexpr Result kDriverMismatch = 803;
inline constexpr Result kCompatNotSupported = 804;

// CUdevice_attribute
inline constexpr int kMaxThreadsPerBlock = 1;
inline constexpr int kMaxGridX = 5;
inline constexpr int kMaxGridY = 6;
inline constexpr int kMaxGridZ = 7;
inline constexpr int kSharedPerBlock = 8;
inline constexpr int kMultiprocessors = 16;
inline constexpr int kIntegrated = 18;
inline constexpr int kComputeMode = 20;
inline constexpr int kCapabilityMajor = 75;
inline constexpr int kCapabilityMinor = 76;
inline constexpr int kSharedPerBlockOptIn = 97;

inline constexpr int kComputeModeProhibited = 2;
inline constexpr int kFunctionMaxDynamicShared = 8;
inline constexpr int kProgrammaticStreamSerialization = 6;

struct alignas(8) LaunchAttribute {  // CUlaunchAttribute
  int id = 0;
  char pad[4] = {};
  union {
    char bytes[64];
    int programmatic_serialization;
  } value = {};
};
static_assert(sizeof(LaunchAttribute) == 72);

struct LaunchConfig {  // CUlaunchConfig
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  Stream stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};

// version: 12040 is 12.4
struct Api : gpu::Api {
  Result (*init)(unsigned flags) = nullptr;
  Result (*driver_version)(int*) = nullptr;
  Result (*error_name)(Result, const char**) = nullptr;
  Result (*error_text)(Result, const char**) = nullptr;
  Result (*device_count)(int*) = nullptr;
  Result (*device_get)(Ordinal*, int) = nullptr;
  Result (*device_name)(char*, int, Ordinal) = nullptr;
  Result (*device_attribute)(int*, int, Ordinal) = nullptr;
  Result (*device_total)(size_t*, Ordinal) = nullptr;
  Result (*device_pci)(char*, int, Ordinal) = nullptr;
  Result (*context_retain)(Context*, Ordinal) = nullptr;
  Result (*context_release)(Ordinal) = nullptr;
  Result (*context_push)(Context) = nullptr;
  Result (*context_pop)(Context*) = nullptr;
  Result (*function_set_attribute)(Function, int attribute, int value) = nullptr;
  Result (*launch_ex)(const LaunchConfig*, Function, void** params,
                      void** extra) = nullptr;  // since 11.8; may be null

  std::string words(Result result) const override;
};

// Opens the driver's library (PRISM_CUDA_LIBRARY, else the system's) and calls cuInit. Returns null
// and fills *absence on failure.
std::shared_ptr<Api> open_api(Absence* absence);

}  // namespace prism::cuda
