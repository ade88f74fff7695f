// The part of the Objective-C and Metal interfaces that compute needs: types, constants, and
// messages with their result and argument types.
#pragma once

#include <cstdint>
#include <string>

namespace prism::metal {

struct Object;
using Id = Object*;  // any object or class; null is nil
struct SelectorName;
using Selector = const SelectorName*;
using UInteger = unsigned long;  // NSUInteger

struct Size {  // MTLSize
  UInteger width, height, depth;
};

struct Runtime {
  void* send = nullptr;         // objc_msgSend
  void* send_struct = nullptr;  // objc_msgSend_stret, on x86-64 only
  Selector (*register_name)(const char*) = nullptr;
  Id (*get_class)(const char*) = nullptr;
  void* (*push_pool)() = nullptr;
  void (*pop_pool)(void*) = nullptr;
  Id (*copy_all_devices)() = nullptr;  // MTLCopyAllDevices
  std::string library;                 // path of the Metal library
};

// MTLCommandBufferStatus, MTLGPUFamily, MTLResourceOptions
inline constexpr UInteger kCompleted = 4, kFailed = 5;
inline constexpr long kApple1 = 1001;
inline constexpr UInteger kShared = 0, kPrivate = 2 << 4;

// M<Result, Arguments...>: sends one message; constructed from the runtime and the message's name.
template <template <class...> class M>
struct Messages {
  explicit Messages(const Runtime& opened) : runtime(opened) {}
  Runtime runtime;

  M<Id> allocate{runtime, "alloc"}, make_new{runtime, "new"}, retain{runtime, "retain"};
  M<Id> process_info{runtime, "processInfo"}, name{runtime, "name"}, error{runtime, "error"};
  M<Id> system_version{runtime, "operatingSystemVersionString"};
  M<Id> description{runtime, "localizedDescription"}, new_queue{runtime, "newCommandQueue"};
  M<Id> command_buffer{runtime, "commandBuffer"}, encoder{runtime, "computeCommandEncoder"};
  M<void> release{runtime, "release"}, end_encoding{runtime, "endEncoding"};
  M<void> commit{runtime, "commit"}, wait{runtime, "waitUntilCompleted"};
  M<UInteger> count{runtime, "count"}, status{runtime, "status"};
  M<UInteger> allocated{runtime, "currentAllocatedSize"}, max_buffer{runtime, "maxBufferLength"};
  M<UInteger> threadgroup_memory{runtime, "maxThreadgroupMemoryLength"};
  M<UInteger> pipeline_threads{runtime, "maxTotalThreadsPerThreadgroup"};
  M<UInteger> pipeline_width{runtime, "threadExecutionWidth"};
  M<uint64_t> working_set{runtime, "recommendedMaxWorkingSetSize"};
  M<long> code{runtime, "code"};
  M<bool> has_unified_memory{runtime, "hasUnifiedMemory"};
  M<double> gpu_start{runtime, "GPUStartTime"}, gpu_end{runtime, "GPUEndTime"};
  M<const char*> utf8{runtime, "UTF8String"};
  M<void*> contents{runtime, "contents"};
  M<Size> max_threads{runtime, "maxThreadsPerThreadgroup"};
  M<bool, Selector> responds{runtime, "respondsToSelector:"};
  M<bool, long> supports_family{runtime, "supportsFamily:"};
  M<Id, const char*> init_text{runtime, "initWithUTF8String:"};
  M<Id, UInteger> at{runtime, "objectAtIndex:"};
  M<Id, UInteger, UInteger> new_buffer{runtime, "newBufferWithLength:options:"};
  M<Id, void*, UInteger, UInteger, Id> new_buffer_over{
      runtime, "newBufferWithBytesNoCopy:length:options:deallocator:"};
  M<Id, Id> new_function{runtime, "newFunctionWithName:"};
  M<Id, Id, Id, Id*> new_library{runtime, "newLibraryWithSource:options:error:"};
  M<Id, Id, Id*> new_pipeline{runtime, "newComputePipelineStateWithFunction:error:"};
  M<void, bool> set_fast_math{runtime, "setFastMathEnabled:"};
  M<void, long> set_math_mode{runtime, "setMathMode:"};
  M<void, long> set_math_functions{runtime, "setMathFloatingPointFunctions:"};
  M<void, Id> set_pipeline{runtime, "setComputePipelineState:"};
  M<void, Id, UInteger, UInteger> set_buffer{runtime, "setBuffer:offset:atIndex:"};
  M<void, const void*, UInteger, UInteger> set_bytes{runtime, "setBytes:length:atIndex:"};
  M<void, Size, Size> dispatch{runtime, "dispatchThreadgroups:threadsPerThreadgroup:"};
};

}  // namespace prism::metal
