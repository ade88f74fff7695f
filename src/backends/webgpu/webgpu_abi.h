// The part of WebGPU's C interface that compute needs, in the memory layouts of wgpu-native and
// Dawn.
//
// Declared here because neither a user's library nor Dawn's wheel includes headers, and the
// interface changed between the releases of the two: Flavour selects the differences. Checked
// against webgpu.h of wgpu-native 29 (wgpu-py 0.32) and the ctypes declarations of Dawn 6940
// (dawn-python 0.3).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace prism::webgpu {

enum class Flavour {
  kStandard,  // webgpu.h since 2025
  kDawn2025,  // before callbacks lost their suffix 2 and enumerations gained members
};

// A table with one line per object or field.
// clang-format off
#define PRISM_WEBGPU_OBJECTS(X)                                                                    \
  X(Instance) X(Adapter) X(Device) X(Queue) X(Buffer) X(ShaderModule) X(BindGroupLayout)           \
  X(BindGroup) X(PipelineLayout) X(ComputePipeline) X(CommandEncoder) X(ComputePassEncoder)        \
  X(CommandBuffer) X(QuerySet)
#define PRISM_WEBGPU_OBJECT(name) using name = struct name##Object*;
PRISM_WEBGPU_OBJECTS(PRISM_WEBGPU_OBJECT)
#undef PRISM_WEBGPU_OBJECT

// Feature numbers in the standard flavour and in Dawn's of early 2025; 0: absent.
inline constexpr std::array<uint32_t, 2> kTimestamps{9, 3}, kShaderF16{0x0B, 8};
inline constexpr std::array<uint32_t, 2> kSubgroups{0x12, 13}, kSubgroupsF16{0, 14};
// wgpu-native's own subgroup extension; it rejects the `enable subgroups` directive.
inline constexpr std::array<uint32_t, 2> kSubgroupsUnasked{0x30021, 0};

// length SIZE_MAX: data is null-terminated; with a null pointer: no string
struct StringView { const char* data = nullptr; size_t length = SIZE_MAX; };
struct Chain { const Chain* next = nullptr; uint32_t type = 0; };
// Every callback takes (results..., user1, user2); the function type depends on the call.
struct ErrorCallbackInfo {
  const Chain* next = nullptr; void* callback = nullptr; void* user1 = nullptr; void* user2 = nullptr;
};
struct CallbackInfo {
  const Chain* next = nullptr;
  uint32_t mode = 2;  // during ProcessEvents; 3: at any time
  void* callback = nullptr; void* user1 = nullptr; void* user2 = nullptr;
};

inline constexpr uint32_t kSuccess = 1;  // for requests and maps alike
inline constexpr uint32_t kNoError = 1, kOutOfMemory = 3;  // error types
inline constexpr uint64_t kMapRead = 1, kComputeStage = 4;
enum BufferUsage : uint64_t {
  kUsageMapRead = 1, kUsageCopySource = 4, kUsageCopyTarget = 8, kUsageUniform = 0x40,
  kUsageStorage = 0x80, kUsageQueryResolve = 0x200
};

inline constexpr uint32_t kStorageBuffers = 11;  // index into Limits::counts
// Passed back as read. Both flavours agree up to max_buffer_bytes; Dawn's compute limits come one
// word later.
struct Limits {
  const Chain* next = nullptr;
  uint32_t counts[14] = {};
  uint64_t max_uniform_binding_bytes = 0, max_storage_binding_bytes = 0;
  uint32_t min_uniform_alignment = 0, min_storage_alignment = 0, max_vertex_buffers = 0;
  uint64_t max_buffer_bytes = 0;
  uint32_t later[32] = {};  // room for the rest; both flavours use less
};

struct QueueDescriptor { const Chain* next = nullptr; StringView label{}; };
struct DeviceDescriptor {
  const Chain* next = nullptr; StringView label{};
  size_t feature_count = 0; const uint32_t* features = nullptr;
  const Limits* limits = nullptr;
  QueueDescriptor queue{};
  CallbackInfo device_lost{};
  ErrorCallbackInfo uncaptured_error{};
};
static_assert(sizeof(DeviceDescriptor) == 144);

// The last two words are subgroup sizes in the standard flavour and unused in Dawn's, which chains
// SubgroupSizes.
struct AdapterInfo {
  const Chain* next = nullptr;
  StringView vendor, architecture, device, description;
  uint32_t backend = 0, type = 0, vendor_id = 0, device_id = 0, subgroup_min = 0, subgroup_max = 0;
};

inline constexpr const char* kBackends[] = {"?", "Null", "WebGPU", "Direct3D 11", "Direct3D 12", "Metal",
                                            "Vulkan", "OpenGL", "OpenGL ES"};
