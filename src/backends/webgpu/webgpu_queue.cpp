// Launches and copies: encoded as they come and submitted in batches, or recorded and encoded again
// at each replay.
#include <algorithm>
#include <chrono>
#include <cstring>

#include <fmt/format.h>

#include "backends/webgpu/webgpu_device.h"

namespace prism::webgpu {
namespace {

constexpr uint64_t kParamSlot = 256;  // the strictest alignment of uniform offsets
constexpr uint64_t kParamBytes = 64 << 10;
constexpr uint32_t kBatch = 64;                    // launches in one submission, at most
constexpr uint64_t kChunk = 32ull << 20;           // of one write, or of one read through staging
constexpr uint64_t kUnfinishedBytes = 8 * kChunk;  // of writes that the library holds copies of
constexpr uint64_t kByteChunk = 8ull << 20;  // of a copy by bytes: within 65,535 groups of 64 words
constexpr uint64_t kTemporary = kUsageStorage | kUsageCopySource | kUsageCopyTarget;

// The interface copies whole words only; one lane writes the bytes of one word.
constexpr const char* kCopyBytes = R"(
struct Params { from_byte: u32, to_byte: u32, bytes: u32 }
@group(0) @binding(0) var<storage, read> source: array<u32>;
@group(0) @binding(1) var<storage, read_write> sink: array<u32>;
@group(0) @binding(2) var<uniform> params: Params;
@compute @workgroup_size(64)
fn copy_bytes(@builtin(global_invocation_id) id: vec3<u32>) {
  let first = id.x * 4u;
  if (first >= params.to_byte + params.bytes) { return; }
  var word = sink[id.x];
  for (var i = 0u; i < 4u; i += 1u) {
    let at = first + i;
    if (at < params.to_byte || at >= params.to_byte + params.bytes) { continue; }
    let byte = at - params.to_byte + params.from_byte;
    let value = (source[byte / 4u] >> (byte % 4u * 8u)) & 255u;
    word = (word & ~(255u << (i * 8u))) | (value << (i * 8u));
  }
  sink[id.x] = word;
})";

Memory& as_memory(MemoryDriver& memory) { return static_cast<Memory&>(memory); }

struct Step {  // a launch, or a copy where there is no pipeline
  ComputePipeline pipeline = nullptr;
  Handle<BindGroup> group;
  std::array<uint32_t, 3> groups = {1, 1, 1};
  uint32_t param_offset = UINT32_MAX;  // none
  Buffer from = nullptr, to = nullptr;
  uint64_t from_offset = 0, to_offset = 0, bytes = 0;
};

// Parameters of launches, collected on the host and written before the launches are submitted.
struct ParamBlock {
  Handle<Buffer> buffer;
  std::vector<std::byte> bytes;
};

struct Recording final : RecordingDriver {
  std::vector<Step> steps;
  std::vector<ParamBlock> params;
  std::vector<Handle<Buffer>> temporaries;
};

class Event final : public EventDriver {
 public:
  Event(std::shared_ptr<Context> context, Handle<Buffer> time)
      : context_(std::move(context)), time_(std::move(time)), answer_(std::make_shared<Answer>()) {
    const Api& api = *context_->api;
    api.QueueOnSubmittedWorkDone(context_->queue.get(), asking(api, Asked::kWorkDone, answer_));
  }
  void wait() override {
    context_->wait_for(*answer_);
    if (!seen_) seen_ = std::chrono::steady_clock::now();
  }
  bool done() override {
    if (!answer_->done) context_->api->InstanceProcessEvents(context_->instance->get());
    return answer_->done;
  }
  double ms_since(EventDriver& earlier) override {
    auto& other = static_cast<Event&>(earlier);
    other.wait();
    wait();
    if (!time_ || !other.time_)
      return std::chrono::duration<double, std::milli>(*seen_ - *other.seen_).count();
    return (ns() - other.ns()) * 1e-6;
  }

 private:
  double ns() {
    if (ns_ >= 0) return ns_;
    const Api& api = *context_->api;
    const auto mapped = std::make_shared<Answer>();
    api.BufferMapAsync(time_.get(), kMapRead, 0, 8, asking(api, Asked::kMap, mapped));
    context_->wait_for(*mapped);
    context_->check();
    uint64_t ticks = 0;
    std::memcpy(&ticks, api.BufferGetConstMappedRange(time_.get(), 0, 8), 8);
    api.BufferUnmap(time_.get());
    const float period =
        api.QueueGetTimestampPeriod ? api.QueueGetTimestampPeriod(context_->queue.get()) : 1.0f;
    return ns_ = static_cast<double>(ticks) * static_cast<double>(period);
  }

