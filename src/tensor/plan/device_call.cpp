// Launches of a plan; each kernel is built once per process and compiled once per device.
#include "tensor/plan/device_call.h"

#include <map>
#include <mutex>
#include <unordered_map>

#include "runtime/kernel_key.h"
#include "tensor/storage.h"

namespace prism {

namespace {

struct KernelCache {
  std::mutex mutex;
  std::unordered_map<std::string, ir::Kernel> kernels;
};

KernelCache& kernel_cache() {
  static auto& cache = *new KernelCache;
  return cache;
}

void bind(PlannedLaunch& launch, const DeviceView& view) {
  launch.slots.push_back(view.slot);
  const uint64_t offset = view.type.is_block()
                              ? 0
                              : static_cast<uint64_t>(view.layout.offset) * view.type.block_bytes();
  launch.offsets.push_back(offset % kRangeAlignment == 0 ? offset : 0);
}

}  // namespace

const ir::Kernel& cached_kernel(const std::string& key, const std::function<ir::Kernel()>& make) {
  KernelCache& cache = kernel_cache();
  {
    const std::scoped_lock lock(cache.mutex);
    if (const auto found = cache.kernels.find(key); found != cache.kernels.end())
      return found->second;
  }
  ir::Kernel kernel = make();
  const std::scoped_lock lock(cache.mutex);
  const auto [kept, is_new] = cache.kernels.try_emplace(key, std::move(kernel));
  if (is_new) remember_key(kept->second);
  return kept->second;
}

DeviceView DeviceCall::scratch(const Shape& shape, ElementType type) {
  DeviceView view{0, type, Layout::dense(shape)};
  view.slot = make_scratch_(storage_bytes(shape, type, device_));
  return view;
}

std::optional<DeviceView> DeviceCall::zeros(const Shape& shape, ElementType type) {
  if (!make_zeros_) return std::nullopt;
  DeviceView view{0, type, Layout::dense(shape)};
  view.slot = make_zeros_(storage_bytes(shape, type, device_));
  return view;
}

void DeviceCall::launch(const std::string& key, const std::function<ir::Kernel()>& make,
                        std::array<uint32_t, 3> groups, std::initializer_list<DeviceView> buffers,
                        std::vector<ParamValue> params) {
  launch(key, make, groups, std::span<const DeviceView>(buffers.begin(), buffers.size()),
         std::move(params));
}

void DeviceCall::launch(const std::string& key, const std::function<ir::Kernel()>& make,
                        std::array<uint32_t, 3> groups, std::span<const DeviceView> buffers,
                        std::vector<ParamValue> params) {
  if (groups[0] == 0 || groups[1] == 0 || groups[2] == 0) return;
  PlannedLaunch launch;
  launch.program = device_.compile(cached_kernel(key, make));
  launch.groups = groups;
  for (const DeviceView& each : buffers) bind(launch, each);
  launch.params = std::move(params);
  launches_.push_back(std::move(launch));
}

void DeviceCall::product(const NativeProduct& product, const DeviceView& a, const DeviceView& b,
                         const DeviceView& c) {
  PlannedLaunch launch;
  launch.product = product;
  for (const DeviceView& each : {a, b, c}) bind(launch, each);
  launches_.push_back(std::move(launch));
}

}  // namespace prism
