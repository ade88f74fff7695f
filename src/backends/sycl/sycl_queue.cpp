// An in-order queue; recordings are SYCL graphs where the device has them, else lists.
#include <cstring>
#include <deque>
#include <vector>

#include <fmt/format.h>

#include "backends/sycl/sycl_device.h"

namespace prism::sycl_backend {
namespace {

// A write of at most this many bytes is copied aside and does not wait for what was launched
// before it.
constexpr size_t kStagedBytes = 64 << 10;

class Event final : public EventDriver {
 public:
  Event(std::shared_ptr<Device> device, void* event) : device_(std::move(device)), event_(event) {}
  ~Event() override { device_->api().release_event(event_); }
  void wait() override {
    device_->check(device_->api().wait_event(event_), "waiting for an event");
  }
  bool done() override {
    int done = 0;
    device_->check(device_->api().event_done(event_, &done), "asking for an event");
    return done != 0;
  }
  double ms_since(EventDriver& earlier) override {
    return (static_cast<double>(reached_ns()) -
            static_cast<double>(static_cast<Event&>(earlier).reached_ns())) *
           1e-6;
  }

 private:
  uint64_t reached_ns() {
    wait();
    uint64_t ns = 0;
    device_->check(device_->api().event_ns(event_, &ns), "reading an event's time");
    return ns;
  }
  std::shared_ptr<Device> device_;
  void* event_;
};

// A launch or a copy, complete.
struct Step {
  std::string name;
  PrismSyclLaunch launch{};
  std::vector<void*> buffers;
  std::vector<uint32_t> params;
  void* copy_to = nullptr;
  const void* copy_from = nullptr;
  uint64_t copy_bytes = 0;
};

struct Recording final : RecordingDriver {
  std::shared_ptr<Device> device;
  std::vector<Step> steps;
  void* graph = nullptr;
  ~Recording() override {
    if (graph) device->api().release_graph(graph);
  }
};

std::byte* at(MemoryDriver& memory, uint64_t offset) {
  return static_cast<Memory&>(memory).address() + offset;
}

class Queue final : public QueueDriver {
 public:
  explicit Queue(std::shared_ptr<Device> device) : device_(std::move(device)) {
    device_->check(api().make_queue(device_->number(), &queue_), "making a queue");
  }
  ~Queue() override { api().release_queue(queue_); }

  void write(MemoryDriver& to, uint64_t offset, std::span<const std::byte> from) override {
    not_while_recording("a write");
    if (from.empty()) return;
    if (from.size() > kStagedBytes) {
      check(api().copy(queue_, at(to, offset), from.data(), from.size()), "writing");
      return wait();
    }
    staged_.emplace_back(from.begin(), from.end());
    check(api().copy(queue_, at(to, offset), staged_.back().data(), from.size()), "writing");
    if (staged_.size() > 256) wait();
  }

  void read(MemoryDriver& from, uint64_t offset, std::span<std::byte> to) override {
    not_while_recording("a read");
    if (!to.empty()) check(api().copy(queue_, to.data(), at(from, offset), to.size()), "reading");
    wait();
  }

  void copy(MemoryDriver& to, uint64_t to_offset, MemoryDriver& from, uint64_t from_offset,
            uint64_t bytes) override {
    Step step;
    step.name = "copy";
    step.copy_to = at(to, to_offset);
    step.copy_from = at(from, from_offset);
    step.copy_bytes = bytes;
    if (bytes) take(std::move(step));
  }

  void launch(const LaunchCall& call) override {
    if (call.groups[0] == 0 || call.groups[1] == 0 || call.groups[2] == 0) return;
    Step step;
    step.name = call.kernel->name;
    for (const Binding& binding : call.bindings)
      step.buffers.push_back(at(*binding.memory, binding.offset));
    step.params.assign(call.params.begin(), call.params.end());
    step.launch.kernel = static_cast<Program&>(*call.program).kernel();
    std::ranges::copy(call.groups, step.launch.groups);
    step.launch.group_size = call.kernel->group_size;
    take(std::move(step));
  }

  std::unique_ptr<EventDriver> record_event() override {
    not_while_recording("an event");
    void* event = nullptr;
    check(api().record_event(queue_, &event), "recording an event");
    return std::make_unique<Event>(device_, event);
  }

  void wait() override {
    const int code = api().wait(queue_);
    staged_.clear();
    check(code, "waiting" + (last_.empty() ? "" : " for " + last_));
  }

  void begin_recording() override {
    not_while_recording("a recording");
    recording_ = std::make_unique<Recording>();
    recording_->device = device_;
  }

  // A graph that the driver refuses is replayed as a list.
  std::unique_ptr<RecordingDriver> end_recording() override {
    if (!recording_)
      throw Error(ErrorCode::kInvalidArgument, device_->info().id + ": no recording to end");
    std::unique_ptr<Recording> recording = std::move(recording_);
    if (graphs_ && !recording->steps.empty()) {
      if (api().begin_graph(queue_) == kPrismSyclDone) {
        bool whole = true;
        for (Step& step : recording->steps) whole = whole && enqueue(step) == kPrismSyclDone;
        const int code = api().end_graph(queue_, &recording->graph);
        if (!whole && recording->graph) {
          api().release_graph(recording->graph);
          recording->graph = nullptr;
        }
        graphs_ = code == kPrismSyclDone;
      } else {
        graphs_ = false;
      }
    }
    return recording;
  }

  void replay(RecordingDriver& recording) override {
    auto& all = static_cast<Recording&>(recording);
    if (all.graph) {
      last_ = all.steps.back().name;
      return check(api().run_graph(queue_, all.graph), "replaying");
    }
    for (Step& step : all.steps) check(enqueue(step), "launching " + step.name);
  }

 private:
  const PrismSyclApi& api() const { return device_->api(); }
  void check(int code, const std::string& doing) const { device_->check(code, doing); }
  void not_while_recording(const char* what) const {
    if (recording_)
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{}: {} while recording: only launches and device copies can be "
                              "recorded",
                              device_->info().id, what));
  }
  void take(Step&& step) {
    if (recording_) {
      recording_->steps.push_back(std::move(step));
      return;
    }
    check(enqueue(step), "launching " + step.name);
  }
  int enqueue(Step& step) {
    last_ = step.name;
    if (step.copy_to) return api().copy(queue_, step.copy_to, step.copy_from, step.copy_bytes);
    step.launch.buffers = step.buffers.data();
    step.launch.buffer_count = step.buffers.size();
    step.launch.params = step.params.data();
    step.launch.param_count = step.params.size();
    return api().launch(queue_, &step.launch);
  }

  std::shared_ptr<Device> device_;
  void* queue_ = nullptr;
  std::deque<std::vector<std::byte>> staged_;  // what writes may still read
  std::string last_;                           // launched or copied
  std::unique_ptr<Recording> recording_;
  bool graphs_ = has_graphs();

  bool has_graphs() const {
    const PrismSyclDevice* list = nullptr;
    size_t count = 0;
    return api().devices(&list, &count) == kPrismSyclDone && list[device_->number()].graphs;
  }
};

}  // namespace

std::unique_ptr<QueueDriver> make_sycl_queue(std::shared_ptr<Device> device) {
  return std::make_unique<Queue>(std::move(device));
}

}  // namespace prism::sycl_backend
