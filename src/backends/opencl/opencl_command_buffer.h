// The cl_khr_command_buffer extension: driver-side recordings, where available and correct.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "backends/opencl/opencl_api.h"

namespace prism::opencl {

struct Context;

// One launch with its arguments set.
struct RecordedLaunch {
  cl_kernel kernel = nullptr;
  std::array<size_t, 3> lanes = {1, 1, 1};  // global size
  std::array<size_t, 3> group = {1, 1, 1};  // local size
};

class CommandBuffers {
 public:
  using Buffer = struct _cl_command_buffer_khr*;

  // Returns null if a function is missing or a test recording computes a wrong result.
  static std::unique_ptr<CommandBuffers> make_tested(const Context& context);

  // Records the launches in order for that queue; empty if the driver fails.
  Handle<Buffer> record(cl_command_queue queue, const std::vector<RecordedLaunch>& launches) const;
  cl_int enqueue(Buffer buffer, cl_event* event) const;
  // Whether a buffer may be enqueued again while it still runs.
  bool overlap() const { return overlap_; }

 private:
  CommandBuffers() = default;
  bool works(const Context& context) const;

  // Parameters whose types differ between versions of the extension are always passed as null.
  using Create = Buffer(CL_API_CALL*)(cl_uint, const cl_command_queue*, const cl_ulong*, cl_int*);
  using Finish = cl_int(CL_API_CALL*)(Buffer);
  using Enqueue = cl_int(CL_API_CALL*)(cl_uint, cl_command_queue*, Buffer, cl_uint, const cl_event*,
                                       cl_event*);
  using Launch = cl_int(CL_API_CALL*)(Buffer, cl_command_queue, const void*, cl_kernel, cl_uint,
                                      const size_t*, const size_t*, const size_t*, cl_uint,
                                      const cl_uint*, cl_uint*, void*);
  Create create_ = nullptr;
  Finish finalize_ = nullptr;
  Finish release_ = nullptr;
  Enqueue enqueue_ = nullptr;
  Launch launch_ = nullptr;
  bool overlap_ = false;
};

}  // namespace prism::opencl
