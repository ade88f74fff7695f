// The ordered submissions of one queue and their completion.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "backends/vulkan/vulkan_commands.h"

namespace prism::vulkan {

// A submission's number; the submissions of a queue finish in order.
using Serial = uint64_t;

class Submissions {
 public:
  explicit Submissions(LogicalDevice& device);
  ~Submissions();

  LogicalDevice& device() { return device_; }
  VkCommandPool pool() const { return pool_.get(); }

  // The open command buffer of the next submission; begins one if there is none.
  Commands& commands();
  bool has_open() const { return current_ && current_->commands.is_open(); }
  bool under_way() const { return submitted_ > completed_; }
  Serial next() const { return submitted_ + 1; }  // the serial of the submission being recorded

  // Submits the open command buffer, if any, and then `more`. Returns the latest serial.
  Serial submit(const Commands* more = nullptr);
  // wait() submits first if needed.
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
