// The types and constants of NVIDIA's driver interface that Prism uses, declared here so that
// building needs no CUDA headers.
#pragma once

#include "backends/gpu_runtime/gpu_api.h"

namespace prism::cuda {

using gpu::DevicePointer;
using gpu::Event;
using gpu::Function;
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

}  // namespace prism::cuda
