// Calls WebGPU's C interface for one device: setup, errors, modules, pipelines, buffers, dispatch.
#include "support/front_ends/webgpu_front_end.h"

#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>

namespace prism::test {

using namespace webgpu;  // NOLINT: this file is that interface's only user

namespace {

Flavour flavour_of(const SharedLibrary& library) {
  return library.has("wgpuInstanceRequestAdapter2") ? Flavour::kDawn2025 : Flavour::kStandard;
}

std::string text_of(StringView view) {
  if (view.data == nullptr) return {};
  return view.length == SIZE_MAX ? std::string(view.data) : std::string(view.data, view.length);
}

StringView view_of(const std::string& text) { return {text.data(), text.size()}; }

// A feature's number in the standard flavour and in Dawn's of early 2025.
struct Feature {
  uint32_t standard, dawn;
  uint32_t in(Flavour flavour) const { return flavour == Flavour::kStandard ? standard : dawn; }
};
constexpr Feature kShaderF16{0x0B, 8};
constexpr Feature kSubgroups{0x12, 13};
constexpr Feature kWgpuSubgroups{0x30021, 13};  // wgpu-native offers them as its own extension
constexpr Feature kSubgroupsF16{0x12, 14};      // the standard merged it into subgroups

uint64_t whole_words(uint64_t bytes) { return bytes == 0 ? 4 : (bytes + 3) / 4 * 4; }

// Filled by a callback during ProcessEvents.
struct Answer {
  bool done = false;
  uint32_t status = 0;
  void* object = nullptr;
  std::string message;
};

void on_request(uint32_t status, void* object, StringView message, void* user, void*) {
  *static_cast<Answer*>(user) = {true, status, object, text_of(message)};
}

void on_map(uint32_t status, StringView message, void* user, void*) {
  *static_cast<Answer*>(user) = {true, status, nullptr, text_of(message)};
}

void on_error_scope(uint32_t, uint32_t type, StringView message, void* user, void*) {
  *static_cast<Answer*>(user) = {true, type, nullptr, text_of(message)};
}

void on_uncaptured_error(const Device*, uint32_t, StringView message, void* user, void*) {
  *static_cast<std::string*>(user) += text_of(message) + "\n";
}

template <typename Callback>
CallbackInfo callback_info(Callback* callback, Answer& answer) {
  CallbackInfo info;
  info.callback = reinterpret_cast<void*>(callback);
  info.user1 = &answer;
  return info;
}

template <typename Entry>
std::vector<Entry> layout_entries(const std::vector<BindingType>& bindings, uint32_t first_type) {
  std::vector<Entry> entries(bindings.size());
  for (uint32_t i = 0; i < entries.size(); ++i) {
    entries[i].binding = i;
    entries[i].visibility = kComputeStage;
    entries[i].buffer.type = first_type + static_cast<uint32_t>(bindings[i]);
  }
  return entries;
}

}  // namespace

// Calls that take a callback have the suffix 2 in Dawn's flavour.
struct WebGpu::Functions {
  Functions(const SharedLibrary& library, Flavour flavour) {
    const auto load = [&](auto& member, const char* name) {
      member =
          library.function<std::remove_pointer_t<std::remove_reference_t<decltype(member)>>>(name);
    };
    const auto load_with_callback = [&](auto& member, std::string name) {
      load(member, (flavour == Flavour::kDawn2025 ? name + "2" : name).c_str());
    };
    load(create_instance, "wgpuCreateInstance");
    load(process_events, "wgpuInstanceProcessEvents");
    load_with_callback(request_adapter, "wgpuInstanceRequestAdapter");
    load_with_callback(request_device, "wgpuAdapterRequestDevice");
    load_with_callback(map, "wgpuBufferMapAsync");
    load_with_callback(pop_error_scope, "wgpuDevicePopErrorScope");
    load(push_error_scope, "wgpuDevicePushErrorScope");
    load(get_limits, "wgpuAdapterGetLimits");
    load(has_feature, "wgpuAdapterHasFeature");
    load(get_info, "wgpuAdapterGetInfo");
    load(get_queue, "wgpuDeviceGetQueue");
    load(create_module, "wgpuDeviceCreateShaderModule");
    load(create_bind_group_layout, "wgpuDeviceCreateBindGroupLayout");
    load(create_pipeline_layout, "wgpuDeviceCreatePipelineLayout");
    load(create_pipeline, "wgpuDeviceCreateComputePipeline");
    load(create_bind_group, "wgpuDeviceCreateBindGroup");
    load(create_buffer, "wgpuDeviceCreateBuffer");
    load(create_encoder, "wgpuDeviceCreateCommandEncoder");
    load(begin_pass, "wgpuCommandEncoderBeginComputePass");
    load(set_pipeline, "wgpuComputePassEncoderSetPipeline");
    load(set_bind_group, "wgpuComputePassEncoderSetBindGroup");
    load(dispatch, "wgpuComputePassEncoderDispatchWorkgroups");
    load(end_pass, "wgpuComputePassEncoderEnd");
    load(copy_buffer, "wgpuCommandEncoderCopyBufferToBuffer");
    load(finish, "wgpuCommandEncoderFinish");
    load(submit, "wgpuQueueSubmit");
    load(write_buffer, "wgpuQueueWriteBuffer");
    load(mapped_range, "wgpuBufferGetConstMappedRange");
    load(unmap, "wgpuBufferUnmap");
    load(release_instance, "wgpuInstanceRelease");
    load(release_adapter, "wgpuAdapterRelease");
    load(release_device, "wgpuDeviceRelease");
    load(release_queue, "wgpuQueueRelease");
    load(release_module, "wgpuShaderModuleRelease");
    load(release_bind_group_layout, "wgpuBindGroupLayoutRelease");
    load(release_pipeline_layout, "wgpuPipelineLayoutRelease");
    load(release_pipeline, "wgpuComputePipelineRelease");
    load(release_bind_group, "wgpuBindGroupRelease");
    load(release_buffer, "wgpuBufferRelease");
    load(release_encoder, "wgpuCommandEncoderRelease");
    load(release_pass, "wgpuComputePassEncoderRelease");
    load(release_commands, "wgpuCommandBufferRelease");
  }

