// Loads libnvidia-ml once and queries it.
#include "backends/cuda/nvml.h"

#include <cstdlib>

#include "base/system/dynamic_library.h"

namespace prism::cuda {
namespace {

using Handle = struct HandleTag*;
struct Memory {  // nvmlMemory_t
  unsigned long long total, free, used;
};

struct Nvml {
  DynamicLibrary library;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*handle_by_address)(const char*, Handle*) = nullptr;
  int (*memory)(Handle, Memory*) = nullptr;
};

const Nvml* nvml() {
  // A replacement for the driver's library has other cards than the real one.
  if (const char* other = std::getenv("PRISM_CUDA_LIBRARY"); other && *other) return nullptr;
  static const Nvml* const opened = []() -> const Nvml* {
    static Nvml table;
#ifdef _WIN32
    table.library = DynamicLibrary::open_first({"nvml.dll"});
#else
    table.library =
        DynamicLibrary::open_first({"libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1"});
#endif
    if (!table.library) return nullptr;
    table.library.keep_open();
    const auto init = table.library.function<int (*)()>("nvmlInit_v2");
    table.driver_version =
        table.library.function<int (*)(char*, unsigned)>("nvmlSystemGetDriverVersion");
    table.handle_by_address =
        table.library.function<int (*)(const char*, Handle*)>("nvmlDeviceGetHandleByPciBusId_v2");
    table.memory = table.library.function<int (*)(Handle, Memory*)>("nvmlDeviceGetMemoryInfo");
    const bool complete = init && table.driver_version && table.handle_by_address && table.memory;
    return complete && init() == 0 ? &table : nullptr;
  }();
  return opened;
}

}  // namespace

std::string nvml_driver_version() {
  char text[96] = {};
  const Nvml* library = nvml();
  return library && library->driver_version(text, sizeof(text) - 1) == 0 ? text : "";
}

std::optional<CardMemory> nvml_memory(const std::string& pci_address) {
  const Nvml* library = nvml();
  Handle handle = nullptr;
  Memory memory{};
  if (!library || library->handle_by_address(pci_address.c_str(), &handle) != 0 ||
      library->memory(handle, &memory) != 0)
    return std::nullopt;
  return CardMemory{memory.total, memory.free};
}

}  // namespace prism::cuda
