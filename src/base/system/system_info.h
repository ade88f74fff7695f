// The host processor, and how much of it this process may use.
#pragma once

#include <cstdint>
#include <string>

namespace prism {

struct ProcessorInfo {
  std::string name;      // the system's name for it; "CPU" if unknown
  std::string vendor;    // may be empty
  uint32_t threads = 1;  // usable at once: affinity and a container's quota included
};
ProcessorInfo processor_info();

}  // namespace prism
