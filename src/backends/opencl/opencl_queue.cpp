// Launches, copies and events; wait() throws failures.
#include "backends/opencl/opencl_queue.h"

#include <utility>

#include <fmt/format.h>

namespace prism::opencl {
namespace {

// Writes up to this size are staged and do not wait for earlier launches.
constexpr size_t kStagedBytes = 64 << 10;
// Only one command in this many gets an event. On NVIDIA's driver (580, H200) a launch costs the
// host 6.8 us without an event, and 11 to 18 us with one.
constexpr size_t kCommandsAnEvent = 256;
// With more unfinished events the host waits: deeper queues do not increase utilisation.
constexpr size_t kMostPending = 4;
// Some drivers hold commands back until a flush. Flush after this many, so that the device starts
// while the rest of a recording is being enqueued.
constexpr size_t kCommandsAFlush = 64;

Handle<cl_event> owned(const Context& context, cl_event event) {
  return {event, [api = context.api](cl_event e) { api->clReleaseEvent(e); }};
}

cl_int status_of(const Context& context, cl_event event) {
  cl_int status = CL_QUEUED;
  const cl_int code = context.api->clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS,
                                                  sizeof(status), &status, nullptr);
  return code == CL_SUCCESS ? status : code;
}

Memory& as_memory(MemoryDriver& memory) { return static_cast<Memory&>(memory); }

RecordedLaunch sizes_of(const LaunchCall& call) {
  RecordedLaunch launch;
  launch.lanes = {size_t{call.groups[0]} * call.kernel->group_size, call.groups[1], call.groups[2]};
  launch.group = {call.kernel->group_size, 1, 1};
  return launch;
}

// A list of commands for messages in which only one is known to have failed.
std::string one_of(const std::vector<std::string>& names) {
  if (names.size() == 1) return names[0];
  std::string list;
  for (const std::string& name : names)
    if (list.find(name) == std::string::npos && list.size() < 200)
      list += (list.empty() ? "" : ", ") + name;
  return list.empty() ? "the queue" : "one of " + list;
}

}  // namespace

bool Event::done() { return status_of(*context_, event_.get()) <= CL_COMPLETE; }

void Event::reach() {
  const cl_event event = event_.get();
  check(context_->api->clWaitForEvents(1, &event), context_->label() + ": waiting for an event");
}

std::optional<double> Event::device_ns() {
  cl_ulong time = 0;
  check(context_->api->clGetEventProfilingInfo(event_.get(), CL_PROFILING_COMMAND_END, sizeof(time),
                                               &time, nullptr),
        context_->label() + ": reading an event's time");
  return static_cast<double>(time);
}

Queue::Queue(std::shared_ptr<Context> context)
    : context_(std::move(context)), queue_(context_->make_queue()) {}

Queue::~Queue() { context_->api->clFinish(queue_.get()); }  // staged writes must have been read

void Queue::not_while_recording(const char* what) const {
  if (recording_)
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: {} while recording: only launches and device copies can be recorded",
                    context_->label(), what));
}

void Queue::keep_failure(cl_int code, const std::string& name) {
  if (failure_) return;
  failure_ = std::make_exception_ptr(
      Error(error_code_of(code), fmt::format("{}: {} failed: the driver answered {} ({})",
                                             context_->label(), name, code_name(code), code)));
}

template <class Call>
void Queue::hand_over(const std::string& name, const Call& call) {
  cl_event event = nullptr;
  const cl_int code = call(open_.names.size() + 1 < kCommandsAnEvent ? nullptr : &event);
  note(code, event, name);
}

void Queue::note(cl_int code, cl_event event, const std::string& name) {
  if (code != CL_SUCCESS) return keep_failure(code, name);
  open_.names.push_back(name);
  if (!event) return;
  open_.event = owned(*context_, event);
  pending_.push_back(std::exchange(open_, {}));
  settle();
}

void Queue::settle() {
  while (!pending_.empty()) {
    const cl_event oldest = pending_.front().event.get();
    if (pending_.size() > kMostPending) context_->api->clWaitForEvents(1, &oldest);
    const cl_int status = status_of(*context_, oldest);
    if (status > CL_COMPLETE) return;
    if (status < CL_COMPLETE) keep_failure(status, one_of(pending_.front().names));
    pending_.pop_front();
  }
}

