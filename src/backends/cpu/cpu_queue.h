// The CPU's queue: each call runs its work on all threads before it returns; wait() reports
// failures.
#pragma once

#include <chrono>
#include <exception>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "backends/cpu/cpu_device.h"

namespace prism::cpu {

class Event final : public EventDriver {
 public:
  void wait() override {}
  bool done() override { return true; }
  double ms_since(EventDriver& earlier) override {
    return std::chrono::duration<double, std::milli>(time_ - static_cast<Event&>(earlier).time_)
        .count();
  }

 private:
  std::chrono::steady_clock::time_point time_ = std::chrono::steady_clock::now();
};

struct Launch {
  const Program* program;
  std::array<uint32_t, 3> groups;
  std::vector<ir::HostBuffer> buffers;
  std::vector<uint32_t> params;
};
struct Copy {
  std::byte* to;
  const std::byte* from;
  uint64_t bytes;
};
using Work = std::variant<Launch, Copy>;

class CommandGraph final : public CommandGraphDriver {
 public:
  std::vector<Work> work;
};

class Queue final : public QueueDriver {
 public:
  explicit Queue(std::shared_ptr<ThreadPool> pool) : pool_(std::move(pool)) {}

  void write(MemoryDriver& to, uint64_t offset, std::span<const std::byte> from) override;
  void read(MemoryDriver& from, uint64_t offset, std::span<std::byte> to) override;
  void copy(MemoryDriver& to, uint64_t to_offset, MemoryDriver& from, uint64_t from_offset,
            uint64_t bytes) override;
  void launch(const LaunchCall& call) override;
  std::unique_ptr<EventDriver> record_event() override { return std::make_unique<Event>(); }
  void wait() override;
  void begin_recording() override;
  std::unique_ptr<CommandGraphDriver> end_recording() override;
  void replay(CommandGraphDriver& recording) override;

 private:
  void enqueue(Work work);
  void run(const Work& work);
  void run(const Launch& launch);
  void run(const Copy& copy);
  void forbid_while_recording(const char* what) const;

  std::shared_ptr<ThreadPool> pool_;
  std::exception_ptr failure_;  // first failure since the last wait; later work is not run
  std::unique_ptr<CommandGraph> recording_;
};

}  // namespace prism::cpu
