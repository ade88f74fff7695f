// An in-order queue with device timestamps; recordings are replayed by the driver or by a loop.
#pragma once

#include <cstddef>
#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "backends/opencl/opencl_command_buffer.h"
#include "backends/opencl/opencl_device.h"
#include "backends/opencl/opencl_program.h"
#include "runtime/timed_event.h"

namespace prism::opencl {

class Event final : public TimedEvent {
 public:
  Event(std::shared_ptr<Context> context, Handle<cl_event> event)
      : context_(std::move(context)), event_(std::move(event)) {}
  bool done() override;

 protected:
  void reach() override;
  std::optional<double> device_ns() override;

 private:
  std::shared_ptr<Context> context_;
  Handle<cl_event> event_;
};

// Steps, each a copy or a launch with its own kernel object, and command buffers for consecutive
// launches.
class CommandGraph final : public CommandGraphDriver {
 public:
  struct Step {
    std::string name{};  // "kernel add"
    Handle<cl_kernel> kernel{};
    RecordedLaunch launch{};
    cl_mem copy_to = nullptr, copy_from = nullptr;
    uint64_t to_offset = 0, from_offset = 0, bytes = 0;
    bool is_copy() const { return !kernel; }
  };
  struct Segment {  // steps [first, last), in one command buffer if available
    size_t first = 0, last = 0;
    Handle<CommandBuffers::Buffer> buffer;
    Handle<cl_event> running;  // the latest enqueue of the buffer
  };
  std::shared_ptr<Context> context;
  std::vector<Step> steps;
  std::vector<Segment> segments;
  cl_command_queue queue = nullptr;  // the queue that the command buffers were recorded for
};

class Queue final : public QueueDriver {
 public:
  explicit Queue(std::shared_ptr<Context> context);
  ~Queue() override;
  void write(MemoryDriver& to, uint64_t offset, std::span<const std::byte> from) override;
  void read(MemoryDriver& from, uint64_t offset, std::span<std::byte> to) override;
  void copy(MemoryDriver& to, uint64_t to_offset, MemoryDriver& from, uint64_t from_offset,
            uint64_t bytes) override;
  void launch(const LaunchCall& call) override;
  std::unique_ptr<EventDriver> record_event() override;
  void wait() override;
  void begin_recording() override;
  std::unique_ptr<CommandGraphDriver> end_recording() override;
  void replay(CommandGraphDriver& recording) override;

 private:
  // Commands that were enqueued and may still run; only the last of them has an event.
  struct Pending {
    Handle<cl_event> event;
    std::vector<std::string> names;
    std::vector<std::vector<std::byte>> staged;  // data that writes still read
  };

  void not_while_recording(const char* what) const;
  void set_arguments(cl_kernel kernel, const LaunchCall& call);
  void enqueue(const std::string& name, const RecordedLaunch& launch);
  void enqueue_copy(const CommandGraph::Step& step);
  bool enqueue_segment(CommandGraph& recording, CommandGraph::Segment& segment);
  // Enqueues one command with call(event), which creates the event unless it is null, and keeps a
  // failure.
  template <class Call>
  void hand_over(const std::string& name, const Call& call);
  void note(cl_int code, cl_event event, const std::string& name);
  void keep_failure(cl_int code, const std::string& name);
  // Drops finished work; waits for the oldest if too much is in flight.
  void settle();
  void finish();

  std::shared_ptr<Context> context_;
  Handle<cl_command_queue> queue_;
  std::deque<Pending> pending_;
  Pending open_;                // commands since the latest event
  std::exception_ptr failure_;  // the first since the last wait
  std::unique_ptr<CommandGraph> recording_;
};

}  // namespace prism::opencl
