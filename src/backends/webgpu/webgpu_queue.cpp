// Launches and copies: collected and submitted in batches, or recorded and submitted at each
// replay.
#include <algorithm>
#include <cstring>

#include "backends/webgpu/webgpu_device.h"
#include "runtime/step_queue.h"
#include "runtime/timed_event.h"

namespace prism::webgpu {
namespace {

constexpr uint64_t kParamSlot = 256;               // the strictest alignment of uniform offsets
constexpr uint32_t kBatch = 64;                    // launches and copies per submission
constexpr uint64_t kChunk = 32ull << 20;           // per write, or per read through staging
constexpr uint64_t kUnfinishedBytes = 8 * kChunk;  // writes that the library holds copies of
constexpr uint64_t kSmallBytes = 64 << 10;  // largest write that is deferred to the next submission

Buffer buffer_of(MemoryDriver& memory) { return static_cast<Memory&>(memory).buffer.get(); }

struct Copy {
  Buffer from = nullptr, to = nullptr;
  uint64_t from_offset = 0, to_offset = 0, bytes = 0;
};

struct Step {  // a launch, or a copy if there is no program
  const Program* program = nullptr;
  std::vector<BindGroupEntry> entries{};  // no buffer: the batch's parameters
  Handle<BindGroup> group{};
  std::array<uint32_t, 3> groups = {1, 1, 1};
  Copy copy{};
  QuerySet time = nullptr;  // take a timestamp, and copy it
};

// Steps that are submitted together, once or at each replay.
struct Batch final : CommandGraphDriver {
  std::vector<Step> steps;
  std::vector<std::byte> params;  // of all launches, until they are uploaded
  Handle<Buffer> param_buffer;
  size_t param_room = 0;
  Handle<CommandBuffer> ahead;  // encoded for the next replay
};

class Event final : public TimedEvent {
 public:
  Event(DeviceOfWebGpu& device, Handle<Buffer> ticks) : device_(device), ticks_(std::move(ticks)) {
    const Api& api = device_.api();
    api.QueueOnSubmittedWorkDone(device_.queue(), asking(api, Asked::kWorkDone, answer_));
  }
  bool done() override {
    if (!answer_->done) device_.api().process_events();
    return answer_->done;
  }

 protected:
  void reach() override { device_.wait_for(*answer_); }
  std::optional<double> device_ns() override {
    if (!ticks_) return std::nullopt;
    uint64_t ticks = 0;
    device_.read_mapped(ticks_.get(), std::as_writable_bytes(std::span(&ticks, 1)));
    const auto& period = device_.api().QueueGetTimestampPeriod;  // null: a tick is 1 ns
    return static_cast<double>(ticks) * double{period ? period(device_.queue()) : 1.0f};
  }

 private:
  DeviceOfWebGpu& device_;
  Handle<Buffer> ticks_;  // empty if the adapter has no timestamps
  std::shared_ptr<Answer> answer_ = std::make_shared<Answer>();
};

class QueueOfWebGpu final : public StepQueue<Batch> {
 public:
  explicit QueueOfWebGpu(DeviceOfWebGpu& device)
      : StepQueue(kBatch), device_(device), api_(device.api()) {}
  ~QueueOfWebGpu() override { flush(); }

  void write(MemoryDriver& to, uint64_t offset, std::span<const std::byte> from) override {
    flush();  // earlier launches must not see the new data
    Batch nothing;
    for (uint64_t done = 0; done < from.size(); done += kChunk) {
      const uint64_t bytes = std::min<uint64_t>(from.size() - done, kChunk);
      api_.QueueWriteBuffer(device_.queue(), buffer_of(to), offset + done, &from[done], bytes);
      if (bytes > kSmallBytes || ++small_writes_ % kBatch == 0) run(nothing);  // submits it
      unfinished_bytes_ += bytes;
      if (unfinished_bytes_ > kUnfinishedBytes) finish();
    }
  }

  void read(MemoryDriver& from, uint64_t offset, std::span<std::byte> to) override {
    for (uint64_t done = 0; done < to.size(); done += kChunk) {
      const uint64_t bytes = std::min<uint64_t>(to.size() - done, kChunk);
      if (staging_bytes_ < bytes)
        staging_ = device_.make_buffer(staging_bytes_ = bytes, kUsageMapRead | kUsageCopyTarget);
      add({.copy = {buffer_of(from), staging_.get(), offset + done, 0, bytes}});
      flush();
      device_.read_mapped(staging_.get(), to.subspan(done, bytes));
    }
    unfinished_bytes_ = 0;
  }

  void copy(MemoryDriver& to, uint64_t to_offset, MemoryDriver& from, uint64_t from_offset,
            uint64_t bytes) override {
    add({.copy = {buffer_of(from), buffer_of(to), from_offset, to_offset, bytes}});
  }

