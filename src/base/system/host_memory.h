// Total and available host memory, and the page size.
#pragma once

#include <cstdint>

namespace prism {

struct HostMemory {
  uint64_t total_bytes = 0;  // 0: the system does not report it
  uint64_t available_bytes =
      0;  // without swapping; caches count as free, a container's limit applies
};
HostMemory host_memory();

uint64_t page_bytes();  // size of one page of system memory

}  // namespace prism
