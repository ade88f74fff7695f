// An in-order queue; recordings are SYCL graphs if the device has them, else lists.
#include <deque>

#include "backends/sycl/plugin/sycl_device.h"
#include "runtime/step_queue.h"
#include "runtime/timed_event.h"

namespace prism::sycl_plugin {
namespace {

namespace experimental = sycl::ext::oneapi::experimental;
using Graph = experimental::command_graph<experimental::graph_state::modifiable>;
using RunnableGraph = experimental::command_graph<experimental::graph_state::executable>;

// Writes up to this size are staged and do not wait for earlier launches.
constexpr size_t kStagedBytes = 64 << 10;
constexpr size_t kMostStaged = 256;  // staged writes before the host waits

class Event final : public TimedEvent {
 public:
  Event(Device& device, sycl::event event) : device_(device), event_(std::move(event)) {}
  bool done() override {
    using Status = sycl::info::event::command_execution_status;
    return device_.call("asking for an event", [&] { return event_.get_info<Status>(); }) ==
           sycl::info::event_command_status::complete;
  }

 protected:
  void reach() override {
    device_.call("waiting for an event", [&] { event_.wait_and_throw(); });
  }
  std::optional<double> device_ns() override {
    using End = sycl::info::event_profiling::command_end;
    return device_.call("reading an event's time",
                        [&] { return static_cast<double>(event_.get_profiling_info<End>()); });
  }

 private:
  Device& device_;
  sycl::event event_;
};

// A launch, or a copy if there is no kernel.
struct Step {
  std::string name;
  const sycl::kernel* kernel = nullptr;
  std::array<uint32_t, 3> groups = {1, 1, 1};
  uint32_t group_size = 1;
  std::vector<void*> buffers{};
  std::vector<uint32_t> params{};
  void* copy_to = nullptr;
  const void* copy_from = nullptr;
  uint64_t copy_bytes = 0;
};

struct Batch final : CommandGraphDriver {
  std::vector<Step> steps;
  std::optional<RunnableGraph> graph;
};

std::byte* at(MemoryDriver& memory, uint64_t offset) {
  return static_cast<Memory&>(memory).address + offset;
}

class Queue final : public StepQueue<Batch> {
 public:
  explicit Queue(Device& device)
      : StepQueue(1),
        device_(device),
        graphs_(device.opened().device.has(sycl::aspect::ext_oneapi_graph)) {
    const auto keep_late = [this](const sycl::exception_list& errors) {
      if (!late_ && errors.size() > 0) late_ = *errors.begin();
    };
    device_.call("making a queue", [&] {
      queue_.emplace(device.opened().shared(), device.opened().device, keep_late,
                     sycl::property_list{sycl::property::queue::in_order(),
                                         sycl::property::queue::enable_profiling()});
    });
  }
  ~Queue() override {
    try {
      queue_->wait();
    } catch (const std::exception&) {  // a destructor cannot report it
    }
  }

  void write(MemoryDriver& to, uint64_t offset, std::span<const std::byte> from) override {
    const bool stage = from.size() <= kStagedBytes;
    if (stage) staged_.emplace_back(from.begin(), from.end());
    const std::byte* source = stage ? staged_.back().data() : from.data();
    device_.call("writing", [&] { queue_->memcpy(at(to, offset), source, from.size()); });
    if (!stage || staged_.size() > kMostStaged) wait();
  }

  void read(MemoryDriver& from, uint64_t offset, std::span<std::byte> to) override {
    device_.call("reading", [&] { queue_->memcpy(to.data(), at(from, offset), to.size()); });
    wait();
  }

  void copy(MemoryDriver& to, uint64_t to_offset, MemoryDriver& from, uint64_t from_offset,
            uint64_t bytes) override {
    add({.name = "copy",
         .copy_to = at(to, to_offset),
         .copy_from = at(from, from_offset),
         .copy_bytes = bytes});
  }

  void launch(const LaunchCall& call) override {
    Step step{.name = call.kernel->name,
              .kernel = &static_cast<Program&>(*call.program).kernel,
              .groups = call.groups,
              .group_size = call.kernel->group_size,
              .params = {call.params.begin(), call.params.end()}};
    for (const Binding& binding : call.bindings)
      step.buffers.push_back(at(*binding.memory, binding.offset));
    add(std::move(step));
  }

  std::unique_ptr<EventDriver> record_event() override {
    return std::make_unique<Event>(device_, device_.call("recording an event", [&] {
      return queue_->ext_oneapi_submit_barrier();
    }));
  }

  void wait() override {
    const std::string doing = "waiting" + (last_.empty() ? "" : " for " + last_);
    device_.call(doing, [&] {
      queue_->wait_and_throw();
      if (late_) std::rethrow_exception(std::exchange(late_, nullptr));
    });
    staged_.clear();
  }

 protected:
  // A graph that the driver rejects is replayed as a list.
  void recorded_whole(Batch& batch) override {
    if (!graphs_ || batch.steps.empty()) return;
    Graph graph(queue_->get_context(), queue_->get_device());
    try {
      graph.begin_recording(*queue_);
      for (const Step& step : batch.steps) enqueue(step);
      graph.end_recording(*queue_);
      batch.graph.emplace(graph.finalize());
    } catch (const sycl::exception&) {
      graphs_ = false;
      graph.end_recording();
    }
  }

  void run(Batch& batch) override {
    if (batch.graph) {
      last_ = batch.steps.back().name;
      return device_.call("replaying", [&] { queue_->ext_oneapi_graph(*batch.graph); });
    }
    for (const Step& step : batch.steps)
      device_.call("launching " + step.name, [&] { enqueue(step); });
  }

 private:
  void enqueue(const Step& step) {
    last_ = step.name;
    if (!step.kernel) {
      queue_->memcpy(step.copy_to, step.copy_from, step.copy_bytes);
      return;
    }
    queue_->submit([&](sycl::handler& handler) {
      int argument = 0;
      for (void* const buffer : step.buffers) handler.set_arg(argument++, buffer);
      for (const uint32_t param : step.params) handler.set_arg(argument++, param);
      // SYCL's last dimension varies fastest.
      const sycl::range<3> group(1, 1, step.group_size);
      const sycl::range<3> all(step.groups[2], step.groups[1],
                               size_t{step.groups[0]} * step.group_size);
      handler.parallel_for(sycl::nd_range<3>(all, group), *step.kernel);
    });
  }

  Device& device_;
  bool graphs_;
  std::optional<sycl::queue> queue_;
  std::exception_ptr late_;                    // asynchronous errors
  std::deque<std::vector<std::byte>> staged_;  // data that writes may still read
  std::string last_;                           // latest launch or copy
};

}  // namespace

std::unique_ptr<QueueDriver> Device::make_queue() { return std::make_unique<Queue>(*this); }

}  // namespace prism::sycl_plugin
