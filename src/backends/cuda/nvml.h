// Queries to NVIDIA's management library that need no context: driver version, free memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace prism::cuda {

struct CardMemory {
  uint64_t total_bytes = 0;
  uint64_t free_bytes = 0;
};

// Empty if the library is missing or fails, or if the driver's library is replaced.
std::string nvml_driver_version();  // "580.95.05"
std::optional<CardMemory> nvml_memory(const std::string& pci_address);

}  // namespace prism::cuda
