// Launches and copies, which are launches too: encoded into command buffers immediately, or
// recorded and encoded again at each replay.
//
// The dispatches of an encoder run in order, and Metal orders command buffers that use the same
// memory, so no explicit synchronisation is needed here.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "backends/metal/metal_device.h"

namespace prism::metal {
namespace {

constexpr uint32_t kBatch = 64;  // launches per command buffer; small, so that the GPU starts early
constexpr uint64_t kStaging = 4 << 20;  // for copies to and from private memory
constexpr uint64_t kMostCopied = 1 << 30;

// MTLCommandBufferError; lost: internal, timeout, page fault, access revoked, device removed.
constexpr long kOutOfMemory = 8, kLost[] = {1, 2, 3, 4, 11};

Memory& as_memory(MemoryDriver& memory) { return static_cast<Memory&>(memory); }

struct Step {
  const Pipeline* pipeline = nullptr;
  std::array<uint32_t, 3> groups = {1, 1, 1};
  std::vector<Binding> bindings;
  std::vector<uint32_t> params;
};

struct CommandGraph final : CommandGraphDriver {
  std::vector<Step> steps;
};

// The error of a failed command buffer. A lost device stays lost.
Error failure_of(DeviceOfMetal& device, Id commands) {
  const Api& api = *device.api;
  const Id error = api.error(commands);
  const long code = error ? api.code(error) : 0;
  const std::string said = api.error_text(error);
  const bool is_lost = std::ranges::count(kLost, code) > 0;
  if (is_lost && device.lost.empty()) device.lost = said;
  const ErrorCode other = code == kOutOfMemory ? ErrorCode::kOutOfMemory : ErrorCode::kDriver;
  return Error(is_lost ? ErrorCode::kDeviceLost : other,
               fmt::format("{}: a command buffer failed: {}", device.label(), said));
}

// A point in the queue between two command buffers.
struct Event final : EventDriver {
  void wait() override {
    device->api->wait(last.get());
    done();
  }
  bool done() override {
    const auto pool = device->api->pool();
    const UInteger status = last ? device->api->status(last.get()) : kCompleted;
    if (status == kFailed) throw failure_of(*device, last.get());
    return status == kCompleted;
  }
  // From the start of the command buffer after the first event to the end of the one before the
  // second.
  double ms_since(EventDriver& earlier) override {
    const Id first = static_cast<Event&>(earlier).next->get();
    if (!first || !last) return 0;
    return std::max(0.0, device->api->gpu_end(last.get()) - device->api->gpu_start(first)) * 1e3;
  }

  std::shared_ptr<DeviceOfMetal> device;
  Handle<Id> last;
  std::shared_ptr<Handle<Id>> next = std::make_shared<Handle<Id>>();
};

class QueueOfMetal final : public QueueDriver {
 public:
  explicit QueueOfMetal(std::shared_ptr<DeviceOfMetal> device)
      : device_(std::move(device)),
        api_(*device_->api),
        queue_(api_.own(api_.new_queue(device_->device.get()))) {
    if (!queue_)
      throw Error(ErrorCode::kDriver, device_->label() + ": Metal returned no command queue");
  }
  ~QueueOfMetal() override {
    const auto pool = api_.pool();
    finish();
  }

  void write(MemoryDriver& to, uint64_t offset, std::span<const std::byte> from) override {
    const auto pool = api_.pool();
    finish();  // earlier launches must not see the new data
    device_->check();
    if (std::byte* contents = as_memory(to).contents)
      return void(std::memcpy(contents + offset, from.data(), from.size()));
    for (uint64_t done = 0; done < from.size(); done += kStaging) {
      const uint64_t part = std::min<uint64_t>(from.size() - done, kStaging);
      std::memcpy(staging().contents, from.data() + done, part);
      copy(to, offset + done, staging(), 0, part);
      finish();
    }
  }

  void read(MemoryDriver& from, uint64_t offset, std::span<std::byte> to) override {
    const auto pool = api_.pool();
    wait();
    if (const std::byte* contents = as_memory(from).contents)
      return void(std::memcpy(to.data(), contents + offset, to.size()));
    for (uint64_t done = 0; done < to.size(); done += kStaging) {
      const uint64_t part = std::min<uint64_t>(to.size() - done, kStaging);
      copy(staging(), 0, from, offset + done, part);
      wait();
      std::memcpy(to.data() + done, staging().contents, part);
    }
  }

  void copy(MemoryDriver& to, uint64_t to_offset, MemoryDriver& from, uint64_t from_offset,
            uint64_t bytes) override {
    const auto pool = api_.pool();
    for (uint64_t done = 0; done < bytes; done += kMostCopied) {
      const uint64_t part = std::min(bytes - done, kMostCopied);
      const uint64_t source = from_offset + done, target = to_offset + done;
      const auto word = [](uint64_t value) { return static_cast<uint32_t>(value); };
      add({&device_->copy_bytes(),
           {word((part - 1) / 16 / kCopyGroup + 1), 1, 1},
           {{&from, source / 16 * 16, part}, {&to, target / 16 * 16, part}},
           {word(source % 16), word(target % 16), word(part)}});
    }
  }

