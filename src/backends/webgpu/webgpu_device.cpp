#include "backends/webgpu/webgpu_device.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "base/cache.h"
#include "base/host_memory.h"
#include "print/printer.h"
#include "runtime/compile_error.h"

namespace prism::webgpu {
namespace {

constexpr const char* kProgramCache = "webgpu";

// Dawn asks for what it compiled in an earlier run, first for its size.
size_t load_cached(const void* key, size_t key_bytes, void* to, size_t bytes, void*) {
  const auto kept =
      read_cached(kProgramCache, hash_text({static_cast<const char*>(key), key_bytes}));
  if (!kept) return 0;
  if (to && bytes >= kept->size()) std::memcpy(to, kept->data(), kept->size());
  return kept->size();
}

void store_cached(const void* key, size_t key_bytes, const void* from, size_t bytes, void*) {
  write_cached(kProgramCache, hash_text({static_cast<const char*>(key), key_bytes}),
               {static_cast<const std::byte*>(from), bytes});
}

// wgpu-native tells of a loss by an error first and by its callback some time later.
bool tells_loss(const std::string& message) {
  return message.find("evice is lost") != std::string::npos;
}

template <class Entry>
std::vector<Entry> layout_entries(std::span<const BindingType> bindings, uint32_t first_type) {
  std::vector<Entry> entries(bindings.size());
  for (uint32_t i = 0; i < entries.size(); ++i) {
    entries[i].binding = i;
    entries[i].visibility = kComputeStage;
    entries[i].buffer.type = first_type + static_cast<uint32_t>(bindings[i]);
    entries[i].buffer.dynamic_offset = bindings[i] == BindingType::kUniform;
  }
  return entries;
}

}  // namespace

// Never freed: a library may call back after everything of the device was released.
Context::Context(std::shared_ptr<const Api> the_api, std::shared_ptr<Handle<Instance>> the_instance,
                 Adapter adapter, const Facts& the_facts)
    : api(std::move(the_api)),
      facts(the_facts),
      instance(std::move(the_instance)),
      said_(*new Said) {
  // What the verifier of kernels has checked needs no checks at run time, and shared memory is
  // never read before it is written.
  const char* enabled[] = {"disable_robustness", "disable_workgroup_init"};
  const char* disabled[] = {"timestamp_quantization"};
  DawnToggles toggles;
  toggles.enabled_count = std::size(enabled), toggles.enabled = enabled;
  toggles.disabled_count = std::size(disabled), toggles.disabled = disabled;
  const std::string isolation = "prism";
  DawnCache cache;
  cache.isolation_key = view_of(isolation);
  cache.load = load_cached, cache.store = store_cached;
  cache.chain.next = &toggles.chain;
  DeviceDescriptor descriptor;
  if (!api->standard()) descriptor.next = &cache.chain;
  descriptor.feature_count = facts.features.size();
  descriptor.features = facts.features.data();
  descriptor.limits = &facts.limits;
  descriptor.device_lost.mode = 3;
  descriptor.device_lost.callback = reinterpret_cast<void*>(on_lost);
  descriptor.device_lost.user1 = &said_;
  // Without a callback of ours wgpu-native ends the process on an error outside a scope.
  descriptor.uncaptured_error.callback = reinterpret_cast<void*>(on_error);
  descriptor.uncaptured_error.user1 = &said_;
  const auto answer = std::make_shared<Answer>();
  api->AdapterRequestDevice(adapter, &descriptor, asking(*api, Asked::kObject, answer));
  wait_for(*answer);
  if (answer->status != kSuccess)
    throw Error(ErrorCode::kDriver,
                fmt::format("{}: opening the device: {}", label(), answer->message));
  device = api->own(static_cast<Device>(answer->object));
  queue = api->own(api->DeviceGetQueue(device.get()));
}

void Context::on_error(const Device*, uint32_t type, StringView message, void* user, void*) {
  auto& said = *static_cast<Said*>(user);
  const std::lock_guard guard(said.lock);
  if (!said.error.empty()) return;  // the first is the cause
  said.error = text_of(message);
  if (tells_loss(said.error)) said.lost = said.error;
  said.code = type == webgpu::kOutOfMemory ? ErrorCode::kOutOfMemory : ErrorCode::kDriver;
}

void Context::on_lost(const Device*, uint32_t, StringView message, void* user, void*) {
  auto& said = *static_cast<Said*>(user);
  const std::lock_guard guard(said.lock);
  said.lost = text_of(message);
  if (said.lost.empty()) said.lost = "the library gives no reason";
}

void Context::check() {
  const std::lock_guard guard(said_.lock);
  if (!said_.lost.empty())
    throw Error(ErrorCode::kDeviceLost,
                fmt::format("{}: the device is lost: {}", label(), said_.lost));
  if (!said_.error.empty())
    throw Error(said_.code, fmt::format("{}: {}", label(), std::exchange(said_.error, "")));
}

bool Context::failed() const {
  const std::lock_guard guard(said_.lock);
  return !said_.lost.empty() || !said_.error.empty();
}

void Context::wait_for(const Answer& answer) const {
  for (int round = 0; !answer.done; ++round) {
    if (api->DevicePoll && device)
      api->DevicePoll(device.get(), 1, nullptr);  // sleeps until the device is done
    else
      api->InstanceProcessEvents(instance->get());
    if (answer.done) return;
    // Short waits are common on a card, and a sleep is never shorter than 50 us. A software device
    // needs the core.
    if (round < 2000 && !facts.info.software)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

std::string Context::errors_of(const std::function<void()>& work) {
  // Validation, out of memory, internal: wgpu-native ends the process on being asked for the last.
  const uint32_t filters = api->standard() ? 2 : 3;
  for (uint32_t filter = 1; filter <= filters; ++filter)
    api->DevicePushErrorScope(device.get(), filter);
  work();
  std::string errors;
  for (uint32_t scope = 0; scope < filters; ++scope) {
    const auto answer = std::make_shared<Answer>();
    api->DevicePopErrorScope(device.get(), asking(*api, Asked::kErrorScope, answer));
    wait_for(*answer);
    if (answer->status == kNoError || answer->message.empty()) continue;
    errors += answer->message;
    if (tells_loss(errors)) on_lost(nullptr, 0, view_of(errors), &said_, nullptr);
  }
  return errors;
}

Handle<Buffer> Context::make_buffer(uint64_t bytes, uint64_t usage) const {
  BufferDescriptor descriptor;
  descriptor.usage = usage;
  descriptor.bytes = std::max<uint64_t>(4, (bytes + 3) / 4 * 4);
  return api->own(api->DeviceCreateBuffer(device.get(), &descriptor));
}

Pipeline Context::make_pipeline(const std::string& wgsl, const std::string& name,
                                const std::string& entry,
                                std::span<const BindingType> bindings) const {
  WgslSource source;
  source.code = view_of(wgsl);
  ShaderModuleDescriptor text;
  text.next = &source.chain;
  const auto module = api->own(api->DeviceCreateShaderModuleTrusted
                                   ? api->DeviceCreateShaderModuleTrusted(device.get(), &text, 0)
                                   : api->DeviceCreateShaderModule(device.get(), &text));
  Pipeline made;
  BindGroupLayoutDescriptor group;
  group.entry_count = bindings.size();
  // The standard put "undefined" before the types of bindings.
  const auto standard = layout_entries<StandardLayoutEntry>(bindings, 2);
  const auto dawn = layout_entries<Dawn2025LayoutEntry>(bindings, 1);
  group.entries = api->standard() ? static_cast<const void*>(standard.data()) : dawn.data();
  made.layout = api->own(api->DeviceCreateBindGroupLayout(device.get(), &group));
  const BindGroupLayout layout = made.layout.get();
  PipelineLayoutDescriptor layouts;
  layouts.layout_count = 1;
  layouts.layouts = &layout;
  const auto pipeline_layout = api->own(api->DeviceCreatePipelineLayout(device.get(), &layouts));
  ComputePipelineDescriptor descriptor;
  descriptor.label = view_of(name);
  descriptor.layout = pipeline_layout.get();
  descriptor.compute.module = module.get();
  descriptor.compute.entry = view_of(entry);
  made.pipeline = api->own(api->DeviceCreateComputePipeline(device.get(), &descriptor));
  return made;
}

Program::Program(std::shared_ptr<Context> context, const ir::Kernel& lowered)
    : context_(std::move(context)), kernel_(lowered) {
  for (uint32_t i = 0; i < kernel_.memories.size(); ++i)
    if (kernel_.memories[i].space == ir::Space::buffer) buffers_.push_back(i);
  std::ranges::sort(buffers_, {}, [&](uint32_t i) {
    return std::pair(kernel_.memories[i].binding, kernel_.memories[i].piece);
  });
  for (uint32_t i = 0; i < buffers_.size(); ++i) {
    const ir::Memory& memory = kernel_.memories[buffers_[i]];
    if (memory.atomic || memory.access != ir::Access::read) written_ |= 1u << i;
  }
  pipeline(written_);
}

const Pipeline& Program::pipeline(uint32_t writable) {
  for (const auto& [mask, known] : pipelines_)
    if (mask == writable) return known;
  ir::Kernel kernel = kernel_;
  std::vector<BindingType> bindings;
  for (uint32_t i = 0; i < buffers_.size(); ++i) {
    ir::Memory& memory = kernel.memories[buffers_[i]];
    const bool writes = writable >> i & 1;
    if (writes && memory.access == ir::Access::read) memory.access = ir::Access::read_write;
    bindings.push_back(writes ? BindingType::kStorage : BindingType::kReadOnlyStorage);
  }
  if (!kernel.params.empty()) bindings.push_back(BindingType::kUniform);
  const DeviceInfo& info = context_->facts.info;
  const PrintedKernel printed = print(kernel, info.capabilities);
  const KernelText text = kernel_text(info, kernel, printed.text, "wgsl");
  Pipeline made;
  const std::string log = context_->errors_of(
      [&] { made = context_->make_pipeline(text.text, kernel.name, printed.entry, bindings); });
  dump_log(text, log);
  context_->check();
  if (!log.empty()) throw compile_error(info, kernel, text, log);
  return pipelines_.emplace_back(writable, std::move(made)).second;
}

DeviceOfWebGpu::DeviceOfWebGpu(std::shared_ptr<const Api> api,
                               std::shared_ptr<Handle<Instance>> instance, Handle<Adapter> adapter,
                               Facts facts)
    : api_(std::move(api)),
      instance_(std::move(instance)),
      adapter_(std::move(adapter)),
      facts_(std::move(facts)) {}

const std::shared_ptr<Context>& DeviceOfWebGpu::context() {
  if (!context_) context_ = std::make_shared<Context>(api_, instance_, adapter_.get(), facts_);
  return context_;
}

void DeviceOfWebGpu::same_card(const std::shared_ptr<DeviceDriver>& other) {
  if (facts_.info.software) return;
  facts_.info.card = other->info().card;
  if (facts_.info.unified) return;
  same_card_ = other;
  facts_.info.total_bytes = other->info().total_bytes;
  facts_.info.compute_units = other->info().compute_units;
}

uint64_t DeviceOfWebGpu::free_bytes() {
  if (same_card_) return same_card_->free_bytes();
  const uint64_t used = context_ ? context_->allocated_bytes : 0;
  const uint64_t left = facts_.info.total_bytes - std::min(used, facts_.info.total_bytes);
  return facts_.info.unified ? std::min(left, host_memory().available_bytes) : left;
}

std::unique_ptr<MemoryDriver> DeviceOfWebGpu::allocate(uint64_t bytes) {
  Context& owner = *context();
  owner.check();
  const auto fail = [&](const std::string& why) {
    throw Error(ErrorCode::kOutOfMemory,
                fmt::format("{}: asked for {} bytes, {} of {} are free: {}", owner.label(), bytes,
                            free_bytes(), info().total_bytes, why));
  };
  if (bytes > facts_.limits.max_buffer_bytes)
    fail(fmt::format("the largest buffer of this device has {} bytes",
                     facts_.limits.max_buffer_bytes));
  if (bytes > free_bytes()) fail("free memory, take a smaller size or another device");
  Handle<Buffer> buffer;
  const std::string log = owner.errors_of([&] {
    buffer = owner.make_buffer(bytes, kUsageStorage | kUsageCopySource | kUsageCopyTarget);
  });
  owner.check();
  if (!log.empty()) fail(log);
  return std::make_unique<Memory>(context_, std::move(buffer), bytes);
}

std::unique_ptr<ProgramDriver> DeviceOfWebGpu::compile(const ir::Kernel& lowered) {
  return std::make_unique<Program>(context(), lowered);
}

std::unique_ptr<QueueDriver> DeviceOfWebGpu::make_queue() { return webgpu::make_queue(context()); }

}  // namespace prism::webgpu
