// How much memory the host has and could still give.
#pragma once

#include <cstdint>

namespace prism {

struct HostMemory {
  uint64_t total_bytes = 0;  // 0: the system does not say
  uint64_t available_bytes =
      0;  // without swapping, caches counted as free; a container's limit included
};
HostMemory host_memory();

}  // namespace prism