void Queue::finish() {
  const cl_int code = context_->api->clFinish(queue_.get());
  // Name the first command that failed; clFinish may only report that one did.
  std::vector<std::string> names;
  for (const Pending& pending : pending_) {
    const cl_int status = status_of(*context_, pending.event.get());
    if (status < CL_COMPLETE) keep_failure(status, one_of(pending.names));
    if (code != CL_SUCCESS) names.insert(names.end(), pending.names.begin(), pending.names.end());
  }
  names.insert(names.end(), open_.names.begin(), open_.names.end());
  if (code != CL_SUCCESS) keep_failure(code, one_of(names));
  pending_.clear();
  open_ = {};
}

void Queue::wait() {
  finish();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Queue::write(MemoryDriver& to, uint64_t offset, std::span<const std::byte> from) {
  not_while_recording("writing");
  Memory& memory = as_memory(to);
  memory.check_range("writing", offset, from.size());
  const bool stage = from.size() <= kStagedBytes;
  const std::byte* data = from.data();
  if (stage) data = open_.staged.emplace_back(from.begin(), from.end()).data();
  hand_over("writing a buffer", [&](cl_event* event) {
    return context_->api->clEnqueueWriteBuffer(
        queue_.get(), memory.buffer(), stage ? CL_FALSE : CL_TRUE, static_cast<size_t>(offset),
        from.size(), data, 0, nullptr, event);
  });
}

void Queue::read(MemoryDriver& from, uint64_t offset, std::span<std::byte> to) {
  not_while_recording("reading");
  Memory& memory = as_memory(from);
  memory.check_range("reading", offset, to.size());
  if (!to.empty()) {
    const cl_int code = context_->api->clEnqueueReadBuffer(queue_.get(), memory.buffer(), CL_TRUE,
                                                           static_cast<size_t>(offset), to.size(),
                                                           to.data(), 0, nullptr, nullptr);
    if (code != CL_SUCCESS) keep_failure(code, "reading a buffer");
  }
  wait();
}

void Queue::enqueue_copy(const CommandGraph::Step& step) {
  hand_over(step.name, [&](cl_event* event) {
    return context_->api->clEnqueueCopyBuffer(
        queue_.get(), step.copy_from, step.copy_to, static_cast<size_t>(step.from_offset),
        static_cast<size_t>(step.to_offset), static_cast<size_t>(step.bytes), 0, nullptr, event);
  });
}

void Queue::copy(MemoryDriver& to, uint64_t to_offset, MemoryDriver& from, uint64_t from_offset,
                 uint64_t bytes) {
  Memory &target = as_memory(to), &source = as_memory(from);
  target.check_range("copying to", to_offset, bytes);
  source.check_range("copying from", from_offset, bytes);
  CommandGraph::Step step{.name = "copying a buffer",
                          .copy_to = target.buffer(),
                          .copy_from = source.buffer(),
                          .to_offset = to_offset,
                          .from_offset = from_offset,
                          .bytes = bytes};
  if (recording_)
    recording_->steps.push_back(std::move(step));
  else
    enqueue_copy(step);
}

void Queue::set_arguments(cl_kernel kernel, const LaunchCall& call) {
  cl_uint index = 0;
  const auto set = [&](size_t bytes, const void* value) {
    const cl_int code = context_->api->clSetKernelArg(kernel, index, bytes, value);
    if (code != CL_SUCCESS)
      check(code, fmt::format("{}: argument {} of kernel {}", context_->label(), index,
                              call.kernel->name));
    ++index;
  };
  for (const Binding& binding : call.bindings) {
    const Memory& memory = as_memory(*binding.memory);
    memory.check_range("binding", binding.offset, binding.bytes);
    const cl_mem buffer = memory.buffer();
    set(sizeof(buffer), &buffer);
    const cl_ulong offset = binding.offset;
    set(sizeof(offset), &offset);
  }
  for (uint32_t param : call.params) set(sizeof(param), &param);
}

void Queue::enqueue(const std::string& name, const RecordedLaunch& launch) {
  hand_over(name, [&](cl_event* event) {
    return context_->api->clEnqueueNDRangeKernel(queue_.get(), launch.kernel, 3, nullptr,
                                                 launch.lanes.data(), launch.group.data(), 0,
                                                 nullptr, event);
  });
}

void Queue::launch(const LaunchCall& call) {
  auto& program = static_cast<Program&>(*call.program);
  CommandGraph::Step step;
  step.name = "kernel " + call.kernel->name;
  step.launch = sizes_of(call);
  if (recording_) {
    step.kernel = program.make_kernel();
    step.launch.kernel = step.kernel.get();
    set_arguments(step.launch.kernel, call);
    recording_->steps.push_back(std::move(step));
    return;
  }
  const std::lock_guard guard(program.arguments_lock());
  step.launch.kernel = program.kernel();
  set_arguments(step.launch.kernel, call);
  enqueue(step.name, step.launch);
}

std::unique_ptr<EventDriver> Queue::record_event() {
  not_while_recording("recording an event");
  cl_event event = nullptr;
  check(context_->api->clEnqueueMarkerWithWaitList(queue_.get(), 0, nullptr, &event),
        context_->label() + ": recording an event");
  auto made = std::make_unique<Event>(context_, owned(*context_, event));
  context_->api->clFlush(queue_.get());
  return made;
}

void Queue::begin_recording() {
  not_while_recording("beginning to record");
  recording_ = std::make_unique<CommandGraph>();
  recording_->context = context_;
  recording_->queue = queue_.get();
}

std::unique_ptr<CommandGraphDriver> Queue::end_recording() {
  if (!recording_)
    throw Error(ErrorCode::kInvalidArgument,
                context_->label() + ": ending a recording that was not begun");
  std::unique_ptr<CommandGraph> made = std::move(recording_);
  // Consecutive launches become command buffers. Copies stay outside, because the parameters of
  // their function differ between versions of the extension.
  const CommandBuffers* buffers = context_->command_buffers();
  for (size_t first = 0; first < made->steps.size();) {
    size_t last = first + 1;
    while (last < made->steps.size() && made->steps[last].is_copy() == made->steps[first].is_copy())
      ++last;
    CommandGraph::Segment segment;
    segment.first = first;
    segment.last = last;
    if (buffers && !made->steps[first].is_copy()) {
      std::vector<RecordedLaunch> launches;
      for (size_t i = first; i < last; ++i) launches.push_back(made->steps[i].launch);
      segment.buffer = buffers->record(queue_.get(), launches);
    }
    made->segments.push_back(std::move(segment));
    first = last;
  }
  return made;
}

// Returns false if the loop must run the segment: no command buffer, one for another queue, or one
// that still runs and may not overlap.
bool Queue::enqueue_segment(CommandGraph& recording, CommandGraph::Segment& segment) {
  if (!segment.buffer || recording.queue != queue_.get()) return false;
  const CommandBuffers* buffers = context_->command_buffers();
  if (!buffers->overlap() && segment.running &&
      status_of(*context_, segment.running.get()) > CL_COMPLETE)
    return false;
  cl_event event = nullptr, kept = nullptr;
  if (buffers->enqueue(segment.buffer.get(), &event) != CL_SUCCESS) return false;
  // Two owners: the segment checks whether it still runs, the queue whether it failed.
  if (!buffers->overlap() && context_->api->clRetainEvent(event) == CL_SUCCESS) kept = event;
  segment.running = kept ? owned(*context_, kept) : Handle<cl_event>();
  note(CL_SUCCESS, event,
       fmt::format("{} or one of the {} recorded with it", recording.steps[segment.first].name,
                   segment.last - segment.first));
  return true;
}

void Queue::replay(CommandGraphDriver& recorded) {
  not_while_recording("replaying");
  auto& recording = static_cast<CommandGraph&>(recorded);
  for (CommandGraph::Segment& segment : recording.segments) {
    if (enqueue_segment(recording, segment)) continue;
    for (size_t i = segment.first; i < segment.last; ++i) {
      const CommandGraph::Step& step = recording.steps[i];
      if (step.is_copy())
        enqueue_copy(step);
      else
        enqueue(step.name, step.launch);
      if ((i + 1) % kCommandsAFlush == 0) context_->api->clFlush(queue_.get());
    }
  }
  context_->api->clFlush(queue_.get());
}

}  // namespace prism::opencl
