// Metal device capabilities, memory, and compilation of text to pipelines.
#include "backends/metal/metal_device.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/system/host_memory.h"
#include "base/units.h"
#include "print/printer.h"
#include "runtime/compile_error.h"

namespace prism::metal {
namespace {

constexpr uint32_t kBindings = 31 - 1;      // per kernel; the last slot holds the params
constexpr uint32_t kFirstWithMatrices = 7;  // family with simdgroup matrices and reductions

constexpr long kSafeMath = 0, kPreciseFunctions = 1;  // MTLMathMode, MTLMathFloatingPointFunctions

// Buffers are bound at multiples of 16; the skips cover the remainder.
constexpr const char* kCopyBytes = R"(#include <metal_stdlib>
using namespace metal;
struct prism_block_copy_bytes { uint from_skip; uint to_skip; uint bytes; };
kernel void copy_bytes(device const uchar* from [[buffer(0)]], device uchar* to [[buffer(1)]], constant prism_block_copy_bytes& params [[buffer(2)]],
                       uint3 group [[threadgroup_position_in_grid]], uint3 groups [[threadgroups_per_grid]], uint local [[thread_index_in_threadgroup]]) {
  const uint first = (group.x * 256u + local) * 16u, end = first + 16u;
  if (params.from_skip == 0u && params.to_skip == 0u && end <= params.bytes)
    *(device uint4*)(to + first) = *(device const uint4*)(from + first);
  else
    for (uint i = first; i < end && i < params.bytes; ++i) to[params.to_skip + i] = from[params.from_skip + i];
})";

DeviceInfo describe(const Api& api, Id device, const std::string& id) {
  DeviceInfo info;
  info.id = info.card = id;
  info.backend = "metal";
  info.name = api.text_of(api.name(device));
  info.vendor = info.name.substr(0, info.name.find_first_of(" ("));
  info.unified = api.has_unified_memory(device);
  info.total_bytes = api.working_set(device);
  // The newest Apple GPU family that the device supports; 0 for other vendors.
  uint32_t family = 0;
  while (family < 32 && api.supports_family(device, kApple1 + family)) ++family;
  const Id process = api.process_info(api.runtime.get_class("NSProcessInfo"));
  info.driver = fmt::format("Metal{}, macOS {}", family ? fmt::format(" (Apple {})", family) : "",
                            api.text_of(api.system_version(process)));

  ir::Capabilities& can = info.capabilities;
  can = typical_capabilities("metal");
  can.max_group_size = static_cast<uint32_t>(api.max_threads(device).width);
  can.shared_bytes = static_cast<uint32_t>(api.threadgroup_memory(device));
  can.max_buffers = kBindings;
  can.max_binding_bytes = api.max_buffer(device);
  // Kernels count lanes along x in 32 bits.
  can.max_groups = {0xffffffffu / can.max_group_size, 65535, 65535};
  // On AMD and Intel the simdgroup width varies from kernel to kernel.
  if (family < kFirstWithMatrices)
    can.subgroup_size = 0, can.subgroup_sizes.clear(), can.fragments.clear();
  // bfloat needs macOS 14, the first version that reports an architecture.
  if (!api.can(device, "architecture"))
    std::erase_if(can.fragments, [](const auto& f) { return f.operand == DType::bf16; });
  return info;
}

}  // namespace

DeviceOfMetal::DeviceOfMetal(std::shared_ptr<const Api> opened, Handle<Id> listed,
                             const std::string& id)
    : api(std::move(opened)), device(std::move(listed)), info_(describe(*api, device.get(), id)) {}

void DeviceOfMetal::check() const {
  if (!lost.empty())
    throw Error(ErrorCode::kDeviceLost, fmt::format("{}: the device is lost: {}", label(), lost));
}

Handle<Id> DeviceOfMetal::make_pipeline(const std::string& text, const std::string& entry,
                                        std::string* log) {
  const auto options = api->own(api->make_new(api->runtime.get_class("MTLCompileOptions")));
  // Fast math, the default, would reorder and contract.
  if (api->can(options.get(), "setMathMode:")) {
    api->set_math_mode(options.get(), kSafeMath);
    api->set_math_functions(options.get(), kPreciseFunctions);
  } else {
    api->set_fast_math(options.get(), false);
  }
  const auto source = api->make_string(text), name = api->make_string(entry);
  Id error = nullptr;
  const auto library =
      api->own(api->new_library(device.get(), source.get(), options.get(), &error));
  if (error || !library) *log = api->error_text(error);
  const auto function = api->own(api->new_function(library.get(), name.get()));
  if (library && !function) *log = "the compiled text has no function " + entry;
  if (!function) return {};
  error = nullptr;
  auto pipeline = api->own(api->new_pipeline(device.get(), function.get(), &error));
  if (!pipeline) *log = api->error_text(error);
  return pipeline;
}

