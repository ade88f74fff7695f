// DeviceInfo: what is known about a device, whichever backend reaches it.
#pragma once

#include <cstdint>
#include <string>

#include "prism/capabilities.h"

#pragma GCC visibility push(default)

namespace prism {

struct DeviceInfo {
  std::string id;       // "vulkan:0"
  std::string backend;  // "vulkan"
  std::string name;     // as the driver calls it
  std::string vendor;
  std::string card;    // PCI address "0000:65:00.0", else "uuid:...", else the id: the same for one
                       // card in all backends
  std::string driver;  // driver and version
  uint64_t total_bytes = 0;    // kUnknownBytes (counted_device.h): the interface does not tell
  bool unified = false;        // shares memory with the host
  bool software = false;       // runs on the host's cores (llvmpipe, PoCL)
  bool is_cpu = false;         // the native CPU device
  uint32_t compute_units = 0;  // 0: not told; a Device's own info has a middling number then
  // What the interface cannot do, and the handles do in another way (limit_workarounds.cpp):
  bool copies_words = false;  // offsets and sizes of writes, reads and copies: multiples of 4
  bool one_access = false;    // a launch binds all ranges of a buffer to be read, or to be written
  ir::Capabilities capabilities;
};

}  // namespace prism

#pragma GCC visibility pop
