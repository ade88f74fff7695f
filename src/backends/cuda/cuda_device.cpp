// Description, memory and the making of programs, with compiled kernels kept on disk.
#include "backends/cuda/cuda_device.h"

#include <algorithm>
#include <cctype>
#include <limits>

#include <fmt/format.h>

#include "backends/cuda/cuda_queue.h"
#include "backends/cuda/nvml.h"
#include "base/cache.h"
#include "print/printer.h"
#include "runtime/compile_error.h"

namespace prism::cuda {
namespace {

// What a kernel may declare; beyond, the printer asks for the memory at the launch (extern
// __shared__).
constexpr uint64_t kStaticSharedBytes = 48 << 10;

int attribute(const Api& api, Ordinal ordinal, int which) {
  int value = 0;
  return api.device_attribute(&value, which, ordinal) == kSuccess ? value : 0;
}

// "0000:65:00.0", lower case, as every backend spells it. The driver pads the domain to eight
// digits on some systems.
std::string pci_address(const Api& api, Ordinal ordinal) {
  char text[64] = {};
  if (api.device_pci(text, sizeof(text), ordinal) != kSuccess) return "";
  std::string address = text;
  std::transform(address.begin(), address.end(), address.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  const size_t domain = address.find(':');
  if (domain != std::string::npos && domain > 4 && address.find_first_not_of('0') >= domain - 4)
    address.erase(0, domain - 4);
  return address;
}

ir::Capabilities capabilities_of(const Api& api, Ordinal ordinal, int capability) {
  ir::Capabilities can;
  can.dialect = "cuda";
  can.dialect_level = static_cast<uint32_t>(capability);
  can.storage_bf16 = true;
  can.math_f16 = false;  // the printer holds f16 values as f32: lowering rounds each result
  can.math_i64 = true;
  can.math_f64 = true;
  can.precise_math = true;
  can.dot4 = capability >= 61;
  can.float_atomics = true;
  can.async_copy = capability >= 80;
  // Recording overlapped launches into a graph needs CUDA 12.3.
  can.dependent_launch = capability >= 90 && api.version >= 12030 && api.launch_ex;
  can.subgroup_size = 32;
  can.subgroup_sizes = {32};
  if (capability >= 80)
    can.fragments = {{DType::f16, DType::f32, 16, 16, 16},
                     {DType::bf16, DType::f32, 16, 16, 16},
                     {DType::i8, DType::i32, 16, 16, 32}};
  can.fragment_layout = true;  // PTX fixes which lane holds which element
  can.max_group_size = static_cast<uint32_t>(attribute(api, ordinal, kMaxThreadsPerBlock));
  can.shared_bytes = static_cast<uint32_t>(std::max(attribute(api, ordinal, kSharedPerBlock),
                                                    attribute(api, ordinal, kSharedPerBlockOptIn)));
  can.max_binding_bytes = 1ull << 48;  // beyond any card's memory: nothing is split
  can.max_groups = {static_cast<uint32_t>(attribute(api, ordinal, kMaxGridX)),
                    static_cast<uint32_t>(attribute(api, ordinal, kMaxGridY)),
                    static_cast<uint32_t>(attribute(api, ordinal, kMaxGridZ))};
  return can;
}

std::string bytes_text(uint64_t bytes) {
  if (bytes < (1u << 20)) return fmt::format("{} bytes", bytes);
  return fmt::format("{:.2f} GB", static_cast<double>(bytes) / static_cast<double>(1u << 30));
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
  info.card = pci_address(api, ordinal);
  if (info.card.empty()) info.card = info.id;
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

CudaDevice::CudaDevice(std::shared_ptr<Api> api, Ordinal ordinal, DeviceInfo info,
                       std::shared_ptr<Nvrtc> compiler, Target target)
    : info_(std::move(info)),
      context_(std::make_shared<DeviceContext>(std::move(api), ordinal,
                                               fmt::format("{} ({})", info_.id, info_.name))),
      products_(std::make_shared<Cublas>(context_)),
      compiler_(std::move(compiler)),
      target_(std::move(target)) {}

uint64_t CudaDevice::free_bytes() {
  // A device that is only listed needs no context, which takes memory itself and which a busy card
  // may refuse. A slice of a card (MIG) has less memory than the card NVML speaks of: then only the
  // context knows.
  if (!context_->exists()) {
    const auto memory = nvml_memory(info_.card);
    if (memory && memory->total_bytes / 8 * 7 <= info_.total_bytes)
      return std::min(memory->free_bytes, info_.total_bytes);
  }
  const Current current(*context_);
  size_t free = 0, total = 0;
  const Result result = context_->api().memory_info(&free, &total);
  if (result != kSuccess)
    throw driver_error(context_->api(), result,
                       context_->device() + ": asking for its free memory");
  return free;
}

std::unique_ptr<MemoryDriver> CudaDevice::allocate(uint64_t bytes) {
  const Current current(*context_);
  const Api& api = context_->api();
  DevicePointer pointer = 0;
  // Whole 16-byte words, so that a load of words may touch the end of any buffer.
  const uint64_t rounded = std::max<uint64_t>((bytes + 15) / 16 * 16, 16);
  const Result result = rounded < bytes
                            ? kOutOfMemoryResult
                            : api.memory_allocate(&pointer, static_cast<size_t>(rounded));
  if (result == kOutOfMemoryResult) {
    size_t free = 0, total = 0;
    api.memory_info(&free, &total);
    throw Error(
        ErrorCode::kOutOfMemory,
        fmt::format("{}: allocating {} failed; {} of {} are free; use a smaller model or batch, or "
                    "another device",
                    context_->device(), bytes_text(bytes), bytes_text(free), bytes_text(total)));
  }
  if (result != kSuccess)
    throw driver_error(api, result,
                       fmt::format("{}: allocating {}", context_->device(), bytes_text(bytes)));
  return std::make_unique<CudaMemory>(context_, pointer, bytes);
}

std::unique_ptr<ProgramDriver> CudaDevice::compile(const ir::Kernel& lowered) {
  const PrintedKernel printed = print_cuda(lowered, info_.capabilities);
  const KernelText kernel = kernel_text(info_, lowered, printed.text, "cu");
  std::string key = fmt::format("nvrtc {} {}", compiler_->version(), target_.architecture);
  for (const char* option : Nvrtc::options()) key += std::string(" ") + option;
  key += "\n" + kernel.text;

  const Current current(*context_);
  const Api& api = context_->api();
  Module loaded = nullptr;
  // A binary that the driver refuses (of another driver's making, or damaged) is made anew.
  const auto cached = read_cached("cuda", key);
  if (!cached || api.module_load(&loaded, cached->data()) != kSuccess) {
    const Nvrtc::Compiled compiled = compiler_->compile(kernel.text, kernel.file, target_);
    dump_log(kernel, compiled.log);
    if (compiled.binary.empty()) throw compile_error(info_, lowered, kernel, compiled.log);
    const Result result = api.module_load(&loaded, compiled.binary.data());
    if (result != kSuccess)
      throw driver_error(api, result,
                         fmt::format("{}: loading kernel {} compiled by NVRTC {}.{} for {}",
                                     context_->device(), lowered.name, compiler_->version() / 1000,
                                     compiler_->version() % 1000 / 10, target_.architecture));
    write_cached("cuda", key, compiled.binary);
  }
  Handle<Module> module(loaded, [context = context_](Module m) {
    quietly(*context, [&](const Api& a) { a.module_unload(m); });
  });
  Function function = nullptr;
  if (const Result result = api.module_function(&function, loaded, printed.entry.c_str()))
    throw driver_error(
        api, result,
        fmt::format("{}: looking for {} in its compiled text", context_->device(), printed.entry));

  uint32_t dynamic_bytes = 0;
  if (lowered.shared_bytes() > kStaticSharedBytes) {
    dynamic_bytes = static_cast<uint32_t>(lowered.shared_bytes());
    const Result result = api.function_set_attribute(function, kFunctionMaxDynamicShared,
                                                     static_cast<int>(dynamic_bytes));
    if (result != kSuccess)
      throw driver_error(api, result,
                         fmt::format("{}: giving kernel {} {} bytes of shared memory",
                                     context_->device(), lowered.name, dynamic_bytes));
  }
  bool waits = false;
  ir::walk(lowered.body, [&](const ir::Inst& inst) { waits |= inst.op == ir::Op::wait_previous; });
  return std::make_unique<CudaProgram>(std::move(module), function, dynamic_bytes, waits,
                                       lowered.name);
}

std::unique_ptr<QueueDriver> CudaDevice::make_queue() {
  return std::make_unique<CudaQueue>(context_, products_, info_.capabilities.dependent_launch);
}

}  // namespace prism::cuda