  std::shared_ptr<Context> context_;
  Handle<Buffer> time_;  // empty where the adapter has no timestamps: then the host's clock tells
  std::shared_ptr<Answer> answer_;
  std::optional<std::chrono::steady_clock::time_point> seen_;
  double ns_ = -1;
};

class QueueOfWebGpu final : public QueueDriver {
 public:
  explicit QueueOfWebGpu(std::shared_ptr<Context> context)
      : context_(std::move(context)), api_(*context_->api) {}
  ~QueueOfWebGpu() override {
    try {
      flush();
    } catch (const std::exception&) {  // nobody is left to tell
    }
  }

  void write(MemoryDriver& to, uint64_t offset, std::span<const std::byte> from) override {
    flush();  // what was launched before must not see it
    const bool whole = offset % 4 == 0 && from.size() % 4 == 0;
    const Buffer target = as_memory(to).buffer();
    for (uint64_t done = 0; done < from.size();) {
      const auto part =
          from.subspan(done, std::min<uint64_t>(from.size() - done, whole ? kChunk : kByteChunk));
      if (whole) {
        api_.QueueWriteBuffer(context_->queue.get(), target, offset + done, part.data(),
                              part.size());
        submit({});  // hands over what was written
      } else {
        std::vector<std::byte> padded((part.size() + 3) / 4 * 4);
        std::ranges::copy(part, padded.begin());
        const auto temporary = context_->make_buffer(padded.size(), kTemporary);
        api_.QueueWriteBuffer(context_->queue.get(), temporary.get(), 0, padded.data(),
                              padded.size());
        copy_bytes(temporary.get(), 0, target, offset + done, part.size());
        flush();
      }
      done += part.size();
      unfinished_bytes_ += part.size();
      if (unfinished_bytes_ > kUnfinishedBytes) finish();
    }
  }

  void read(MemoryDriver& from, uint64_t offset, std::span<std::byte> to) override {
    for (uint64_t done = 0; done < to.size();) {
      const uint64_t first = (offset + done) / 4 * 4, skip = offset + done - first;
      const uint64_t wanted = std::min<uint64_t>(to.size() - done, kChunk - skip);
      const uint64_t bytes = (skip + wanted + 3) / 4 * 4;
      if (staging_bytes_ < bytes) {
        staging_ = context_->make_buffer(bytes, kUsageMapRead | kUsageCopyTarget);
        staging_bytes_ = bytes;
      }
      Step step;
      step.from = as_memory(from).buffer(), step.to = staging_.get();
      step.from_offset = first, step.bytes = bytes;
      encode(step);
      flush();
      const auto mapped = std::make_shared<Answer>();
      api_.BufferMapAsync(staging_.get(), kMapRead, 0, bytes, asking(api_, Asked::kMap, mapped));
      context_->wait_for(*mapped);
      context_->check();
      if (mapped->status != kSuccess)
        throw Error(ErrorCode::kDriver,
                    fmt::format("{}: reading a buffer: {}", context_->label(), mapped->message));
      const auto* data =
          static_cast<const std::byte*>(api_.BufferGetConstMappedRange(staging_.get(), 0, bytes));
      std::memcpy(to.data() + done, data + skip, wanted);
      api_.BufferUnmap(staging_.get());
      done += wanted;
    }
    unfinished_bytes_ = 0;
  }

  void copy(MemoryDriver& to, uint64_t to_offset, MemoryDriver& from, uint64_t from_offset,
            uint64_t bytes) override {
    const Buffer target = as_memory(to).buffer(), source = as_memory(from).buffer();
    if (to_offset % 4 == 0 && from_offset % 4 == 0 && bytes % 4 == 0) {
      if (target != source) return add_copy(source, from_offset, target, to_offset, bytes);
      // Neither a copy inside of one buffer nor a kernel that reads and writes it is allowed.
      const Buffer between = temporary(bytes);
      add_copy(source, from_offset, between, 0, bytes);
      return add_copy(between, 0, target, to_offset, bytes);
    }
    for (uint64_t done = 0; done < bytes; done += kByteChunk) {
      const uint64_t part = std::min(bytes - done, kByteChunk);
      const uint64_t first = (from_offset + done) / 4 * 4, skip = from_offset + done - first;
      const uint64_t words = (skip + part + 3) / 4 * 4;
      const Buffer between = temporary(words);
      add_copy(source, first, between, 0, words);
      copy_bytes(between, skip, target, to_offset + done, part);
    }
  }

