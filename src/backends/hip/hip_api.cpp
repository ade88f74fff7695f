// Opens libamdhip64, fills its function table and translates its result codes.
#include "backends/hip/hip_api.h"

#include <cctype>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>

#include <fmt/format.h>

#include "backends/hip/hip_cards.h"
#include "base/system/probe_library.h"
#include "runtime/discovery/device_node.h"

namespace prism::hip {
namespace {

bool exists(const char* path) {
  std::error_code failed;
  return std::filesystem::exists(path, failed);
}

const char* named_library() {
  const char* named = std::getenv("PRISM_HIP_LIBRARY");
  return named && *named ? named : nullptr;
}

Absence no_library(const std::string& said) {
  if (named_library())
    return {fmt::format("PRISM_HIP_LIBRARY names {}, which cannot be opened ({})", named_library(),
                        said),
            "unset PRISM_HIP_LIBRARY, or name ROCm's libamdhip64.so"};
#ifdef __APPLE__
  return {"ROCm does not exist for macOS", "use Metal"};
#else
  return {"no libamdhip64: ROCm's HIP runtime is not installed",
          "with an AMD card: it is used through Vulkan as it is; for HIP install ROCm "
          "(docs/backends.md)"};
#endif
}

// Without the kernel driver there is no card, and opening the library would start its compiler.
Absence no_kernel_driver(const std::string& library) {
  return {
      fmt::format(
          "{} is installed, but /dev/kfd is missing: no AMD GPU, or its kernel driver amdgpu is "
          "not loaded",
          library),
      "with an AMD card: sudo modprobe amdgpu; in a container: --device /dev/kfd --device "
      "/dev/dri"};
}

Absence init_failed(const Api& api, Result result) {
  if (const auto denied = find_denied_node({"/dev/kfd", "/dev/dri/renderD128"}))
    return {denied->reason, denied->next_step};
  if (result == kNoDevice || result == kNoBinaryForGpu) return no_known_card(api.version_text());
  return {"ROCm's HIP runtime does not start: " + api.words(result),
          "see what rocminfo says; after an update of ROCm, restart the machine"};
}

std::string bind(Api& api) {
  FunctionTable get(api.library);
  get(api.init, "hipInit");
  get(api.runtime_version, "hipRuntimeGetVersion");
  get(api.error_name, "hipGetErrorName");
  get(api.error_text, "hipGetErrorString");
  get(api.device_count, "hipGetDeviceCount");
  get(api.device_get, "hipGetDevice");
  get(api.device_set, "hipSetDevice");
  get(api.device_name, "hipDeviceGetName");
  get(api.device_attribute, "hipDeviceGetAttribute");
  get(api.device_total, "hipDeviceTotalMem");
  get(api.device_pci, "hipDeviceGetPCIBusId");
  get(api.device_properties, "hipGetDeviceProperties");
  get(api.memory_info, "hipMemGetInfo");
  get(api.memory_allocate, "hipMalloc");
  get(api.memory_free, "hipFree");
  get(api.host_allocate, "hipHostMalloc");
  get(api.host_free, "hipHostFree");
  get(api.copy_to_device, "hipMemcpyHtoDAsync");
  get(api.copy_to_host, "hipMemcpyDtoHAsync");
  get(api.copy_on_device, "hipMemcpyDtoDAsync");
  get(api.module_load, "hipModuleLoadData");
  get(api.module_unload, "hipModuleUnload");
  get(api.module_function, "hipModuleGetFunction");
  get(api.launch, "hipModuleLaunchKernel");
  get(api.stream_create, "hipStreamCreateWithFlags");
  get(api.stream_destroy, "hipStreamDestroy");
  get(api.stream_synchronize, "hipStreamSynchronize");
  get(api.stream_begin_capture, "hipStreamBeginCapture");
  get(api.stream_end_capture, "hipStreamEndCapture");
  get(api.event_create, "hipEventCreateWithFlags");
  get(api.event_destroy, "hipEventDestroy");
  get(api.event_record, "hipEventRecord");
  get(api.event_query, "hipEventQuery");
  get(api.event_synchronize, "hipEventSynchronize");
  get(api.event_elapsed, "hipEventElapsedTime");
  get(api.graph_instantiate, "hipGraphInstantiateWithFlags", false);
  get(api.graph_instantiate_v2, "hipGraphInstantiate", !api.graph_instantiate);
  get(api.graph_destroy, "hipGraphDestroy");
  get(api.graph_exec_destroy, "hipGraphExecDestroy");
  get(api.graph_launch, "hipGraphLaunch");
  return get.missing();
}

// The first calls of discovery, run in a child process. Ordinary errors are ignored here: they
// recur in discovery.
std::string try_runtime(const std::string& file) {
  Api api;
  api.library = DynamicLibrary::open_first({file});
  int count = 0;
  if (api.library && bind(api).empty() && api.init(0) == kSuccess) api.device_count(&count);
  return "";
}

}  // namespace

std::string Api::words(Result result) const {
  const char* name = error_name ? error_name(result) : nullptr;
  const char* text = error_text ? error_text(result) : nullptr;
  if (!name) return fmt::format("HIP error {}", result);
  return text && std::strcmp(text, name) != 0 ? fmt::format("{}: {}", name, text) : name;
}

std::string Api::version_text() const {
  return fmt::format("{}.{}", version / 10000000, version / 100000 % 100);
}

int Api::attribute(int which, int device) const {
  int value = 0;
  return device_attribute(&value, which, device) == kSuccess ? value : 0;
}

std::string Api::gfx(int device) const {
  // The properties struct has grown with each release. The chip's name is its only text that starts
  // with gfx, after the card's name. In "gfx90a:sramecc+:xnack-" the features are not needed: code
  // for the plain chip runs with any of them.
  std::vector<char> properties(16384);
  if (device_properties(properties.data(), device) != kSuccess) return "";
  constexpr size_t kNameBytes = 256;
  const std::string_view all(properties.data() + kNameBytes, properties.size() - kNameBytes);
  const size_t start = all.find("gfx");
  if (start == std::string_view::npos) return "";
  size_t end = start + 3;
  while (end < all.size() && std::isxdigit(static_cast<unsigned char>(all[end]))) ++end;
  return std::string(all.substr(start, end - start));
}

std::vector<std::string> library_names(const char* variable, const std::string& stem) {
  if (const char* named = std::getenv(variable); named && *named) return {named};
  std::vector<std::string> names;
#ifdef _WIN32
  const std::string plain = stem.substr(3);  // without the "lib" prefix
  for (const char* version : {"_7", "_6", "", "0700", "0604", "0602", "0600", "0507"})
    names.push_back(plain + version + ".dll");
#else
  const auto add = [&](const std::string& folder) {
    for (const char* version : {".7", ".6", ".5", ""})
      names.push_back(folder + stem + ".so" + version);
  };
  if (const char* root = std::getenv("ROCM_PATH"); root && *root) add(std::string(root) + "/lib/");
  add("");
  add("/opt/rocm/lib/");
#endif
  return names;
}

std::shared_ptr<Api> open_api(Absence* absence) {
  const std::vector<std::string> names = library_names("PRISM_HIP_LIBRARY", "libamdhip64");
#ifdef __linux__
  if (!named_library() && !exists("/dev/kfd") && !exists("/dev/dxg")) {
    const std::string found = find_library(names);
    *absence = found.empty() ? no_library("") : no_kernel_driver(found);
    return nullptr;
  }
#endif
  if (const std::string file = find_library(names); !file.empty()) {
    if (const ProbeResult probe = probe_library(file, "hip", try_runtime); !probe.usable()) {
      *absence = {probe.reason, "reinstall ROCm; until then the card is used through Vulkan"};
      return nullptr;
    }
  }
  auto api = std::make_shared<Api>();
  std::string said;
  api->library = DynamicLibrary::open_first(names, &said);
  if (!api->library) {
    if (said.size() > 2) said.resize(said.size() - 2);  // the trailing separator
    *absence = no_library(said);
    return nullptr;
  }
  api->library.keep_open();  // its threads and handlers outlive any owner
  if (const std::string missing = bind(*api); !missing.empty()) {
    *absence = {fmt::format("ROCm's HIP runtime is too old: {} has no {}, and ROCm 4.5 is needed",
                            api->library.name(), missing),
                "update ROCm, or use the card through Vulkan"};
    return nullptr;
  }
  if (const Result result = api->init(0); result != kSuccess) {
    api->runtime_version(&api->version);
    *absence = init_failed(*api, result);
    return nullptr;
  }
  api->runtime_version(&api->version);
  return api;
}

}  // namespace prism::hip
