// Turns a lowered kernel into a pipeline: prints SPIR-V, applies replacement files, and caches the
// driver's binary.
#include "backends/vulkan/vulkan_program.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/cache_folder.h"
#include "ir/bindings.h"
#include "print/printer.h"
#include "print/spirv/spirv_words.h"
#include "prism/error.h"
#include "runtime/compile_error.h"

namespace prism::vulkan {
namespace {

constexpr const char* kCacheKind = "vulkan";

std::string as_text(const std::vector<uint32_t>& words) {
  return std::string(reinterpret_cast<const char*>(words.data()), words.size() * sizeof(uint32_t));
}

// The words of the printed kernel, or of its replacement file.
std::vector<uint32_t> as_words(const ir::Kernel& kernel, const KernelText& text) {
  std::vector<uint32_t> words(text.text.size() / sizeof(uint32_t));
  std::memcpy(words.data(), text.text.data(), words.size() * sizeof(uint32_t));
  if (text.text.size() % sizeof(uint32_t) != 0 || words.size() < 5 || words[0] != spirv::kMagic)
    throw Error(
        ErrorCode::kCompile,
        fmt::format("kernel {}: the replacement for {} is not SPIR-V; create it with spirv-as",
                    kernel.name, text.file));
  return words;
}

// The key includes the driver and its version, because binaries depend on both.
std::string cache_key(const PhysicalDevice& device, const std::string& spirv,
                      uint32_t subgroup_size) {
  std::string key = fmt::format("{}|{}|{}|", device.properties.vendorID,
                                device.properties.driverVersion, subgroup_size);
  for (const uint8_t byte : device.properties.pipelineCacheUUID) key += fmt::format("{:02x}", byte);
  return hash_text(key + "|" + spirv);
}

// The driver's pipeline cache for one kernel. The driver itself rejects content from another
// driver.
class CachedPipeline {
 public:
  CachedPipeline(LogicalDevice& device, std::string key) : device_(device), key_(std::move(key)) {
    const auto kept = read_cached(kCacheKind, key_);
    before_ = kept ? kept->size() : 0;
    VkPipelineCacheCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
    if (kept) {
      info.initialDataSize = kept->size();
      info.pInitialData = kept->data();
    }
    VkPipelineCache made = VK_NULL_HANDLE;
    if (device.call().CreatePipelineCache(device.handle(), &info, nullptr, &made) == VK_SUCCESS)
      cache_ = device.own(made, device.call().DestroyPipelineCache);
  }
  VkPipelineCache get() const { return cache_.get(); }

  // Stores the driver's binary. A cache that cannot be written only costs time.
  void save() {
    size_t bytes = 0;
    if (!cache_ ||
        device_.call().GetPipelineCacheData(device_.handle(), cache_.get(), &bytes, nullptr) !=
            VK_SUCCESS ||
        bytes == 0 || bytes == before_)
      return;
    std::vector<std::byte> content(bytes);
    if (device_.call().GetPipelineCacheData(device_.handle(), cache_.get(), &bytes,
                                            content.data()) == VK_SUCCESS)
      write_cached(kCacheKind, key_, content);
  }

 private:
  LogicalDevice& device_;
  std::string key_;
  size_t before_ = 0;
  Handle<VkPipelineCache> cache_;
};

[[noreturn]] void refused(const LogicalDevice& device, const ir::Kernel& kernel,
                          const KernelText& text, const std::string& why) {
  auto path = dump_file(text.file, std::as_bytes(std::span(text.text)));
  std::string where = path.empty() ? "set PRISM_DUMP=folder to keep its SPIR-V"
                                   : "its SPIR-V is in " + path.string();
  throw Error(ErrorCode::kCompile,
              fmt::format("compiling kernel {} for {} ({}): the driver refused it: {}; {} (check "
                          "it with spirv-val)",
                          kernel.name, device.id(), device.physical().info.name, why, where));
}

}  // namespace

std::unique_ptr<Program> make_program(LogicalDevice& device, const ir::Kernel& lowered,
                                      const ir::Capabilities& capabilities) {
  const PhysicalDevice& physical = device.physical();
  const PrintedKernel printed = print_spirv(lowered, capabilities);
  const KernelText text = kernel_text(physical.info, lowered, as_text(printed.words), "spv");
  const std::vector<uint32_t> words = as_words(lowered, text);

  VkShaderModuleCreateInfo shader{};
  shader.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  shader.codeSize = words.size() * sizeof(uint32_t);
  shader.pCode = words.data();
  VkShaderModule made = VK_NULL_HANDLE;
  VkResult result = device.call().CreateShaderModule(device.handle(), &shader, nullptr, &made);
  if (result != VK_SUCCESS) refused(device, lowered, text, result_name(result));
  const Handle<VkShaderModule> module = device.own(made, device.call().DestroyShaderModule);

  const std::vector<bool> writes = ir::written_bindings(lowered);
  const LogicalDevice::Layout layout = device.layout(static_cast<uint32_t>(writes.size()),
                                                     static_cast<uint32_t>(lowered.params.size()));
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.layout = layout.pipeline;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module.get();
  info.stage.pName = printed.entry.c_str();
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo size{};
  if (lowered.subgroup_size != 0) {
    if (physical.has_subgroup_range) {
      size.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO;
      size.requiredSubgroupSize = lowered.subgroup_size;
      info.stage.pNext = &size;
    }
    if (physical.full_subgroups && lowered.group_size % lowered.subgroup_size == 0)
      info.stage.flags |= VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
  }
  CachedPipeline cache(device, cache_key(physical, text.text, lowered.subgroup_size));
  VkPipeline pipeline = VK_NULL_HANDLE;
  result = device.call().CreateComputePipelines(device.handle(), cache.get(), 1, &info, nullptr,
                                                &pipeline);
  if (result != VK_SUCCESS) refused(device, lowered, text, result_name(result));
  auto program = std::make_unique<Program>(
      lowered.name, device.own(pipeline, device.call().DestroyPipeline), layout, writes);
  cache.save();
  device.instance().throw_complaints();
  return program;
}

}  // namespace prism::vulkan
