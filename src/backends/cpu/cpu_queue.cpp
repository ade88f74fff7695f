// Runs launches and copies on the thread pool at once, or records them.
#include "backends/cpu/cpu_queue.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "prism/error.h"

namespace prism::cpu {
namespace {

// Smaller copies stay on the calling thread; one core copies this much in about 100 microseconds.
constexpr uint64_t kCopyChunk = 1ull << 20;

std::byte* place(MemoryDriver& memory, uint64_t offset, uint64_t bytes, const char* what) {
  if (offset > memory.bytes() || bytes > memory.bytes() - offset)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("cpu:0: {} of {} bytes at offset {} goes beyond a buffer of {} bytes",
                            what, bytes, offset, memory.bytes()));
  return static_cast<Memory&>(memory).data() + offset;
}

}  // namespace

void Queue::forbid_while_recording(const char* what) const {
  if (recording_)
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("cpu:0: {} cannot be recorded; do it before or after the recording", what));
}

void Queue::write(MemoryDriver& to, uint64_t offset, std::span<const std::byte> from) {
  forbid_while_recording("a write from the host");
  run(Work(Copy{place(to, offset, from.size(), "a write"), from.data(), from.size()}));
}

void Queue::read(MemoryDriver& from, uint64_t offset, std::span<std::byte> to) {
  forbid_while_recording("a read to the host");
  wait();
  run(Work(Copy{to.data(), place(from, offset, to.size(), "a read"), to.size()}));
}

void Queue::copy(MemoryDriver& to, uint64_t to_offset, MemoryDriver& from, uint64_t from_offset,
                 uint64_t bytes) {
  enqueue(Copy{place(to, to_offset, bytes, "a copy"), place(from, from_offset, bytes, "a copy"),
               bytes});
}

void Queue::launch(const LaunchCall& call) {
  Launch launch{static_cast<const Program*>(call.program),
                call.groups,
                {},
                {call.params.begin(), call.params.end()}};
  for (const Binding& binding : call.bindings)
    launch.buffers.push_back(
        {place(*binding.memory, binding.offset, binding.bytes, "a binding"), binding.bytes});
  enqueue(std::move(launch));
}

void Queue::enqueue(Work work) {
  if (recording_)
    recording_->work.push_back(std::move(work));
  else
    run(work);
}

void Queue::run(const Work& work) {
  if (failure_) return;
  try {
    std::visit([this](const auto& w) { run(w); }, work);
  } catch (...) {
    failure_ = std::current_exception();
  }
}

void Queue::run(const Launch& launch) {
  const uint64_t groups = uint64_t{launch.groups[0]} * launch.groups[1] * launch.groups[2];
  // Eight chunks per thread balance groups of unequal length; handing out a chunk costs under a
  // microsecond.
  const uint64_t chunk = std::max<uint64_t>(1, groups / (uint64_t{pool_->threads()} * 8));
  try {
    pool_->parallel_for(groups, chunk, [&](uint64_t first, uint64_t last) {
      launch.program->interpreter().run_groups(launch.groups, first, last, launch.buffers,
                                               launch.params);
    });
  } catch (const Error&) {
    throw;  // already names the kernel
  } catch (const std::exception& error) {
    throw Error(ErrorCode::kDriver, fmt::format("cpu:0: kernel {} failed: {}",
                                                launch.program->kernel_name(), error.what()));
  }
}

void Queue::run(const Copy& copy) {
  const bool overlap = copy.to < copy.from + copy.bytes && copy.from < copy.to + copy.bytes;
  if (overlap || copy.bytes <= kCopyChunk) {
    if (copy.bytes) std::memmove(copy.to, copy.from, copy.bytes);
    return;
  }
  pool_->parallel_for(copy.bytes, kCopyChunk, [&](uint64_t first, uint64_t last) {
    std::memcpy(copy.to + first, copy.from + first, last - first);
  });
}

void Queue::wait() {
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Queue::begin_recording() {
  if (recording_)
    throw Error(ErrorCode::kInvalidArgument,
                "cpu:0: a recording is already under way; end it first");
  recording_ = std::make_unique<CommandGraph>();
}

std::unique_ptr<CommandGraphDriver> Queue::end_recording() {
  if (!recording_)
    throw Error(ErrorCode::kInvalidArgument, "cpu:0: no recording is under way; begin one first");
  return std::move(recording_);
}

void Queue::replay(CommandGraphDriver& recording) {
  forbid_while_recording("a replay");
  for (const Work& work : static_cast<CommandGraph&>(recording).work) run(work);
}

}  // namespace prism::cpu
