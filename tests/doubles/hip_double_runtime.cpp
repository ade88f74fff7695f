// The double's HIP runtime: each call goes to its CUDA counterpart, in the context of the thread's
// device.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "doubles/hip_double.h"
#include "doubles/hip_double_twins.h"

namespace {

using prism::test::hip_double::settings;
using prism::test::hip_double::told_to_fail;
using prism::test::hip_double::Twins;
using prism::test::hip_double::twins;

constexpr int kMostDevices = 8;
thread_local int current_device = 0;

// HIP creates a device's context implicitly; CUDA's is retained once and made current during a
// call.
class Context {
 public:
  Context() {
    static void* contexts[kMostDevices] = {};
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    void*& context = contexts[current_device];
    if (!context) result_ = twins()->context_retain(&context, current_device);
    if (result_ == 0) result_ = twins()->context_push(context);
    entered_ = result_ == 0;
  }
  ~Context() {
    void* ignored = nullptr;
    if (entered_) twins()->context_pop(&ignored);
  }
  int result() const { return result_; }

 private:
  int result_ = 0;
  bool entered_ = false;
};

template <class Function, class... Arguments>
int in_context(const char* name, Function Twins::*function, Arguments... arguments) {
  if (const int told = told_to_fail(name)) return told;
  if (!twins()) return 100;
  const Context context;
  return context.result() ? context.result() : (twins()->*function)(arguments...);
}

template <class Function, class... Arguments>
int plain(const char* name, Function Twins::*function, Arguments... arguments) {
  if (const int told = told_to_fail(name)) return told;
  return twins() ? (twins()->*function)(arguments...) : 100;
}

bool is_wide_wave() { return settings().gfx.size() < std::strlen("gfx1030"); }

}  // namespace

