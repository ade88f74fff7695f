// Loads the extension's functions, tests them once, and records with them.
#include "backends/opencl/opencl_command_buffer.h"

#include "backends/opencl/opencl_device.h"
#include "backends/opencl/opencl_program.h"

namespace prism::opencl {
namespace {

constexpr cl_ulong kFlags = 0x1293;
constexpr cl_ulong kSimultaneousUse = 1;

template <class Function>
bool look_up(const Context& context, const char* name, Function& function) {
  function = reinterpret_cast<Function>(
      context.api->clGetExtensionFunctionAddressForPlatform(context.platform, name));
  return function != nullptr;
}

}  // namespace

std::unique_ptr<CommandBuffers> CommandBuffers::make_tested(const Context& context) {
  std::unique_ptr<CommandBuffers> made(new CommandBuffers);
  if (!look_up(context, "clCreateCommandBufferKHR", made->create_) ||
      !look_up(context, "clFinalizeCommandBufferKHR", made->finalize_) ||
      !look_up(context, "clReleaseCommandBufferKHR", made->release_) ||
      !look_up(context, "clEnqueueCommandBufferKHR", made->enqueue_) ||
      !look_up(context, "clCommandNDRangeKernelKHR", made->launch_))
    return nullptr;
  made->overlap_ = context.facts.command_buffers_overlap;
  try {
    return made->works(context) ? std::move(made) : nullptr;
  } catch (const Error&) {
    return nullptr;  // fall back to the plain loop
  }
}

Handle<CommandBuffers::Buffer> CommandBuffers::record(
    cl_command_queue queue, const std::vector<RecordedLaunch>& launches) const {
  const cl_ulong properties[] = {kFlags, kSimultaneousUse, 0};
  cl_int code = CL_SUCCESS;
  Handle<Buffer> buffer(create_(1, &queue, overlap_ ? properties : nullptr, &code),
                        [release = release_](Buffer b) { release(b); });
  if (code != CL_SUCCESS || !buffer) return {};
  cl_uint previous = 0;
  bool first = true;
  for (const RecordedLaunch& launch : launches) {
    cl_uint point = 0;
    // Explicit dependencies: not every driver derives the order from an in-order queue.
    if (launch_(buffer.get(), nullptr, nullptr, launch.kernel, 3, nullptr, launch.lanes.data(),
                launch.group.data(), first ? 0 : 1, first ? nullptr : &previous, &point,
                nullptr) != CL_SUCCESS)
      return {};
    previous = point;
    first = false;
  }
  if (finalize_(buffer.get()) != CL_SUCCESS) return {};
  return buffer;
}

cl_int CommandBuffers::enqueue(Buffer buffer, cl_event* event) const {
  return enqueue_(0, nullptr, buffer, 0, nullptr, event);
}

// Runs three dependent steps, recorded once and enqueued twice, whose result depends on their
// order.
bool CommandBuffers::works(const Context& context) const {
  const Api& api = *context.api;
  std::string log;
  auto program = build_text(context,
                            "__kernel void prism_step(__global uint* x, uint a) {\n"
                            "  x[get_global_id(0)] = x[get_global_id(0)] * a + 1u;\n}\n",
                            &log);
  if (!program) return false;
  constexpr size_t kLanes = 64;
  cl_int code = CL_SUCCESS;
  Handle<cl_mem> memory(api.clCreateBuffer(context.context.get(), CL_MEM_READ_WRITE,
                                           kLanes * sizeof(cl_uint), nullptr, &code),
                        [&api](cl_mem m) { api.clReleaseMemObject(m); });
  if (code != CL_SUCCESS) return false;
  const auto queue = context.make_queue();
  const cl_uint zero = 0;
  if (api.clEnqueueFillBuffer(queue.get(), memory.get(), &zero, sizeof(zero), 0,
                              kLanes * sizeof(zero), 0, nullptr, nullptr) != CL_SUCCESS)
    return false;
  std::vector<Handle<cl_kernel>> kernels;
  std::vector<RecordedLaunch> launches;
  cl_uint expected = 0;
  for (cl_uint factor : {3u, 5u, 7u}) {
    kernels.emplace_back(api.clCreateKernel(program.get(), "prism_step", &code),
                         [&api](cl_kernel k) { api.clReleaseKernel(k); });
    if (code != CL_SUCCESS) return false;
    const cl_mem argument = memory.get();
    if (api.clSetKernelArg(kernels.back().get(), 0, sizeof(argument), &argument) != CL_SUCCESS ||
        api.clSetKernelArg(kernels.back().get(), 1, sizeof(factor), &factor) != CL_SUCCESS)
      return false;
    launches.push_back({kernels.back().get(), {kLanes, 1, 1}, {kLanes / 4, 1, 1}});
  }
  for (int round = 0; round < 2; ++round)
    for (cl_uint factor : {3u, 5u, 7u}) expected = expected * factor + 1;
  const auto buffer = record(queue.get(), launches);
  if (!buffer) return false;
  for (int round = 0; round < 2; ++round) {
    if (enqueue(buffer.get(), nullptr) != CL_SUCCESS) return false;
    if (!overlap_ && api.clFinish(queue.get()) != CL_SUCCESS) return false;
  }
  std::array<cl_uint, kLanes> result{};
  if (api.clEnqueueReadBuffer(queue.get(), memory.get(), CL_TRUE, 0, sizeof(result), result.data(),
                              0, nullptr, nullptr) != CL_SUCCESS)
    return false;
  for (cl_uint value : result)
    if (value != expected) return false;
  return true;
}

}  // namespace prism::opencl
