// DeviceInfo: the properties of a device, independent of the backend.
#pragma once

#include <cstdint>
#include <string>

#include "prism/capabilities.h"

#pragma GCC visibility push(default)

namespace prism {

struct DeviceInfo {
  std::string id;       // "vulkan:0"
  std::string backend;  // "vulkan"
  std::string name;     // the driver's name for it
  std::string vendor;
  std::string card;    // PCI address "0000:65:00.0", else "uuid:...", else the id: identical in all
                       // backends for one card
  std::string driver;  // driver and version
  uint64_t total_bytes = 0;    // kUnknownBytes (counted_device.h): not reported by the interface
  bool unified = false;        // shares memory with the host
  bool software = false;       // runs on the host's cores (llvmpipe, PoCL)
  bool is_cpu = false;         // the native CPU device
  uint32_t compute_units = 0;  // 0: not reported; a Device's own info then has a typical number
  // Limits of the interface that the handles work around (limit_workarounds.cpp):
  bool copies_words = false;  // offsets and sizes of writes, reads and copies: multiples of 4
  bool one_access = false;  // a launch binds all ranges of a buffer for reading, or all for writing
  ir::Capabilities capabilities;
};

}  // namespace prism

#pragma GCC visibility pop
