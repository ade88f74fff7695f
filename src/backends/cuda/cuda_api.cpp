// Opens libcuda, fills its function table and translates its result codes.
#include "backends/cuda/cuda_api.h"

#include <cstdlib>
#include <filesystem>
#include <vector>

#include <fmt/format.h>

#include "runtime/discovery/device_node.h"

namespace prism::cuda {
namespace {

// Required for stream capture, graphs and the cubins of NVRTC 11.2, the oldest supported NVRTC.
constexpr int kOldestDriver = 11020;

std::vector<std::string> library_names() {
  if (const char* named = std::getenv("PRISM_CUDA_LIBRARY"); named && *named) return {named};
#ifdef _WIN32
  return {"nvcuda.dll"};
#else
  return {"libcuda.so.1", "libcuda.so", "/usr/lib/wsl/lib/libcuda.so.1"};
#endif
}

bool exists(const char* path) {
  std::error_code failed;
  return std::filesystem::exists(path, failed);
}

Absence no_library(const std::string& said) {
#ifdef __APPLE__
  (void)said;
  return {"NVIDIA ended its support of macOS", "use Metal"};
#else
  if (const char* named = std::getenv("PRISM_CUDA_LIBRARY"); named && *named)
    return {fmt::format("PRISM_CUDA_LIBRARY names {}, which cannot be opened ({})", named, said),
            "unset PRISM_CUDA_LIBRARY, or name NVIDIA's libcuda.so.1"};
  if (exists("/dev/nvidiactl") || exists("/dev/dxg"))
    return {"NVIDIA's kernel driver is loaded, but its library libcuda.so.1 is missing",
            "in a container: start it with --gpus all and "
            "NVIDIA_DRIVER_CAPABILITIES=compute,utility; otherwise install "
            "the driver's user libraries (Debian: libcuda1, Fedora: xorg-x11-drv-nvidia-cuda)"};
  return {"no libcuda.so.1: NVIDIA's driver is not installed",
          "with an NVIDIA card: install its driver (docs/backends.md)"};
#endif
}

Absence init_failed(const Api& api, Result result) {
  const std::string words = api.words(result);
  // CUDA reports an inaccessible node as "no device" or an unknown error, so check the nodes first.
  if (const auto denied = find_denied_node({"/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia-uvm"}))
    return {denied->reason, denied->next_step};
  switch (result) {
    case kNoDevice:
      return {"NVIDIA's driver is installed but sees no NVIDIA GPU",
              "see what nvidia-smi says; in a container: --gpus all; CUDA_VISIBLE_DEVICES may hide "
              "the card"};
    case kStubLibrary:
      return {"libcuda.so.1 is the toolkit's stub, not the driver",
              "take the stubs folder out of LD_LIBRARY_PATH, and install NVIDIA's driver"};
    case kDriverMismatch:
      return {"libcuda.so.1 and the loaded kernel module are of different versions",
              "restart the machine"};
    case kCompatNotSupported:
      return {"the forward-compatibility libcuda.so.1 does not support this card",
              "take the toolkit's compat folder out of LD_LIBRARY_PATH"};
    case kSystemNotReady:
      return {"the driver waits for a service that is not running (" + words + ")",
              "on NVSwitch machines start nvidia-fabricmanager"};
    case kNotPermitted:
      return {"the driver refuses this user (" + words + ")", "ask the machine's administrator"};
    default:
      return {"NVIDIA's driver does not start: " + words,
              "see what nvidia-smi says; after an update of the driver, restart the machine"};
  }
}

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

// Fills every pointer; returns the name of the first required function that is missing.
std::string bind(Api& api) {
  FunctionTable get(api.library);
  get(api.init, "cuInit");
  get(api.driver_version, "cuDriverGetVersion");
  get(api.error_name, "cuGetErrorName");
  get(api.error_text, "cuGetErrorString");
  get(api.device_count, "cuDeviceGetCount");
  get(api.device_get, "cuDeviceGet");
  get(api.device_name, "cuDeviceGetName");
  get(api.device_attribute, "cuDeviceGetAttribute");
  get(api.device_total, "cuDeviceTotalMem_v2");
  get(api.device_pci, "cuDeviceGetPCIBusId");
  get(api.context_retain, "cuDevicePrimaryCtxRetain");
  get(api.context_release, "cuDevicePrimaryCtxRelease_v2");
  get(api.context_push, "cuCtxPushCurrent_v2");
  get(api.context_pop, "cuCtxPopCurrent_v2");
  get(api.memory_info, "cuMemGetInfo_v2");
  get(api.memory_allocate, "cuMemAlloc_v2");
  get(api.memory_free, "cuMemFree_v2");
  get(api.memory_range, "cuMemGetAddressRange_v2");
  get(api.host_allocate, "cuMemHostAlloc");
  get(api.host_free, "cuMemFreeHost");
  get(api.copy_to_device, "cuMemcpyHtoDAsync_v2");
  get(api.copy_to_host, "cuMemcpyDtoHAsync_v2");
  get(api.copy_on_device, "cuMemcpyDtoDAsync_v2");
  get(api.module_load, "cuModuleLoadData");
  get(api.module_unload, "cuModuleUnload");
  get(api.module_function, "cuModuleGetFunction");
  get(api.function_set_attribute, "cuFuncSetAttribute");
  get(api.launch, "cuLaunchKernel");
  get(api.launch_ex, "cuLaunchKernelEx", false);
  get(api.stream_create, "cuStreamCreate");
  get(api.stream_destroy, "cuStreamDestroy_v2");
  get(api.stream_synchronize, "cuStreamSynchronize");
  get(api.stream_wait_event, "cuStreamWaitEvent");
  get(api.stream_begin_capture, "cuStreamBeginCapture_v2");
  get(api.stream_end_capture, "cuStreamEndCapture");
  get(api.event_create, "cuEventCreate");
  get(api.event_destroy, "cuEventDestroy_v2");
  get(api.event_record, "cuEventRecord");
  get(api.event_query, "cuEventQuery");
  get(api.event_synchronize, "cuEventSynchronize");
  get(api.event_elapsed, "cuEventElapsedTime");
  get(api.graph_instantiate, "cuGraphInstantiateWithFlags", false);
  get(api.graph_instantiate_v2, "cuGraphInstantiate_v2", !api.graph_instantiate);
  get(api.graph_destroy, "cuGraphDestroy");
  get(api.graph_exec_destroy, "cuGraphExecDestroy");
  get(api.graph_launch, "cuGraphLaunch");
  return get.missing();
}

Absence too_old(const std::string& found) {
  return {fmt::format("NVIDIA's driver is too old: {}, and CUDA {} is needed", found,
                      version_text(kOldestDriver)),
          "update NVIDIA's driver to 460 or newer"};
}

}  // namespace

std::string Api::words(Result result) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (error_name) error_name(result, &name);
  if (error_text) error_text(result, &text);
  if (!name) return fmt::format("CUDA error {}", result);
  return text ? fmt::format("{}: {}", name, text) : std::string(name);
}

std::shared_ptr<Api> open_api(Absence* absence) {
  auto api = std::make_shared<Api>();
  std::string said;
  api->library = DynamicLibrary::open_first(library_names(), &said);
  if (!api->library) {
    if (said.size() > 2) said.resize(said.size() - 2);  // the trailing separator
    *absence = no_library(said);
    return nullptr;
  }
  api->library.keep_open();  // the driver's threads and handlers outlive any owner
  if (const std::string missing = bind(*api); !missing.empty()) {
    *absence = too_old(fmt::format("{} has no {}", api->library.name(), missing));
    return nullptr;
  }
  if (const Result result = api->init(0); result != kSuccess) {
    *absence = init_failed(*api, result);
    return nullptr;
  }
  api->driver_version(&api->version);
  if (api->version < kOldestDriver) {
    *absence = too_old("it implements CUDA " + version_text(api->version));
    return nullptr;
  }
  return api;
}

}  // namespace prism::cuda