  Instance (*create_instance)(const void* descriptor);
  void (*process_events)(Instance);
  uint64_t (*request_adapter)(Instance, const void* options, CallbackInfo);
  uint64_t (*request_device)(Adapter, const DeviceDescriptor*, CallbackInfo);
  uint64_t (*map)(webgpu::Buffer, uint64_t mode, size_t offset, size_t bytes, CallbackInfo);
  uint64_t (*pop_error_scope)(Device, CallbackInfo);
  void (*push_error_scope)(Device, uint32_t filter);
  uint32_t (*get_limits)(Adapter, Limits*);
  uint32_t (*has_feature)(Adapter, uint32_t feature);
  uint32_t (*get_info)(Adapter, AdapterInfo*);
  Queue (*get_queue)(Device);
  webgpu::ShaderModule (*create_module)(Device, const ShaderModuleDescriptor*);
  webgpu::BindGroupLayout (*create_bind_group_layout)(Device, const BindGroupLayoutDescriptor*);
  PipelineLayout (*create_pipeline_layout)(Device, const PipelineLayoutDescriptor*);
  webgpu::ComputePipeline (*create_pipeline)(Device, const ComputePipelineDescriptor*);
  BindGroup (*create_bind_group)(Device, const BindGroupDescriptor*);
  webgpu::Buffer (*create_buffer)(Device, const BufferDescriptor*);
  CommandEncoder (*create_encoder)(Device, const void* descriptor);
  ComputePassEncoder (*begin_pass)(CommandEncoder, const void* descriptor);
  void (*set_pipeline)(ComputePassEncoder, webgpu::ComputePipeline);
  void (*set_bind_group)(ComputePassEncoder, uint32_t index, BindGroup, size_t offset_count,
                         const uint32_t* offsets);
  void (*dispatch)(ComputePassEncoder, uint32_t x, uint32_t y, uint32_t z);
  void (*end_pass)(ComputePassEncoder);
  void (*copy_buffer)(CommandEncoder, webgpu::Buffer from, uint64_t, webgpu::Buffer to, uint64_t,
                      uint64_t bytes);
  CommandBuffer (*finish)(CommandEncoder, const void* descriptor);
  void (*submit)(Queue, size_t count, const CommandBuffer*);
  void (*write_buffer)(Queue, webgpu::Buffer, uint64_t offset, const void* data, size_t bytes);
  const void* (*mapped_range)(webgpu::Buffer, size_t offset, size_t bytes);
  void (*unmap)(webgpu::Buffer);
  void (*release_instance)(Instance);
  void (*release_adapter)(Adapter);
  void (*release_device)(Device);
  void (*release_queue)(Queue);
  void (*release_module)(webgpu::ShaderModule);
  void (*release_bind_group_layout)(webgpu::BindGroupLayout);
  void (*release_pipeline_layout)(PipelineLayout);
  void (*release_pipeline)(webgpu::ComputePipeline);
  void (*release_bind_group)(BindGroup);
  void (*release_buffer)(webgpu::Buffer);
  void (*release_encoder)(CommandEncoder);
  void (*release_pass)(ComputePassEncoder);
  void (*release_commands)(CommandBuffer);
};

WebGpu::WebGpu(const std::string& library_path)
    : library_(library_path),
      flavour_(flavour_of(library_)),
      call_(std::make_unique<Functions>(library_, flavour_)),
      instance_(call_->create_instance(nullptr), call_->release_instance) {
  if (instance_.get() == nullptr) throw std::runtime_error(library_path + ": no WebGPU instance");
  open_adapter();
  open_device();
}

WebGpu::~WebGpu() = default;

void WebGpu::open_adapter() {
  Answer answer;
  call_->request_adapter(instance_.get(), nullptr, callback_info(on_request, answer));
  wait_until(answer.done, "an adapter");
  if (answer.status != kSuccess)
    throw std::runtime_error(library_.path() + ": no adapter: " + answer.message);
  adapter_ = {static_cast<Adapter>(answer.object), call_->release_adapter};

  AdapterInfo info;
  call_->get_info(adapter_.get(), &info);
  device_name_ = text_of(info.device);
  call_->get_limits(adapter_.get(), &limits_);
  const auto take = [&](Feature feature) {
    const bool has = call_->has_feature(adapter_.get(), feature.in(flavour_)) != 0;
    if (has && (features_.empty() || features_.back() != feature.in(flavour_))) {
      features_.push_back(feature.in(flavour_));
    }
    return has;
  };
  has_f16_ = take(kShaderF16);
  has_subgroups_ = take(kSubgroups);
  if (!has_subgroups_) has_subgroups_ = subgroups_need_no_enable_ = take(kWgpuSubgroups);
  take(kSubgroupsF16);
}

void WebGpu::open_device() {
  DeviceDescriptor descriptor;
  descriptor.feature_count = features_.size();
  descriptor.features = features_.data();
  descriptor.limits = &limits_;
  // Without our callback wgpu-native aborts on an error outside a scope.
  descriptor.uncaptured_error.callback = reinterpret_cast<void*>(on_uncaptured_error);
  descriptor.uncaptured_error.user1 = &uncaptured_;
  Answer answer;
  call_->request_device(adapter_.get(), &descriptor, callback_info(on_request, answer));
  wait_until(answer.done, "a device");
  if (answer.status != kSuccess) {
    throw std::runtime_error(library_.path() + ": no device on " + device_name_ + ": " +
                             answer.message);
  }
  device_ = {static_cast<Device>(answer.object), call_->release_device};
  queue_ = {call_->get_queue(device_.get()), call_->release_queue};
}

// Dawn's 2025 flavour has one more vertex-stage limit before these.
uint32_t WebGpu::max_shared_bytes() const {
  return limits_.later[flavour_ == Flavour::kStandard ? 5 : 6];
}
uint32_t WebGpu::max_group_size() const {
  return limits_.later[flavour_ == Flavour::kStandard ? 6 : 7];
}

void WebGpu::wait_until(const bool& done, const char* what) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!done) {
    call_->process_events(instance_.get());
    if (done) break;
    if (std::chrono::steady_clock::now() > end) {
      throw std::runtime_error(library_.path() + ": no answer within a minute, waiting for " +
                               what);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

std::string WebGpu::errors_of(const std::function<void()>& work) {
  // Validation, out of memory, internal. wgpu-native aborts on a scope for the last and reports
  // those errors as uncaptured.
  const uint32_t filters = flavour_ == Flavour::kStandard ? 2 : 3;
  for (uint32_t filter = 1; filter <= filters; ++filter)
    call_->push_error_scope(device_.get(), filter);
  work();
  std::string errors;
  for (uint32_t scope = 0; scope < filters; ++scope) {
    Answer answer;
    call_->pop_error_scope(device_.get(), callback_info(on_error_scope, answer));
    wait_until(answer.done, "an error scope");
    if (answer.status != kNoError) errors += answer.message + "\n";
  }
  errors += uncaptured_;
  uncaptured_.clear();
  return errors;
}

WebGpu::ShaderModule WebGpu::make_module(const std::string& wgsl) {
  std::string text = wgsl;
  if (subgroups_need_no_enable_) {
    // wgpu-native has the functions but rejects the enabling directive as not yet supported.
    const std::string directive = "enable subgroups;";
    const size_t at = text.find(directive);
    if (at != std::string::npos) text.replace(at, directive.size(), directive.size(), ' ');
  }
  WgslSource source;
  source.code = view_of(text);
  ShaderModuleDescriptor descriptor;
  descriptor.next = &source.chain;
  return {call_->create_module(device_.get(), &descriptor), call_->release_module};
}

WebGpu::BindGroupLayout WebGpu::make_layout(const std::vector<BindingType>& bindings) {
  BindGroupLayoutDescriptor descriptor;
  descriptor.entry_count = bindings.size();
  const auto make = [&](const auto& entries) -> BindGroupLayout {
    descriptor.entries = entries.data();
    return {call_->create_bind_group_layout(device_.get(), &descriptor),
            call_->release_bind_group_layout};
  };
  // The standard inserted "undefined" before the binding types.
  if (flavour_ == Flavour::kStandard) return make(layout_entries<StandardLayoutEntry>(bindings, 2));
  return make(layout_entries<Dawn2025LayoutEntry>(bindings, 1));
}

WebGpu::ComputePipeline WebGpu::make_pipeline(const ShaderModule& module, const std::string& entry,
                                              const BindGroupLayout* layout) {
  WebGpuHandle<PipelineLayout> pipeline_layout;
  if (layout != nullptr) {
    const webgpu::BindGroupLayout group = layout->get();
    PipelineLayoutDescriptor layouts;
    layouts.layout_count = 1;
    layouts.layouts = &group;
    pipeline_layout = {call_->create_pipeline_layout(device_.get(), &layouts),
                       call_->release_pipeline_layout};
  }
  ComputePipelineDescriptor descriptor;
  descriptor.layout = pipeline_layout.get();
  descriptor.compute.module = module.get();
  descriptor.compute.entry = view_of(entry);
  return {call_->create_pipeline(device_.get(), &descriptor), call_->release_pipeline};
}

WebGpu::Buffer WebGpu::make_buffer(uint64_t bytes, uint64_t usage) {
  BufferDescriptor descriptor;
  descriptor.usage = usage;
  descriptor.bytes = whole_words(bytes);
  return {call_->create_buffer(device_.get(), &descriptor), call_->release_buffer};
}

void WebGpu::write(const Buffer& buffer, const std::vector<uint8_t>& bytes) {
  std::vector<uint8_t> padded = bytes;
  padded.resize(whole_words(bytes.size()));
  call_->write_buffer(queue_.get(), buffer.get(), 0, padded.data(), padded.size());
}

void WebGpu::submit(const std::function<void(CommandEncoder)>& record) {
  const WebGpuHandle<CommandEncoder> encoder(call_->create_encoder(device_.get(), nullptr),
                                             call_->release_encoder);
  record(encoder.get());
  const WebGpuHandle<CommandBuffer> commands(call_->finish(encoder.get(), nullptr),
                                             call_->release_commands);
  const CommandBuffer list = commands.get();
  call_->submit(queue_.get(), 1, &list);
}

void WebGpu::dispatch(const ComputePipeline& pipeline, const BindGroupLayout& layout,
                      const std::vector<Buffer>& buffers, std::array<uint32_t, 3> groups) {
  std::vector<BindGroupEntry> entries(buffers.size());
  for (uint32_t i = 0; i < entries.size(); ++i) {
    entries[i].binding = i;
    entries[i].buffer = buffers[i].get();
    entries[i].bytes = UINT64_MAX;  // the whole buffer
  }
  BindGroupDescriptor descriptor;
  descriptor.layout = layout.get();
  descriptor.entry_count = entries.size();
  descriptor.entries = entries.data();
  const WebGpuHandle<BindGroup> group(call_->create_bind_group(device_.get(), &descriptor),
                                      call_->release_bind_group);
  submit([&](CommandEncoder encoder) {
    const WebGpuHandle<ComputePassEncoder> pass(call_->begin_pass(encoder, nullptr),
                                                call_->release_pass);
    call_->set_pipeline(pass.get(), pipeline.get());
    call_->set_bind_group(pass.get(), 0, group.get(), 0, nullptr);
    call_->dispatch(pass.get(), groups[0], groups[1], groups[2]);
    call_->end_pass(pass.get());
  });
}

std::vector<uint8_t> WebGpu::read(const Buffer& buffer, uint64_t bytes) {
  if (bytes == 0) return {};
  const Buffer staging = make_buffer(bytes, kUsageMapRead | kUsageCopyTarget);
  submit([&](CommandEncoder encoder) {
    call_->copy_buffer(encoder, buffer.get(), 0, staging.get(), 0, whole_words(bytes));
  });
  Answer answer;
  call_->map(staging.get(), kMapRead, 0, whole_words(bytes), callback_info(on_map, answer));
  wait_until(answer.done, "a buffer's contents");
  if (answer.status != kSuccess)
    throw std::runtime_error(library_.path() + ": reading a buffer: " + answer.message);
  const auto* data =
      static_cast<const uint8_t*>(call_->mapped_range(staging.get(), 0, whole_words(bytes)));
  std::vector<uint8_t> result(data, data + bytes);
  call_->unmap(staging.get());
  return result;
}

}  // namespace prism::test
