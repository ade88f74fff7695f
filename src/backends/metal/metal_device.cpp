// What a device says of itself as capabilities; memory; text to pipelines.
#include "backends/metal/metal_device.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/host_memory.h"
#include "print/printer.h"
#include "runtime/compile_error.h"

namespace prism::metal {
namespace {

constexpr uint32_t kLanes = 32;             // of a simdgroup, on all of Apple's own GPUs
constexpr uint32_t kBindings = 31 - 1;      // of a kernel; the last one holds the params
constexpr uint32_t kFirstWithMatrices = 7;  // family: simdgroup matrices and reductions
constexpr UInteger kCopyGroup = 256;

constexpr const char* kCopyBytes = R"(#include <metal_stdlib>
using namespace metal;
struct prism_block_copy_bytes { uint bytes; };
kernel void copy_bytes(device const uchar* from [[buffer(0)]], device uchar* to [[buffer(1)]],
                       constant prism_block_copy_bytes& prism_params [[buffer(2)]],
                       uint3 prism_group [[threadgroup_position_in_grid]],
                       uint3 prism_groups [[threadgroups_per_grid]],
                       uint prism_local [[thread_index_in_threadgroup]]) {
  const uint i = prism_group.x * 256u + prism_local;
  if (i < prism_params.bytes) to[i] = from[i];
}
)";

// The newest family of Apple's own GPUs that the device belongs to; 0 for those of others.
uint32_t apple_family(const Api& api, Id device) {
  uint32_t family = 0;
  while (family < 32 && api.supports_family(device, kApple1 + family)) ++family;
  return family;
}

}  // namespace

DeviceInfo describe(const Api& api, Id device, const std::string& id) {
  DeviceInfo info;
  info.id = info.card = id;
  info.backend = "metal";
  info.name = api.text_of(api.name(device));
  info.vendor = info.name.substr(0, info.name.find_first_of(" ("));
  info.unified = api.has_unified_memory(device);
  info.total_bytes = api.working_set(device);
  const uint32_t family = apple_family(api, device);
  const Id process = api.process_info(api.runtime.get_class("NSProcessInfo"));
  info.driver = fmt::format("Metal{}, macOS {}", family ? fmt::format(" (Apple {})", family) : "",
                            api.text_of(api.system_version(process)));

  ir::Capabilities& can = info.capabilities;
  can = typical_capabilities("metal");
  can.max_group_size = static_cast<uint32_t>(api.max_threads(device).width);
  can.shared_bytes = static_cast<uint32_t>(api.threadgroup_memory(device));
  can.max_buffers = kBindings;
  can.max_binding_bytes = api.max_buffer(device);
  // A kernel counts its lanes along x in 32 bits.
  can.max_groups = {0xffffffffu / can.max_group_size, 65535, 65535};
  // The lanes of AMD's and Intel's simdgroups differ from kernel to kernel.
  if (family < kFirstWithMatrices) {
    can.subgroup_size = 0, can.subgroup_sizes.clear();
    can.fragments.clear();
  }
  // bfloat came with macOS 14, which is also the first to tell an architecture.
  if (!api.can(device, "architecture"))
    std::erase_if(can.fragments, [](const auto& f) { return f.operand == DType::bf16; });
  return info;
}

Context::Context(std::shared_ptr<const Api> the_api, Handle<Id> the_device, DeviceInfo the_info)
    : api(std::move(the_api)), device(std::move(the_device)), info(std::move(the_info)) {}

void Context::check() const {
  if (!lost.empty())
    throw Error(ErrorCode::kDeviceLost, fmt::format("{}: the device is lost: {}", label(), lost));
}

Handle<Id> Context::compile(const std::string& text, const std::string& entry,
                            std::string* log) const {
  const auto options = api->make("MTLCompileOptions");
  // Fast math, on by default, would reorder and contract.
  if (api->can(options.get(), "setMathMode:"))
    api->set_math_mode(options.get(), 0);
  else
    api->set_fast_math(options.get(), false);
  const auto source = api->make_string(text), name = api->make_string(entry);
  Id error = nullptr;
  const auto library =
      api->own(api->new_library(device.get(), source.get(), options.get(), &error));
  if (error) *log = api->error_text(error);
  if (!library) {
    if (log->empty()) *log = api->error_text(nullptr);
    return {};
  }
  const auto function = api->own(api->new_function(library.get(), name.get()));
  if (!function) {
    *log = fmt::format("the compiled text has no function {}\n{}", entry, *log);
    return {};
  }
  error = nullptr;
  auto pipeline = api->own(api->new_pipeline(device.get(), function.get(), &error));
  if (!pipeline) *log = api->error_text(error);
  return pipeline;
}

