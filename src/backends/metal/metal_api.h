// The Objective-C runtime and the Metal framework opened at run time: the messages Prism sends, as
// plain C++ calls.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "base/dynamic_library.h"
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
  Api(DynamicLibrary objc, DynamicLibrary metal, const Runtime& opened)
      : objc_library(std::move(objc)), metal_library(std::move(metal)), runtime(opened) {}

  Handle<Id> own(Id object) const {
    return {object, [this](Id o) { release(o); }};
  }
  // What a message gave without giving it away.
  Handle<Id> keep(Id object) const { return own(retain(object)); }
  Handle<Id> make(const char* class_name) const {
    return own(make_new(runtime.get_class(class_name)));
  }
  Handle<Id> make_string(const std::string& text) const {
    return own(init_text(allocate(runtime.get_class("NSString")), text.c_str()));
  }
  std::string text_of(Id string) const;
  std::string error_text(Id of) const;
  bool can(Id object, const char* message) const {
    return responds(object, runtime.register_name(message));
  }

  DynamicLibrary objc_library, metal_library;
  Runtime runtime;
  template <class... Types>
  using M = Message<Types...>;

  M<Id> allocate{runtime, "alloc"}, make_new{runtime, "new"}, retain{runtime, "retain"};
  M<void> release{runtime, "release"};
  M<bool, Selector> responds{runtime, "respondsToSelector:"};
  M<Id, const char*> init_text{runtime, "initWithUTF8String:"};
  M<const char*> utf8{runtime, "UTF8String"};
  M<UInteger> count{runtime, "count"};
  M<Id, UInteger> at{runtime, "objectAtIndex:"};
  M<Id> process_info{runtime, "processInfo"};
  M<Id> system_version{runtime, "operatingSystemVersionString"};
  M<Id> description{runtime, "localizedDescription"};
  M<long> code{runtime, "code"};

  M<Id> name{runtime, "name"};
  M<bool, long> supports_family{runtime, "supportsFamily:"};
  M<bool> has_unified_memory{runtime, "hasUnifiedMemory"};
  M<uint64_t> working_set{runtime, "recommendedMaxWorkingSetSize"};
  M<UInteger> allocated{runtime, "currentAllocatedSize"};
  M<UInteger> max_buffer{runtime, "maxBufferLength"};
  M<UInteger> threadgroup_memory{runtime, "maxThreadgroupMemoryLength"};
  M<Size> max_threads{runtime, "maxThreadsPerThreadgroup"};
  M<Id> new_queue{runtime, "newCommandQueue"};
  M<Id, UInteger, UInteger> new_buffer{runtime, "newBufferWithLength:options:"};
  M<void*> contents{runtime, "contents"};

  M<void, bool> set_fast_math{runtime, "setFastMathEnabled:"};
  M<void, long> set_math_mode{runtime, "setMathMode:"};
  M<Id, Id, Id, Id*> new_library{runtime, "newLibraryWithSource:options:error:"};
  M<Id, Id> new_function{runtime, "newFunctionWithName:"};
  M<Id, Id, Id*> new_pipeline{runtime, "newComputePipelineStateWithFunction:error:"};
  M<UInteger> pipeline_threads{runtime, "maxTotalThreadsPerThreadgroup"};
  M<UInteger> pipeline_width{runtime, "threadExecutionWidth"};

  M<Id> command_buffer{runtime, "commandBuffer"};
  M<Id> compute_encoder{runtime, "computeCommandEncoder"};
  M<Id> blit_encoder{runtime, "blitCommandEncoder"};
  M<void> end_encoding{runtime, "endEncoding"};
  M<void> commit{runtime, "commit"};
  M<void> wait{runtime, "waitUntilCompleted"};
  M<UInteger> status{runtime, "status"};
  M<Id> error{runtime, "error"};
  M<double> gpu_start{runtime, "GPUStartTime"}, gpu_end{runtime, "GPUEndTime"};
  M<void, Id> set_pipeline{runtime, "setComputePipelineState:"};
  M<void, Id, UInteger, UInteger> set_buffer{runtime, "setBuffer:offset:atIndex:"};
  M<void, const void*, UInteger, UInteger> set_bytes{runtime, "setBytes:length:atIndex:"};
  M<void, Size, Size> dispatch{runtime, "dispatchThreadgroups:threadsPerThreadgroup:"};
  M<void, Id, UInteger, Id, UInteger, UInteger> copy{
      runtime, "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:"};
};

// Objects given without being given away live until the pool around the call ends.
class Pool {
 public:
  explicit Pool(const Api& api) : api_(api), pool_(api.runtime.push_pool()) {}
  ~Pool() { api_.runtime.pop_pool(pool_); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

 private:
  const Api& api_;
  void* pool_;
};

// Opens both libraries: those of the system, or those that PRISM_OBJC_LIBRARY and
// PRISM_METAL_LIBRARY name. Null with *reason.
std::shared_ptr<const Api> open_api(std::string* reason);

}  // namespace prism::metal
