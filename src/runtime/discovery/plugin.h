// The one C function that a shared library exports to be a backend.
//
//   #include "runtime/discovery/plugin.h"
//   PRISM_BACKEND_PLUGIN(prism::make_some_backend())
#pragma once

#include <cstdint>

#include "runtime/driver.h"

namespace prism {

// A plug-in and its host program share the classes of driver.h, so both must be built from the same
// version. Raise the first number when an interface changes. The sizes catch forgotten increments
// and different compiler layouts.
inline constexpr uint64_t kPluginInterface =
    uint64_t{4} << 48 ^ sizeof(DeviceInfo) << 32 ^ sizeof(ir::Kernel) << 16 ^ sizeof(LaunchCall);

inline constexpr const char* kPluginEntry = "prism_backend";
// Returns the library's backend, or null if it was built for another interface. The caller deletes
// it.
using PluginEntry = Backend* (*)(uint64_t interface);

}  // namespace prism

#ifdef _WIN32
#define PRISM_PLUGIN_EXPORT __declspec(dllexport)
#else
#define PRISM_PLUGIN_EXPORT __attribute__((visibility("default")))
#endif

// make: an expression of type std::unique_ptr<Backend>.
#define PRISM_BACKEND_PLUGIN(make)                                                                \
  extern "C" PRISM_PLUGIN_EXPORT prism::Backend* prism_backend(uint64_t interface) {              \
    return interface == prism::kPluginInterface ? std::unique_ptr<prism::Backend>(make).release() \
                                                : nullptr;                                        \
  }
