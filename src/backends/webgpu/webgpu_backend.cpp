// Finds a WebGPU library, probes it in a child process, and lists its adapters.
#include "backends/webgpu/webgpu_backend.h"

#include <fmt/format.h>

#include "backends/webgpu/webgpu_device.h"
#include "base/system/dynamic_library.h"
#include "runtime/discovery/library_backend.h"

namespace prism {
namespace {

using namespace webgpu;

constexpr const char* kGetOne =
    "pip install wgpu, then set PRISM_WEBGPU_LIBRARY to its libwgpu_native-release.so";

// `found` is set if the library itself works, even without an adapter.
Discovery devices_of(const std::string& file) {
  Discovery found;
  const auto api = load_api(file, &found.reason);
  if (!api) return found;
  found.found = api->library;
  for (const Adapter adapter : api->adapters())
    found.devices.push_back(std::make_shared<DeviceOfWebGpu>(
        api, adapter, fmt::format("webgpu:{}", found.devices.size())));
  if (found.devices.empty()) {
    found.reason = api->library + " finds no adapter";
    found.next_step = "install the Vulkan driver of your GPU (vulkaninfo --summary lists it)";
  }
  return found;
}

}  // namespace

std::unique_ptr<Backend> make_webgpu_backend(std::string library) {
  const std::vector<std::string> names = {library_file("wgpu_native"),
                                          library_file("wgpu_native-release"),
                                          library_file("webgpu_dawn")};
  return make_library_backend(
      {"webgpu", "WebGPU", names, "PRISM_WEBGPU_LIBRARY", std::move(library), kGetOne, devices_of});
}

}  // namespace prism
