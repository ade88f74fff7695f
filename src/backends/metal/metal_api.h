// The Objective-C runtime and the Metal framework opened at run time: the messages Prism sends, as
// plain C++ calls.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

#include "base/handle.h"

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
  void* send_struct = nullptr;  // objc_msgSend_stret, which only x86-64 has
  Selector (*register_name)(const char*) = nullptr;
  Id (*get_class)(const char*) = nullptr;
  void* (*push_pool)() = nullptr;
  void (*pop_pool)(void*) = nullptr;
  Id (*copy_all_devices)() = nullptr;  // MTLCopyAllDevices
  std::string library;                 // of Metal
};

// One message with the types of its arguments: objc_msgSend is called as the function that answers.
template <class Result, class... Arguments>
class Message {
 public:
  Message(const Runtime& runtime, const char* name)
      : send_(runtime.send), selector_(runtime.register_name(name)) {
#ifdef __x86_64__
    constexpr bool kInMemory = sizeof(std::conditional_t<std::is_void_v<Result>, int, Result>) > 16;
    if (kInMemory) send_ = runtime.send_struct;
#endif
  }
  Result operator()(Id to, Arguments... arguments) const {
    return reinterpret_cast<Result (*)(Id, Selector, Arguments...)>(send_)(to, selector_,
                                                                           arguments...);
  }

 private:
  void* send_;
  Selector selector_;
};

// MTLCommandBufferStatus, MTLGPUFamily, MTLResourceOptions
inline constexpr UInteger kCompleted = 4, kFailed = 5;
inline constexpr long kApple1 = 1001;
inline constexpr UInteger kShared = 0, kPrivate = 2 << 4;

struct Api {
  explicit Api(const Runtime& opened) : runtime(opened) {}

  Handle<Id> own(Id object) const {
    return {object, [this](Id o) { release(o); }};
  }
  // What a message gave without giving it away lives until the pool around the call ends, or is
  // kept.
  Handle<void*> pool() const { return {runtime.push_pool(), runtime.pop_pool}; }
  Handle<Id> keep(Id object) const { return own(retain(object)); }
  Handle<Id> make_string(const std::string& text) const {
    return own(init_text(allocate(runtime.get_class("NSString")), text.c_str()));
  }
  std::string text_of(Id string) const;
  std::string error_text(Id of) const;
  bool can(Id object, const char* message) const {
    return responds(object, runtime.register_name(message));
  }

  Runtime runtime;

  // Messages by the types of their answers and arguments.
  template <class... Types>
  using M = Message<Types...>;
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

// Opens both libraries: those of the system, or those that PRISM_OBJC_LIBRARY and
// PRISM_METAL_LIBRARY name. Null with *reason.
std::shared_ptr<const Api> open_api(std::string* reason);

}  // namespace prism::metal
