// The submissions of one queue, in order: which are under way, which are done.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "backends/vulkan/vulkan_commands.h"

namespace prism::vulkan {

// A submission's number; those of a queue finish in order.
using Serial = uint64_t;

class Submissions {
 public:
  explicit Submissions(LogicalDevice& device);
  ~Submissions();

  LogicalDevice& device() { return device_; }
  VkCommandPool pool() const { return pool_.get(); }

  // The open command buffer that the next submission will carry; begun when there is none.
  Commands& commands();
  bool has_open() const { return current_ && current_->commands.is_open(); }
  bool under_way() const { return submitted_ > completed_; }
  Serial next() const { return submitted_ + 1; }  // the number of what commands() records

  // Submits the open command buffer, if any, and then `more`. Returns the number of the newest
  // submission.
  Serial submit(const Commands* more = nullptr);
  // The first of these submits what it waits for.
  void wait(Serial serial);
  bool done(Serial serial);
  void wait_all() { wait(submit()); }

 private:
  struct Slot {
    Slot(LogicalDevice& device, VkCommandPool pool) : commands(device, pool) {}
    Commands commands;
    Handle<VkFence> fence;
    Serial serial = 0;
    std::string last_kernel;
  };
  Slot& free_slot();
  void finish(Slot& slot);

  LogicalDevice& device_;
  VkQueue queue_;
  Handle<VkCommandPool> pool_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::deque<Slot*> in_flight_;  // oldest first
  Slot* current_ = nullptr;
  Serial submitted_ = 0, completed_ = 0;
};

}  // namespace prism::vulkan
