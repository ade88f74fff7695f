// The double's queues, command buffers and encoders.
#include "doubles/metal_double_work.h"

#include <array>
#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <vector>

namespace prism::test::metal_double {
namespace {

constexpr UInteger kCommitted = 2, kCompleted = 4, kFailed = 5;
constexpr int kDeviceRemoved = 11;
constexpr int kAskedOften = 3;  // status queries after which the work is done
constexpr UInteger kArguments = 31, kMostBytes = 4096;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Retains an object for its lifetime.
template <class T>
class Kept {
 public:
  Kept() = default;
  explicit Kept(T* object) : object_(object) { retain(object_); }
  Kept(const Kept& other) : Kept(other.object_) {}
  Kept& operator=(Kept other) {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Kept() { release(object_); }
  T* get() const { return object_; }
  T* operator->() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  T* object_ = nullptr;
};

struct CommandBuffer;
struct Queue : Object {
  Queue();
  std::deque<Kept<CommandBuffer>> work;
};

struct CommandBuffer : Object {
  explicit CommandBuffer(Queue* from);
  ~CommandBuffer() override {
    if (encoding) misuse("a command buffer is let go while it is encoded");
  }
  Kept<Queue> queue;
  std::vector<std::function<void(CommandBuffer&)>> steps;
  UInteger status = 0;
  int asked = 0;
  int told_code = 0;  // the requested failure
  bool encoding = false;
  Kept<Error> error;
  double start = 0, end = 0;
};

struct Argument {
  Kept<Buffer> buffer;
  UInteger offset = 0;
  std::vector<unsigned char> bytes;
};

struct Encoder : Object {
  explicit Encoder(CommandBuffer* into);
  ~Encoder() override {
    if (open) misuse("an encoder is let go before endEncoding");
  }
  Kept<CommandBuffer> commands;
  bool open = true;
  Kept<Pipeline> pipeline;
  std::array<Argument, kArguments> arguments;
};

void fail(CommandBuffer& commands, int code, const std::string& text) {
  commands.status = kFailed;
  auto* error = new Error(code, text);
  commands.error = Kept<Error>(error);
  release(error);
}

void perform(CommandBuffer& commands) {
  commands.start = now();
  if (counter("device_gone")) fail(commands, kDeviceRemoved, "Device was removed (the double)");
  for (const auto& step : commands.steps)
    if (commands.status != kFailed) step(commands);
  if (commands.told_code && commands.status != kFailed) {
    fail(commands, commands.told_code,
         "the double was told to fail with code " + std::to_string(commands.told_code));
    if (commands.told_code == kDeviceRemoved) counter("device_gone") = 1;
  }
  if (commands.status != kFailed) commands.status = kCompleted;
  commands.steps.clear();
  commands.end = now();
}

void perform_until(CommandBuffer* last) {
  auto& work = last->queue->work;
  while (last->status < kCompleted && !work.empty()) {
    const Kept<CommandBuffer> next = work.front();
    work.pop_front();
    perform(*next.get());
  }
}

// Flips one bit in each changed buffer, in the last changed byte: sign and exponent of a float.
void run_wrongly(const std::function<void()>& run, const std::vector<Argument>& arguments) {
  std::vector<std::pair<Buffer*, std::vector<unsigned char>>> before;
  for (const Argument& argument : arguments)
    if (Buffer* buffer = argument.buffer.get())
      before.emplace_back(buffer, std::vector(buffer->data(), buffer->data() + buffer->bytes));
  run();
  for (auto& [buffer, content] : before)
    for (size_t i = buffer->bytes; i > 0; --i)
      if (buffer->data()[i - 1] != content[i - 1]) {
        buffer->data()[i - 1] ^= 0x40;
        break;
      }
}

void launch(CommandBuffer& commands, doubles::HostKernel& kernel, std::vector<Argument>& arguments,
            Size groups, Size threads) {
  ++counter("launches");
  if (!doubles::prepare(kernel)) return fail(commands, 1, "the host compiler refused the kernel");
  const std::string& kinds = doubles::arguments_of(kernel);
  std::vector<void*> pointers(kinds.size());
  std::vector<void*> values(kinds.size());
  for (size_t i = 0; i < kinds.size(); ++i) {
    Argument* argument = i < arguments.size() ? &arguments[i] : nullptr;
    if (kinds[i] == 'p' && argument && argument->buffer)
      pointers[i] = argument->buffer->data() + argument->offset, values[i] = &pointers[i];
    else if (kinds[i] == 'b' && argument && !argument->bytes.empty())
      values[i] = argument->bytes.data();
    else if (kinds[i] == 'p' || kinds[i] == 'b')
      return misuse("a kernel's argument is not bound");
  }
  const unsigned grid[3] = {static_cast<unsigned>(groups.width),
                            static_cast<unsigned>(groups.height),
                            static_cast<unsigned>(groups.depth)};
  const auto run = [&] {
    if (const char* failure =
            doubles::run(kernel, grid, static_cast<unsigned>(threads.width), values.data()))
      fail(commands, 2, failure);
  };
  if (settings().wrong_results)
    run_wrongly(run, arguments);
  else
    run();
  for (const Argument& argument : arguments)
    if (argument.buffer) argument.buffer->check_fences();
}

// --- messages

void set_pipeline(Encoder* self, Selector, Pipeline* pipeline) {
  const Lock lock(mutex());
  self->pipeline = Kept<Pipeline>(pipeline);
}

void set_buffer(Encoder* self, Selector, Buffer* buffer, UInteger offset, UInteger index) {
  const Lock lock(mutex());
  if (index >= kArguments || !buffer || offset >= buffer->bytes)
    return misuse("setBuffer: beyond the buffer or the table of arguments");
  self->arguments[index] = {Kept<Buffer>(buffer), offset, {}};
}

void set_bytes(Encoder* self, Selector, const unsigned char* bytes, UInteger count,
               UInteger index) {
  const Lock lock(mutex());
  if (index >= kArguments || count == 0 || count > kMostBytes)
    return misuse("setBytes: nothing, too much, or beyond the table of arguments");
  self->arguments[index] = {{}, 0, {bytes, bytes + count}};
}

void dispatch(Encoder* self, Selector, Size groups, Size threads) {
  const Lock lock(mutex());
  if (!self->open || !self->pipeline) return misuse("a dispatch with no pipeline or no encoder");
  const UInteger all = threads.width * threads.height * threads.depth;
  if (groups.width * groups.height * groups.depth == 0 || all == 0 ||
      all > static_cast<UInteger>(settings().threads) || threads.height * threads.depth != 1)
    return misuse("a dispatch of no groups, or of groups too large");
  self->commands->steps.emplace_back(
      [pipeline = self->pipeline,
       arguments = std::vector<Argument>(self->arguments.begin(), self->arguments.end()), groups,
       threads](CommandBuffer& commands) mutable {
        launch(commands, *pipeline->kernel, arguments, groups, threads);
      });
}

void end_encoding(Encoder* self, Selector) {
  const Lock lock(mutex());
  if (!self->open) misuse("endEncoding twice");
  self->open = self->commands->encoding = false;
}

const Class& encoder_class() {
  static const Class& the_class =
      *new Class{"MTLComputeCommandEncoder",
                 "live_streams",
                 {{"setComputePipelineState:", method(set_pipeline)},
                  {"setBuffer:offset:atIndex:", method(set_buffer)},
                  {"setBytes:length:atIndex:", method(set_bytes)},
                  {"dispatchThreadgroups:threadsPerThreadgroup:", method(dispatch)},
                  {"endEncoding", method(end_encoding)}}};
  return the_class;
}
Encoder::Encoder(CommandBuffer* into) : Object(encoder_class()), commands(into) {
  if (commands->encoding || commands->status >= kCommitted)
    misuse("an encoder while another is open, or after commit");
  commands->encoding = true;
}

Object* compute_encoder(CommandBuffer* self, Selector) {
  const Lock lock(mutex());
  return autorelease(new Encoder(self));
}
void commit(CommandBuffer* self, Selector) {
  const Lock lock(mutex());
  if (self->encoding || self->status >= kCommitted)
    return misuse("commit twice, or before endEncoding");
  ++counter("commits");
  Settings& told = settings();
  if (told.fail_commands && --told.fail_commands == 0) self->told_code = told.fail_code;
  self->status = kCommitted;
  self->queue->work.emplace_back(self);
}

void wait(CommandBuffer* self, Selector) {
  const Lock lock(mutex());
  if (self->status < kCommitted) return misuse("a wait before commit");
  perform_until(self);
}

UInteger status(CommandBuffer* self, Selector) {
  const Lock lock(mutex());
  if (++self->asked >= kAskedOften && self->status == kCommitted) perform_until(self);
  return self->status;
}
Object* error(CommandBuffer* self, Selector) { return self->error.get(); }
double gpu_start(CommandBuffer* self, Selector) { return self->start; }
double gpu_end(CommandBuffer* self, Selector) { return self->end; }

const Class& commands_class() {
  static const Class& the_class = *new Class{"MTLCommandBuffer",
                                             "live_streams",
                                             {{"computeCommandEncoder", method(compute_encoder)},
                                              {"commit", method(commit)},
                                              {"waitUntilCompleted", method(wait)},
                                              {"status", method(status)},
                                              {"error", method(error)},
                                              {"GPUStartTime", method(gpu_start)},
                                              {"GPUEndTime", method(gpu_end)}}};
  return the_class;
}
CommandBuffer::CommandBuffer(Queue* from) : Object(commands_class()), queue(from) {}

Object* command_buffer(Queue* self, Selector) {
  const Lock lock(mutex());
  return autorelease(new CommandBuffer(self));
}
const Class& queue_class() {
  static const Class& the_class =
      *new Class{"MTLCommandQueue", "live_streams", {{"commandBuffer", method(command_buffer)}}};
  return the_class;
}
Queue::Queue() : Object(queue_class()) {}

}  // namespace

Object* make_queue() { return new Queue; }

}  // namespace prism::test::metal_double
