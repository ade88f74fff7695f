// The functions of NVIDIA's driver that Prism calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "backends/cuda/cuda_abi.h"
#include "backends/gpu_runtime/gpu_api.h"

namespace prism::cuda {

using gpu::Absence;
using gpu::driver_error;
using gpu::kNoDevice;
using gpu::kSuccess;
using gpu::Module;

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
  Result (*memory_range)(DevicePointer* start, size_t* bytes, DevicePointer) = nullptr;
  Result (*stream_wait_event)(Stream, Event, unsigned flags) = nullptr;
  Result (*function_set_attribute)(Function, int attribute, int value) = nullptr;
  Result (*launch_ex)(const LaunchConfig*, Function, void** params,
                      void** extra) = nullptr;  // since 11.8; may be null

  std::string words(Result result) const override;
};

// Opens the driver's library (PRISM_CUDA_LIBRARY, else the system's) and calls cuInit. Returns null
// and fills *absence on failure.
std::shared_ptr<Api> open_api(Absence* absence);

}  // namespace prism::cuda
