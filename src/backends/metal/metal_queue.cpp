// Launches and copies: encoded into command buffers as they come, or recorded and encoded again at
// each replay.
//
// Dispatches of a compute encoder run one after another, and Metal itself orders encoders and
// command buffers that use the same memory, so nothing here waits for what came before.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "backends/metal/metal_device.h"

namespace prism::metal {
namespace {

constexpr uint32_t kBatch = 64;          // launches of one command buffer: the GPU starts early
constexpr uint64_t kStaging = 16 << 20;  // to and from a card's own memory
constexpr uint64_t kByteChunk = 1u << 30;

// MTLCommandBufferError
constexpr long kInternal = 1, kTimeout = 2, kPageFault = 3, kAccessRevoked = 4, kOutOfMemory = 8,
               kDeviceRemoved = 11;

Memory& as_memory(MemoryDriver& memory) { return static_cast<Memory&>(memory); }

struct Step {  // a launch; where there is no pipeline, a copy of bindings[1] to bindings[0]
  const Pipeline* pipeline = nullptr;
  std::array<uint32_t, 3> groups = {1, 1, 1};
  std::vector<Binding> bindings;
  std::vector<uint32_t> params;
};

struct Recording final : RecordingDriver {
  std::vector<Step> steps;
};

struct Submission {
  Handle<Id> commands;
  const std::string* kernel = nullptr;  // of the last launch
};

// Of a command buffer that failed. A device that is lost is so for ever.
Error failure_of(Context& context, Id commands, const std::string& work) {
  const Api& api = *context.api;
  const Id error = api.error(commands);
  const long code = error ? api.code(error) : 0;
  const std::string said = api.error_text(error);
  const bool is_lost = code == kInternal || code == kTimeout || code == kPageFault ||
                       code == kAccessRevoked || code == kDeviceRemoved;
  if (is_lost && context.lost.empty()) context.lost = said;
  return Error(is_lost                ? ErrorCode::kDeviceLost
               : code == kOutOfMemory ? ErrorCode::kOutOfMemory
                                      : ErrorCode::kDriver,
               fmt::format("{}: running {}: {}", context.label(), work, said));
}

// A place in the queue: after one command buffer, before another.
struct Point {
  Handle<Id> last, next;
};

class Event final : public EventDriver {
 public:
  Event(std::shared_ptr<Context> context, std::shared_ptr<Point> point)
      : context_(std::move(context)), point_(std::move(point)) {}
  void wait() override {
    const Pool pool(*context_->api);
    if (point_->last) context_->api->wait(point_->last.get());
    done();
  }
  bool done() override {
    const Pool pool(*context_->api);
    const UInteger status = point_->last ? context_->api->status(point_->last.get()) : kCompleted;
    if (status == kFailed) throw failure_of(*context_, point_->last.get(), "up to an event");
    return status == kCompleted;
  }
  // From the start of what came after the first point to the end of what came before the second.
  double ms_since(EventDriver& earlier) override {
    const Api& api = *context_->api;
    const Id first = static_cast<Event&>(earlier).point_->next.get(), last = point_->last.get();
    if (!first || !last) return 0;
    return std::max(0.0, (api.gpu_end(last) - api.gpu_start(first)) * 1e3);
  }

 private:
  std::shared_ptr<Context> context_;
  std::shared_ptr<Point> point_;
};

class QueueOfMetal final : public QueueDriver {
 public:
  explicit QueueOfMetal(std::shared_ptr<Context> context)
      : context_(std::move(context)),
        api_(*context_->api),
        queue_(api_.own(api_.new_queue(context_->device.get()))) {
    if (!queue_)
      throw Error(ErrorCode::kDriver, context_->label() + ": Metal gives no command queue");
  }
  ~QueueOfMetal() override {
    const Pool pool(api_);
    finish();
  }

