// The interpreter as a kernel-only device with subgroups of 32, any number of compute units and
// optionally overlapping launches: tests the plans of GPUs and their results on any machine.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include "prism/device.h"
#include "prism/error.h"
#include "runtime/driver.h"

namespace prism::test {

class InterpretedDevice final : public DeviceDriver {
 public:
  // refused: substrings of kernel names that the device rejects.
  InterpretedDevice(std::shared_ptr<DeviceDriver> cpu, uint32_t compute_units,
                    std::string refused = {}, uint32_t max_buffers = 64, bool overlaps = false)
      : cpu_(std::move(cpu)), info_(cpu_->info()), refused_(std::move(refused)) {
    info_.id = "interpreted:" + std::to_string(compute_units);
    info_.is_cpu = info_.software = false;
    info_.compute_units = compute_units;
    info_.capabilities.dependent_launch = overlaps;
    info_.capabilities.max_buffers = max_buffers;
  }
  const DeviceInfo& info() const override { return info_; }
  uint64_t free_bytes() override { return cpu_->free_bytes(); }
  std::unique_ptr<MemoryDriver> allocate(uint64_t bytes) override { return cpu_->allocate(bytes); }
  std::unique_ptr<ProgramDriver> compile(const ir::Kernel& lowered) override {
    if (!refused_.empty() && lowered.name.find(refused_) != std::string::npos)
      throw Error(ErrorCode::kNotSupported, lowered.name + ": refused by a test");
    return cpu_->compile(lowered);
  }
  std::unique_ptr<QueueDriver> make_queue() override { return cpu_->make_queue(); }

 private:
  std::shared_ptr<DeviceDriver> cpu_;
  DeviceInfo info_;
  std::string refused_;
};

inline std::shared_ptr<DeviceDriver> interpreted_driver(uint32_t compute_units,
                                                        const std::string& refused = {},
                                                        uint32_t max_buffers = 64,
                                                        bool overlaps = false) {
  for (const BackendReport& report : discover_backends())
    for (const auto& driver : report.devices)
      if (driver->info().is_cpu)
        return std::make_shared<InterpretedDevice>(driver, compute_units, refused, max_buffers,
                                                   overlaps);
  throw std::runtime_error("no CPU was found");
}

inline Device interpreted_device(uint32_t compute_units, const std::string& refused = {},
                                 uint32_t max_buffers = 64, bool overlaps = false) {
  return Device(interpreted_driver(compute_units, refused, max_buffers, overlaps), "a test");
}

}  // namespace prism::test
