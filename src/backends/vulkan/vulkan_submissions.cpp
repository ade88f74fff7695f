// Fences and submission order.
#include "backends/vulkan/vulkan_submissions.h"

#include <algorithm>

#include <fmt/format.h>

#include "prism/error.h"

namespace prism::vulkan {
namespace {

// Command buffers per queue. More would only let the host run further ahead.
constexpr size_t kMostSlots = 8;

}  // namespace

Submissions::Submissions(LogicalDevice& device) : device_(device), queue_(device.next_queue()) {
  VkCommandPoolCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  info.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  info.queueFamilyIndex = device.physical().queue_family;
  VkCommandPool pool = VK_NULL_HANDLE;
  device.check(device.call().CreateCommandPool(device.handle(), &info, nullptr, &pool),
               "making a command pool");
  pool_ = device.own(pool, device.call().DestroyCommandPool);
}

Submissions::~Submissions() {
  for (Slot* slot : in_flight_) {
    const VkFence fence = slot->fence.get();
    device_.call().WaitForFences(device_.handle(), 1, &fence, VK_TRUE, UINT64_MAX);
  }
}

Submissions::Slot& Submissions::free_slot() {
  done(submitted_);
  for (const auto& slot : slots_)
    if (std::ranges::find(in_flight_, slot.get()) == in_flight_.end()) return *slot;
  if (slots_.size() >= kMostSlots) {
    Slot& oldest = *in_flight_.front();
    finish(oldest);
    return oldest;
  }
  auto slot = std::make_unique<Slot>(device_, pool_.get());
  VkFenceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
  VkFence fence = VK_NULL_HANDLE;
  device_.check(device_.call().CreateFence(device_.handle(), &info, nullptr, &fence),
                "making a fence");
  slot->fence = device_.own(fence, device_.call().DestroyFence);
  slots_.push_back(std::move(slot));
  return *slots_.back();
}

Commands& Submissions::commands() {
  if (!current_) current_ = &free_slot();
  if (!current_->commands.is_open()) current_->commands.begin(true);
  return current_->commands;
}

Serial Submissions::submit(const Commands* more) {
  if (!has_open() && !more) return submitted_;
  Slot& slot = current_ ? *current_ : free_slot();
  current_ = nullptr;
  VkCommandBuffer buffers[2] = {};
  uint32_t count = 0;
  if (slot.commands.is_open()) {
    slot.commands.end();
    slot.last_kernel = slot.commands.last_kernel();
    buffers[count++] = slot.commands.handle();
  }
  if (more) {
    slot.last_kernel = more->last_kernel();
    buffers[count++] = more->handle();
  }
  VkSubmitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.commandBufferCount = count;
  info.pCommandBuffers = buffers;
  const VkFence fence = slot.fence.get();
  device_.check(device_.call().ResetFences(device_.handle(), 1, &fence), "resetting a fence");
  check(device_.call().QueueSubmit(queue_, 1, &info, fence), device_.id(),
        fmt::format("submitting launches (the last: {})",
                    slot.last_kernel.empty() ? "none" : slot.last_kernel));
  slot.serial = ++submitted_;
  in_flight_.push_back(&slot);
  return submitted_;
}

void Submissions::finish(Slot& slot) {
  const VkFence fence = slot.fence.get();
  const VkResult result =
      device_.call().WaitForFences(device_.handle(), 1, &fence, VK_TRUE, UINT64_MAX);
  // Even if the wait failed, this submission and all earlier ones are over.
  completed_ = std::max(completed_, slot.serial);
  while (!in_flight_.empty() && in_flight_.front()->serial <= completed_) in_flight_.pop_front();
  check(result, device_.id(),
        fmt::format("waiting for launches (the last: {})",
                    slot.last_kernel.empty() ? "none" : slot.last_kernel));
}

void Submissions::wait(Serial serial) {
  if (serial > submitted_) submit();
  if (serial <= completed_) return;
  const auto slot =
      std::ranges::find_if(in_flight_, [&](const Slot* s) { return s->serial >= serial; });
  if (slot != in_flight_.end()) finish(**slot);
}

bool Submissions::done(Serial serial) {
  if (serial > submitted_) submit();
  while (completed_ < serial && !in_flight_.empty()) {
    Slot& oldest = *in_flight_.front();
    const VkResult result = device_.call().GetFenceStatus(device_.handle(), oldest.fence.get());
    if (result == VK_NOT_READY) return false;
    completed_ = oldest.serial;
    const std::string kernel = oldest.last_kernel;
    in_flight_.pop_front();
    check(result, device_.id(),
          fmt::format("waiting for launches (the last: {})", kernel.empty() ? "none" : kernel));
  }
  return completed_ >= serial;
}

}  // namespace prism::vulkan