  void write(MemoryDriver& to, uint64_t offset, std::span<const std::byte> from) override {
    const Pool pool(api_);
    finish();  // what was launched before must not see it
    context_->check();
    if (std::byte* contents = as_memory(to).contents()) {
      std::memcpy(contents + offset, from.data(), from.size());
      return;
    }
    for (uint64_t done = 0; done < from.size(); done += kStaging) {
      const uint64_t part = std::min<uint64_t>(from.size() - done, kStaging);
      std::memcpy(staging().contents(), from.data() + done, part);
      encode_copy({&to, offset + done, part}, {&staging(), 0, part});
      finish();
    }
  }

  void read(MemoryDriver& from, uint64_t offset, std::span<std::byte> to) override {
    const Pool pool(api_);
    finish();
    throw_kept();
    if (const std::byte* contents = as_memory(from).contents()) {
      std::memcpy(to.data(), contents + offset, to.size());
      return;
    }
    for (uint64_t done = 0; done < to.size(); done += kStaging) {
      const uint64_t part = std::min<uint64_t>(to.size() - done, kStaging);
      encode_copy({&staging(), 0, part}, {&from, offset + done, part});
      finish();
      throw_kept();
      std::memcpy(to.data() + done, staging().contents(), part);
    }
  }

  void copy(MemoryDriver& to, uint64_t to_offset, MemoryDriver& from, uint64_t from_offset,
            uint64_t bytes) override {
    const Binding target{&to, to_offset, bytes}, source{&from, from_offset, bytes};
    if (recording_) {
      recording_->steps.push_back({nullptr, {}, {target, source}, {}});
      return;
    }
    const Pool pool(api_);
    encode_copy(target, source);
  }

  void launch(const LaunchCall& call) override {
    const Pipeline& pipeline = static_cast<Program&>(*call.program).pipeline;
    if (recording_) {
      recording_->steps.push_back({&pipeline,
                                   call.groups,
                                   {call.bindings.begin(), call.bindings.end()},
                                   {call.params.begin(), call.params.end()}});
      return;
    }
    const Pool pool(api_);
    encode_launch(pipeline, call.groups, call.bindings, call.params);
  }

  std::unique_ptr<EventDriver> record_event() override {
    const Pool pool(api_);
    flush();
    auto point = std::make_shared<Point>();
    point->last = api_.keep(last_.get());
    points_.push_back(point);
    return std::make_unique<Event>(context_, std::move(point));
  }

  void wait() override {
    const Pool pool(api_);
    finish();
    throw_kept();
  }

  void begin_recording() override { recording_ = std::make_unique<Recording>(); }
  std::unique_ptr<RecordingDriver> end_recording() override { return std::move(recording_); }

  void replay(RecordingDriver& recorded) override {
    const Pool pool(api_);
    for (const Step& step : static_cast<Recording&>(recorded).steps)
      if (step.pipeline)
        encode_launch(*step.pipeline, step.groups, step.bindings, step.params);
      else
        encode_copy(step.bindings[0], step.bindings[1]);
    flush();
  }

 private:
  Memory& staging() {
    if (!staging_) staging_ = std::make_unique<Memory>(context_, kStaging, kShared);
    if (!staging_->contents())
      throw Error(ErrorCode::kOutOfMemory,
                  fmt::format("{}: no {} bytes to copy through", context_->label(), kStaging));
    return *staging_;
  }

  // The encoder of that kind in the open command buffer; null with the failure kept.
  Id encoder(bool computes) {
    if (!context_->lost.empty()) return nullptr;  // told by the next wait
    if (encoder_ && computes == computes_) return encoder_.get();
    end_encoding();
    if (!commands_) commands_ = api_.keep(api_.command_buffer(queue_.get()));
    encoder_ = api_.keep(computes ? api_.compute_encoder(commands_.get())
                                  : api_.blit_encoder(commands_.get()));
    computes_ = computes;
    if (!encoder_)
      keep(
          Error(ErrorCode::kDriver, fmt::format("{}: Metal gives no {}", context_->label(),
                                                commands_ ? "command encoder" : "command buffer")));
    return encoder_.get();
  }

  void end_encoding() {
    if (encoder_) api_.end_encoding(encoder_.get());
    encoder_.reset();
    pipeline_ = nullptr;
  }