  void launch(const LaunchCall& call) override {
    auto& program = static_cast<Program&>(*call.program);
    const std::span<const Binding> bindings = call.bindings;
    // A buffer of which one range is written has all its ranges bound as writable, and these must
    // not overlap: a range read twice is read from a copy the second time.
    uint32_t writable = program.written();
    std::vector<BindGroupEntry> entries(bindings.size());
    for (uint32_t i = 0; i < bindings.size(); ++i) {
      const Binding& one = bindings[i];
      entries[i].buffer = as_memory(*one.memory).buffer();
      entries[i].offset = one.offset;
      entries[i].bytes = one.bytes;
      if (program.written() >> i & 1) continue;
      bool mixed = false, overlaps = false;
      for (uint32_t j = 0; j < bindings.size(); ++j) {
        if (bindings[j].memory != one.memory) continue;
        mixed |= program.written() >> j & 1;
        overlaps |= j < i && one.offset < bindings[j].offset + bindings[j].bytes &&
                    bindings[j].offset < one.offset + one.bytes;
      }
      if (mixed && overlaps) {
        entries[i].buffer = temporary(one.bytes);
        entries[i].offset = 0;
        add_copy(as_memory(*one.memory).buffer(), one.offset, entries[i].buffer, 0, one.bytes);
      } else if (mixed) {
        writable |= 1u << i;
      }
    }
    add_launch(program.pipeline(writable), entries, call.params, call.groups);
  }

  std::unique_ptr<EventDriver> record_event() override {
    Handle<Buffer> time;
    if (context_->facts.timestamps) {
      const QuerySetDescriptor one;
      const auto set = api_.own(api_.DeviceCreateQuerySet(context_->device.get(), &one));
      end_pass();
      TimestampWrites writes;
      writes.set = set.get();
      writes.at_end = 0;  // of a pass with nothing in it, after all before it
      ComputePassDescriptor pass;
      pass.timestamps = api_.standard() ? static_cast<const void*>(&writes) : &writes.set;
      begin_pass(&pass);
      end_pass();
      const auto resolved = context_->make_buffer(256, kUsageQueryResolve | kUsageCopySource);
      time = context_->make_buffer(8, kUsageMapRead | kUsageCopyTarget);
      api_.CommandEncoderResolveQuerySet(encoder(), set.get(), 0, 1, resolved.get(), 0);
      api_.CommandEncoderCopyBufferToBuffer(encoder(), resolved.get(), 0, time.get(), 0, 8);
    }
    flush();
    return std::make_unique<Event>(context_, std::move(time));
  }

  void wait() override {
    flush();
    finish();
    context_->check();
  }

  void begin_recording() override { recording_ = std::make_unique<Recording>(); }

  std::unique_ptr<RecordingDriver> end_recording() override {
    flush();
    for (const ParamBlock& block : recording_->params)
      api_.QueueWriteBuffer(context_->queue.get(), block.buffer.get(), 0, block.bytes.data(),
                            block.bytes.size());
    return std::move(recording_);
  }

  void replay(RecordingDriver& recorded) override {
    flush();
    for (const Step& step : static_cast<Recording&>(recorded).steps) encode(step);
    flush();
  }

 private:
  CommandEncoder encoder() {
    if (!encoder_)
      encoder_ = api_.own(api_.DeviceCreateCommandEncoder(context_->device.get(), nullptr));
    return encoder_.get();
  }
  void begin_pass(const ComputePassDescriptor* descriptor) {
    if (!pass_) pass_ = api_.own(api_.CommandEncoderBeginComputePass(encoder(), descriptor));
  }
  void end_pass() {
    if (pass_) api_.ComputePassEncoderEnd(pass_.get());
    pass_.reset();
  }

  void encode(const Step& step) {
    if (!step.pipeline) {
      end_pass();
      return api_.CommandEncoderCopyBufferToBuffer(encoder(), step.from, step.from_offset, step.to,
                                                   step.to_offset, step.bytes);
    }
    begin_pass(nullptr);
    api_.ComputePassEncoderSetPipeline(pass_.get(), step.pipeline);
    const bool params = step.param_offset != UINT32_MAX;
    api_.ComputePassEncoderSetBindGroup(pass_.get(), 0, step.group.get(), params ? 1 : 0,
                                        &step.param_offset);
    api_.ComputePassEncoderDispatchWorkgroups(pass_.get(), step.groups[0], step.groups[1],
                                              step.groups[2]);
  }

  void flush() {
    if (!encoder_) return;
    end_pass();
    if (!params_.bytes.empty())
      api_.QueueWriteBuffer(context_->queue.get(), params_.buffer.get(), 0, params_.bytes.data(),
                            params_.bytes.size());
    params_.bytes.clear();
    const auto commands = api_.own(api_.CommandEncoderFinish(encoder_.get(), nullptr));
    encoder_.reset();
    launches_ = 0;
    const CommandBuffer list = commands.get();
    submit({&list, 1});
  }

