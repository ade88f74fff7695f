// The C interface of the SYCL plug-in, which is built separately against SYCL's headers.
#pragma once

#include <cstddef>
#include <cstdint>

// Every function returns null, or an error message that stays valid until the thread's next call.
extern "C" {

// The name of the device that programs run on: Intel's OpenCL CPU runtime.
using PrismSyclDevice = const char*(const char** name);

// Compiles SYCL text; *log points at the compiler's output (valid like an error), *program must be
// released.
using PrismSyclCompile = const char*(const char* text, const char* const* options,
                                     size_t option_count, void** program, const char** log);
using PrismSyclRelease = void(void* program);

struct PrismSyclLaunch {
  const char* entry;
  int dimensions;          // 1 or 3, as in the text's nd_range_kernel<...>
  uint32_t groups[3];      // x, y, z; with three dimensions x is SYCL's dimension 2
  uint32_t group_size[3];  // x, y, z
  void* const* buffers;    // copied in before the launch and out after it
  const size_t* buffer_bytes;
  size_t buffer_count;
  const uint32_t* params;  // after the buffers, 32 bits each
  size_t param_count;
};
using PrismSyclRun = const char*(void* program, const PrismSyclLaunch* launch);

}  // extern "C"
