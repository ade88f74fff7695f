// Allocation, with free memory in its errors, and program loading, which recompiles rejected
// binaries.
#include "backends/gpu_runtime/gpu_device.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "base/cache_folder.h"
#include "base/units.h"

namespace prism::gpu {

std::string pci_address(std::string address) {
  std::transform(address.begin(), address.end(), address.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  const size_t domain = address.find(':');
  if (domain != std::string::npos && domain > 4 && address.find_first_not_of('0') >= domain - 4)
    address.erase(0, domain - 4);
  return address;
}

uint64_t GpuDevice::free_bytes() {
  const Current current(*context());
  size_t free = 0, total = 0;
  const Result result = context()->api().memory_info(&free, &total);
  if (result != kSuccess)
    throw driver_error(context()->api(), result,
                       context()->device() + ": asking for its free memory");
  return free;
}

std::unique_ptr<MemoryDriver> GpuDevice::allocate(uint64_t bytes) {
  const Current current(*context());
  const Api& api = context()->api();
  DevicePointer pointer = 0;
  // Multiples of 16 bytes, so that vector loads may touch the end of any buffer.
  const uint64_t rounded = std::max<uint64_t>((bytes + 15) / 16 * 16, 16);
  const Result result = rounded < bytes
                            ? kOutOfMemoryResult
                            : api.memory_allocate(&pointer, static_cast<size_t>(rounded));
  if (result == kOutOfMemoryResult) {
    size_t free = 0, total = 0;
    api.memory_info(&free, &total);
    throw Error(
        ErrorCode::kOutOfMemory,
        fmt::format("{}: allocating {} failed; {} of {} are free; use a smaller model or batch, or "
                    "another device",
                    context()->device(), size_text(bytes), size_text(free), size_text(total)));
  }
  if (result != kSuccess)
    throw driver_error(api, result,
                       fmt::format("{}: allocating {}", context()->device(), size_text(bytes)));
  return std::make_unique<GpuMemory>(context(), pointer, bytes);
}

std::unique_ptr<QueueDriver> GpuDevice::make_queue() {
  return std::make_unique<GpuQueue>(context());
}

GpuDevice::Loaded GpuDevice::load(const ir::Kernel& lowered, const KernelText& kernel,
                                  const std::string& entry, const std::string& options,
                                  const std::string& by, const std::function<Compiled()>& compile) {
  const Api& api = context()->api();
  const std::string key = options + "\n" + kernel.text;
  Module loaded = nullptr;
  // Recompile a cached binary that the driver rejects (made by another driver, or damaged).
  const auto cached = read_cached(info_.backend, key);
  if (!cached || api.module_load(&loaded, cached->data()) != kSuccess) {
    const Compiled compiled = compile();
    dump_log(kernel, compiled.log);
    if (compiled.binary.empty()) throw compile_error(info_, lowered, kernel, compiled.log);
    const Result result = api.module_load(&loaded, compiled.binary.data());
    if (result != kSuccess)
      throw driver_error(api, result,
                         fmt::format("{}: loading kernel {} compiled by {}", context()->device(),
                                     lowered.name, by));
    write_cached(info_.backend, key, compiled.binary);
  }
  Loaded program;
  program.module = Handle<Module>(loaded, [context = context()](Module m) {
    quietly(*context, [&](const Api& a) { a.module_unload(m); });
  });
  if (const Result result = api.module_function(&program.function, loaded, entry.c_str()))
    throw driver_error(
        api, result,
        fmt::format("{}: looking for {} in its compiled text", context()->device(), entry));
  return program;
}

}  // namespace prism::gpu