extern "C" {

int hipInit(unsigned flags) {
  const int result = plain(__func__, &Twins::init, flags);
  int major = 0, minor = 0;
  // Queried now: the compiler is probed in a child process, where the driver no longer works.
  if (result == 0 && settings().forward && twins()->device_attribute(&major, 75, 0) == 0 &&
      twins()->device_attribute(&minor, 76, 0) == 0)
    settings().architecture = "sm_" + std::to_string(major) + std::to_string(minor);
  return result;
}

int hipRuntimeGetVersion(int* version) {
  *version = settings().hip;
  return told_to_fail(__func__);
}

const char* hipGetErrorName(int result) {
  switch (result) {
    case 1:
      return "hipErrorInvalidValue";
    case 2:
      return "hipErrorOutOfMemory";
    case 100:
      return "hipErrorNoDevice";
    case 209:
      return "hipErrorNoBinaryForGpu";
    case 700:
      return "hipErrorIllegalAddress";
    case 719:
      return "hipErrorLaunchFailure";
    default:
      return "hipErrorUnknown";
  }
}

const char* hipGetErrorString(int result) {
  return result == 700 ? "an illegal memory access was encountered" : hipGetErrorName(result);
}

int hipGetDeviceCount(int* count) {
  const int result = plain(__func__, &Twins::device_count, count);
  return result == 0 && *count == 0 ? 100 : result;
}

int hipGetDevice(int* device) {
  *device = current_device;
  return told_to_fail(__func__);
}

int hipSetDevice(int device) {
  int count = 0;
  if (const int told = told_to_fail(__func__)) return told;
  if (!twins() || twins()->device_count(&count) != 0 || device < 0 || device >= count) return 101;
  current_device = device;
  return 0;
}

int hipDeviceGetName(char* name, int bytes, int device) {
  const int result = plain(__func__, &Twins::device_name, name, bytes, device);
  if (result == 0 && settings().forward)
    std::strncat(name, " by forwarding", static_cast<size_t>(bytes) - std::strlen(name) - 1);
  return result;
}

int hipDeviceGetAttribute(int* value, int which, int device) {
  if (const int told = told_to_fail(__func__)) return told;
  switch (which) {
    case 16:  // integrated
      return twins()->device_attribute(value, 18, device);
    case 29:  // groups along x
      return twins()->device_attribute(value, 5, device);
    case 56:  // lanes of a group
      return twins()->device_attribute(value, 1, device);
    case 63:  // compute units
      return twins()->device_attribute(value, 16, device);
    case 74:  // shared memory that a kernel may declare
      *value = settings().forward ? 48 << 10 : 64 << 10;
      return 0;
    case 87:  // lanes of a wave
      *value = is_wide_wave() ? 64 : 32;
      return 0;
    default:
      return 1;
  }
}

int hipDeviceTotalMem(size_t* bytes, int device) {
  return plain(__func__, &Twins::device_total, bytes, device);
}

int hipDeviceGetPCIBusId(char* text, int bytes, int device) {
  return plain(__func__, &Twins::device_pci, text, bytes, device);
}

// With ROCm 5's layout: the card's name, and the chip's name after the numbers.
int hipGetDeviceProperties(void* properties, int device) {
  if (const int told = told_to_fail(__func__)) return told;
  auto* bytes = static_cast<char*>(properties);
  std::memset(bytes, 0, 792);
  plain("hipDeviceGetName", &Twins::device_name, bytes, 256, device);
  std::snprintf(bytes + 396, 256, "%s:sramecc-:xnack-", settings().gfx.c_str());
  return 0;
}

int hipMemGetInfo(size_t* free, size_t* total) {
  return in_context(__func__, &Twins::memory_info, free, total);
}
int hipMalloc(uint64_t* pointer, size_t bytes) {
  return in_context(__func__, &Twins::memory_allocate, pointer, bytes);
}
int hipFree(uint64_t pointer) { return in_context(__func__, &Twins::memory_free, pointer); }
int hipHostMalloc(void** pointer, size_t bytes, unsigned flags) {
  return in_context(__func__, &Twins::host_allocate, pointer, bytes, flags);
}
int hipHostFree(void* pointer) { return in_context(__func__, &Twins::host_free, pointer); }
int hipMemcpyHtoDAsync(uint64_t to, const void* from, size_t bytes, void* stream) {
  return in_context(__func__, &Twins::copy_to_device, to, from, bytes, stream);
}
int hipMemcpyDtoHAsync(void* to, uint64_t from, size_t bytes, void* stream) {
  return in_context(__func__, &Twins::copy_to_host, to, from, bytes, stream);
}
int hipMemcpyDtoDAsync(uint64_t to, uint64_t from, size_t bytes, void* stream) {
  return in_context(__func__, &Twins::copy_on_device, to, from, bytes, stream);
}
int hipModuleLoadData(void** module, const void* image) {
  if (settings().no_binary) return 209;
  return in_context(__func__, &Twins::module_load, module, image);
}
int hipModuleUnload(void* module) { return in_context(__func__, &Twins::module_unload, module); }
int hipModuleGetFunction(void** function, void* module, const char* name) {
  return in_context(__func__, &Twins::module_function, function, module, name);
}
int hipModuleLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                          unsigned by, unsigned bz, unsigned shared_bytes, void* stream,
                          void** params, void** extra) {
  // AMD's chips measure a grid in lanes.
  if (uint64_t{gx} * bx > 0xffffffffu || shared_bytes != 0) return 1;
  return in_context(__func__, &Twins::launch, function, gx, gy, gz, bx, by, bz, shared_bytes,
                    stream, params, extra);
}
int hipStreamCreateWithFlags(void** stream, unsigned flags) {
  return in_context(__func__, &Twins::stream_create, stream, flags);
}
int hipStreamDestroy(void* stream) { return in_context(__func__, &Twins::stream_destroy, stream); }
int hipStreamSynchronize(void* stream) {
  return in_context(__func__, &Twins::stream_synchronize, stream);
}
int hipStreamBeginCapture(void* stream, int mode) {
  return in_context(__func__, &Twins::stream_begin_capture, stream, mode);
}
int hipStreamEndCapture(void* stream, void** graph) {
  const int told = told_to_fail(__func__);
  const int result = in_context("", &Twins::stream_end_capture, stream, graph);
  if (told && result == 0) {  // a failed capture has ended too
    in_context("", &Twins::graph_destroy, *graph);
    *graph = nullptr;
  }
  return told ? told : result;
}
int hipEventCreateWithFlags(void** event, unsigned flags) {
  return in_context(__func__, &Twins::event_create, event, flags);
}
int hipEventDestroy(void* event) { return in_context(__func__, &Twins::event_destroy, event); }
int hipEventRecord(void* event, void* stream) {
  return in_context(__func__, &Twins::event_record, event, stream);
}
int hipEventQuery(void* event) { return in_context(__func__, &Twins::event_query, event); }
int hipEventSynchronize(void* event) {
  return in_context(__func__, &Twins::event_synchronize, event);
}
int hipEventElapsedTime(float* ms, void* from, void* to) {
  return in_context(__func__, &Twins::event_elapsed, ms, from, to);
}
int hipGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long flags) {
  return in_context(__func__, &Twins::graph_instantiate, exec, graph, flags);
}
int hipGraphDestroy(void* graph) { return in_context(__func__, &Twins::graph_destroy, graph); }
int hipGraphExecDestroy(void* exec) {
  return in_context(__func__, &Twins::graph_exec_destroy, exec);
}
int hipGraphLaunch(void* exec, void* stream) {
  return in_context(__func__, &Twins::graph_launch, exec, stream);
}

}  // extern "C"
