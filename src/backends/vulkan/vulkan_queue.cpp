// Batches launches, copies data and replays recordings.
#include "backends/vulkan/vulkan_queue.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>

#include <fmt/format.h>

#include "backends/vulkan/vulkan_copy.h"
#include "backends/vulkan/vulkan_events.h"
#include "backends/vulkan/vulkan_staging.h"
#include "prism/error.h"

namespace prism::vulkan {
namespace {

// A submission costs the host as much as ten launches. An idle device gets its first batch early, a
// busy one gets larger batches.
constexpr uint32_t kBatchWhenIdle = 8;
constexpr uint32_t kBatchWhenBusy = 64;
// While work is in flight, writes up to this size are staged instead of waiting to write in place.
constexpr uint64_t kLargestStagedWrite = 1 << 20;

// A command buffer recorded once. It may outlive the queue it was recorded on.
class CommandGraph final : public CommandGraphDriver {
 public:
  CommandGraph(std::shared_ptr<Submissions> queue, std::shared_ptr<CopyKernel> copies)
      : queue_(std::move(queue)),
        copies_(std::move(copies)),
        commands_(queue_->device(), queue_->pool()) {
    commands_.begin(false);
  }
  ~CommandGraph() override {
    try {
      if (commands_.is_open()) commands_.end();
      queue_->wait(last_replay);
    } catch (const Error&) {  // the queue's own wait reports it
    }
  }
  Commands& commands() { return commands_; }
  Serial last_replay = 0;

 private:
  std::shared_ptr<Submissions> queue_;
  std::shared_ptr<CopyKernel> copies_;  // owns a pipeline that the commands may use
  Commands commands_;
};

class Queue final : public QueueDriver {
 public:
  explicit Queue(LogicalDevice& device)
      : device_(device),
        submissions_(std::make_shared<Submissions>(device)),
        timestamps_(std::make_shared<Timestamps>(device)),
        upload_(*submissions_),
        download_(*submissions_),
        copy_kernel_(std::make_shared<CopyKernel>(device)) {}

  ~Queue() override {
    try {
      submissions_->wait_all();  // staging memory may be in use
    } catch (const Error&) {     // a destructor cannot report it
    }
  }

  void write(MemoryDriver& to, uint64_t offset, std::span<const std::byte> from) override {
    auto& memory = static_cast<Memory&>(to);
    check_range("write", memory, offset, from.size());
    if (memory.mapped() && (from.size() > kLargestStagedWrite || is_idle())) {
      submissions_->wait_all();
      std::memcpy(memory.mapped() + offset, from.data(), from.size());
      return;
    }
    while (!from.empty()) {
      const uint64_t bytes = std::min<uint64_t>(from.size(), Staging::kBlockBytes);
      const Staging::Place place = upload_.take(bytes);
      std::memcpy(place.host, from.data(), bytes);
      submissions_->commands().copy(range(memory, offset, bytes, true), place.range);
      // Submit a full block at once: the device copies while the host fills the next one.
      if (bytes == Staging::kBlockBytes) submissions_->submit();
      offset += bytes;
      from = from.subspan(bytes);
    }
  }

  void read(MemoryDriver& from, uint64_t offset, std::span<std::byte> to) override {
    auto& memory = static_cast<Memory&>(from);
    check_range("read", memory, offset, to.size());
    if (memory.mapped()) {
      wait();
      std::memcpy(to.data(), memory.mapped() + offset, to.size());
      return;
    }
    struct Chunk {
      Serial serial;
      Staging::Place place;
      std::span<std::byte> to;
    };
    std::deque<Chunk> chunks;
    const auto finish_oldest = [&] {
      submissions_->wait(chunks.front().serial);
      std::memcpy(chunks.front().to.data(), chunks.front().place.host, chunks.front().to.size());
      chunks.pop_front();
    };
    while (!to.empty()) {
      const uint64_t bytes = std::min<uint64_t>(to.size(), Staging::kBlockBytes);
      if (chunks.size() == Staging::kBlocks) finish_oldest();
      Staging::Place place = download_.take(bytes);
      place.range.write = true;
      Commands& commands = submissions_->commands();
      commands.copy(place.range, range(memory, offset, bytes, false));
      commands.show_host();
      chunks.push_back({submissions_->submit(), place, to.first(bytes)});
      offset += bytes;
      to = to.subspan(bytes);
    }
    while (!chunks.empty()) finish_oldest();
    wait();
  }

