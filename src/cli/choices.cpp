// Looks up kernels and devices by name.
#include "cli/choices.h"

#include <cstdlib>

#include <fmt/format.h>

#include "base/suggest.h"
#include "prism/device.h"
#include "prism/error.h"
#include "runtime/measure/self_check.h"

namespace prism::cli {

const SampleKernel& kernel_named(const std::string& name) {
  std::vector<std::string> names;
  for (const SampleKernel& kernel : sample_kernels()) {
    if (kernel.name == name) return kernel;
    names.push_back(kernel.name);
  }
  for (const SampleKernel& kernel : sample_kernels())
    if (kernel.name == name + "_f32") return kernel;
  throw Error(ErrorCode::kNotFound,
              fmt::format("\"{}\" is not a kernel{}", name, valid_names(name, names)));
}

std::vector<Device> devices_named(const std::string& spelling) {
  if (spelling != "all") return {Device::named(spelling)};
  // PRISM_DEVICE does not limit "all", but a value that names an absent device is still an error.
  if (const char* preset = std::getenv("PRISM_DEVICE"); preset && *preset) choose_device("auto");
  std::vector<Device> devices;
  for (const BackendReport& report : discover_backends()) {
    for (const auto& driver : report.devices)
      devices.emplace_back(driver, "every device was asked for");
  }
  if (devices.empty())
    throw Error(ErrorCode::kNotFound, "no device found; `prism devices` says why");
  return devices;
}

}  // namespace prism::cli
