// The SYCL backend as a plug-in library: SYCL is a C++ interface, and the program is built without
// it. Any host compiler can build it with SYCL's headers; kernels are text.
#include "runtime/discovery/plugin.h"

#include "backends/sycl/plugin/sycl_device.h"

namespace prism::sycl_plugin {
namespace {

// The run-time compiler emits SPIR-V. PoCL appears as a SYCL device but rejects SPIR-V.
bool is_usable(const sycl::device& device) {
  using Language = sycl::ext::oneapi::experimental::source_language;
  const std::string platform = device.get_platform().get_info<sycl::info::platform::name>();
  sycl::device asked = device;
  return asked.ext_oneapi_can_compile(Language::sycl) &&
         platform.find("Portable Computing Language") == std::string::npos;
}

class SyclBackend final : public Backend {
 public:
  std::string name() const override { return "sycl"; }
  std::string label() const override { return "SYCL"; }
  Discovery discover() override {
    Discovery found;
    try {
      for (const sycl::device& device : sycl::device::get_devices())
        if (is_usable(device))
          found.devices.push_back(std::make_shared<Device>(device, found.devices.size()));
    } catch (const sycl::exception& error) {
      found.reason = std::string("SYCL cannot list its devices: ") + error.what();
      found.next_step = "see docs/backends.md, SYCL";
      return found;
    }
    if (!found.devices.empty()) return found;
    found.reason = "SYCL finds no device that its run-time compiler can compile for";
    found.next_step =
        "install a driver for it: intel-opencl-icd or intel-level-zero-gpu for Intel's GPUs";
    return found;
  }
};

}  // namespace
}  // namespace prism::sycl_plugin

PRISM_BACKEND_PLUGIN(std::make_unique<prism::sycl_plugin::SyclBackend>())
