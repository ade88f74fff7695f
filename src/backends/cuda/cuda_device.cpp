// Device description, memory and program creation, with compiled kernels cached on disk.
#include "backends/cuda/cuda_device.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "backends/cuda/cuda_queue.h"
#include "backends/cuda/nvml.h"
#include "print/printer.h"

namespace prism::cuda {
namespace {

// Limit for static shared memory; beyond it the printer uses dynamic memory (extern __shared__).
constexpr uint64_t kStaticSharedBytes = 48 << 10;

int attribute(const Api& api, Ordinal ordinal, int which) {
  int value = 0;
  return api.device_attribute(&value, which, ordinal) == kSuccess ? value : 0;
}

ir::Capabilities capabilities_of(const Api& api, Ordinal ordinal, int capability) {
  ir::Capabilities can;
  can.dialect = "cuda";
  can.dialect_level = static_cast<uint32_t>(capability);
  can.storage_bf16 = true;
  can.math_f16 = false;  // the printer keeps f16 values in f32; lowering rounds each result
  can.math_i64 = true;
  can.math_f64 = true;
  can.precise_math = true;
  can.dot4 = capability >= 61;
  can.float_atomics = can.device_fence = true;
  can.async_copy = capability >= 80;
  // Capturing overlapped launches into a graph needs CUDA 12.3.
  can.dependent_launch = capability >= 90 && api.version >= 12030 && api.launch_ex;
  can.subgroup_sizes = {can.subgroup_size = 32};
  if (capability >= 80)
    can.fragments = {{DType::f16, DType::f32, 16, 16, 16},
                     {DType::bf16, DType::f32, 16, 16, 16},
                     {DType::i8, DType::i32, 16, 16, 32}};
  can.fragment_layout = true;  // PTX defines which lane holds which element
  can.max_group_size = static_cast<uint32_t>(attribute(api, ordinal, kMaxThreadsPerBlock));
  can.shared_bytes = static_cast<uint32_t>(std::max(attribute(api, ordinal, kSharedPerBlock),
                                                    attribute(api, ordinal, kSharedPerBlockOptIn)));
  can.max_buffers = 64;                // 8-byte arguments, in at most 4 KiB
  can.max_binding_bytes = 1ull << 48;  // larger than any card's memory, so nothing is split
  can.max_groups = {static_cast<uint32_t>(attribute(api, ordinal, kMaxGridX)),
                    static_cast<uint32_t>(attribute(api, ordinal, kMaxGridY)),
                    static_cast<uint32_t>(attribute(api, ordinal, kMaxGridZ))};
  return can;
}

}  // namespace

int compute_capability(const Api& api, Ordinal ordinal) {
  return attribute(api, ordinal, kCapabilityMajor) * 10 + attribute(api, ordinal, kCapabilityMinor);
}

DeviceInfo describe_device(const Api& api, Ordinal ordinal, int index,
                           const std::string& kernel_driver) {
  DeviceInfo info;
  info.id = fmt::format("cuda:{}", index);
  info.backend = "cuda";
  char name[256] = {};
  info.name = api.device_name(name, sizeof(name) - 1, ordinal) == kSuccess ? name : "NVIDIA GPU";
  info.vendor = "NVIDIA";
  char address[64] = {};
  info.card = api.device_pci(address, sizeof(address), ordinal) == kSuccess
                  ? gpu::pci_address(address)
                  : info.id;
  info.driver =
      fmt::format("NVIDIA {}{}CUDA {}.{}", kernel_driver, kernel_driver.empty() ? "" : ", ",
                  api.version / 1000, api.version % 1000 / 10);
  size_t total = 0;
  if (api.device_total(&total, ordinal) == kSuccess) info.total_bytes = total;
  info.unified = attribute(api, ordinal, kIntegrated) != 0;
  info.compute_units = static_cast<uint32_t>(attribute(api, ordinal, kMultiprocessors));
  info.capabilities = capabilities_of(api, ordinal, compute_capability(api, ordinal));
  return info;
}

CudaDevice::CudaDevice(std::shared_ptr<Api> api, Ordinal ordinal, DeviceInfo device,
                       std::shared_ptr<Nvrtc> compiler, Target target)
    : GpuDevice(std::move(device)),
      ordinal_(ordinal),
      context_(std::make_shared<CudaContext>(std::move(api), ordinal,
                                             fmt::format("{} ({})", info().id, info().name))),
      products_(std::make_shared<Cublas>(context_)),
      compiler_(std::move(compiler)),
      target_(std::move(target)) {}

uint64_t CudaDevice::free_bytes() {
  // Listing a device must not create a context: that takes memory, and a busy card may refuse it. A
  // MIG slice has less memory than NVML reports for the card, so there only the context knows.
  if (!context_->exists()) {
    const auto memory = nvml_memory(info().card);
    if (memory && memory->total_bytes / 8 * 7 <= info().total_bytes)
      return std::min(memory->free_bytes, info().total_bytes);
  }
  return GpuDevice::free_bytes();
}

std::unique_ptr<ProgramDriver> CudaDevice::compile(const ir::Kernel& lowered) {
  const PrintedKernel printed = print_cuda(lowered, info().capabilities);
  const KernelText kernel = kernel_text(info(), lowered, printed.text, "cu");
  std::string options = fmt::format("nvrtc {} {}", compiler_->version(), target_.architecture);
  for (const char* option : Nvrtc::options()) options += std::string(" ") + option;
  const std::string by = fmt::format("NVRTC {}.{} for {}", compiler_->version() / 1000,
                                     compiler_->version() % 1000 / 10, target_.architecture);

  const Current current(*context_);
  Loaded program = load(lowered, kernel, printed.entry, options, by,
                        [&] { return compiler_->compile(kernel.text, kernel.file, target_); });
  uint32_t dynamic_bytes = 0;
  if (lowered.shared_bytes() > kStaticSharedBytes) {
    dynamic_bytes = static_cast<uint32_t>(lowered.shared_bytes());
    const Api& api = context_->api();
    const Result result = api.function_set_attribute(program.function, kFunctionMaxDynamicShared,
                                                     static_cast<int>(dynamic_bytes));
    if (result != kSuccess)
      throw driver_error(api, result,
                         fmt::format("{}: giving kernel {} {} bytes of shared memory",
                                     context_->device(), lowered.name, dynamic_bytes));
  }
  bool waits = false;
  ir::walk(lowered.body, [&](const ir::Inst& inst) { waits |= inst.op == ir::Op::wait_previous; });
  return std::make_unique<gpu::GpuProgram>(std::move(program.module), program.function,
                                           dynamic_bytes, waits, lowered.name);
}

std::unique_ptr<MemoryDriver> CudaDevice::wrap(std::span<std::byte> memory) {
  std::unique_ptr<MemoryDriver> wrapped;
  quietly(*context_, [&](const gpu::Api&) {
    const auto first = reinterpret_cast<DevicePointer>(memory.data());
    DevicePointer start = 0;
    size_t bytes = 0;
    if (context_->api().memory_range(&start, &bytes, first) == kSuccess &&
        first + memory.size() <= start + bytes)
      wrapped = std::make_unique<gpu::GpuMemory>(context_, first, memory.size(), false);
  });
  return wrapped;
}

void* CudaDevice::address(MemoryDriver& memory) const {
  return reinterpret_cast<void*>(gpu::address(memory, 0));
}

uintptr_t CudaDevice::stream(QueueDriver& queue) const {
  return reinterpret_cast<uintptr_t>(static_cast<CudaQueue&>(queue).stream());
}

void CudaDevice::order(uintptr_t earlier, uintptr_t later) {
  const Current current(*context_);
  const Api& api = context_->api();
  Event created = nullptr;
  gpu::check(api, api.event_create(&created, gpu::kEventWithoutTiming), "creating an event");
  const Handle<Event> event(created, [&api](Event e) { api.event_destroy(e); });
  gpu::check(api, api.event_record(created, reinterpret_cast<Stream>(earlier)),
             "recording an event");
  gpu::check(api, api.stream_wait_event(reinterpret_cast<Stream>(later), created, 0),
             "waiting for another stream");
}

std::unique_ptr<QueueDriver> CudaDevice::make_queue() {
  return std::make_unique<CudaQueue>(context_, products_, info().capabilities.dependent_launch);
}

}  // namespace prism::cuda
