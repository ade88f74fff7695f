// The part of NVIDIA's driver interface Prism calls: own declarations, since no CUDA header is
// needed to build.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/dynamic_library.h"
#include "base/error.h"

namespace prism::cuda {

using Result = int;   // CUresult
using Ordinal = int;  // CUdevice
using DevicePointer = unsigned long long;
using Context = struct ContextTag*;
using Module = struct ModuleTag*;
using Function = struct FunctionTag*;
using Stream = struct StreamTag*;
using Event = struct EventTag*;
using Graph = struct GraphTag*;
using GraphExec = struct GraphExecTag*;

inline constexpr Result kSuccess = 0;
inline constexpr Result kOutOfMemoryResult = 2;
inline constexpr Result kDeinitialized = 4;
inline constexpr Result kStubLibrary = 34;
inline constexpr Result kDeviceUnavailable = 46;
inline constexpr Result kNoDevice = 100;
inline constexpr Result kNotPermitted = 800;
inline constexpr Result kSystemNotReady = 802;
inline constexpr Result kDriverMismatch = 803;
inline constexpr Result kCompatNotSupported = 804;
inline constexpr Result kNotReady = 600;
inline constexpr Result kUnknown = 999;

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
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kHostAllocPortable = 1;
inline constexpr int kCaptureRelaxed = 2;
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

struct Api {
  DynamicLibrary library;
  int version = 0;  // the CUDA version the driver implements: 12040 is 12.4

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
  Result (*memory_info)(size_t* free, size_t* total) = nullptr;
  Result (*memory_allocate)(DevicePointer*, size_t) = nullptr;
  Result (*memory_free)(DevicePointer) = nullptr;
  Result (*host_allocate)(void**, size_t, unsigned flags) = nullptr;
  Result (*host_free)(void*) = nullptr;
  Result (*copy_to_device)(DevicePointer, const void*, size_t, Stream) = nullptr;
  Result (*copy_to_host)(void*, DevicePointer, size_t, Stream) = nullptr;
  Result (*copy_on_device)(DevicePointer, DevicePointer, size_t, Stream) = nullptr;
  Result (*module_load)(Module*, const void*) = nullptr;
  Result (*module_unload)(Module) = nullptr;
  Result (*module_function)(Function*, Module, const char*) = nullptr;
  Result (*function_set_attribute)(Function, int attribute, int value) = nullptr;
  Result (*launch)(Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   unsigned shared, Stream, void** params, void** extra) = nullptr;
  Result (*launch_ex)(const LaunchConfig*, Function, void** params,
                      void** extra) = nullptr;  // since 11.8; may be null
  Result (*stream_create)(Stream*, unsigned flags) = nullptr;
  Result (*stream_destroy)(Stream) = nullptr;
  Result (*stream_synchronize)(Stream) = nullptr;
  Result (*stream_begin_capture)(Stream, int mode) = nullptr;
  Result (*stream_end_capture)(Stream, Graph*) = nullptr;
  Result (*event_create)(Event*, unsigned flags) = nullptr;
  Result (*event_destroy)(Event) = nullptr;
  Result (*event_record)(Event, Stream) = nullptr;
  Result (*event_query)(Event) = nullptr;
  Result (*event_synchronize)(Event) = nullptr;
  Result (*event_elapsed)(float* ms, Event, Event) = nullptr;
  // The first since 11.4; the second, for drivers before, may be null.
  Result (*graph_instantiate)(GraphExec*, Graph, unsigned long long flags) = nullptr;
  Result (*graph_instantiate_v2)(GraphExec*, Graph, void* node, char* log,
                                 size_t log_bytes) = nullptr;
  Result (*graph_destroy)(Graph) = nullptr;
  Result (*graph_exec_destroy)(GraphExec) = nullptr;
  Result (*graph_launch)(GraphExec, Stream) = nullptr;

  // "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered"
  std::string words(Result result) const;
};

// A result after which nothing more works in this process's context.
bool is_sticky(Result result);

// Why libcuda cannot be used, in the words of Discovery.
struct Absence {
  std::string reason;
  std::string next_step;
};

// Opens the driver's library (PRISM_CUDA_LIBRARY, else the system's) and calls cuInit. Null with
// *absence filled in.
std::shared_ptr<Api> open_api(Absence* absence);

// kDeviceLost, kOutOfMemory or kDriver, by the result.
Error driver_error(const Api& api, Result result, const std::string& what);
inline void check(const Api& api, Result result, const char* what) {
  if (result != kSuccess) throw driver_error(api, result, what);
}

}  // namespace prism::cuda
