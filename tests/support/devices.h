// Every device that was found, as tests over all of them use it.
#pragma once

#include <vector>

#include "runtime/discovery.h"

namespace prism::test {

inline std::vector<Device> every_device() {
  std::vector<Device> all;
  for (const BackendReport& report : discover_backends())
    for (const auto& driver : report.devices) all.emplace_back(driver, "a test");
  return all;
}

}  // namespace prism::test
