// Translates Vulkan features and limits to the capabilities used by lowering and the SPIR-V
// printer.
#include <algorithm>
#include <bit>
#include <optional>

#include "backends/vulkan/vulkan_physical_device.h"
#include "print/spirv/spirv.h"

namespace prism::vulkan {
namespace {

constexpr uint32_t kIntel = 0x8086;

struct Properties {
  VkPhysicalDeviceProperties2 core{};
  VkPhysicalDeviceSubgroupProperties subgroup{};
  VkPhysicalDeviceSubgroupSizeControlProperties subgroup_size{};
  VkPhysicalDeviceFloatControlsProperties float_controls{};
  VkPhysicalDevicePushDescriptorPropertiesKHR push{};
};

// Chains a structure if the device supports it, either since `core_version` or through the
// extension, which is then enabled.
template <class Head, class Part>
void chain_if(PhysicalDevice& device, Head& head, Part& part, VkStructureType type,
              uint32_t core_version, const char* extension) {
  const bool core = core_version != 0 && device.at_least(core_version);
  if (!core && !device.has(extension)) return;
  chain(head, part, type);
  if (core) return;
  auto& enabled = device.enabled_extensions;
  if (std::ranges::find(enabled, std::string_view(extension),
                        [](const char* e) { return std::string_view(e); }) == enabled.end())
    enabled.push_back(extension);
}

void ask_features(const Instance& instance, PhysicalDevice& d) {
  Features& f = d.features;
  f.core.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  chain(f.core, f.storage_16, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES);
  chain_if(d, f.core, f.storage_8, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES,
           VK_API_VERSION_1_2, "VK_KHR_8bit_storage");
  chain_if(d, f.core, f.narrow, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES,
           VK_API_VERSION_1_2, "VK_KHR_shader_float16_int8");
  chain_if(d, f.core, f.subgroup_types,
           VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SUBGROUP_EXTENDED_TYPES_FEATURES,
           VK_API_VERSION_1_2, "VK_KHR_shader_subgroup_extended_types");
  chain_if(d, f.core, f.subgroup_size,
           VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES, VK_API_VERSION_1_3,
           "VK_EXT_subgroup_size_control");
  chain_if(d, f.core, f.memory_model,
           VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES, VK_API_VERSION_1_2,
           "VK_KHR_vulkan_memory_model");
  chain_if(d, f.core, f.float_atomics,
           VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_FEATURES_EXT, 0,
           "VK_EXT_shader_atomic_float");
  chain_if(d, f.core, f.dot_product,
           VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES,
           VK_API_VERSION_1_3, "VK_KHR_shader_integer_dot_product");
  // Needs SPIR-V 1.6, which is part of Vulkan 1.3.
  if (d.at_least(VK_API_VERSION_1_3))
    chain_if(d, f.core, f.matrices,
             VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR, 0,
             VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME);
  instance.call().GetPhysicalDeviceFeatures2(d.handle, &f.core);

  // Enable only what kernels use: robust buffer access, for example, would cost time.
  const VkPhysicalDeviceFeatures all = f.core.features;
  f.core.features = {};
  f.core.features.shaderInt16 = all.shaderInt16;
  f.core.features.shaderInt64 = all.shaderInt64;
  f.core.features.shaderFloat64 = all.shaderFloat64;
  f.matrices.cooperativeMatrixRobustBufferAccess = VK_FALSE;
}

Properties ask_properties(const Instance& instance, PhysicalDevice& d) {
  Properties p;
  p.core.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  chain(p.core, p.subgroup, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES);
  chain_if(d, p.core, p.subgroup_size,
           VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES, VK_API_VERSION_1_3,
           "VK_EXT_subgroup_size_control");
  chain_if(d, p.core, p.float_controls, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES,
           VK_API_VERSION_1_2, "VK_KHR_shader_float_controls");
  if (d.push_descriptors)
    chain(p.core, p.push, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PUSH_DESCRIPTOR_PROPERTIES_KHR);
  instance.call().GetPhysicalDeviceProperties2(d.handle, &p.core);
  return p;
}

// Which of the three widths may be set together, depending on how independent the device's modes
// are.
uint32_t float_modes(VkShaderFloatControlsIndependence independence, bool has16, bool has32,
                     bool has64, uint32_t bit16, uint32_t bit32, uint32_t bit64) {
  if (independence == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE && !(has16 && has32 && has64))
    return 0;
  if (independence == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_32_BIT_ONLY && !(has16 && has64))
    has16 = has64 = false;
  return (has16 ? bit16 : 0) | (has32 ? bit32 : 0) | (has64 ? bit64 : 0);
}

uint32_t dialect_level(const Features& f, const VkPhysicalDeviceFloatControlsProperties& p) {
  uint32_t level = float_modes(p.roundingModeIndependence, p.shaderRoundingModeRTEFloat16,
                               p.shaderRoundingModeRTEFloat32, p.shaderRoundingModeRTEFloat64,
                               spirv::kRoundEven16, spirv::kRoundEven32, spirv::kRoundEven64);
  level |= float_modes(p.denormBehaviorIndependence, p.shaderDenormPreserveFloat16,
                       p.shaderDenormPreserveFloat32, p.shaderDenormPreserveFloat64,
                       spirv::kDenormals16, spirv::kDenormals32, spirv::kDenormals64);
  level |= float_modes(
      VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL, p.shaderSignedZeroInfNanPreserveFloat16,
      p.shaderSignedZeroInfNanPreserveFloat32, p.shaderSignedZeroInfNanPreserveFloat64,
      spirv::kPreserve16, spirv::kPreserve32, spirv::kPreserve64);
  if (f.narrow.shaderInt8) level |= spirv::kInt8;
  if (f.core.features.shaderInt16) level |= spirv::kInt16;
  return level;
}

void find_subgroups(PhysicalDevice& d, const Properties& p) {
  ir::Capabilities& c = d.info.capabilities;
  constexpr VkSubgroupFeatureFlags kNeeded = VK_SUBGROUP_FEATURE_BASIC_BIT |
                                             VK_SUBGROUP_FEATURE_ARITHMETIC_BIT |
                                             VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
  if ((p.subgroup.supportedOperations & kNeeded) != kNeeded ||
      !(p.subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) ||
      !std::has_single_bit(p.subgroup.subgroupSize))
    return;
  const bool control = d.features.subgroup_size.subgroupSizeControl &&
                       (p.subgroup_size.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT);
  d.full_subgroups = d.features.subgroup_size.computeFullSubgroups;
  if (!control) {
    // The subgroup size is not fixed: these drivers run a kernel at 8, 16 or 32 lanes.
    if (d.properties.vendorID == kIntel) return;
    c.subgroup_size = p.subgroup.subgroupSize;
    c.subgroup_sizes = {c.subgroup_size};
    return;
  }
  for (uint32_t size = p.subgroup_size.minSubgroupSize;
       size && size <= p.subgroup_size.maxSubgroupSize; size *= 2)
    c.subgroup_sizes.push_back(size);
  d.has_subgroup_range = c.subgroup_sizes.size() > 1;
  // Most kernels are tuned for 32 lanes. Intel's units are 16 wide and run out of registers at 32.
  const uint32_t wanted = d.properties.vendorID == kIntel ? 16 : 32;
  const bool offered = std::ranges::find(c.subgroup_sizes, wanted) != c.subgroup_sizes.end();
  c.subgroup_size = offered ? wanted : p.subgroup.subgroupSize;
}

std::optional<DType> component(VkComponentTypeKHR type) {
  switch (type) {
    case VK_COMPONENT_TYPE_FLOAT16_KHR:
      return DType::f16;
    case VK_COMPONENT_TYPE_FLOAT32_KHR:
      return DType::f32;
    case VK_COMPONENT_TYPE_FLOAT64_KHR:
      return DType::f64;
    case VK_COMPONENT_TYPE_SINT8_KHR:
      return DType::i8;
    case VK_COMPONENT_TYPE_SINT32_KHR:
      return DType::i32;
    case VK_COMPONENT_TYPE_UINT8_KHR:
      return DType::u8;
    case VK_COMPONENT_TYPE_UINT32_KHR:
      return DType::u32;
    default:
      return std::nullopt;
  }
}

void find_fragments(const Instance& instance, PhysicalDevice& d) {
  ir::Capabilities& c = d.info.capabilities;
  const auto list = instance.call().GetPhysicalDeviceCooperativeMatrixPropertiesKHR;
  const auto& model = d.features.memory_model;
  if (!list || !d.features.matrices.cooperativeMatrix || !c.subgroup_size || !c.math_f16 ||
      !model.vulkanMemoryModel || !model.vulkanMemoryModelDeviceScope)
    return;
  uint32_t count = 0;
  if (list(d.handle, &count, nullptr) < 0) return;
  VkCooperativeMatrixPropertiesKHR empty{};
  empty.sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR;
  std::vector<VkCooperativeMatrixPropertiesKHR> shapes(count, empty);
  if (list(d.handle, &count, shapes.data()) < 0) return;
  for (const auto& s : shapes) {
    const auto operand = component(s.AType), accumulator = component(s.CType);
    if (s.scope != VK_SCOPE_SUBGROUP_KHR || s.AType != s.BType || s.CType != s.ResultType ||
        !operand || !accumulator || s.saturatingAccumulation)
      continue;
    if (*operand == DType::i8 || *operand == DType::u8) {
      if (!d.features.narrow.shaderInt8 || !c.storage_8) continue;
    }
    if (*operand == DType::f64 && !c.math_f64) continue;
    c.fragments.push_back({*operand, *accumulator, static_cast<uint16_t>(s.MSize),
                           static_cast<uint16_t>(s.NSize), static_cast<uint16_t>(s.KSize)});
  }
}

}  // namespace

void find_capabilities(const Instance& instance, PhysicalDevice& d) {
  ask_features(instance, d);
  const Properties p = ask_properties(instance, d);
  const Features& f = d.features;
  const VkPhysicalDeviceLimits& limits = d.properties.limits;
  ir::Capabilities& c = d.info.capabilities;
  c.dialect = "spirv";
  c.dialect_level = dialect_level(f, p.float_controls);
  if (d.info.software) c.dialect_level |= spirv::kKeepLoops | spirv::kHideConstants;
  find_subgroups(d, p);

  const bool round_even = (c.dialect_level & spirv::kRoundEven16) != 0;
  // Subgroup operations on 16- and 64-bit values need a separate feature.
  const bool any_lane = c.subgroup_size == 0 || f.subgroup_types.shaderSubgroupExtendedTypes;
  c.storage_8 = f.storage_8.storageBuffer8BitAccess;
  c.storage_16 = f.storage_16.storageBuffer16BitAccess;
  c.storage_f16 = c.storage_16 && round_even;
  c.math_f16 = f.narrow.shaderFloat16 && c.storage_f16 && any_lane;
  // An array outside of buffers needs the arithmetic type, not only its storage.
  c.narrow_arrays = f.narrow.shaderInt8 && f.core.features.shaderInt16 && c.math_f16;
  c.math_i64 = f.core.features.shaderInt64 && any_lane;
  c.math_f64 = f.core.features.shaderFloat64;
  // precise_math stays off: Vulkan's accuracy guarantees are far weaker than 4 ulp. Under MoltenVK,
  // Metal's fences only cover a workgroup.
  c.device_fence = d.info.driver.find("MoltenVK") == std::string::npos;
  c.dot4 = f.dot_product.shaderIntegerDotProduct;
  const auto& atomics = f.float_atomics;
  c.float_atomics = atomics.shaderBufferFloat32Atomics && atomics.shaderBufferFloat32AtomicAdd &&
                    atomics.shaderSharedFloat32Atomics && atomics.shaderSharedFloat32AtomicAdd;
  c.max_group_size =
      std::min(limits.maxComputeWorkGroupInvocations, limits.maxComputeWorkGroupSize[0]);
  c.shared_bytes = limits.maxComputeSharedMemorySize;
  c.max_buffers = std::min({limits.maxPerStageDescriptorStorageBuffers,
                            limits.maxDescriptorSetStorageBuffers, limits.maxPerStageResources,
                            d.push_descriptors ? p.push.maxPushDescriptors : UINT32_MAX});
  c.max_binding_bytes = limits.maxStorageBufferRange;
  for (size_t axis = 0; axis < 3; ++axis)
    c.max_groups[axis] = limits.maxComputeWorkGroupCount[axis];
  find_fragments(instance, d);
}

}  // namespace prism::vulkan
