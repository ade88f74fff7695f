// An adapter's limits and features as capabilities of the kernel language.
#include <algorithm>

#include <fmt/format.h>

#include "backends/webgpu/webgpu_device.h"
#include "base/host_memory.h"
#include "base/pci.h"
#include "base/system_info.h"
#include "print/printer.h"

namespace prism::webgpu {
namespace {

constexpr const char* kBackends[] = {"?",     "Null",   "WebGPU", "Direct3D 11", "Direct3D 12",
                                     "Metal", "Vulkan", "OpenGL", "OpenGL ES"};
constexpr uint32_t kIntegrated = 2, kCpu = 3;  // adapter types
constexpr uint32_t kStorageBuffers = 11;       // in Limits::counts

// For a library that does not tell (wgpu-native 29): makers whose cards all have one size.
uint32_t usual_subgroup_size(const AdapterInfo& said) {
  constexpr uint32_t kNvidia = 0x10de, kApple = 0x106b, kMesa = 0x10005;
  if (said.vendor_id == kNvidia || said.vendor_id == kApple) return 32;
  const bool words8 = text_of(said.device).find("256 bits") != std::string::npos;
  return said.vendor_id == kMesa && said.type == kCpu && words8 ? 8 : 0;  // llvmpipe: one vector
}

}  // namespace

Facts describe(const Api& api, Adapter adapter, const std::string& id) {
  Facts facts;
  SubgroupSizes sizes;
  AdapterInfo said;
  if (!api.standard()) said.next = &sizes.chain;
  api.AdapterGetInfo(adapter, &said);
  if (api.standard()) sizes.min = said.subgroup_min, sizes.max = said.subgroup_max;
  if (sizes.max == 0) sizes.min = sizes.max = usual_subgroup_size(said);
  api.AdapterGetLimits(adapter, &facts.limits);
  const auto take = [&](std::array<uint32_t, 2> which) {
    const uint32_t feature = api.feature(which);
    if (feature == 0 || !api.AdapterHasFeature(adapter, feature)) return false;
    facts.features.push_back(feature);
    return true;
  };
  facts.timestamps = take(kTimestamps);

  DeviceInfo& info = facts.info;
  info.id = id;
  info.backend = "webgpu";
  info.name = text_of(said.device);
  if (info.name.empty()) info.name = text_of(said.description);
  info.vendor = text_of(said.vendor);
  info.software = said.type == kCpu;
  info.compute_units = info.software ? processor_info().threads : 0;
  info.unified = said.type == kIntegrated || info.software;
  info.driver = fmt::format("{} over {}, {}", api.library, kBackends[std::min(said.backend, 8u)],
                            text_of(said.description));
  const std::string address = find_pci_device(said.vendor_id, said.device_id);
  info.card = address.empty() ? id : address;
  // The interface tells no amount of memory. A card that another backend sees too gets its figure
  // by same_card().
  info.total_bytes = info.unified ? host_memory().total_bytes : facts.limits.max_buffer_bytes;

  ir::Capabilities& can = info.capabilities;
  can = typical_capabilities("wgsl");
  const uint32_t* compute = facts.limits.later + (api.standard() ? 5 : 6);
  can.shared_bytes = compute[0];
  can.max_group_size = std::min(compute[1], compute[2]);
  can.max_groups = {compute[5], compute[5], compute[5]};
  can.max_binding_bytes = std::min(facts.limits.max_storage_binding_bytes, uint64_t{0xffffff00});
  can.max_buffers = std::min(facts.limits.counts[kStorageBuffers], 32u);
  can.dot4 = true;  // of the language since 2023
  can.math_f16 = can.storage_f16 = take(kShaderF16);
  bool subgroups = take(kSubgroups);
  if (subgroups) {
    take(kSubgroupsF16);
  } else if (take(kSubgroupsUnasked)) {
    subgroups = true;
    can.dialect_level = kWgslSubgroupsUnasked;
  }
  // A kernel cannot ask for a size, so subgroups are used where there is only one.
  if (subgroups && sizes.min == sizes.max && sizes.min >= 4) {
    can.subgroup_size = sizes.min;
    can.subgroup_sizes = {sizes.min};
  }
  return facts;
}

}  // namespace prism::webgpu
