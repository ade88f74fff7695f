// Selects the CUDA double linked into this library or NVIDIA's libraries.
#include "doubles/hip_double_twins.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "doubles/hip_double.h"

namespace prism::test::hip_double {
namespace {

// Resolves a library's functions by name. The double's are in this library.
class Source {
 public:
  explicit Source(void* handle) : handle_(handle) {}
  template <class Function>
  void operator()(Function& function, const char* name) {
    function = handle_ ? reinterpret_cast<Function>(dlsym(handle_, name)) : nullptr;
    if (!function && complete_) std::fprintf(stderr, "hip double: no %s\n", name);
    complete_ = complete_ && function;
  }
  bool complete() const { return complete_; }

 private:
  void* handle_;
  bool complete_ = true;
};

void* open_source(const char* real, const char* variable) {
  if (settings().forward) {
    const char* named = std::getenv(variable);
    void* handle = dlopen(named && *named ? named : real, RTLD_NOW | RTLD_LOCAL);
    if (!handle) std::fprintf(stderr, "hip double: %s\n", dlerror());
    return handle;
  }
  Dl_info own{};
  dladdr(reinterpret_cast<const void*>(&prism_hip_double_set), &own);
  return dlopen(own.dli_fname, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
}

}  // namespace

const Twins* twins() {
  static Twins table;
  static const bool complete = [] {
    Source get(open_source("libcuda.so.1", "PRISM_FORWARD_CUDA_LIBRARY"));
    get(table.init, "cuInit");
    get(table.device_count, "cuDeviceGetCount");
    get(table.device_name, "cuDeviceGetName");
    get(table.device_attribute, "cuDeviceGetAttribute");
    get(table.device_total, "cuDeviceTotalMem_v2");
    get(table.device_pci, "cuDeviceGetPCIBusId");
    get(table.context_retain, "cuDevicePrimaryCtxRetain");
    get(table.context_push, "cuCtxPushCurrent_v2");
    get(table.context_pop, "cuCtxPopCurrent_v2");
    get(table.memory_info, "cuMemGetInfo_v2");
    get(table.memory_allocate, "cuMemAlloc_v2");
    get(table.memory_free, "cuMemFree_v2");
    get(table.host_allocate, "cuMemHostAlloc");
    get(table.host_free, "cuMemFreeHost");
    get(table.copy_to_device, "cuMemcpyHtoDAsync_v2");
    get(table.copy_to_host, "cuMemcpyDtoHAsync_v2");
    get(table.copy_on_device, "cuMemcpyDtoDAsync_v2");
    get(table.module_load, "cuModuleLoadData");
    get(table.module_unload, "cuModuleUnload");
    get(table.module_function, "cuModuleGetFunction");
    get(table.launch, "cuLaunchKernel");
    get(table.stream_create, "cuStreamCreate");
    get(table.stream_destroy, "cuStreamDestroy_v2");
    get(table.stream_synchronize, "cuStreamSynchronize");
    get(table.stream_begin_capture, "cuStreamBeginCapture_v2");
    get(table.stream_end_capture, "cuStreamEndCapture");
    get(table.event_create, "cuEventCreate");
    get(table.event_destroy, "cuEventDestroy_v2");
    get(table.event_record, "cuEventRecord");
    get(table.event_query, "cuEventQuery");
    get(table.event_synchronize, "cuEventSynchronize");
    get(table.event_elapsed, "cuEventElapsedTime");
    get(table.graph_instantiate, "cuGraphInstantiateWithFlags");
    get(table.graph_destroy, "cuGraphDestroy");
    get(table.graph_exec_destroy, "cuGraphExecDestroy");
    get(table.graph_launch, "cuGraphLaunch");
    return get.complete();
  }();
  return complete ? &table : nullptr;
}

const CompilerTwins* compiler_twins() {
  static CompilerTwins table;
  static const bool complete = [] {
    Source get(open_source("libnvrtc.so.12", "PRISM_FORWARD_NVRTC_LIBRARY"));
    get(table.create, "nvrtcCreateProgram");
    get(table.destroy, "nvrtcDestroyProgram");
    get(table.compile, "nvrtcCompileProgram");
    get(table.code_size, "nvrtcGetCUBINSize");
    get(table.code, "nvrtcGetCUBIN");
    get(table.log_size, "nvrtcGetProgramLogSize");
    get(table.log, "nvrtcGetProgramLog");
    return get.complete();
  }();
  return complete ? &table : nullptr;
}

}  // namespace prism::test::hip_double
