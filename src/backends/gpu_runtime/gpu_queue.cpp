// Streams, events and graphs.
#include "backends/gpu_runtime/gpu_queue.h"

#include <utility>

#include <fmt/format.h>

namespace prism::gpu {
namespace {

class GpuEvent final : public EventDriver {
 public:
  GpuEvent(std::shared_ptr<DeviceContext> context, Event event,
           std::shared_ptr<QueueHistory> history)
      : context_(std::move(context)), event_(event), history_(std::move(history)) {}
  ~GpuEvent() override {
    quietly(*context_, [&](const Api& api) { api.event_destroy(event_); });
  }

  void wait() override {
    const Current current(*context_);
    if (const Result result = context_->api().event_synchronize(event_))
      throw history_->late_failure(result);
  }

  bool done() override {
    const Current current(*context_);
    const Result result = context_->api().event_query(event_);
    if (result == kNotReady) return false;
    if (result != kSuccess) throw history_->late_failure(result);
    return true;
  }

  double ms_since(EventDriver& earlier) override {
    const Current current(*context_);
    float ms = 0;
    const Api& api = context_->api();
    const Result result = api.event_elapsed(&ms, static_cast<GpuEvent&>(earlier).event_, event_);
    if (result == kNotReady)
      throw Error(
          ErrorCode::kInvalidArgument,
          context_->device() +
              ": timing two events, of which one has not been reached; wait for both first");
    check(api, result, "timing two events");
    return ms;
  }

 private:
  std::shared_ptr<DeviceContext> context_;
  Event event_;
  std::shared_ptr<QueueHistory> history_;
};

class GpuRecording final : public CommandGraphDriver {
 public:
  GpuRecording(Handle<GraphExec> graph, std::shared_ptr<void> kept, std::string description)
      : kept_(std::move(kept)), graph_(std::move(graph)), description_(std::move(description)) {}
  GraphExec graph() const { return graph_.get(); }
  const std::string& description() const { return description_; }

 private:
  std::shared_ptr<void> kept_;
  Handle<GraphExec> graph_;
  std::string description_;
};

}  // namespace

DevicePointer address(MemoryDriver& memory, uint64_t offset) {
  return static_cast<GpuMemory&>(memory).pointer() + offset;
}

GpuMemory::~GpuMemory() {
  if (owned_) quietly(*context_, [&](const Api& api) { api.memory_free(pointer_); });
}

Error QueueHistory::late_failure(Result result) const {
  const std::string work = last_work.empty() ? "" : fmt::format(" (last submitted: {})", last_work);
  return driver_error(context->api(), result, context->device() + ": waiting for its queue" + work);
}

GpuQueue::GpuQueue(std::shared_ptr<DeviceContext> context)
    : context_(std::move(context)), staging_(context_), history_(std::make_shared<QueueHistory>()) {
  history_->context = context_;
  const Current current(*context_);
  Stream stream = nullptr;
  check(context_->api(), context_->api().stream_create(&stream, kStreamNonBlocking),
        "creating a stream");
  stream_ = Handle<Stream>(stream, [context = context_](Stream s) {
    quietly(*context, [&](const Api& api) { api.stream_destroy(s); });
  });
}

GpuQueue::~GpuQueue() {
  quietly(*context_, [&](const Api& api) {
    if (recording_) {  // an exception interrupted the recording
      Graph graph = nullptr;
      if (api.stream_end_capture(stream_.get(), &graph) == kSuccess && graph)
        api.graph_destroy(graph);
    }
    api.stream_synchronize(stream_.get());  // the staging memory is in use until then
  });
}

void GpuQueue::refuse_while_recording(const char* what) const {
  if (recording_)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: {} while recording; a recording holds launches and copies between "
                            "buffers, do it before or after",
                            context_->device(), what));
}

void GpuQueue::keep(Result result, const std::string& what) {
  if (result != kSuccess && !history_->failure)
    history_->failure = driver_error(context_->api(), result, context_->device() + ": " + what);
}

void GpuQueue::throw_kept() {
  if (!history_->failure) return;
  const Error failure = *history_->failure;
  history_->failure.reset();
  throw failure;
}

void GpuQueue::write(MemoryDriver& to, uint64_t offset, std::span<const std::byte> from) {
  refuse_while_recording("writing to a buffer");
  if (from.empty()) return;
  const Current current(*context_);
  if (const Result result = staging_.write(address(to, offset), from, stream_.get()))
    throw history_->late_failure(result);
}

void GpuQueue::read(MemoryDriver& from, uint64_t offset, std::span<std::byte> to) {
  refuse_while_recording("reading a buffer");
  const Current current(*context_);
  const Result result = to.empty() ? context_->api().stream_synchronize(stream_.get())
                                   : staging_.read(address(from, offset), to, stream_.get());
  throw_kept();
  if (result != kSuccess) throw history_->late_failure(result);
}

