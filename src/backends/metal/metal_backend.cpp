// Finds Metal and lists its devices.
#include "backends/metal/metal_backend.h"

#include <cstdlib>

#include <fmt/format.h>

#include "backends/metal/metal_device.h"
#include "base/probe_library.h"

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

// What discovery will do, in a process that may crash; a failure in order is told when it comes
// again.
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
  // Here and not in discover(), which runs beside other drivers' threads. The system's own
  // framework is not tried: it does not outlive a fork.
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
  found.next_step = "update macOS: Metal needs 10.15 or later";
  if (!named_library().empty()) {
    found.next_step = "unset PRISM_METAL_LIBRARY and PRISM_OBJC_LIBRARY";
#ifndef __APPLE__
  } else {
    found.reason = "Metal exists on macOS only";
    found.next_step = "here GPUs are used through Vulkan, OpenCL or their makers' own drivers";
    return found;
#endif
  }
  found.reason = probe_.reason;
  const auto api = probe_.usable() ? open_api(&found.reason) : nullptr;
  if (!api) return found;
  const auto pool = api->pool();
  found.found = api->metal_library.name();
  for (Handle<Id>& device : list_devices(*api)) {
    if (!api->can(device.get(), "supportsFamily:")) {
      found.reason = api->text_of(api->name(device.get())) + ": this macOS is too old";
      continue;
    }
    DeviceInfo info = describe(*api, device.get(), fmt::format("metal:{}", found.devices.size()));
    found.devices.push_back(
        std::make_shared<DeviceOfMetal>(api, std::move(device), std::move(info)));
  }
  if (found.reason.empty()) found.next_step = "";
  if (found.devices.empty() && found.reason.empty()) {
    found.reason = "macOS lists no Metal device";
    found.next_step = "a virtual machine may have none: see system_profiler SPDisplaysDataType";
  }
  return found;
}

}  // namespace

std::unique_ptr<Backend> make_metal_backend() { return std::make_unique<MetalBackend>(); }

}  // namespace prism
