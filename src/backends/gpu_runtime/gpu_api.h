// The common part of the CUDA and HIP driver interfaces. HIP mirrors CUDA: the same calls and
// results under other names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/system/dynamic_library.h"
#include "prism/error.h"

namespace prism::gpu {

using Result = int;
using DevicePointer = unsigned long long;
using Module = struct ModuleTag*;
using Function = struct FunctionTag*;
using Stream = struct StreamTag*;
using Event = struct EventTag*;
using Graph = struct GraphTag*;
using GraphExec = struct GraphExecTag*;

inline constexpr Result kSuccess = 0;
inline constexpr Result kOutOfMemoryResult = 2;
inline constexpr Result kDeviceUnavailable = 46;
inline constexpr Result kNoDevice = 100;
inline constexpr Result kNotReady = 600;
inline constexpr Result kUnknown = 999;

inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kHostAllocPortable = 1;
inline constexpr unsigned kEventWithoutTiming = 2;
inline constexpr int kCaptureRelaxed = 2;

// Filled by each backend with its driver's functions.
struct Api {
  virtual ~Api() = default;
  // "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered"
  virtual std::string words(Result result) const = 0;

  DynamicLibrary library;
  int version = 0;  // in the driver's format

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
  Result (*launch)(Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   unsigned shared, Stream, void** params, void** extra) = nullptr;
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
  // One of them may be null: the first is newer.
  Result (*graph_instantiate)(GraphExec*, Graph, unsigned long long flags) = nullptr;
  Result (*graph_instantiate_v2)(GraphExec*, Graph, void* node, char* log,
                                 size_t log_bytes) = nullptr;
  Result (*graph_destroy)(Graph) = nullptr;
  Result (*graph_exec_destroy)(GraphExec) = nullptr;
  Result (*graph_launch)(GraphExec, Stream) = nullptr;
};

// Why a driver cannot be used, in the terms of Discovery.
struct Absence {
  std::string reason;
  std::string next_step;
};

// Whether nothing works in this process after this result.
bool is_sticky(Result result);

// kDeviceLost, kOutOfMemory or kDriver, depending on the result.
Error driver_error(const Api& api, Result result, const std::string& what);
inline void check(const Api& api, Result result, const char* what) {
  if (result != kSuccess) throw driver_error(api, result, what);
}

}  // namespace prism::gpu