  void submit(std::span<const CommandBuffer> commands) {
    // wgpu-native ends the process on being handed what it has complained about, and for a device
    // that is lost.
    api_.InstanceProcessEvents(context_->instance->get());
    if (!context_->failed())
      api_.QueueSubmit(context_->queue.get(), commands.size(), commands.data());
  }

  void finish() {
    if (context_->failed()) return;
    Event(context_, {}).wait();
    unfinished_bytes_ = 0;
  }

  void add(Step step) {
    if (recording_) return recording_->steps.push_back(std::move(step));
    encode(step);
    if (step.pipeline && ++launches_ >= kBatch) flush();
  }

  void add_copy(Buffer from, uint64_t from_offset, Buffer to, uint64_t to_offset, uint64_t bytes) {
    Step step;
    step.from = from, step.to = to;
    step.from_offset = from_offset, step.to_offset = to_offset, step.bytes = bytes;
    add(std::move(step));
  }

  // entries: without their numbers.
  void add_launch(const Pipeline& pipeline, std::vector<BindGroupEntry>& entries,
                  std::span<const uint32_t> params, std::array<uint32_t, 3> groups) {
    Step step;
    step.pipeline = pipeline.pipeline.get();
    step.groups = groups;
    if (!params.empty()) {
      ParamBlock& block = param_block();
      step.param_offset = static_cast<uint32_t>(block.bytes.size());
      block.bytes.resize(block.bytes.size() + kParamSlot);
      std::memcpy(block.bytes.data() + step.param_offset, params.data(), params.size_bytes());
      entries.emplace_back().buffer = block.buffer.get();
      entries.back().bytes = kParamSlot;
    }
    for (uint32_t i = 0; i < entries.size(); ++i) entries[i].binding = i;
    BindGroupDescriptor descriptor;
    descriptor.layout = pipeline.layout.get();
    descriptor.entry_count = entries.size();
    descriptor.entries = entries.data();
    step.group = api_.own(api_.DeviceCreateBindGroup(context_->device.get(), &descriptor));
    add(std::move(step));
  }

  // With room for one launch.
  ParamBlock& param_block() {
    if (!recording_ && params_.bytes.size() + kParamSlot > kParamBytes) flush();
    if (recording_ && (recording_->params.empty() ||
                       recording_->params.back().bytes.size() + kParamSlot > kParamBytes))
      recording_->params.emplace_back();
    ParamBlock& block = recording_ ? recording_->params.back() : params_;
    if (!block.buffer)
      block.buffer = context_->make_buffer(kParamBytes, kUsageUniform | kUsageCopyTarget);
    return block;
  }

  Buffer temporary(uint64_t bytes) {
    auto& kept = recording_ ? recording_->temporaries : temporaries_;
    if (!recording_ && !encoder_) kept.clear();
    return kept.emplace_back(context_->make_buffer(bytes, kTemporary)).get();
  }

  void copy_bytes(Buffer from, uint64_t from_byte, Buffer to, uint64_t to_byte, uint64_t bytes) {
    if (!copy_bytes_.pipeline) {
      const BindingType types[] = {BindingType::kReadOnlyStorage, BindingType::kStorage,
                                   BindingType::kUniform};
      copy_bytes_ = context_->make_pipeline(kCopyBytes, "copy_bytes", "copy_bytes", types);
    }
    const uint64_t first = to_byte / kParamSlot * kParamSlot, end = to_byte + bytes;
    std::vector<BindGroupEntry> entries(2);
    entries[0].buffer = from;
    entries[0].bytes = (from_byte + bytes + 3) / 4 * 4;
    entries[1].buffer = to;
    entries[1].offset = first;
    entries[1].bytes = (end + 3) / 4 * 4 - first;
    const uint32_t params[] = {static_cast<uint32_t>(from_byte),
                               static_cast<uint32_t>(to_byte - first),
                               static_cast<uint32_t>(bytes)};
    const auto groups = static_cast<uint32_t>((entries[1].bytes / 4 + 63) / 64);
    add_launch(copy_bytes_, entries, params, {groups, 1, 1});
  }

  std::shared_ptr<Context> context_;
  const Api& api_;
  Handle<CommandEncoder> encoder_;
  Handle<ComputePassEncoder> pass_;
  ParamBlock params_;
  uint32_t launches_ = 0;  // encoded and not submitted
  std::vector<Handle<Buffer>> temporaries_;
  std::unique_ptr<Recording> recording_;
  Handle<Buffer> staging_;
  uint64_t staging_bytes_ = 0, unfinished_bytes_ = 0;
  Pipeline copy_bytes_;
};

}  // namespace

std::unique_ptr<QueueDriver> make_queue(std::shared_ptr<Context> context) {
  return std::make_unique<QueueOfWebGpu>(std::move(context));
}

}  // namespace prism::webgpu
