// Queries a physical device for its identity, memory, queues and features.
#include "backends/vulkan/vulkan_physical_device.h"

#include <algorithm>
#include <thread>

#include <fmt/format.h>

#include "prism/error.h"

namespace prism::vulkan {
namespace {

std::string vendor_name(uint32_t id) {
  switch (id) {
    case 0x1002:
      return "AMD";
    case 0x1010:
      return "Imagination";
    case 0x106b:
      return "Apple";
    case 0x10de:
      return "NVIDIA";
    case 0x13b5:
      return "Arm";
    case 0x14e4:
      return "Broadcom";
    case 0x5143:
      return "Qualcomm";
    case 0x8086:
      return "Intel";
    case 0x10005:
      return "Mesa";
    default:
      return fmt::format("vendor 0x{:04x}", id);
  }
}

void find_extensions(const Instance& instance, PhysicalDevice& device) {
  uint32_t count = 0;
  instance.call().EnumerateDeviceExtensionProperties(device.handle, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> list(count);
  if (instance.call().EnumerateDeviceExtensionProperties(device.handle, nullptr, &count,
                                                         list.data()) < 0)
    return;
  for (uint32_t i = 0; i < count; ++i) device.extensions.insert(list[i].extensionName);
}

void find_identity(const Instance& instance, PhysicalDevice& device, uint32_t index) {
  VkPhysicalDeviceProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  VkPhysicalDeviceIDProperties ids{};
  chain(properties, ids, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES);
  VkPhysicalDeviceMaintenance3Properties maintenance3{};
  chain(properties, maintenance3, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES);
  VkPhysicalDeviceMaintenance4Properties maintenance4{};
  if (device.at_least(VK_API_VERSION_1_3))
    chain(properties, maintenance4, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES);
  VkPhysicalDeviceDriverProperties driver{};
  if (device.at_least(VK_API_VERSION_1_2) || device.has("VK_KHR_driver_properties"))
    chain(properties, driver, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES);
  VkPhysicalDevicePCIBusInfoPropertiesEXT bus{};
  const bool has_bus = device.has("VK_EXT_pci_bus_info");
  if (has_bus)
    chain(properties, bus, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT);
  VkPhysicalDeviceShaderCorePropertiesAMD cores{};
  if (device.has("VK_AMD_shader_core_properties"))
    chain(properties, cores, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD);
  VkPhysicalDeviceShaderSMBuiltinsPropertiesNV multiprocessors{};
  if (device.has("VK_NV_shader_sm_builtins"))
    chain(properties, multiprocessors,
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV);
  instance.call().GetPhysicalDeviceProperties2(device.handle, &properties);

  DeviceInfo& info = device.info;
  const VkPhysicalDeviceType type = device.properties.deviceType;
  info.id = fmt::format("vulkan:{}", index);
  info.backend = "vulkan";
  info.name = device.properties.deviceName;
  info.vendor = vendor_name(device.properties.vendorID);
  info.software = type == VK_PHYSICAL_DEVICE_TYPE_CPU;
  info.unified = info.software || type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  const uint32_t version = device.properties.apiVersion;
  info.driver = fmt::format(
      "{} (Vulkan {}.{}.{})",
      driver.driverName[0] ? fmt::format("{} {}", driver.driverName, driver.driverInfo)
                           : fmt::format("driver {}", device.properties.driverVersion),
      VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version), VK_API_VERSION_PATCH(version));
  if (has_bus) {
    info.card = fmt::format("{:04x}:{:02x}:{:02x}.{:x}", bus.pciDomain, bus.pciBus, bus.pciDevice,
                            bus.pciFunction);
  } else {
    info.card = "uuid:";
    for (const uint8_t byte : ids.deviceUUID) info.card += fmt::format("{:02x}", byte);
  }
  if (info.software) info.compute_units = std::max(1u, std::thread::hardware_concurrency());
  if (multiprocessors.shaderSMCount) info.compute_units = multiprocessors.shaderSMCount;
  if (cores.computeUnitsPerShaderArray)
    info.compute_units = cores.shaderEngineCount * cores.shaderArraysPerEngineCount *
                         cores.computeUnitsPerShaderArray;

  device.max_allocation_bytes = maintenance3.maxMemoryAllocationSize;
  device.max_buffer_bytes = maintenance4.maxBufferSize ? maintenance4.maxBufferSize : UINT64_MAX;
}

// Among the memory types with all `needed` properties, the one in the largest heap, preferably with
// all of `also` and none of `rather_not`; -1 if there is none.
int memory_type(const VkPhysicalDeviceMemoryProperties& memory, VkMemoryPropertyFlags needed,
                VkMemoryPropertyFlags also, VkMemoryPropertyFlags rather_not) {
  int best = -1, best_score = -1;
  uint64_t best_heap = 0;
  for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
    const VkMemoryPropertyFlags flags = memory.memoryTypes[i].propertyFlags;
    // Exclude protected memory, and AMD's device-coherent memory, which is uncached.
    constexpr VkMemoryPropertyFlags kNever = VK_MEMORY_PROPERTY_PROTECTED_BIT |
                                             VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD |
                                             VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD;
    if ((flags & needed) != needed || (flags & kNever)) continue;
    const int score = ((flags & also) == also ? 2 : 0) + ((flags & rather_not) == 0 ? 1 : 0);
    const uint64_t heap = memory.memoryHeaps[memory.memoryTypes[i].heapIndex].size;
    if (heap > best_heap || (heap == best_heap && score > best_score)) {
      best = static_cast<int>(i);
      best_score = score;
      best_heap = heap;
    }
  }
  return best;
}

void find_memory(const Instance& instance, PhysicalDevice& device) {
  VkPhysicalDeviceMemoryProperties2 asked{};
  asked.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2;
  instance.call().GetPhysicalDeviceMemoryProperties2(device.handle, &asked);
  const VkPhysicalDeviceMemoryProperties& memory = asked.memoryProperties;
  constexpr VkMemoryPropertyFlags kHost =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;

  // Unified memory is mapped and used in place. On a discrete card, host-visible memory is slow for
  // the host.
  int type = device.info.unified ? memory_type(memory, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | kHost,
                                               VK_MEMORY_PROPERTY_HOST_CACHED_BIT, 0)
                                 : memory_type(memory, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0,
                                               VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT);
  if (type < 0) type = memory_type(memory, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0, 0);
  if (type < 0) type = memory_type(memory, 0, 0, 0);
  int staging = memory_type(memory, kHost | VK_MEMORY_PROPERTY_HOST_CACHED_BIT, 0,
                            VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
  if (staging < 0) staging = memory_type(memory, kHost, 0, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
  if (type < 0 || staging < 0)
    throw Error(ErrorCode::kNotSupported,
                fmt::format("{}: no memory that buffers can use", device.info.name));
  device.device_memory_type = static_cast<uint32_t>(type);
  device.staging_memory_type = static_cast<uint32_t>(staging);
  device.device_heap = memory.memoryTypes[type].heapIndex;
  device.info.total_bytes = memory.memoryHeaps[device.device_heap].size;
  // On a device that claims to be integrated, the chosen type may still not be host-visible.
  if ((memory.memoryTypes[type].propertyFlags & kHost) != kHost) device.info.unified = false;
  device.memory_budget = device.has("VK_EXT_memory_budget");
}

void find_queues(const Instance& instance, PhysicalDevice& device) {
  uint32_t count = 0;
  instance.call().GetPhysicalDeviceQueueFamilyProperties(device.handle, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  instance.call().GetPhysicalDeviceQueueFamilyProperties(device.handle, &count, families.data());
  int best = -1, best_score = -1;
  for (uint32_t i = 0; i < count; ++i) {
    if (!(families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) || families[i].queueCount == 0) continue;
    // A compute-only family is not delayed by the desktop. Without timestamps nothing can be
    // measured.
    const int score = (families[i].timestampValidBits ? 2 : 0) +
                      (families[i].queueFlags & VK_QUEUE_GRAPHICS_BIT ? 0 : 1);
    if (score > best_score) {
      best = static_cast<int>(i);
      best_score = score;
    }
  }
  if (best < 0)
    throw Error(ErrorCode::kNotSupported, fmt::format("{}: no compute queue", device.info.name));
  device.queue_family = static_cast<uint32_t>(best);
  // A program makes few queues; beyond four, they share.
  device.queue_count = std::min(families[static_cast<size_t>(best)].queueCount, 4u);
  device.timestamp_bits = families[static_cast<size_t>(best)].timestampValidBits;
}

}  // namespace

std::unique_ptr<PhysicalDevice> examine(const Instance& instance, VkPhysicalDevice handle,
                                        uint32_t index, const VulkanOptions& options) {
  auto device = std::make_unique<PhysicalDevice>();
  device->handle = handle;
  instance.call().GetPhysicalDeviceProperties(handle, &device->properties);
  device->info.name = device->properties.deviceName;
  const uint32_t version = device->properties.apiVersion;
  if (version < VK_API_VERSION_1_1)
    throw Error(ErrorCode::kNotSupported,
                fmt::format("{} offers Vulkan {}.{}, and 1.1 is needed; update its driver",
                            device->info.name, VK_API_VERSION_MAJOR(version),
                            VK_API_VERSION_MINOR(version)));
  find_extensions(instance, *device);
  find_identity(instance, *device, index);
  find_memory(instance, *device);
  find_queues(instance, *device);
  // vkCmdCopyBuffer on NVIDIA's compute queues reaches 851 GB/s, a kernel 4,276 GB/s (H200, driver
  // 580).
  device->copies_by_kernel = device->properties.vendorID == 0x10de || options.copies_by_kernel;
  device->mapped = device->info.unified && options.in_place;
  device->push_descriptors = options.push_descriptors && device->has("VK_KHR_push_descriptor");
  if (device->push_descriptors) device->enabled_extensions.push_back("VK_KHR_push_descriptor");
  if (device->memory_budget) device->enabled_extensions.push_back("VK_EXT_memory_budget");
  // The specification requires enabling it on every device that has it.
  if (device->has("VK_KHR_portability_subset"))
    device->enabled_extensions.push_back("VK_KHR_portability_subset");
  find_capabilities(instance, *device);
  return device;
}

}  // namespace prism::vulkan
