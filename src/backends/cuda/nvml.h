// What NVIDIA's management library tells without a context: the driver's version, a card's free
// memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace prism::cuda {

struct CardMemory {
  uint64_t total_bytes = 0;
  uint64_t free_bytes = 0;
};

// Nothing where the library is missing or refuses (or another library stands in for the driver).
std::string nvml_driver_version();  // "580.95.05"
std::optional<CardMemory> nvml_memory(const std::string& pci_address);

}  // namespace prism::cuda