  void launch(const LaunchCall& call) override {
    Step step{.program = static_cast<const Program*>(call.program), .groups = call.groups};
    for (const Binding& one : call.bindings)  // in multiples of 16 bytes, like allocations
      step.entries.push_back(
          {nullptr, 0, buffer_of(*one.memory), one.offset, (one.bytes + 15) / 16 * 16});
    if (!call.params.empty()) {
      std::vector<std::byte>& all = batch().params;
      const size_t at = all.size(), bytes = call.params.size_bytes();
      all.resize(at + (bytes + kParamSlot - 1) / kParamSlot * kParamSlot);
      std::memcpy(&all[at], call.params.data(), bytes);
      step.entries.push_back({nullptr, 0, nullptr, at, all.size() - at});
    }
    add(std::move(step));
  }

  std::unique_ptr<EventDriver> record_event() override {
    Handle<QuerySet> set;
    Handle<Buffer> resolved, ticks;
    if (device_.has_timestamps()) {
      const QuerySetDescriptor one;
      set = api_.own(api_.DeviceCreateQuerySet(device_.device(), &one));
      resolved = device_.make_buffer(256, kUsageQueryResolve | kUsageCopySource);
      ticks = device_.make_buffer(8, kUsageMapRead | kUsageCopyTarget);
      add({.copy = {resolved.get(), ticks.get(), 0, 0, 8}, .time = set.get()});
    }
    flush();
    return std::make_unique<Event>(device_, std::move(ticks));
  }

  void wait() override {
    flush();
    finish();
    device_.check();
  }

 protected:
  // Uploads the parameters and creates the bind groups.
  void prepare(Batch& batch) override {
    const std::vector<std::byte> params = std::exchange(batch.params, {});
    if (params.size() > batch.param_room) {
      batch.param_buffer = device_.make_buffer(params.size(), kUsageUniform | kUsageCopyTarget);
      batch.param_room = params.size();
    }
    if (!params.empty())
      api_.QueueWriteBuffer(device_.queue(), batch.param_buffer.get(), 0, params.data(),
                            params.size());
    for (Step& step : batch.steps) {
      if (!step.program) continue;
      for (uint32_t next = 0; BindGroupEntry & entry : step.entries) {
        entry.binding = next++;
        if (!entry.buffer) entry.buffer = batch.param_buffer.get();
      }
      const BindGroupDescriptor group{.layout = step.program->layout.get(),
                                      .entry_count = step.entries.size(),
                                      .entries = step.entries.data()};
      step.group = api_.own(api_.DeviceCreateBindGroup(device_.device(), &group));
    }
  }

  void run(Batch& batch) override {
    const auto commands = batch.ahead ? std::move(batch.ahead) : encoded(batch);
    const CommandBuffer list = commands.get();
    // wgpu-native ends the process if it is given commands that it rejected, or a lost device.
    api_.process_events();
    if (!device_.failed()) api_.QueueSubmit(device_.queue(), 1, &list);
  }

  // A command buffer can be submitted only once: encode the next one while the device works.
  void after_replay(Batch& batch) override { batch.ahead = encoded(batch); }

 private:
  Handle<CommandBuffer> encoded(const Batch& batch) {
    const auto owned = api_.own(api_.DeviceCreateCommandEncoder(device_.device(), nullptr));
    const CommandEncoder encoder = owned.get();
    Handle<ComputePassEncoder> pass;
    const auto end_pass = [&] {
      if (pass) api_.ComputePassEncoderEnd(pass.get());
      pass.reset();
    };
    for (const Step& step : batch.steps) {
      if (step.program) {
        if (!pass) pass = api_.own(api_.CommandEncoderBeginComputePass(encoder, nullptr));
        api_.ComputePassEncoderSetPipeline(pass.get(), step.program->pipeline.get());
        api_.ComputePassEncoderSetBindGroup(pass.get(), 0, step.group.get(), 0, nullptr);
        const auto [x, y, z] = step.groups;
        api_.ComputePassEncoderDispatchWorkgroups(pass.get(), x, y, z);
        continue;
      }
      end_pass();
      const Copy& copy = step.copy;
      if (step.time) {  // at the end of an empty pass, after all earlier work
        const TimestampWrites writes{.set = step.time, .at_end = 0};
        const ComputePassDescriptor timed{
            .timestamps = api_.standard ? static_cast<const void*>(&writes) : &writes.set};
        pass = api_.own(api_.CommandEncoderBeginComputePass(encoder, &timed));
        end_pass();
        api_.CommandEncoderResolveQuerySet(encoder, step.time, 0, 1, copy.from, 0);
      }
      api_.CommandEncoderCopyBufferToBuffer(encoder, copy.from, copy.from_offset, copy.to,
                                            copy.to_offset, copy.bytes);
    }
    end_pass();
    return api_.own(api_.CommandEncoderFinish(encoder, nullptr));
  }

  void finish() {
    if (!device_.failed()) Event(device_, {}).wait();
    unfinished_bytes_ = 0;
  }

  DeviceOfWebGpu& device_;
  const Api& api_;
  Handle<Buffer> staging_;
  uint64_t staging_bytes_ = 0, unfinished_bytes_ = 0, small_writes_ = 0;
};

}  // namespace

std::unique_ptr<QueueDriver> DeviceOfWebGpu::make_queue() {
  return std::make_unique<QueueOfWebGpu>(*this);
}

}  // namespace prism::webgpu
