// The number of files and connections that a process may have open.
#pragma once

#include <cstdint>

namespace prism {

// Raises the process's own limit to `wanted`, or as far as the system allows.
void allow_open_files(uint64_t wanted);

}  // namespace prism
