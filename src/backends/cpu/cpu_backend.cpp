// Discovers the one CPU device.
#include "backends/cpu/cpu_backend.h"

#include "backends/cpu/cpu_device.h"

namespace prism {
namespace {

class CpuBackend final : public Backend {
 public:
  std::string name() const override { return "cpu"; }
  std::string label() const override { return "CPU"; }
  bool starts_driver() const override { return false; }
  Discovery discover() override {
    Discovery discovery;
    discovery.devices.push_back(std::make_shared<cpu::Device>());
    discovery.found = discovery.devices[0]->info().name;
    return discovery;
  }
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend() { return std::make_unique<CpuBackend>(); }

}  // namespace prism