inline constexpr uint32_t kIntegrated = 2, kCpu = 3;  // adapter types

struct WgslSource { Chain chain{nullptr, 2}; StringView code{}; };
struct ShaderModuleDescriptor { const Chain* next = nullptr; StringView label{}; };
struct BufferDescriptor {
  const Chain* next = nullptr; StringView label{};
  uint64_t usage = 0, bytes = 0;
  uint32_t mapped_at_creation = 0;
};

enum class BindingType { kUniform, kStorage, kReadOnlyStorage };
struct BufferLayout {
  const Chain* next = nullptr; uint32_t type = 0; uint32_t dynamic_offset = 0; uint64_t min_bytes = 0;
};
// An entry for a buffer; the sampler and texture layouts after it stay zero ("not used").
struct StandardLayoutEntry {
  const Chain* next = nullptr;
  uint32_t binding = 0; uint64_t visibility = 0; uint32_t array_size = 0;
  BufferLayout buffer{}; uint64_t unused[8] = {};
};
static_assert(sizeof(StandardLayoutEntry) == 120);
struct Dawn2025LayoutEntry {
  const Chain* next = nullptr;
  uint32_t binding = 0; uint64_t visibility = 0;
  BufferLayout buffer{}; uint64_t unused[8] = {};
};
static_assert(sizeof(Dawn2025LayoutEntry) == 112);
struct BindGroupLayoutDescriptor {
  const Chain* next = nullptr; StringView label{}; size_t entry_count = 0; const void* entries = nullptr;
};
struct PipelineLayoutDescriptor {
  const Chain* next = nullptr; StringView label{};
  size_t layout_count = 0; const BindGroupLayout* layouts = nullptr;
  uint32_t immediate_bytes = 0;
};
struct ComputePipelineDescriptor {
  const Chain* next = nullptr; StringView label{};
  PipelineLayout layout = nullptr;  // null: derived from the entry point
  struct {
    const Chain* next = nullptr; ShaderModule module = nullptr; StringView entry{};
    size_t constant_count = 0; const void* constants = nullptr;
  } compute{};
};
struct BindGroupEntry {
  const Chain* next = nullptr;
  uint32_t binding = 0; Buffer buffer = nullptr; uint64_t offset = 0, bytes = 0;
  void* sampler = nullptr; void* texture = nullptr;
};
struct BindGroupDescriptor {
  const Chain* next = nullptr; StringView label{};
  BindGroupLayout layout = nullptr; size_t entry_count = 0; const BindGroupEntry* entries = nullptr;
};

struct QuerySetDescriptor {
  const Chain* next = nullptr; StringView label{}; uint32_t type = 2 /* timestamps */, count = 1;
};
// Where a pass writes its timestamps; UINT32_MAX: not requested. Dawn's version has no chain and
// begins at set.
struct TimestampWrites {
  const Chain* next = nullptr; QuerySet set = nullptr;
  uint32_t at_begin = UINT32_MAX, at_end = UINT32_MAX;
};
struct ComputePassDescriptor {
  const Chain* next = nullptr; StringView label{}; const void* timestamps = nullptr;
};

// wgpu-native's selection of graphics interfaces; the rest of its extension is zero (defaults).
struct InstanceExtras { Chain chain{nullptr, 0x30004}; uint64_t backends = 0, flags = 0, rest[24] = {}; };
struct InstanceDescriptor {
  const Chain* next = nullptr;
  size_t feature_count = 0; const uint32_t* features = nullptr; const void* limits = nullptr;
};
struct EnumerateOptions { const Chain* next = nullptr; uint64_t backends = 0; };  // wgpu-native only
// Dawn's chained structures: subgroup sizes of an adapter, toggles and program cache of a device.
struct SubgroupSizes { Chain chain{nullptr, 10}; uint32_t min = 0, max = 0; };
struct DawnToggles {
  Chain chain{nullptr, 0x5000A};
  size_t enabled_count = 0; const char* const* enabled = nullptr;
  size_t disabled_count = 0; const char* const* disabled = nullptr;
};
struct DawnCache {
  Chain chain{nullptr, 0x50007};
  StringView isolation_key{};
  size_t (*load)(const void* key, size_t key_bytes, void* to, size_t bytes, void*) = nullptr;
  void (*store)(const void* key, size_t, const void* from, size_t bytes, void*) = nullptr;
  void* user = nullptr;
};

// F(name in webgpu.h without its prefix, result, parameters); C: functions that take a callback; O:
// functions that only wgpu-native has.
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

}  // namespace prism::webgpu