const Pipeline& Context::copy_bytes() {
  if (copy_bytes_.state) return copy_bytes_;
  std::string log;
  copy_bytes_ = {compile(kCopyBytes, "copy_bytes", &log), "copy_bytes", kCopyGroup};
  if (!copy_bytes_.state)
    throw Error(ErrorCode::kCompile,
                fmt::format("{}: the kernel that copies bytes: {}", label(), log));
  return copy_bytes_;
}

Memory::Memory(std::shared_ptr<Context> context, uint64_t bytes, UInteger storage)
    : context_(std::move(context)), bytes_(bytes) {
  const Api& api = *context_->api;
  // Kernels load whole words, and there are no buffers of nothing.
  const UInteger whole = std::max<UInteger>(16, (bytes + 15) / 16 * 16);
  buffer_ = api.own(api.new_buffer(context_->device.get(), whole, storage));
  if (buffer_ && storage == kShared)
    contents_ = static_cast<std::byte*>(api.contents(buffer_.get()));
}

DeviceOfMetal::DeviceOfMetal(std::shared_ptr<const Api> api, Handle<Id> device, DeviceInfo info)
    : context_(std::make_shared<Context>(std::move(api), std::move(device), std::move(info))) {}

uint64_t DeviceOfMetal::free_bytes() {
  context_->check();
  const uint64_t total = info().total_bytes;
  const uint64_t left =
      total - std::min<uint64_t>(context_->api->allocated(context_->device.get()), total);
  const uint64_t host = info().unified ? host_memory().available_bytes : 0;
  return host ? std::min(left, host) : left;
}

std::unique_ptr<MemoryDriver> DeviceOfMetal::allocate(uint64_t bytes) {
  const Pool pool(*context_->api);
  const auto fail = [&](const std::string& why) {
    constexpr double kGB = 1ull << 30;
    throw Error(
        ErrorCode::kOutOfMemory,
        fmt::format("{}: allocating {:.2f} GB ({} bytes): {:.2f} GB of {:.2f} GB are free: {}",
                    context_->label(), static_cast<double>(bytes) / kGB, bytes,
                    static_cast<double>(free_bytes()) / kGB,
                    static_cast<double>(info().total_bytes) / kGB, why));
  };
  context_->check();
  if (const uint64_t most = info().capabilities.max_binding_bytes; bytes > most)
    fail(fmt::format("the largest buffer of this device has {} bytes", most));
  if (bytes > free_bytes()) fail("free memory, take a smaller size or another device");
  auto memory = std::make_unique<Memory>(context_, bytes, info().unified ? kShared : kPrivate);
  if (!memory->buffer()) fail("Metal gives no buffer");
  return memory;
}

std::unique_ptr<ProgramDriver> DeviceOfMetal::compile(const ir::Kernel& lowered) {
  const Api& api = *context_->api;
  const Pool pool(api);
  context_->check();
  const PrintedKernel printed = print(lowered, info().capabilities);
  const KernelText text = kernel_text(info(), lowered, printed.text, "metal");
  auto program = std::make_unique<Program>();
  std::string log;
  program->context = context_;
  program->pipeline = {context_->compile(text.text, printed.entry, &log), lowered.name,
                       lowered.group_size};
  dump_log(text, log);
  const Id state = program->pipeline.state.get();
  if (!state) throw compile_error(info(), lowered, text, log);
  if (const UInteger most = api.pipeline_threads(state); most < lowered.group_size)
    throw compile_error(info(), lowered, text,
                        fmt::format("the pipeline takes groups of {} threads at most, the kernel "
                                    "has groups of {}",
                                    most, lowered.group_size));
  if (const UInteger lanes = api.pipeline_width(state); lowered.subgroup_size && lanes != kLanes)
    throw compile_error(
        info(), lowered, text,
        fmt::format("the pipeline has simdgroups of {}, the kernel is made for {}", lanes, kLanes));
  return program;
}

std::unique_ptr<QueueDriver> DeviceOfMetal::make_queue() {
  const Pool pool(*context_->api);
  return metal::make_queue(context_);
}

}  // namespace prism::metal
