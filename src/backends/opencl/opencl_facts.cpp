// Device queries, including extensions.
#include "backends/opencl/opencl_facts.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

namespace prism::opencl {
namespace {

// Extension constants that older headers lack.
constexpr cl_device_info kPciBusInfoKhr = 0x410F;
constexpr cl_device_info kUuidKhr = 0x106A;
constexpr cl_device_info kPciBusIdNv = 0x4008;
constexpr cl_device_info kPciSlotIdNv = 0x4009;
constexpr cl_device_info kPciDomainIdNv = 0x400A;
constexpr cl_device_info kTopologyAmd = 0x4037;
constexpr cl_device_info kComputeMajorNv = 0x4000, kComputeMinorNv = 0x4001;
constexpr cl_device_info kBoardNameAmd = 0x4038;
constexpr cl_device_info kFreeMemoryAmd = 0x4039;
constexpr cl_device_info kSubgroupSizesIntel = 0x4108;
constexpr cl_device_info kMaxSubgroups = 0x105C;
constexpr cl_device_info kIntegerDotProduct = 0x1073;
constexpr cl_device_info kFloatAtomics = 0x4231;
constexpr cl_device_info kCommandBufferCapabilities = 0x12A9;
constexpr cl_device_info kCommandBufferRequiredQueue = 0x12AA;

constexpr uint64_t kDotPacked = 1u << 0;
constexpr uint64_t kFloatAddGlobal = 1u << 1, kFloatAddLocal = 1u << 17;
constexpr uint64_t kOverlapping = 1u << 2;

// Xe cores are designed for 16 lanes; wider subgroups halve the registers per lane.
constexpr std::array<uint32_t, 5> kPreferredSubgroups = {16, 32, 8, 64, 4};

struct Query {
  const Api& api;
  cl_device_id device;
  std::string platform, extensions;

