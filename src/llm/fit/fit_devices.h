// Describes a device for fitting: its free memory and, if calibrated, its speed.
#pragma once

#include <string>

#include "prism/llm/fit.h"

namespace prism::llm {

inline constexpr const char* kHostMemoryName = "host";
// Devices with equal names share their memory: FitDevice::memory.
std::string memory_name(const Device& device);

FitDevice fit_device(const Device& device);

}  // namespace prism::llm
