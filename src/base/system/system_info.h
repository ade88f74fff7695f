// What processor this machine has and how much of it this process may use.
#pragma once

#include <cstdint>
#include <string>

namespace prism {

struct ProcessorInfo {
  std::string name;      // as the system calls it; "CPU" where it does not say
  std::string vendor;    // may be empty
  uint32_t threads = 1;  // that may run at once: affinity and a container's quota included
};
ProcessorInfo processor_info();

}  // namespace prism