void GpuQueue::copy(MemoryDriver& to, uint64_t to_offset, MemoryDriver& from, uint64_t from_offset,
                    uint64_t bytes) {
  if (bytes == 0) return;
  const Current current(*context_);
  keep(context_->api().copy_on_device(address(to, to_offset), address(from, from_offset), bytes,
                                      stream_.get()),
       fmt::format("copying {} bytes between buffers", bytes));
  after_kernel_ = false;
}

void GpuQueue::launch(const LaunchCall& call) {
  if (call.groups[0] == 0 || call.groups[1] == 0 || call.groups[2] == 0) return;
  const auto& program = static_cast<const GpuProgram&>(*call.program);
  pointers_.clear();
  for (const Binding& binding : call.bindings)
    pointers_.push_back(address(*binding.memory, binding.offset));
  arguments_.clear();
  for (DevicePointer& pointer : pointers_) arguments_.push_back(&pointer);
  for (const uint32_t& param : call.params) arguments_.push_back(const_cast<uint32_t*>(&param));

  const Current current(*context_);
  const Result result = submit(program, call, arguments_.data(), recording_ && after_kernel_);
  if (result != kSuccess)
    keep(result,
         fmt::format("launching kernel {} with {} x {} x {} groups of {}", program.name(),
                     call.groups[0], call.groups[1], call.groups[2], call.kernel->group_size));
  after_kernel_ = true;
  if (recording_) ++recorded_launches_;
  if (history_->last_work.size() != program.name().size() + 7 ||
      history_->last_work.compare(7, std::string::npos, program.name()) != 0)
    history_->last_work = "kernel " + program.name();
}

Result GpuQueue::submit(const GpuProgram& program, const LaunchCall& call, void** arguments, bool) {
  return context_->api().launch(program.function(), call.groups[0], call.groups[1], call.groups[2],
                                call.kernel->group_size, 1, 1, program.dynamic_shared_bytes(),
                                stream_.get(), arguments, nullptr);
}

void GpuQueue::done(const std::string& work, std::optional<Error> failure) {
  if (failure && !history_->failure) history_->failure = std::move(failure);
  after_kernel_ = false;  // a copy does not signal when the next launch may start
  if (recording_) ++recorded_launches_;
  history_->last_work = work;
}

std::unique_ptr<EventDriver> GpuQueue::record_event() {
  refuse_while_recording("recording an event");
  const Current current(*context_);
  const Api& api = context_->api();
  Event event = nullptr;
  check(api, api.event_create(&event, 0), "creating an event");
  auto driver = std::make_unique<GpuEvent>(context_, event, history_);
  keep(api.event_record(event, stream_.get()), "recording an event");
  return driver;
}

void GpuQueue::wait() {
  refuse_while_recording("waiting for the queue");
  const Current current(*context_);
  const Result result = context_->api().stream_synchronize(stream_.get());
  throw_kept();
  if (result != kSuccess) throw history_->late_failure(result);
}

void GpuQueue::begin_recording() {
  refuse_while_recording("beginning a recording");
  const Current current(*context_);
  // Relaxed, because a recorded launch may compile its program and load a module during capture.
  check(context_->api(), context_->api().stream_begin_capture(stream_.get(), kCaptureRelaxed),
        "beginning to record");
  recording_ = true;
  after_kernel_ = false;
  recorded_launches_ = 0;
}

std::unique_ptr<CommandGraphDriver> GpuQueue::end_recording() {
  if (!recording_)
    throw Error(ErrorCode::kInvalidArgument,
                context_->device() + ": ending a recording that was not begun");
  recording_ = false;
  after_kernel_ = false;
  std::shared_ptr<void> kept = take_recorded();
  const Current current(*context_);
  const Api& api = context_->api();
  Graph captured = nullptr;
  const Result ended = api.stream_end_capture(stream_.get(), &captured);
  const Handle<Graph> graph(captured, [&api](Graph g) { api.graph_destroy(g); });
  throw_kept();  // a failure inside the recording is the cause
  check(api, ended, "ending a recording");
  GraphExec exec = nullptr;
  const Result made = api.graph_instantiate
                          ? api.graph_instantiate(&exec, graph.get(), 0)
                          : api.graph_instantiate_v2(&exec, graph.get(), nullptr, nullptr, 0);
  check(api, made, "making a recording ready");
  Handle<GraphExec> owned(exec, [context = context_](GraphExec g) {
    quietly(*context, [&](const Api& a) { a.graph_exec_destroy(g); });
  });
  return std::make_unique<GpuRecording>(
      std::move(owned), std::move(kept),
      recorded_launches_ == 0 ? std::string("a recording of copies")
                              : fmt::format("a recording of {} launches, the last of {}",
                                            recorded_launches_, history_->last_work));
}

void GpuQueue::replay(CommandGraphDriver& recording) {
  refuse_while_recording("replaying");
  const auto& recorded = static_cast<const GpuRecording&>(recording);
  const Current current(*context_);
  if (const Result result = context_->api().graph_launch(recorded.graph(), stream_.get()))
    keep(result, "replaying " + recorded.description());
  history_->last_work = recorded.description();
}

}  // namespace prism::gpu
