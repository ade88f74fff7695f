// Finds a WebGPU library, tries it aside, and lists its adapters.
#include "backends/webgpu/webgpu_backend.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "backends/webgpu/webgpu_device.h"
#include "base/probe_library.h"

namespace prism {
namespace {

using namespace webgpu;

constexpr const char* kGetOne =
    "pip install wgpu brings libwgpu_native-release.so: name that file in PRISM_WEBGPU_LIBRARY";

std::vector<std::string> library_names() {
#if defined(_WIN32)
  return {"wgpu_native.dll", "wgpu_native-release.dll", "webgpu_dawn.dll"};
#elif defined(__APPLE__)
  return {"libwgpu_native.dylib", "libwgpu_native-release.dylib", "libwebgpu_dawn.dylib"};
#else
  return {"libwgpu_native.so", "libwgpu_native-release.so", "libwebgpu_dawn.so"};
#endif
}

// Vulkan, Metal and Direct3D 12; through OpenGL the same cards would come again.
constexpr uint64_t kInterfaces = 1 | 4 | 8;

Handle<Instance> make_instance(const Api& api) {
  InstanceExtras extras;
  extras.backends = kInterfaces;
  const InstanceDescriptor descriptor{&extras.chain};
  return api.own(api.CreateInstance(api.GetVersion ? &descriptor : nullptr));
}

std::vector<Handle<Adapter>> adapters_of(const Api& api, Instance instance) {
  std::vector<Handle<Adapter>> found;
  if (api.InstanceEnumerateAdapters) {
    const EnumerateOptions options{nullptr, kInterfaces};
    std::vector<Adapter> all(api.InstanceEnumerateAdapters(instance, &options, nullptr));
    all.resize(api.InstanceEnumerateAdapters(instance, &options, all.data()));
    for (Adapter adapter : all) found.push_back(api.own(adapter));
    return found;
  }
  // The interface itself gives the adapter it takes for the best.
  const auto answer = std::make_shared<Answer>();
  api.InstanceRequestAdapter(instance, nullptr, asking(api, Asked::kObject, answer));
  for (int round = 0; !answer->done && round < 1'000'000; ++round)
    api.InstanceProcessEvents(instance);
  if (answer->done && answer->object)
    found.push_back(api.own(static_cast<Adapter>(answer->object)));
  return found;
}

// All that discovery will do, in a process that may crash. No adapter is no fault of the library's.
std::string try_library(const std::string& file) {
  std::string reason;
  const auto api = load_api(file, &reason);
  if (!api) return reason;
  const auto instance = make_instance(*api);
  if (!instance) return file + " makes no WebGPU instance";
  for (auto& adapter : adapters_of(*api, instance.get())) describe(*api, adapter.get(), "webgpu");
  return "";
}

class WebGpuBackend final : public Backend {
 public:
  explicit WebGpuBackend(std::string library) : library_(std::move(library)) {
    if (library_.empty())
      file_ = find_library(library_names());
    else
      file_ = find_library({library_.find('/') == std::string::npos ? "./" + library_ : library_});
    // Here and not in discover(), which runs beside other drivers' threads.
    if (!file_.empty()) probe_ = probe_library(file_, "webgpu", try_library);
  }
  std::string name() const override { return "webgpu"; }
  std::string label() const override { return "WebGPU"; }

  Discovery discover() override {
    Discovery found;
    found.next_step = kGetOne;
    if (file_.empty()) {
      found.reason = library_.empty() ? "no WebGPU library was found"
                                      : "PRISM_WEBGPU_LIBRARY=" + library_ + " is no file";
      return found;
    }
    if (!probe_.usable()) {
      found.reason = probe_.reason;
      return found;
    }
    const auto api = load_api(file_, &found.reason);
    if (!api) return found;
    found.found = api->library;
    const auto instance = std::make_shared<Handle<Instance>>(make_instance(*api));
    for (auto& adapter : adapters_of(*api, instance->get())) {
      Facts facts = describe(*api, adapter.get(), fmt::format("webgpu:{}", found.devices.size()));
      found.devices.push_back(
          std::make_shared<DeviceOfWebGpu>(api, instance, std::move(adapter), std::move(facts)));
    }
    if (found.devices.empty()) {
      found.reason = api->library + " finds no adapter";
      found.next_step = "install the Vulkan driver of your GPU (vulkaninfo --summary lists it)";
    } else {
      found.next_step = "";
    }
    return found;
  }

 private:
  std::string library_, file_;
  ProbeResult probe_;
};

}  // namespace

std::unique_ptr<Backend> make_webgpu_backend(std::string library) {
  return std::make_unique<WebGpuBackend>(std::move(library));
}

std::unique_ptr<Backend> make_webgpu_backend() {
  const char* named = std::getenv("PRISM_WEBGPU_LIBRARY");
  return make_webgpu_backend(named ? named : "");
}

}  // namespace prism
