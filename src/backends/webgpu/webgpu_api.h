// A WebGPU library opened at run time: the functions used of it, and what its two flavours name or
// number differently.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <type_traits>

#include "backends/webgpu/webgpu_abi.h"
#include "base/handle.h"

namespace prism::webgpu {

// F(name in webgpu.h without its prefix, result, parameters), C for those that take a callback, O
// for what only wgpu-native has.
// clang-format off
#define PRISM_WEBGPU_FUNCTIONS(F, C, O)                                                            \
  F(CreateInstance, Instance, const void*)                                                         \
  F(InstanceProcessEvents, void, Instance)                                                         \
  C(InstanceRequestAdapter, uint64_t, Instance, const void*, CallbackInfo)                         \
  C(AdapterRequestDevice, uint64_t, Adapter, const DeviceDescriptor*, CallbackInfo)                \
  F(AdapterGetLimits, uint32_t, Adapter, Limits*)                                                  \
  F(AdapterHasFeature, uint32_t, Adapter, uint32_t)                                                \
  F(AdapterGetInfo, uint32_t, Adapter, AdapterInfo*)                                               \
  F(DeviceGetQueue, Queue, Device)                                                                 \
  F(DeviceDestroy, void, Device)                                                                   \
  F(DevicePushErrorScope, void, Device, uint32_t)                                                  \
  C(DevicePopErrorScope, uint64_t, Device, CallbackInfo)                                           \
  F(DeviceCreateShaderModule, ShaderModule, Device, const ShaderModuleDescriptor*)                 \
  F(DeviceCreateBindGroupLayout, BindGroupLayout, Device, const BindGroupLayoutDescriptor*)        \
  F(DeviceCreatePipelineLayout, PipelineLayout, Device, const PipelineLayoutDescriptor*)           \
  F(DeviceCreateComputePipeline, ComputePipeline, Device, const ComputePipelineDescriptor*)        \
  F(DeviceCreateBindGroup, BindGroup, Device, const BindGroupDescriptor*)                          \
  F(DeviceCreateBuffer, Buffer, Device, const BufferDescriptor*)                                   \
  F(DeviceCreateQuerySet, QuerySet, Device, const QuerySetDescriptor*)                             \
  F(DeviceCreateCommandEncoder, CommandEncoder, Device, const void*)                               \
  F(CommandEncoderBeginComputePass, ComputePassEncoder, CommandEncoder,                            \
    const ComputePassDescriptor*)                                                                  \
  F(CommandEncoderCopyBufferToBuffer, void, CommandEncoder, Buffer, uint64_t, Buffer, uint64_t,    \
    uint64_t)                                                                                      \
  F(CommandEncoderResolveQuerySet, void, CommandEncoder, QuerySet, uint32_t, uint32_t, Buffer,     \
    uint64_t)                                                                                      \
  F(CommandEncoderFinish, CommandBuffer, CommandEncoder, const void*)                              \
  F(ComputePassEncoderSetPipeline, void, ComputePassEncoder, ComputePipeline)                      \
  F(ComputePassEncoderSetBindGroup, void, ComputePassEncoder, uint32_t, BindGroup, size_t,         \
    const uint32_t*)                                                                               \
  F(ComputePassEncoderDispatchWorkgroups, void, ComputePassEncoder, uint32_t, uint32_t, uint32_t)  \
  F(ComputePassEncoderEnd, void, ComputePassEncoder)                                               \
  F(QueueSubmit, void, Queue, size_t, const CommandBuffer*)                                        \
  F(QueueWriteBuffer, void, Queue, Buffer, uint64_t, const void*, size_t)                          \
  C(QueueOnSubmittedWorkDone, uint64_t, Queue, CallbackInfo)                                       \
  C(BufferMapAsync, uint64_t, Buffer, uint64_t, size_t, size_t, CallbackInfo)                      \
  F(BufferGetConstMappedRange, const void*, Buffer, size_t, size_t)                                \
  F(BufferUnmap, void, Buffer)                                                                     \
  O(InstanceEnumerateAdapters, size_t, Instance, const EnumerateOptions*, Adapter*)                \
  O(DevicePoll, uint32_t, Device, uint32_t, const uint64_t*)                                       \
  O(DeviceCreateShaderModuleTrusted, ShaderModule, Device, const ShaderModuleDescriptor*, uint64_t)\
  O(QueueGetTimestampPeriod, float, Queue)                                                         \
  O(GetVersion, uint32_t)
// clang-format on

struct Api {
#define PRISM_F(name, result, ...) result (*name)(__VA_ARGS__) = nullptr;
#define PRISM_R(name)                            \
  void (*name##Release)(webgpu::name) = nullptr; \
  Handle<webgpu::name> own(webgpu::name object) const { return {object, name##Release}; }
  PRISM_WEBGPU_FUNCTIONS(PRISM_F, PRISM_F, PRISM_F)
  PRISM_WEBGPU_OBJECTS(PRISM_R)
#undef PRISM_F
#undef PRISM_R

  Flavour flavour = Flavour::kStandard;
  std::string library;  // file, and version where it tells
  bool standard() const { return flavour == Flavour::kStandard; }
  uint32_t feature(std::array<uint32_t, 2> by_flavour) const {
    return by_flavour[standard() ? 0 : 1];
  }
};

// A feature's number in the standard flavour and in Dawn's of early 2025; 0: not there.
inline constexpr std::array<uint32_t, 2> kTimestamps{9, 3}, kShaderF16{0x0B, 8};
inline constexpr std::array<uint32_t, 2> kSubgroups{0x12, 13}, kSubgroupsF16{0, 14};
// wgpu-native offers subgroups as an extension of its own, and refuses the directive for them.
inline constexpr std::array<uint32_t, 2> kSubgroupsUnasked{0x30021, 0};

// Null with *reason when the file does not open or lacks a function.
std::shared_ptr<const Api> load_api(const std::string& file, std::string* reason);

// What a callback brought. Shared with the library, which may answer after the asker gave up.
struct Answer {
  std::atomic<bool> done{false};
  uint32_t status = 0;
  void* object = nullptr;
  std::string message;
};
enum class Asked { kObject, kErrorScope, kMap, kWorkDone };
// The callback for one call, which fills the answer.
CallbackInfo asking(const Api& api, Asked what, const std::shared_ptr<Answer>& answer);

std::string text_of(StringView view);
inline StringView view_of(const std::string& text) { return {text.data(), text.size()}; }

}  // namespace prism::webgpu
