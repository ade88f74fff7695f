// The list of all discovered devices, for tests that run on each of them.
#pragma once

#include <iostream>
#include <string>
#include <vector>

#include "prism/device.h"

namespace prism::test {

inline std::vector<Device> every_device() {
  std::vector<Device> all;
  for (const BackendReport& report : discover_backends())
    for (const auto& driver : report.devices) all.emplace_back(driver, "a test");
  return all;
}

// The device with the slowest compiler.
inline bool is_intels_opencl(const DeviceInfo& info) {
  return info.driver.starts_with("Intel(R) OpenCL");
}

// Reports part of a test that a device does not run; counted with the skipped tests
// (scripts/count_skips.sh).
inline void left_out(const std::string& device, const std::string& why) {
  std::cout << device << ": Skipped\n" << why << std::endl;
}

}  // namespace prism::test
