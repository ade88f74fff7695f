// Launches, copies and barriers as Vulkan commands.
#include "backends/vulkan/vulkan_commands.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "backends/vulkan/vulkan_program.h"
#include "prism/error.h"

namespace prism::vulkan {
namespace {

constexpr VkPipelineStageFlags kCompute = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
constexpr VkPipelineStageFlags kTransfer = VK_PIPELINE_STAGE_TRANSFER_BIT;

// Descriptor pool sizes; kernels rarely have more than eight buffers.
constexpr uint32_t kSetsInPool = 128;
constexpr uint32_t kBuffersInPool = 8 * kSetsInPool;

VkAccessFlags written_by(VkPipelineStageFlags stages) {
  VkAccessFlags access = 0;
  if (stages & kCompute) access |= VK_ACCESS_SHADER_WRITE_BIT;
  if (stages & kTransfer) access |= VK_ACCESS_TRANSFER_WRITE_BIT;
  return access;
}

VkAccessFlags used_by(VkPipelineStageFlags stages) {
  VkAccessFlags access = written_by(stages);
  if (stages & kCompute) access |= VK_ACCESS_SHADER_READ_BIT;
  if (stages & kTransfer) access |= VK_ACCESS_TRANSFER_READ_BIT;
  return access;
}

}  // namespace

Commands::Commands(LogicalDevice& device, VkCommandPool pool) : device_(device), pool_(pool) {
  VkCommandBufferAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  info.commandPool = pool;
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = 1;
  device.check(device.call().AllocateCommandBuffers(device.handle(), &info, &commands_),
               "making a command buffer");
}

Commands::~Commands() { device_.call().FreeCommandBuffers(device_.handle(), pool_, 1, &commands_); }

void Commands::begin(bool once) {
  for (const auto& pool : sets_)
    device_.check(device_.call().ResetDescriptorPool(device_.handle(), pool.get(), 0),
                  "resetting descriptors");
  current_sets_ = 0;
  VkCommandBufferBeginInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  info.flags = once ? VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT
                    : VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;
  device_.check(device_.call().BeginCommandBuffer(commands_, &info), "beginning a command buffer");
  open_ = true;
  launches_ = 0;
  last_kernel_.clear();
  bound_ = VK_NULL_HANDLE;
  hazards_.clear();
  // Submissions to one queue start in order but may overlap, so each waits for all earlier ones.
  barrier(VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_ACCESS_MEMORY_WRITE_BIT,
          VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
          VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT);
}

void Commands::end() {
  if (device_.physical().mapped) show_host();
  open_ = false;
  device_.check(device_.call().EndCommandBuffer(commands_), "ending a command buffer");
}

void Commands::show_host() {
  barrier(kCompute | kTransfer, written_by(kCompute | kTransfer), VK_PIPELINE_STAGE_HOST_BIT,
          VK_ACCESS_HOST_READ_BIT);
}

void Commands::barrier(VkPipelineStageFlags from, VkAccessFlags written, VkPipelineStageFlags to,
                       VkAccessFlags used) {
  VkMemoryBarrier all{};
  all.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  all.srcAccessMask = written;
  all.dstAccessMask = used;
  device_.call().CmdPipelineBarrier(commands_, from, to, 0, 1, &all, 0, nullptr, 0, nullptr);
}

void Commands::order(std::span<const Range> ranges, VkPipelineStageFlags stage) {
  if (!hazards_.needs_barrier(ranges, stage)) return;
  barrier(hazards_.barrier_from(), written_by(hazards_.barrier_from()), hazards_.barrier_to(),
          used_by(hazards_.barrier_to()));
}

VkDescriptorSet Commands::new_set(VkDescriptorSetLayout layout) {
  for (;; ++current_sets_) {
    const bool fresh = current_sets_ == sets_.size();
    if (fresh) {
      VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, kBuffersInPool};
      VkDescriptorPoolCreateInfo info{};
      info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
      info.maxSets = kSetsInPool;
      info.poolSizeCount = 1;
      info.pPoolSizes = &size;
      VkDescriptorPool pool = VK_NULL_HANDLE;
      device_.check(device_.call().CreateDescriptorPool(device_.handle(), &info, nullptr, &pool),
                    "making a descriptor pool");
      sets_.push_back(device_.own(pool, device_.call().DestroyDescriptorPool));
    }
    VkDescriptorSetAllocateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
    info.descriptorPool = sets_[current_sets_].get();
    info.descriptorSetCount = 1;
    info.pSetLayouts = &layout;
    VkDescriptorSet set = VK_NULL_HANDLE;
    const VkResult result = device_.call().AllocateDescriptorSets(device_.handle(), &info, &set);
    if (result == VK_SUCCESS) return set;
    const bool full = result == VK_ERROR_OUT_OF_POOL_MEMORY || result == VK_ERROR_FRAGMENTED_POOL;
    if (fresh || !full) device_.check(result, "making a descriptor set");
  }
}