  void launch(const LaunchCall& call) override {
    const auto pool = api_.pool();
    add({&static_cast<Program&>(*call.program).pipeline,
         call.groups,
         {call.bindings.begin(), call.bindings.end()},
         {call.params.begin(), call.params.end()}});
  }

  std::unique_ptr<EventDriver> record_event() override {
    const auto pool = api_.pool();
    flush();
    auto event = std::make_unique<Event>();
    event->device = device_;
    event->last = api_.keep(last_.get());
    nexts_.push_back(event->next);
    return event;
  }

  void wait() override {
    const auto pool = api_.pool();
    finish();
    if (!failure_) return device_->check();
    const Error failure = *failure_;
    failure_.reset();
    throw failure;
  }

  void begin_recording() override { recording_ = std::make_unique<CommandGraph>(); }
  std::unique_ptr<CommandGraphDriver> end_recording() override { return std::move(recording_); }

  void replay(CommandGraphDriver& recorded) override {
    const auto pool = api_.pool();
    for (const Step& step : static_cast<CommandGraph&>(recorded).steps) encode(step);
    flush();
  }

 private:
  Memory& staging() {
    if (!staging_) staging_ = std::make_unique<Memory>(device_, kStaging, kShared);
    if (!staging_->contents)
      throw Error(ErrorCode::kOutOfMemory, device_->label() + ": no memory to copy through");
    return *staging_;
  }

  void add(Step step) {
    return recording_ ? recording_->steps.push_back(std::move(step)) : encode(step);
  }

  void encode(const Step& step) {
    if (!device_->lost.empty()) return;  // reported by the next wait
    if (!commands_) commands_ = api_.keep(api_.command_buffer(queue_.get()));
    if (!encoder_) encoder_ = api_.keep(api_.encoder(commands_.get()));
    const Id to = encoder_.get();
    if (!to) {
      failure_ =
          Error(ErrorCode::kDriver, device_->label() + ": Metal returned no command encoder");
      commands_.reset();
      return;
    }
    if (pipeline_ != step.pipeline) api_.set_pipeline(to, step.pipeline->state.get());
    pipeline_ = step.pipeline;
    UInteger index = 0;
    for (const Binding& binding : step.bindings) {
      const Memory& memory = as_memory(*binding.memory);
      api_.set_buffer(to, memory.buffer.get(), memory.start + binding.offset, index++);
    }
    if (!step.params.empty()) api_.set_bytes(to, step.params.data(), step.params.size() * 4, index);
    api_.dispatch(to, {step.groups[0], step.groups[1], step.groups[2]},
                  {step.pipeline->group_size, 1, 1});
    if (++launches_ >= kBatch) flush();
  }

  // Submits the encoded commands and releases finished ones.
  void flush() {
    if (!commands_) return;
    api_.end_encoding(encoder_.get());
    encoder_.reset();
    pipeline_ = nullptr;
    launches_ = 0;
    for (const auto& next : nexts_) *next = api_.keep(commands_.get());
    nexts_.clear();
    api_.commit(commands_.get());
    last_ = api_.keep(commands_.get());
    submitted_.push_back(std::move(commands_));
    std::erase_if(submitted_, [&](const Handle<Id>& one) { return ended(one.get()); });
  }

  void finish() {
    flush();
    for (const Handle<Id>& one : submitted_) {
      api_.wait(one.get());
      ended(one.get());
    }
    submitted_.clear();
  }

  // Keeps the failure of a finished command buffer.
  bool ended(Id commands) {
    const UInteger status = api_.status(commands);
    if (status == kFailed && !failure_) failure_ = failure_of(*device_, commands);
    return status >= kCompleted;
  }

  std::shared_ptr<DeviceOfMetal> device_;
  const Api& api_;
  Handle<Id> queue_;
  std::unique_ptr<Memory> staging_;
  std::unique_ptr<CommandGraph> recording_;
  Handle<Id> commands_, encoder_;       // both open or both empty
  Handle<Id> last_;                     // last submitted
  const Pipeline* pipeline_ = nullptr;  // currently set in the encoder
  uint32_t launches_ = 0;               // encoded but not submitted
  std::vector<Handle<Id>> submitted_;
  std::vector<std::shared_ptr<Handle<Id>>> nexts_;  // for events since the last submission
  std::optional<Error> failure_;
};

}  // namespace

std::unique_ptr<QueueDriver> DeviceOfMetal::make_queue() {
  const auto pool = api->pool();
  return std::make_unique<QueueOfMetal>(shared_from_this());
}

}  // namespace prism::metal