  template <class T>
  T number(cl_device_info what, T otherwise = T{}) const {
    return device_number<T>(api, device, what, otherwise);
  }
  bool has(const char* extension) const { return has_extension(extensions, extension); }
};

std::string pci_address(uint32_t domain, uint32_t bus, uint32_t slot, uint32_t function) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", domain, bus, slot, function);
}

std::string card_of(const Query& query, const std::string& id) {
  if (query.has("cl_khr_pci_bus_info")) {
    const auto pci = device_list<cl_uint>(query.api, query.device, kPciBusInfoKhr);
    if (pci.size() == 4) return pci_address(pci[0], pci[1], pci[2], pci[3]);
  }
  if (query.has("cl_nv_device_attribute_query")) {
    const auto bus = query.number<cl_uint>(kPciBusIdNv, ~0u);
    const auto slot = query.number<cl_uint>(kPciSlotIdNv, 0);
    // The slot packs device and function as PCI does.
    if (bus != ~0u)
      return pci_address(query.number<cl_uint>(kPciDomainIdNv, 0), bus, slot >> 3, slot & 7);
  }
  if (query.has("cl_amd_device_attribute_query") || query.has("cl_amd_device_topology")) {
    // Layout: type (1: PCIe), 17 unused bytes, then bus, device and function.
    const auto topology = device_list<unsigned char>(query.api, query.device, kTopologyAmd);
    if (topology.size() == 24 && topology[0] == 1)
      return pci_address(0, topology[21], topology[22], topology[23]);
  }
  if (query.has("cl_khr_device_uuid")) {
    const auto uuid = device_list<unsigned char>(query.api, query.device, kUuidKhr);
    if (uuid.size() == 16) return fmt::format("uuid:{:02x}", fmt::join(uuid, ""));
  }
  return id;
}

// The newest OpenCL C that the device compiles; OpenCL 3.0 devices may report an old one first.
uint32_t language_version(const Query& query, uint32_t version) {
  uint32_t newest = version_of(device_text(query.api, query.device, CL_DEVICE_OPENCL_C_VERSION));
  if (version < 30) return newest;
  for (const auto& entry :
       device_list<cl_name_version>(query.api, query.device, CL_DEVICE_OPENCL_C_ALL_VERSIONS))
    newest = std::max(newest, static_cast<uint32_t>(CL_VERSION_MAJOR(entry.version) * 10 +
                                                    CL_VERSION_MINOR(entry.version)));
  return newest;
}

// NVIDIA's driver exposes neither integer dot products nor subgroups, but its compiler accepts PTX.
uint32_t ptx_level(const Query& query) {
  if (query.platform != "NVIDIA CUDA" || !query.has("cl_nv_device_attribute_query")) return 0;
  return query.number<cl_uint>(kComputeMajorNv, 0) * 10 + query.number<cl_uint>(kComputeMinorNv, 0);
}

bool dots_by_ptx(uint32_t ptx_level) { return ptx_level >= 61; }
bool subgroups_by_ptx(uint32_t ptx_level) { return ptx_level >= 50; }

SubgroupOffer subgroup_offer(const Query& query) {
  SubgroupOffer offer{query.platform, ptx_level(query), {}};
  // Kernels are specialised for one subgroup size, so a device that chooses freely counts as having
  // no subgroups.
  if (query.has("cl_intel_required_subgroup_size") && query.has("cl_khr_subgroup_shuffle") &&
      query.number<cl_uint>(kMaxSubgroups, 0) != 0)
    for (size_t size : device_list<size_t>(query.api, query.device, kSubgroupSizesIntel))
      offer.sizes.push_back(static_cast<uint32_t>(size));
  return offer;
}

ir::Capabilities capabilities_of(const Query& query, uint32_t language) {
  ir::Capabilities capabilities;
  capabilities.dialect = "opencl";
  capabilities.dialect_level = language * 10;
  const bool full = device_text(query.api, query.device, CL_DEVICE_PROFILE) != "EMBEDDED_PROFILE";
  // storage_f16 is always available: vload_half and vstore_half_rte are core functions.
  capabilities.storage_bf16 = true;  // emulated by the printer with bit operations
  capabilities.math_f16 = query.has("cl_khr_fp16");
  capabilities.math_i64 = full || query.has("cles_khr_int64");
  capabilities.math_f64 = query.number<cl_device_fp_config>(CL_DEVICE_DOUBLE_FP_CONFIG, 0) != 0;
  // The full profile limits errors to 3 ulp for exp and log, 4 ulp for sin and cos.
  capabilities.precise_math = full;
  capabilities.dot4 = dots_by_ptx(ptx_level(query)) ||
                      (query.has("cl_khr_integer_dot_product") &&
                       (query.number<cl_bitfield>(kIntegerDotProduct, 0) & kDotPacked) != 0);
  constexpr uint64_t kFloatAdd = kFloatAddGlobal | kFloatAddLocal;
  capabilities.float_atomics =
      language >= 30 && query.has("cl_ext_float_atomics") &&
      (query.number<cl_bitfield>(kFloatAtomics, 0) & kFloatAdd) == kFloatAdd;
  constexpr uint64_t kFence = CL_DEVICE_ATOMIC_ORDER_ACQ_REL | CL_DEVICE_ATOMIC_SCOPE_DEVICE;
  const bool fence = !(~query.number<cl_bitfield>(CL_DEVICE_ATOMIC_FENCE_CAPABILITIES, 0) & kFence);
  capabilities.device_fence = ptx_level(query) >= 70 || (language >= 30 ? fence : language >= 20);
  use_subgroups(subgroup_offer(query), capabilities);
  const auto sizes = device_list<size_t>(query.api, query.device, CL_DEVICE_MAX_WORK_ITEM_SIZES);
  size_t group_size = query.number<size_t>(CL_DEVICE_MAX_WORK_GROUP_SIZE, 1);
  if (!sizes.empty()) group_size = std::min(group_size, sizes[0]);
  capabilities.max_group_size = static_cast<uint32_t>(group_size);
  capabilities.shared_bytes = static_cast<uint32_t>(
      std::min<cl_ulong>(query.number<cl_ulong>(CL_DEVICE_LOCAL_MEM_SIZE, 0), 1u << 30));
  capabilities.max_buffers = 64;  // 8 bytes each, in at least 1 KiB of arguments
  capabilities.max_binding_bytes = query.number<cl_ulong>(CL_DEVICE_MAX_MEM_ALLOC_SIZE, 0);
  // Global sizes count lanes, and some drivers store them in 32 bits. y and z have hardware limits.
  capabilities.max_groups = {0xffffffffu / std::max(1u, capabilities.max_group_size), 65535, 65535};
  return capabilities;
}

std::string build_options(const Query& query, uint32_t language) {
  std::string options = language >= 30   ? "-cl-std=CL3.0"
                        : language >= 20 ? "-cl-std=CL2.0"
                                         : "-cl-std=CL1.2";
  const auto single = query.number<cl_device_fp_config>(CL_DEVICE_SINGLE_FP_CONFIG, 0);
  if (single & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT)
    options += " -cl-fp32-correctly-rounded-divide-sqrt";
  return options;
}

}  // namespace

uint32_t version_of(const std::string& text) {
  const size_t start = text.find_first_of("0123456789");
  if (text.rfind("OpenCL", 0) != 0 || start == std::string::npos || start + 2 >= text.size())
    return 0;
  if (text[start + 1] != '.' || !std::isdigit(static_cast<unsigned char>(text[start + 2])))
    return 0;
  return static_cast<uint32_t>((text[start] - '0') * 10 + (text[start + 2] - '0'));
}