void Commands::bind(VkPipelineLayout pipeline, VkDescriptorSetLayout layout,
                    std::span<const VkDescriptorBufferInfo> buffers) {
  if (buffers.empty()) return;
  const bool push = device_.physical().push_descriptors;
  const VkDescriptorSet set = push ? VK_NULL_HANDLE : new_set(layout);
  // Bindings are consecutive and of one type, so a single write covers them all.
  std::array<VkWriteDescriptorSet, 32> writes{};
  if (buffers.size() > writes.size())
    throw Error(ErrorCode::kNotSupported,
                fmt::format("{}: a launch with {} bindings, at most {} are supported", device_.id(),
                            buffers.size(), writes.size()));
  for (uint32_t i = 0; i < buffers.size(); ++i) {
    writes[i].sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
    writes[i].dstSet = set;
    writes[i].dstBinding = i;
    writes[i].descriptorCount = 1;
    writes[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    writes[i].pBufferInfo = &buffers[i];
  }
  const uint32_t count = static_cast<uint32_t>(buffers.size());
  if (push) {
    device_.call().CmdPushDescriptorSetKHR(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline, 0,
                                           count, writes.data());
    return;
  }
  device_.call().UpdateDescriptorSets(device_.handle(), count, writes.data(), 0, nullptr);
  device_.call().CmdBindDescriptorSets(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline, 0, 1,
                                       &set, 0, nullptr);
}

void Commands::launch(const LaunchCall& call) {
  auto& program = static_cast<Program&>(*call.program);
  if (call.bindings.size() != program.buffers())
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("launch of {}: {} bindings given, the kernel takes {}", program.name(),
                            call.bindings.size(), program.buffers()));
  std::vector<Range> ranges(call.bindings.size());
  std::vector<VkDescriptorBufferInfo> buffers(call.bindings.size());
  for (size_t i = 0; i < call.bindings.size(); ++i) {
    const Binding& binding = call.bindings[i];
    const auto& memory = static_cast<const Memory&>(*binding.memory);
    // Round up to a whole vector, so that a vector access to the last elements passes bounds
    // checks.
    const uint64_t limit =
        std::min<uint64_t>(device_.physical().properties.limits.maxStorageBufferRange,
                           memory.reserved() - binding.offset);
    const uint64_t bytes = std::min(limit, (std::max<uint64_t>(binding.bytes, 1) + 15) / 16 * 16);
    buffers[i] = {memory.buffer(), memory.offset() + binding.offset, bytes};
    ranges[i] = {memory.buffer(), buffers[i].offset, buffers[i].offset + binding.bytes,
                 program.writes(i)};
  }
  dispatch(program, ranges, buffers, call.params, call.groups);
}

void Commands::dispatch(const Program& program, std::span<const Range> ranges,
                        std::span<const VkDescriptorBufferInfo> buffers,
                        std::span<const uint32_t> params, std::array<uint32_t, 3> groups) {
  order(ranges, kCompute);
  if (bound_ != program.pipeline()) {
    bound_ = program.pipeline();
    device_.call().CmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, bound_);
  }
  bind(program.layout().pipeline, program.layout().set, buffers);
  if (!params.empty())
    device_.call().CmdPushConstants(commands_, program.layout().pipeline,
                                    VK_SHADER_STAGE_COMPUTE_BIT, 0,
                                    static_cast<uint32_t>(params.size_bytes()), params.data());
  device_.call().CmdDispatch(commands_, groups[0], groups[1], groups[2]);
  ++launches_;
  last_kernel_ = program.name();
}

void Commands::copy(const Range& to, const Range& from) {
  const std::array<Range, 2> ranges = {to, from};
  order(ranges, kTransfer);
  const VkBufferCopy region{from.begin, to.begin, to.end - to.begin};
  device_.call().CmdCopyBuffer(commands_, from.buffer, to.buffer, 1, &region);
  ++launches_;
}

void Commands::timestamp(VkQueryPool pool, uint32_t query) {
  device_.call().CmdResetQueryPool(commands_, pool, query, 1);
  device_.call().CmdWriteTimestamp(commands_, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, pool, query);
}

}  // namespace prism::vulkan
