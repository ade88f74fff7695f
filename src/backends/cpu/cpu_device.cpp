// Allocates host memory and makes programs and queues for the CPU device.
#include "backends/cpu/cpu_device.h"

#include <new>

#include <fmt/format.h>

#include "backends/cpu/cpu_queue.h"
#include "base/system/host_memory.h"
#include "base/system/system_info.h"
#include "prism/error.h"

namespace prism::cpu {
namespace {

constexpr std::align_val_t kAlignment{64};  // a cache line

// Smaller allocations do not query free memory, because the query takes longer than they do.
constexpr uint64_t kAskBytes = 16ull << 20;

ir::Capabilities capabilities() {
  ir::Capabilities can;
  can.dialect = "interpreter";
  can.storage_bf16 = can.math_f16 = can.math_i64 = can.math_f64 = true;
  can.precise_math = can.dot4 = can.float_atomics = can.async_copy = can.device_fence = true;
  can.subgroup_size = 32;
  can.subgroup_sizes = {1, 2, 4, 8, 16, 32, 64};
  for (uint16_t k : {uint16_t{16}, uint16_t{32}}) {
    can.fragments.push_back({DType::f16, DType::f32, 16, 16, k});
    can.fragments.push_back({DType::bf16, DType::f32, 16, 16, k});
    can.fragments.push_back({DType::i8, DType::i32, 16, 16, k});
  }
  can.max_group_size = 1024;
  can.shared_bytes = 1u << 20;
  can.max_buffers = 64;
  can.max_binding_bytes = 1ull << 62;
  can.max_groups = {0xffffffffu, 0xffffffffu, 0xffffffffu};
  return can;
}

}  // namespace

Memory::~Memory() { ::operator delete(data_, kAlignment); }

Program::Program(const ir::Kernel& kernel, const ir::InterpretOptions& options)
    : name_(kernel.name), interpreter_(kernel, options) {}

Device::Device() : checked_(ir::kernels_are_checked()) {
  const ProcessorInfo processor = processor_info();
  info_.id = info_.card = "cpu:0";
  info_.backend = "cpu";
  info_.name = processor.name;
  info_.vendor = processor.vendor;
  // Measurements are stored per driver; a separate name keeps those of checked mode apart.
  info_.driver = checked_ ? "kernel interpreter, checked" : "kernel interpreter";
  info_.total_bytes = host_memory().total_bytes;
  info_.unified = true;
  info_.is_cpu = true;
  info_.compute_units = processor.threads;
  info_.capabilities = capabilities();
  pool_ = std::make_shared<ThreadPool>(processor.threads);
}

uint64_t Device::free_bytes() { return host_memory().available_bytes; }

// Checks free memory first: a system that overcommits would kill the process later, when it first
// writes to the pages.
std::unique_ptr<MemoryDriver> Device::allocate(uint64_t bytes) {
  std::byte* data = nullptr;
  uint64_t free = 0;
  const bool large = bytes >= kAskBytes;
  if (large) free = free_bytes();
  if (!large || free == 0 || bytes <= free)
    data = static_cast<std::byte*>(
        ::operator new(bytes ? static_cast<size_t>(bytes) : 1, kAlignment, std::nothrow));
  if (!data)
    throw Error(
        ErrorCode::kOutOfMemory,
        fmt::format("{} ({}): {} bytes were asked, {} of {} are free; use smaller buffers or free "
                    "others first",
                    info_.id, info_.name, bytes, large ? free : free_bytes(), info_.total_bytes));
  return std::make_unique<Memory>(data, bytes);
}

std::unique_ptr<ProgramDriver> Device::compile(const ir::Kernel& lowered) {
  return std::make_unique<Program>(
      lowered, ir::InterpretOptions{info_.capabilities.subgroup_size, checked_});
}

std::unique_ptr<QueueDriver> Device::make_queue() { return std::make_unique<Queue>(pool_); }

}  // namespace prism::cpu