bool has_extension(const std::string& extensions, const std::string& name) {
  for (size_t at = extensions.find(name); at != std::string::npos;
       at = extensions.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at == 0 || extensions[at - 1] == ' ') &&
        (end == extensions.size() || extensions[end] == ' '))
      return true;
  }
  return false;
}

void use_subgroups(const SubgroupOffer& offer, ir::Capabilities& capabilities) {
  // PoCL 5.0 shuffles wrongly on the CPU: the logits of a small model are zeros.
  if (offer.platform == "Portable Computing Language") return;
  std::vector<uint32_t>& sizes = capabilities.subgroup_sizes;
  sizes = subgroups_by_ptx(offer.ptx_level) ? std::vector<uint32_t>{32} : offer.sizes;
  for (uint32_t size : kPreferredSubgroups) {
    if (std::find(sizes.begin(), sizes.end(), size) == sizes.end()) continue;
    capabilities.subgroup_size = size;
    break;
  }
}

DeviceFacts describe(const Api& api, cl_platform_id platform, cl_device_id device,
                     const std::string& id) {
  const Query query{api, device, platform_text(api, platform, CL_PLATFORM_NAME),
                    device_text(api, device, CL_DEVICE_EXTENSIONS)};
  DeviceFacts facts;
  facts.version = version_of(device_text(api, device, CL_DEVICE_VERSION));
  const uint32_t language = language_version(query, facts.version);

  DeviceInfo& info = facts.info;
  info.id = id;
  info.backend = "opencl";
  info.name = device_text(api, device, CL_DEVICE_NAME);
  if (query.has("cl_amd_device_attribute_query")) {
    // The plain device name is only a code such as gfx1030.
    if (const std::string board = device_text(api, device, kBoardNameAmd); !board.empty())
      info.name = board;
  }
  info.vendor = device_text(api, device, CL_DEVICE_VENDOR);
  info.card = card_of(query, id);
  info.driver = query.platform + " " + device_text(api, device, CL_DRIVER_VERSION);
  info.total_bytes = query.number<cl_ulong>(CL_DEVICE_GLOBAL_MEM_SIZE, 0);
  info.unified = query.number<cl_bool>(CL_DEVICE_HOST_UNIFIED_MEMORY, CL_FALSE) == CL_TRUE;
  info.software = (query.number<cl_device_type>(CL_DEVICE_TYPE, 0) & CL_DEVICE_TYPE_CPU) != 0;
  info.compute_units = query.number<cl_uint>(CL_DEVICE_MAX_COMPUTE_UNITS, 0);
  info.capabilities = capabilities_of(query, language);

  facts.build_options = build_options(query, language);
  // The compiler's pass for values that live across barriers drops float negations (lanes get the
  // value of another subgroup) and integer complements (seen in 2026.22).
  if (info.software && query.platform.find("Intel") != std::string::npos)
    facts.build_options += " -DPRISM_HIDE_NEGATIONS";
  // NVIDIA's compiler fits registers to the group size that a kernel requires, but the driver's
  // query for the largest size still returns 256 (580.159 on an H200, a kernel with 32 registers).
  facts.keeps_group_size = ptx_level(query) != 0;
  if (dots_by_ptx(ptx_level(query))) facts.build_options += " -DPRISM_DOT4_BY_PTX";
  if (subgroups_by_ptx(ptx_level(query))) facts.build_options += " -DPRISM_SUBGROUPS_BY_PTX";
  facts.identity = fmt::format("{}|{}|{}|{}", device_text(api, device, CL_DEVICE_NAME), info.driver,
                               device_text(api, device, CL_DEVICE_VERSION),
                               platform_text(api, platform, CL_PLATFORM_VERSION));
  facts.max_allocation = info.capabilities.max_binding_bytes;
  facts.tells_free_memory = told_free_bytes(api, device) != 0;
  // Prism's queues only enable profiling; command buffers must not require anything else.
  const auto required = query.number<cl_command_queue_properties>(kCommandBufferRequiredQueue, 0);
  facts.has_command_buffers =
      query.has("cl_khr_command_buffer") &&
      (required & ~cl_command_queue_properties{CL_QUEUE_PROFILING_ENABLE}) == 0;
  facts.command_buffers_overlap =
      (query.number<cl_bitfield>(kCommandBufferCapabilities, 0) & kOverlapping) != 0;
  return facts;
}

uint64_t told_free_bytes(const Api& api, cl_device_id device) {
  if (!has_extension(device_text(api, device, CL_DEVICE_EXTENSIONS),
                     "cl_amd_device_attribute_query"))
    return 0;
  const auto kib = device_list<size_t>(api, device, kFreeMemoryAmd);
  return kib.empty() ? 0 : uint64_t{kib[0]} * 1024;
}

}  // namespace prism::opencl
