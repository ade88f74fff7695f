// OpenCL contexts and memory.
#include "backends/opencl/opencl_device.h"

#include <algorithm>

#include <fmt/format.h>

#include "backends/opencl/opencl_command_buffer.h"
#include "backends/opencl/opencl_program.h"
#include "backends/opencl/opencl_queue.h"
#include "base/system/host_memory.h"

namespace prism::opencl {
namespace {

// Kernels read buffers in words and in vectors of four words, whatever the buffer's length.
constexpr uint64_t kGranule = 16;

uint64_t rounded_up(uint64_t bytes) {
  return std::max(kGranule, (bytes + kGranule - 1) / kGranule * kGranule);
}

}  // namespace

Context::Context(std::shared_ptr<const Api> api_, cl_platform_id platform_, cl_device_id device_,
                 DeviceFacts facts_)
    : api(std::move(api_)), platform(platform_), device(device_), facts(std::move(facts_)) {
  const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                              reinterpret_cast<cl_context_properties>(platform), 0};
  cl_int code = CL_SUCCESS;
  cl_context made = api->clCreateContext(properties, 1, &device, nullptr, nullptr, &code);
  check(code, label() + ": opening the device");
  context = {made, [a = api](cl_context c) { a->clReleaseContext(c); }};
}

Context::~Context() = default;

std::string Context::label() const { return facts.info.id + " (" + facts.info.name + ")"; }

Handle<cl_command_queue> Context::make_queue() const {
  cl_int code = CL_SUCCESS;
  cl_command_queue queue =
      api->clCreateCommandQueue(context.get(), device, CL_QUEUE_PROFILING_ENABLE, &code);
  check(code, label() + ": making a queue");
  return {queue, [a = api](cl_command_queue q) { a->clReleaseCommandQueue(q); }};
}

const CommandBuffers* Context::command_buffers() {
  std::call_once(command_buffers_tried_, [&] {
    if (facts.has_command_buffers) command_buffers_ = CommandBuffers::make_tested(*this);
  });
  return command_buffers_.get();
}

Memory::Memory(std::shared_ptr<Context> context, Handle<cl_mem> buffer, uint64_t bytes,
               uint64_t allocated)
    : context_(std::move(context)),
      buffer_(std::move(buffer)),
      bytes_(bytes),
      allocated_(allocated) {
  context_->allocated_bytes += allocated_;
}

Memory::~Memory() { context_->allocated_bytes -= allocated_; }

void Memory::check_range(const char* doing, uint64_t offset, uint64_t bytes) const {
  if (offset <= bytes_ && bytes <= bytes_ - offset) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: {} {} bytes at offset {} of a buffer of {} bytes", context_->label(),
                          doing, bytes, offset, bytes_));
}

Device::Device(std::shared_ptr<const Api> api, cl_platform_id platform, cl_device_id device,
               DeviceFacts facts)
    : api_(std::move(api)), platform_(platform), device_(device), facts_(std::move(facts)) {}

const std::shared_ptr<Context>& Device::context() {
  const std::lock_guard guard(lock_);
  if (!context_) context_ = std::make_shared<Context>(api_, platform_, device_, facts_);
  return context_;
}

uint64_t Device::allocated_bytes() {
  const std::lock_guard guard(lock_);
  return context_ ? context_->allocated_bytes.load() : 0;
}

uint64_t Device::free_bytes() {
  if (facts_.tells_free_memory)
    if (const uint64_t told = told_free_bytes(*api_, device_)) return told;
  const uint64_t used = allocated_bytes();
  uint64_t free = facts_.info.total_bytes > used ? facts_.info.total_bytes - used : 0;
  if (facts_.info.software)
    if (const uint64_t available = host_memory().available_bytes) free = std::min(free, available);
  return free;
}

std::unique_ptr<MemoryDriver> Device::allocate(uint64_t bytes) {
  const std::shared_ptr<Context>& owner = context();
  const auto fail = [&](const std::string& why) {
    throw Error(ErrorCode::kOutOfMemory,
                fmt::format("{}: asked for {} bytes, {} of {} are free: {}", owner->label(), bytes,
                            free_bytes(), facts_.info.total_bytes, why));
  };
  const uint64_t size = bytes > UINT64_MAX - kGranule ? bytes : rounded_up(bytes);
  if (size > free_bytes()) fail("free memory, or use a smaller size or another device");
  cl_int code = CL_SUCCESS;
  // Many drivers allow larger buffers than the limit they report, so just try.
  cl_mem made = api_->clCreateBuffer(owner->context.get(), CL_MEM_READ_WRITE,
                                     static_cast<size_t>(size), nullptr, &code);
  if (code != CL_SUCCESS) {
    fail(size > facts_.max_allocation
             ? fmt::format("this driver allows at most {} bytes per buffer", facts_.max_allocation)
             : fmt::format("the driver answered {} ({})", code_name(code), code));
  }
  Handle<cl_mem> buffer(made, [a = api_](cl_mem m) { a->clReleaseMemObject(m); });
  // Drivers allocate lazily; the fill forces a failure here, where the size is known.
  const std::lock_guard guard(lock_);
  if (!allocation_queue_) allocation_queue_ = owner->make_queue();
  const cl_uint zero = 0;
  code = api_->clEnqueueFillBuffer(allocation_queue_.get(), made, &zero, sizeof(zero), 0,
                                   sizeof(zero), 0, nullptr, nullptr);
  if (code == CL_SUCCESS) code = api_->clFinish(allocation_queue_.get());
  if (code != CL_SUCCESS) {
    throw Error(ErrorCode::kOutOfMemory,
                fmt::format("{}: asked for {} bytes of {}, {} allocated by this process: the "
                            "driver answered {} ({})",
                            owner->label(), bytes, facts_.info.total_bytes,
                            owner->allocated_bytes.load(), code_name(code), code));
  }
  return std::make_unique<Memory>(owner, std::move(buffer), bytes, size);
}

std::unique_ptr<ProgramDriver> Device::compile(const ir::Kernel& lowered) {
  return compile_program(context(), lowered);
}

std::vector<std::unique_ptr<ProgramDriver>> Device::compile_together(
    std::span<const ir::Kernel> lowered) {
  return compile_programs(context(), lowered);
}

std::unique_ptr<QueueDriver> Device::make_queue() { return std::make_unique<Queue>(context()); }

}  // namespace prism::opencl
