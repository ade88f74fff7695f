// Finds the driver, the compiler and the cards, and reports what is missing.
#include "backends/cuda/cuda_backend.h"

#include <fstream>

#include <fmt/format.h>

#include "backends/cuda/cuda_device.h"
#include "backends/cuda/nvml.h"
#include "backends/cuda/nvrtc_search.h"
#include "backends/cuda/setup_cuda.h"

namespace prism {
namespace {

using namespace cuda;

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

// "580.95.05" if the system reports it, else empty.
std::string kernel_driver_version() {
  std::string version;
  std::ifstream("/sys/module/nvidia/version") >> version;
  return version.empty() ? nvml_driver_version() : version;
}

constexpr const char* kSetUpStep =
    "run `prism setup cuda`, which fetches NVRTC; until then the card is used through Vulkan where "
    "it can be";

class CudaBackend final : public Backend {
 public:
  std::string name() const override { return "cuda"; }
  std::string label() const override { return "CUDA"; }
  Discovery discover() override;
  std::string set_up(const std::function<void(const std::string&)>& progress) override {
    return set_up_cuda(progress);
  }
};

Discovery CudaBackend::discover() {
  Discovery discovery;
  Absence absence;
  const std::shared_ptr<Api> api = open_api(&absence);
  if (!api) {
    discovery.reason = absence.reason;
    discovery.next_step = absence.next_step;
    return discovery;
  }
  discovery.found = fmt::format("{} CUDA {}", api->library.name(), version_text(api->version));
  int count = 0;
  if (const Result result = api->device_count(&count); result != kSuccess || count == 0) {
    discovery.reason = result != kSuccess
                           ? "the driver cannot count its devices: " + api->words(result)
                           : "NVIDIA's driver is installed but offers no GPU";
    discovery.next_step = "see what nvidia-smi says; CUDA_VISIBLE_DEVICES may hide the card";
    return discovery;
  }

  Compilers compilers(api->version);
  const std::string kernel_driver = kernel_driver_version();
  const auto pass_over = [&](const DeviceInfo& info, const std::string& why,
                             const std::string& next_step) {
    discovery.reason += (discovery.reason.empty() ? "" : "; ") + info.name + ": " + why;
    if (discovery.next_step.empty()) discovery.next_step = next_step;
  };
  for (int index = 0; index < count; ++index) {
    Ordinal ordinal = 0;
    if (api->device_get(&ordinal, index) != kSuccess) continue;
    DeviceInfo info = describe_device(*api, ordinal, index, kernel_driver);
    const int capability = compute_capability(*api, ordinal);
    int mode = 0;
    api->device_attribute(&mode, kComputeMode, ordinal);
    if (capability < kOldestCapability) {
      pass_over(info,
                fmt::format("compute capability {}.{}, and 5.0 is needed", capability / 10,
                            capability % 10),
                "use the card through OpenCL or Vulkan");
      continue;
    }
    if (mode == kComputeModeProhibited) {
      pass_over(info, "its compute mode is \"prohibited\"", "allow it: sudo nvidia-smi -c DEFAULT");
      continue;
    }
    Target target;
    std::string why;
    if (const auto compiler = compilers.find(capability, &target, &why)) {
      info.driver += ", NVRTC " + version_text(compiler->version());
      discovery.devices.push_back(
          std::make_shared<CudaDevice>(api, ordinal, std::move(info), compiler, target));
    } else {
      pass_over(info, why, kSetUpStep);
    }
  }
  for (const auto& compiler : compilers.opened())
    discovery.found +=
        fmt::format(", {} {}", compiler->library(), version_text(compiler->version()));
  return discovery;
}

}  // namespace

std::unique_ptr<Backend> make_cuda_backend() { return std::make_unique<CudaBackend>(); }

}  // namespace prism
