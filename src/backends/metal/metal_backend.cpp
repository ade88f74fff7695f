// Finds Metal and lists its devices.
#include "backends/metal/metal_backend.h"

#include <cstdlib>

#include <fmt/format.h>

#include "backends/metal/metal_device.h"
#include "base/system/probe_library.h"

namespace prism {
namespace {

using namespace metal;

std::string named_library() {
  const char* named = std::getenv("PRISM_METAL_LIBRARY");
  return named ? named : "";
}

std::vector<Handle<Id>> list_devices(const Api& api) {
  std::vector<Handle<Id>> devices;
  const auto all = api.own(api.runtime.copy_all_devices());
  for (UInteger i = 0; all && i < api.count(all.get()); ++i)
    devices.push_back(api.keep(api.at(all.get(), i)));
  return devices;
}

// The calls of discovery, run in a child process that may crash. Ordinary errors are ignored here:
// they recur in discovery.
std::string try_library(const std::string&) {
  std::string ignored;
  if (const auto api = open_api(&ignored)) {
    const auto pool = api->pool();
    list_devices(*api);
  }
  return "";
}

class MetalBackend final : public Backend {
 public:
  // Probe here rather than in discover(), which runs concurrently with other drivers' threads. The
  // system's own framework is not probed: it does not survive a fork.
  MetalBackend() {
    const std::string file = find_library({named_library()});
    if (!file.empty()) probe_ = probe_library(file, "metal", try_library);
  }
  std::string name() const override { return "metal"; }
  std::string label() const override { return "Metal"; }
  Discovery discover() override;

 private:
  ProbeResult probe_;
};

Discovery MetalBackend::discover() {
  Discovery found;
#ifndef __APPLE__
  if (named_library().empty()) {
    found.reason = "Metal exists on macOS only";
    found.next_step = "here GPUs are used through Vulkan, OpenCL or their makers' own drivers";
    return found;
  }
#endif
  found.next_step =
      named_library().empty() ? "update macOS" : "unset PRISM_METAL_LIBRARY and PRISM_OBJC_LIBRARY";
  found.reason = probe_.reason;
  const auto api = probe_.usable() ? open_api(&found.reason) : nullptr;
  if (!api) return found;
  const auto pool = api->pool();
  found.found = api->runtime.library;
  for (Handle<Id>& device : list_devices(*api))
    if (api->can(device.get(), "supportsFamily:"))
      found.devices.push_back(std::make_shared<DeviceOfMetal>(
          api, std::move(device), fmt::format("metal:{}", found.devices.size())));
  found.next_step = "";
  if (found.devices.empty()) {
    found.reason = "macOS lists no Metal device, or is older than 10.15";
    found.next_step = "a virtual machine may have none: see system_profiler SPDisplaysDataType";
  }
  return found;
}

}  // namespace

std::unique_ptr<Backend> make_metal_backend() { return std::make_unique<MetalBackend>(); }

}  // namespace prism
