// What a shared library has to offer to be a backend: one C function.
//
//   #include "runtime/discovery/plugin.h"
//   PRISM_BACKEND_PLUGIN(prism::make_some_backend())
#pragma once

#include <cstdint>

#include "runtime/driver.h"

namespace prism {

// A plug-in and the program that opens it share the classes of driver.h, so both must have been
// built from the same ones: raise the first number when an interface changes. The sizes catch what
// was forgotten, and another compiler's layout.
inline constexpr uint64_t kPluginInterface =
    uint64_t{3} << 48 ^ sizeof(DeviceInfo) << 32 ^ sizeof(ir::Kernel) << 16 ^ sizeof(LaunchCall);

inline constexpr const char* kPluginEntry = "prism_backend";
// The library's own; null when it was built for another interface. The caller deletes it.
using PluginEntry = Backend* (*)(uint64_t interface);

}  // namespace prism

#ifdef _WIN32
#define PRISM_PLUGIN_EXPORT __declspec(dllexport)
#else
#define PRISM_PLUGIN_EXPORT __attribute__((visibility("default")))
#endif

// make: an expression that gives std::unique_ptr<Backend>.
#define PRISM_BACKEND_PLUGIN(make)                                                                \
  extern "C" PRISM_PLUGIN_EXPORT prism::Backend* prism_backend(uint64_t interface) {              \
    return interface == prism::kPluginInterface ? std::unique_ptr<prism::Backend>(make).release() \
                                                : nullptr;                                        \
  }
