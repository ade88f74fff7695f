// Device capabilities, memory, error handling and compilation of WGSL.
#include "backends/webgpu/webgpu_device.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "base/cache_folder.h"
#include "base/system/host_memory.h"
#include "base/system/system_info.h"
#include "ir/bindings.h"
#include "print/printer.h"
#include "runtime/compile_error.h"
#include "runtime/discovery/pci.h"

namespace prism::webgpu {
namespace {

// Dawn's callback for its program cache; the first call asks for the size.
size_t load_cached(const void* key, size_t key_bytes, void* to, size_t bytes, void*) {
  const auto kept = read_cached("webgpu", {static_cast<const char*>(key), key_bytes});
  if (!kept) return 0;
  if (to && bytes >= kept->size()) std::memcpy(to, kept->data(), kept->size());
  return kept->size();
}

void store_cached(const void* key, size_t key_bytes, const void* from, size_t bytes, void*) {
  write_cached("webgpu", {static_cast<const char*>(key), key_bytes},
               {static_cast<const std::byte*>(from), bytes});
}

// For libraries that do not report it (wgpu-native 29): vendors with a single subgroup size.
uint32_t usual_subgroup_size(const AdapterInfo& said) {
  constexpr uint32_t kNvidia = 0x10de, kApple = 0x106b, kMesa = 0x10005;
  if (said.vendor_id == kNvidia || said.vendor_id == kApple) return 32;
  const bool words8 = text_of(said.device).find("256 bits") != std::string::npos;
  return said.vendor_id == kMesa && said.type == kCpu && words8 ? 8 : 0;  // llvmpipe: one vector
}

// Buffers in text order, then the parameters. first_type: the number of the uniform type.
template <class Entry>
std::vector<Entry> layout_entries(const ir::Kernel& kernel, uint32_t first_type) {
  std::vector<Entry> entries;
  const auto add = [&](BindingType type) {
    Entry& entry = entries.emplace_back();
    entry.binding = static_cast<uint32_t>(entries.size() - 1);
    entry.visibility = kComputeStage;
    entry.buffer.type = first_type + static_cast<uint32_t>(type);
  };
  for (const bool written : ir::written_bindings(kernel))
    add(written ? BindingType::kStorage : BindingType::kReadOnlyStorage);
  if (!kernel.params.empty()) add(BindingType::kUniform);
  return entries;
}

void on_error(const Device*, uint32_t type, StringView message, void* failure, void*) {
  const std::string words = text_of(message);
  auto& kept = *static_cast<KeptFailure*>(failure);
  kept.keep(type == kOutOfMemory ? ErrorCode::kOutOfMemory : ErrorCode::kDriver, words);
  // wgpu-native reports a loss first as an error, and later through its callback.
  if (words.find("evice is lost") != std::string::npos) kept.keep_lost(words);
}

void on_lost(const Device*, uint32_t, StringView message, void* failure, void*) {
  static_cast<KeptFailure*>(failure)->keep_lost(text_of(message));
}

}  // namespace

bool DeviceOfWebGpu::take_feature(std::array<uint32_t, 2> which) {
  const uint32_t feature = which[api_->standard ? 0 : 1];
  if (feature == 0 || !api_->AdapterHasFeature(adapter_.get(), feature)) return false;
  features_.push_back(feature);
  return true;
}

// The failure is never freed: a library may call back after everything was released.
DeviceOfWebGpu::DeviceOfWebGpu(std::shared_ptr<const Api> api, Adapter adapter,
                               const std::string& id)
    : api_(std::move(api)), adapter_(api_->own(adapter)), failure_(*new KeptFailure) {
  SubgroupSizes sizes;
  AdapterInfo said;
  if (!api_->standard) said.next = &sizes.chain;
  api_->AdapterGetInfo(adapter_.get(), &said);
  if (api_->standard) sizes.min = said.subgroup_min, sizes.max = said.subgroup_max;
  if (sizes.max == 0) sizes.min = sizes.max = usual_subgroup_size(said);
  api_->AdapterGetLimits(adapter_.get(), &limits_);
  largest_bytes_ = limits_.max_buffer_bytes;
  timestamps_ = take_feature(kTimestamps);

  info_.id = id;
  info_.backend = "webgpu";
  info_.name = text_of(said.device);
  if (info_.name.empty()) info_.name = text_of(said.description);
  info_.vendor = text_of(said.vendor);
  info_.software = said.type == kCpu;
  info_.compute_units = info_.software ? processor_info().threads : 0;
  info_.unified = said.type == kIntegrated || info_.software;
  info_.copies_words = info_.one_access = true;
  info_.driver = fmt::format("{} over {}, {}", api_->library, kBackends[std::min(said.backend, 8u)],
                             text_of(said.description));
  const std::string address = find_pci_device(said.vendor_id, said.device_id);
  info_.card = address.empty() ? id : address;
  // WebGPU does not report memory sizes. If another backend sees the card too, same_card() gets the
  // figure from it.
  info_.total_bytes = info_.unified ? host_memory().total_bytes : kUnknownBytes;

  ir::Capabilities& can = info_.capabilities;
  can = typical_capabilities("wgsl");
  const uint32_t* compute = limits_.later + (api_->standard ? 5 : 6);
  can.shared_bytes = compute[0];
  can.max_group_size = std::min(compute[1], compute[2]);
  can.max_groups = {compute[5], compute[5], compute[5]};
  can.max_binding_bytes = std::min(limits_.max_storage_binding_bytes, uint64_t{0xffffff00});
  can.max_buffers = std::min(limits_.counts[kStorageBuffers], 32u);
  can.dot4 = true;  // in WGSL since 2023
  can.math_f16 = can.storage_f16 = take_feature(kShaderF16);
  const bool asked = take_feature(kSubgroups), unasked = !asked && take_feature(kSubgroupsUnasked);
  if (asked) take_feature(kSubgroupsF16);
  if (unasked) can.dialect_level = kWgslSubgroupsUnasked;
  // A kernel cannot request a size, so subgroups are used only if there is exactly one.
  if ((asked || unasked) && sizes.min == sizes.max && sizes.min >= 4)
    can.subgroup_size = sizes.min, can.subgroup_sizes = {sizes.min};
}

Device DeviceOfWebGpu::device() {
  if (device_) return device_.get();
  // Kernels that passed the verifier need no run-time checks, and never read shared memory before
  // writing it.
  const char* enabled[] = {"disable_robustness", "disable_workgroup_init"};
  const char* disabled[] = {"timestamp_quantization"};
  DawnToggles toggles;
  toggles.enabled_count = std::size(enabled), toggles.enabled = enabled;
  toggles.disabled_count = std::size(disabled), toggles.disabled = disabled;
  DawnCache cache{.isolation_key = {"prism"}, .load = load_cached, .store = store_cached};
  cache.chain.next = &toggles.chain;
  DeviceDescriptor descriptor{
      .feature_count = features_.size(), .features = features_.data(), .limits = &limits_};
  if (!api_->standard) descriptor.next = &cache.chain;
  descriptor.device_lost.mode = 3;
  descriptor.device_lost.callback = reinterpret_cast<void*>(on_lost);
  // Without this callback, wgpu-native ends the process on an error.
  descriptor.uncaptured_error.callback = reinterpret_cast<void*>(on_error);
  descriptor.device_lost.user1 = descriptor.uncaptured_error.user1 = &failure_;
  void* const made = ask(Asked::kObject, "opening the device", [&](CallbackInfo info) {
    api_->AdapterRequestDevice(adapter_.get(), &descriptor, info);
  });
  device_ = api_->own(static_cast<Device>(made));
  queue_ = api_->own(api_->DeviceGetQueue(device_.get()));
  return device_.get();
}

void DeviceOfWebGpu::wait_for(const Answer& answer) const {
  for (int round = 0; !answer.done; ++round) {
    if (api_->DevicePoll && device_)
      api_->DevicePoll(device_.get(), 1, nullptr);  // sleeps until the device is done
    else
      api_->process_events();
    // Poll first: short waits are common on a card, and a sleep takes at least 50 us. Software
    // devices need the core, so sleep at once.
    if (!answer.done && (round >= 2000 || info().software))
      std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

void* DeviceOfWebGpu::ask(Asked what, const char* doing,
                          const std::function<void(CallbackInfo)>& call) const {
  const auto answer = std::make_shared<Answer>();
  call(asking(*api_, what, answer));
  wait_for(*answer);
  check();
  if (answer->status != kSuccess)
    throw Error(ErrorCode::kDriver, fmt::format("{}: {}: {}", label(), doing, answer->message));
  return answer->object;
}

void DeviceOfWebGpu::read_mapped(Buffer mappable, std::span<std::byte> to) {
  ask(Asked::kMap, "reading a buffer",
      [&](CallbackInfo info) { api_->BufferMapAsync(mappable, kMapRead, 0, to.size(), info); });
  std::memcpy(to.data(), api_->BufferGetConstMappedRange(mappable, 0, to.size()), to.size());
  api_->BufferUnmap(mappable);
}

std::string DeviceOfWebGpu::errors_of(const std::function<void()>& work) const {
  api_->process_events();
  check();
  work();
  api_->process_events();
  const std::string said = failure_.take();
  check();  // throws if the device is lost
  return said;
}

Handle<Buffer> DeviceOfWebGpu::make_buffer(uint64_t bytes, uint64_t usage) {
  const BufferDescriptor descriptor{.usage = usage, .bytes = bytes};
  return api_->own(api_->DeviceCreateBuffer(device(), &descriptor));
}

std::unique_ptr<MemoryDriver> DeviceOfWebGpu::take(uint64_t bytes, std::string* why) {
  auto memory = std::make_unique<Memory>(*this, bytes);
  *why = errors_of([&] {
    memory->buffer = make_buffer(bytes, kUsageStorage | kUsageCopySource | kUsageCopyTarget);
  });
  return why->empty() ? std::move(memory) : nullptr;
}

std::unique_ptr<ProgramDriver> DeviceOfWebGpu::compile(const ir::Kernel& lowered) {
  const Device on = device();
  // The standard inserted "undefined" before the binding types.
  const auto standard = layout_entries<StandardLayoutEntry>(lowered, 2);
  const auto dawn = layout_entries<Dawn2025LayoutEntry>(lowered, 1);
  auto program = std::make_unique<Program>();
  compile_text(info(), lowered, "wgsl", [&](const KernelText& text, const std::string& entry) {
    return errors_of([&] {
      const WgslSource source{.code = view_of(text.text)};
      const ShaderModuleDescriptor described{.next = &source.chain};
      const auto module = api_->own(api_->DeviceCreateShaderModuleTrusted
                                        ? api_->DeviceCreateShaderModuleTrusted(on, &described, 0)
                                        : api_->DeviceCreateShaderModule(on, &described));
      const BindGroupLayoutDescriptor group{
          .entry_count = standard.size(),
          .entries = api_->standard ? static_cast<const void*>(standard.data()) : dawn.data()};
      program->layout = api_->own(api_->DeviceCreateBindGroupLayout(on, &group));
      const BindGroupLayout layout = program->layout.get();
      const PipelineLayoutDescriptor layouts{.layout_count = 1, .layouts = &layout};
      const auto pipeline_layout = api_->own(api_->DeviceCreatePipelineLayout(on, &layouts));
      const ComputePipelineDescriptor descriptor{
          .label = view_of(lowered.name),
          .layout = pipeline_layout.get(),
          .compute = {.module = module.get(), .entry = view_of(entry)}};
      program->pipeline = api_->own(api_->DeviceCreateComputePipeline(on, &descriptor));
    });
  });
  return program;
}

}  // namespace prism::webgpu