  void copy(MemoryDriver& to, uint64_t to_offset, MemoryDriver& from, uint64_t from_offset,
            uint64_t bytes) override {
    auto& target = static_cast<Memory&>(to);
    auto& source = static_cast<Memory&>(from);
    check_range("copy into", target, to_offset, bytes);
    check_range("copy from", source, from_offset, bytes);
    if (bytes == 0) return;
    keep_error([&] {
      copy_kernel_->copy(target_commands(), range(target, to_offset, bytes, true),
                         range(source, from_offset, bytes, false));
      submit_when_due();
    });
  }

  void launch(const LaunchCall& call) override {
    keep_error([&] {
      target_commands().launch(call);
      submit_when_due();
    });
  }

  std::unique_ptr<EventDriver> record_event() override {
    return vulkan::record_event(submissions_, timestamps_);
  }

  void wait() override {
    // Wait for everything before throwing: the caller may then free its memory.
    keep_error([&] { submissions_->wait_all(); });
    throw_failure();
    device_.instance().throw_complaints();
  }

  void begin_recording() override {
    if (recording_)
      throw Error(ErrorCode::kInvalidArgument, "begin_recording: the queue is recording already");
    recording_ = std::make_unique<CommandGraph>(submissions_, copy_kernel_);
  }

  std::unique_ptr<CommandGraphDriver> end_recording() override {
    if (!recording_)
      throw Error(ErrorCode::kInvalidArgument, "end_recording: the queue is not recording");
    std::unique_ptr<CommandGraph> recording = std::move(recording_);
    recording->commands().end();
    throw_failure();  // the recording is incomplete
    return recording;
  }

  void replay(CommandGraphDriver& driver) override {
    auto& recording = static_cast<CommandGraph&>(driver);
    keep_error([&] { recording.last_replay = submissions_->submit(&recording.commands()); });
  }

 private:
  static Range range(const Memory& memory, uint64_t offset, uint64_t bytes, bool write) {
    return {memory.buffer(), memory.offset() + offset, memory.offset() + offset + bytes, write};
  }
  void check_range(const char* doing, const Memory& memory, uint64_t offset, uint64_t bytes) const {
    if (offset > memory.bytes() || bytes > memory.bytes() - offset)
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{} on {}: {} bytes at {} of a buffer of {}", doing, device_.id(),
                              bytes, offset, memory.bytes()));
  }
  bool is_idle() {
    return !submissions_->has_open() && submissions_->done(submissions_->next() - 1);
  }
  Commands& target_commands() {
    return recording_ ? recording_->commands() : submissions_->commands();
  }
  void submit_when_due() {
    if (recording_) return;
    const uint32_t batch = submissions_->under_way() ? kBatchWhenBusy : kBatchWhenIdle;
    if (submissions_->commands().launches() >= batch) submissions_->submit();
  }
  void throw_failure() {
    if (!failure_) return;
    const Error error = *failure_;
    failure_.reset();
    throw error;
  }
  // Deferred failures are thrown by wait(); the caller's own mistakes are thrown at once.
  template <class Work>
  void keep_error(const Work& work) {
    try {
      work();
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kInvalidArgument) throw;
      if (!failure_) failure_ = error;
    }
  }

  LogicalDevice& device_;
  std::shared_ptr<Submissions> submissions_;
  std::shared_ptr<Timestamps> timestamps_;
  Staging upload_, download_;
  std::shared_ptr<CopyKernel> copy_kernel_;
  std::unique_ptr<CommandGraph> recording_;
  std::optional<Error> failure_;
};

}  // namespace

std::unique_ptr<QueueDriver> make_queue(LogicalDevice& device) {
  return std::make_unique<Queue>(device);
}

}  // namespace prism::vulkan
