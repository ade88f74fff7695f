// Total and available host memory, the page size, and the limit of the address space.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace prism {

struct HostMemory {
  uint64_t total_bytes = 0;  // 0: the system does not say
  // Without swapping. Caches count as available, and the limits of control groups apply.
  uint64_t available_bytes = 0;
};
HostMemory host_memory();
// The same on Linux, from /proc and /sys below another root, for tests.
HostMemory linux_memory(const std::filesystem::path& root);

uint64_t page_bytes();  // size of one page of system memory

// The limit of this process's address space (`ulimit -v`), if there is one.
std::optional<uint64_t> address_space_limit();

}  // namespace prism