  void encode_launch(const Pipeline& pipeline, std::array<uint32_t, 3> groups,
                     std::span<const Binding> bindings, std::span<const uint32_t> params) {
    const Id to = encoder(true);
    if (!to) return;
    if (pipeline_ != &pipeline) api_.set_pipeline(to, pipeline.state.get());
    pipeline_ = &pipeline;
    kernel_ = &pipeline.kernel;
    UInteger index = 0;
    for (const Binding& binding : bindings)
      api_.set_buffer(to, as_memory(*binding.memory).buffer(), binding.offset, index++);
    if (!params.empty()) api_.set_bytes(to, params.data(), params.size_bytes(), index);
    api_.dispatch(to, {groups[0], groups[1], groups[2]}, {pipeline.group_size, 1, 1});
    if (++launches_ >= kBatch) flush();
  }

  void encode_copy(const Binding& to, const Binding& from) {
    if (to.offset % 4 == 0 && from.offset % 4 == 0 && to.bytes % 4 == 0) {
      if (const Id encoding = encoder(false))
        api_.copy(encoding, as_memory(*from.memory).buffer(), from.offset,
                  as_memory(*to.memory).buffer(), to.offset, to.bytes);
      return;
    }
    const Pipeline& pipeline = context_->copy_bytes();
    for (uint64_t done = 0; done < to.bytes; done += kByteChunk) {
      const auto part = static_cast<uint32_t>(std::min(to.bytes - done, kByteChunk));
      const Binding bindings[] = {{from.memory, from.offset + done, part},
                                  {to.memory, to.offset + done, part}};
      const auto groups = static_cast<uint32_t>((part - 1) / pipeline.group_size + 1);
      encode_launch(pipeline, {groups, 1, 1}, bindings, {&part, 1});
    }
  }

  // Hands over what is encoded, and lets go of what is done.
  void flush() {
    end_encoding();
    launches_ = 0;
    if (!commands_) return;
    for (const auto& point : points_) point->next = api_.keep(commands_.get());
    points_.clear();
    api_.commit(commands_.get());
    last_ = api_.keep(commands_.get());
    submitted_.push_back({std::move(commands_), std::exchange(kernel_, nullptr)});
    size_t done = 0;
    while (done < submitted_.size() && api_.status(submitted_[done].commands.get()) >= kCompleted)
      take(submitted_[done++]);
    submitted_.erase(submitted_.begin(), submitted_.begin() + static_cast<ptrdiff_t>(done));
  }

  void finish() {
    flush();
    for (const Submission& one : submitted_) {
      api_.wait(one.commands.get());
      take(one);
    }
    submitted_.clear();
  }

  // Keeps the failure of what has ended.
  void take(const Submission& one) {
    if (api_.status(one.commands.get()) != kFailed) return;
    keep(failure_of(*context_, one.commands.get(),
                    one.kernel ? "kernel " + *one.kernel + " or what came before it" : "copies"));
  }

  void keep(Error failure) {
    if (!failure_) failure_ = std::move(failure);
  }

  void throw_kept() {
    if (!failure_) return context_->check();
    const Error failure = *failure_;
    failure_.reset();
    throw failure;
  }

  std::shared_ptr<Context> context_;
  const Api& api_;
  Handle<Id> queue_;
  std::unique_ptr<Memory> staging_;
  std::unique_ptr<Recording> recording_;
  Handle<Id> commands_, encoder_;  // open
  Handle<Id> last_;                // submitted
  bool computes_ = false;
  const Pipeline* pipeline_ = nullptr;   // set in the encoder
  const std::string* kernel_ = nullptr;  // of the last launch in the open command buffer
  uint32_t launches_ = 0;                // in it
  std::vector<Submission> submitted_;
  std::vector<std::shared_ptr<Point>> points_;  // nothing was submitted since
  std::optional<Error> failure_;
};

}  // namespace

std::unique_ptr<QueueDriver> make_queue(std::shared_ptr<Context> context) {
  return std::make_unique<QueueOfMetal>(std::move(context));
}

}  // namespace prism::metal
