// How much memory the host has and could still give, and its pages.
#pragma once

#include <cstdint>

namespace prism {

struct HostMemory {
  uint64_t total_bytes = 0;  // 0: the system does not say
  uint64_t available_bytes =
      0;  // without swapping, caches counted as free; a container's limit included
};
HostMemory host_memory();

uint64_t page_bytes();  // of one page of the system's memory

}  // namespace prism