const Pipeline& DeviceOfMetal::copy_bytes() {
  if (copy_bytes_.state) return copy_bytes_;
  std::string log;
  copy_bytes_ = {make_pipeline(kCopyBytes, "copy_bytes", &log), kCopyGroup};
  if (!copy_bytes_.state)
    throw Error(ErrorCode::kCompile, label() + ": the kernel that copies bytes: " + log);
  return copy_bytes_;
}

Memory::Memory(std::shared_ptr<DeviceOfMetal> on, uint64_t asked, UInteger storage)
    : device(std::move(on)), asked_bytes(asked) {
  const Api& api = *device->api;
  // Kernels load whole words, and Metal has no empty buffers.
  const UInteger whole = std::max<UInteger>(16, (asked + 15) / 16 * 16);
  buffer = api.own(api.new_buffer(device->device.get(), whole, storage));
  contents = storage == kShared ? static_cast<std::byte*>(api.contents(buffer.get())) : nullptr;
}

Memory::Memory(std::shared_ptr<DeviceOfMetal> on, std::span<std::byte> host)
    : device(std::move(on)), asked_bytes((host.size() + 3) / 4 * 4) {
  const Api& api = *device->api;
  const uint64_t page = page_bytes();
  start = reinterpret_cast<uintptr_t>(host.data()) % page;
  const UInteger whole = (start + host.size() + page - 1) / page * page;
  if (whole <= device->info().capabilities.max_binding_bytes)
    buffer = api.own(
        api.new_buffer_over(device->device.get(), host.data() - start, whole, kShared, nullptr));
  contents = buffer ? static_cast<std::byte*>(api.contents(buffer.get())) + start : nullptr;
}

uint64_t DeviceOfMetal::free_bytes() {
  check();
  const uint64_t used = std::min<uint64_t>(api->allocated(device.get()), info_.total_bytes);
  const uint64_t host = info_.unified ? host_memory().available_bytes : 0;
  return host ? std::min(info_.total_bytes - used, host) : info_.total_bytes - used;
}

std::unique_ptr<MemoryDriver> DeviceOfMetal::allocate(uint64_t bytes) {
  const auto pool = api->pool();
  check();
  const auto fail = [&](const std::string& why) {
    throw Error(ErrorCode::kOutOfMemory,
                fmt::format("{}: allocating {}: {} of {} are free: {}", label(), size_text(bytes),
                            size_text(free_bytes()), size_text(info_.total_bytes), why));
  };
  if (const uint64_t most = info_.capabilities.max_binding_bytes; bytes > most)
    fail(fmt::format("this device allows at most {} bytes per buffer", most));
  if (bytes > free_bytes()) fail("free memory, or use a smaller size or another device");
  auto memory =
      std::make_unique<Memory>(shared_from_this(), bytes, info_.unified ? kShared : kPrivate);
  if (!memory->buffer) fail("Metal returned no buffer");
  return memory;
}

// Kernels load up to 16 bytes at once.
std::unique_ptr<MemoryDriver> DeviceOfMetal::wrap(std::span<std::byte> host) {
  const auto pool = api->pool();
  const uint64_t used = api->allocated(device.get());
  if (!lost.empty() || !info_.unified || reinterpret_cast<uintptr_t>(host.data()) % 16 != 0 ||
      used + host.size() > info_.total_bytes)
    return nullptr;
  auto memory = std::make_unique<Memory>(shared_from_this(), host);
  return memory->buffer ? std::move(memory) : nullptr;
}

std::unique_ptr<ProgramDriver> DeviceOfMetal::compile(const ir::Kernel& lowered) {
  const auto pool = api->pool();
  check();
  const PrintedKernel printed = print(lowered, info_.capabilities);
  const KernelText text = kernel_text(info_, lowered, printed.text, "metal");
  auto program = std::make_unique<Program>();
  std::string log;
  program->device = shared_from_this();
  program->pipeline = {make_pipeline(text.text, printed.entry, &log), lowered.group_size};
  dump_log(text, log);
  const Id state = program->pipeline.state.get();
  if (!state) throw compile_error(info_, lowered, text, log);
  const UInteger threads = api->pipeline_threads(state), lanes = api->pipeline_width(state);
  if (threads < lowered.group_size || (lowered.subgroup_size && lanes != lowered.subgroup_size))
    throw compile_error(info_, lowered, text,
                        fmt::format("its pipeline supports groups of at most {} threads, in "
                                    "simdgroups of {}",
                                    threads, lanes));
  return program;
}

}  // namespace prism::metal
