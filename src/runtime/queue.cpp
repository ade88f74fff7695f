// Queues, events and recordings: validates and prepares each launch, then passes it to the driver.
#include <algorithm>

#include <fmt/format.h>

#include "lower/lower.h"
#include "prism/error.h"
#include "runtime/device_state.h"
#include "runtime/driver.h"

namespace prism {
namespace {

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

void check_range(const char* doing, uint64_t offset, uint64_t bytes, uint64_t size) {
  if (offset > size || bytes > size - offset) {
    fail(fmt::format("{}: bytes {} to {} of a buffer of {} bytes", doing, offset, offset + bytes,
                     size));
  }
}

// The visible bytes of a range, rounded up to whole words because kernels may load those. what:
// "launch of add", "product".
uint64_t range_bytes(const BufferRange& range, const std::string& what, const std::string& name) {
  const uint64_t size = range.buffer.bytes(), whole = range.buffer.driver().bytes();
  if (range.offset % kRangeAlignment != 0) {
    fail(
        fmt::format("{}, buffer \"{}\": a range at byte {}; ranges begin at multiples of "
                    "{} bytes",
                    what, name, range.offset, kRangeAlignment));
  }
  if (range.offset > size || range.bytes > size - range.offset) {
    fail(fmt::format("{}, buffer \"{}\": bytes {} to {} of a buffer of {} bytes", what, name,
                     range.offset, range.offset + range.bytes, size));
  }
  if (range.bytes == 0) return whole - range.offset;
  return std::min((range.bytes + 3) / 4 * 4, whole - range.offset);
}

void check_params(const ir::Kernel& kernel, std::span<const ParamValue> params) {
  if (params.size() != kernel.params.size()) {
    fail(fmt::format("launch of {}: {} parameters given, the kernel takes {}", kernel.name,
                     params.size(), kernel.params.size()));
  }
  for (size_t i = 0; i < params.size(); ++i) {
    const ir::Param& wanted = kernel.params[i];
    const bool integers = is_int(params[i].type) && is_int(wanted.type);
    if (params[i].type == wanted.type || (integers && params[i].bits <= INT32_MAX)) continue;
    fail(fmt::format("launch of {}: parameter {} (\"{}\") is {}, given {}{}", kernel.name, i,
                     wanted.name, dtype_name(wanted.type), dtype_name(params[i].type),
                     integers ? " out of its range" : "; write the literal with the other type"));
  }
}

}  // namespace

Queue::Queue(std::shared_ptr<State> state, std::shared_ptr<DeviceState> device)
    : device_(std::move(device)), state_(std::move(state)) {}

Queue::Queue(const Queue& other)
    : device_(other.state_ ? other.state_->device.lock() : nullptr), state_(other.state_) {}

Queue& Queue::operator=(const Queue& other) {
  if (this != &other) *this = Queue(other);
  return *this;
}

Queue& Queue::operator=(Queue&& other) noexcept {
  state_ = std::move(other.state_);  // first: a queue must not outlive its device
  device_ = std::move(other.device_);
  return *this;
}

Queue::State::~State() {
  if (in_flight.empty() || !driver) return;
  const auto alive = device.lock();  // null during device destruction, which needs no lock
  const auto lock =
      alive ? std::unique_lock(alive->mutex) : std::unique_lock<std::recursive_mutex>();
  try {
    driver->wait();
  } catch (const std::exception&) {  // a destructor cannot report it
  }
  in_flight.clear();
}

std::shared_ptr<Queue::State> DeviceState::make_queue_state(
    const std::shared_ptr<DeviceState>& self) {
  auto state = std::make_shared<Queue::State>();
  state->device = self;
  state->driver = driver->make_queue();
  std::erase_if(queues, [](const auto& queue) { return queue.expired(); });
  queues.push_back(state);
  return state;
}

QueueDriver& DeviceState::driver_of(const Queue& queue) { return *queue.state_->driver; }

std::recursive_mutex& DeviceState::mutex_of(const Queue& queue) {
  return queue.state_->device.lock()->mutex;
}

void Queue::State::run(const Step& step) const {
  if (step.product)
    return driver->product({*step.product, step.bindings[0], step.bindings[1], step.bindings[2]});
  if (!step.launch) {
    const Binding &to = step.bindings[0], &from = step.bindings[1];
    return driver->copy(*to.memory, to.offset, *from.memory, from.offset, to.bytes);
  }
  LaunchCall call;
  call.program = step.launch->program.get();
  call.kernel = &step.launch->lowered;
  call.groups = step.groups;
  call.bindings = step.bindings;
  call.params = step.params;
  driver->launch(call);
}

void Queue::State::keep(const std::vector<std::shared_ptr<const void>>& uses) {
  in_flight.insert(uses.begin(), uses.end());
}

const Buffer& Queue::mine(const Buffer& buffer, const char* doing, bool changes) const {
  if (!buffer)
    fail(fmt::format("{}: an empty Buffer handle; get one from Device::allocate()", doing));
  const auto device = state_->device.lock();
  if (buffer.device_ != device) {
    fail(fmt::format("{}: the buffer is on {} and the queue on {}; copy it through the host", doing,
                     buffer.device_->info.id, device->info.id));
  }
  if (changes && buffer.constant_)
    fail(fmt::format(
        "{}: the buffer wraps host memory, which is read-only for the device; copy it first",
        doing));
  return buffer;
}

void Queue::write(const Buffer& to, std::span<const std::byte> from, uint64_t offset) {
  mine(to, "write", true);
  check_range("write", offset, from.size(), to.bytes());
  const std::scoped_lock lock(to.device_->mutex);
  if (state_->recording) fail("write: not inside a recording; write before it or record a copy");
  if (from.empty()) return;
  state_->keep({to.memory_});
  if (to.device_->info.copies_words && (offset | from.size()) % 4 != 0)
    return write_bytes(to, from, offset);
  state_->driver->write(to.driver(), offset, from);
}

void Queue::read(const Buffer& from, std::span<std::byte> to, uint64_t offset) {
  mine(from, "read");
  check_range("read", offset, to.size(), from.bytes());
  const std::scoped_lock lock(from.device_->mutex);
  if (state_->recording) fail("read: not inside a recording; read after its replay");
  if (to.empty()) return;
  if (from.device_->info.copies_words && (offset | to.size()) % 4 != 0)
    read_bytes(from, to, offset);
  else
    state_->driver->read(from.driver(), offset, to);
  state_->in_flight.clear();  // the queue is in order, so all earlier work is done
}

void Queue::copy(const Buffer& to, const Buffer& from, uint64_t bytes, uint64_t to_offset,
                 uint64_t from_offset) {
  mine(to, "copy", true);
  mine(from, "copy");
  check_range("copy into", to_offset, bytes, to.bytes());
  check_range("copy from", from_offset, bytes, from.bytes());
  if (to.memory_ == from.memory_ && to_offset < from_offset + bytes &&
      from_offset < to_offset + bytes) {
    fail(fmt::format("copy: {} bytes from {} to {} of one buffer overlap; copy through another",
                     bytes, from_offset, to_offset));
  }
  if (bytes == 0) return;
  const std::scoped_lock lock(to.device_->mutex);
  const DeviceInfo& info = to.device_->info;
  if (info.one_access && to.memory_ == from.memory_) {
    const Buffer between = Device(to.device_->driver, "").allocate(bytes);
    copy(between, from, bytes, 0, from_offset);
    return copy(to, between, bytes, to_offset, 0);
  }
  if (info.copies_words && (to_offset | from_offset | bytes) % 4 != 0)
    return copy_bytes(to, from, bytes, to_offset, from_offset);
  add_copy(to, from, bytes, to_offset, from_offset);
}

void Queue::add_copy(const Buffer& to, const Buffer& from, uint64_t bytes, uint64_t to_offset,
                     uint64_t from_offset) {
  State::Step step;
  step.bindings = {{to.memory_.get(), to_offset, bytes}, {from.memory_.get(), from_offset, bytes}};
  step.uses = {to.memory_, from.memory_};
  if (state_->recording) return state_->recording->push_back(std::move(step));
  state_->keep(step.uses);
  state_->run(step);
}

void Queue::launch(const Program& program, std::array<uint32_t, 3> groups,
                   std::span<const BufferRange> buffers, std::span<const ParamValue> params) {
  const ir::Kernel& kernel = program.kernel();
  const auto device = state_->device.lock();
  if (program.device_ != device) {
    fail(fmt::format("launch of {}: compiled for {}, the queue is on {}", kernel.name,
                     program.device_->info.id, device->info.id));
  }
  const std::vector<uint32_t> wanted = kernel.buffers();
  if (buffers.size() != wanted.size()) {
    fail(fmt::format("launch of {}: {} buffers given, the kernel takes {}", kernel.name,
                     buffers.size(), wanted.size()));
  }
  const auto name_of = [&](size_t i) { return kernel.memories[wanted[i]].name; };
  const auto writes = [&](size_t i) {
    return kernel.memories[wanted[i]].access != ir::Access::read;
  };
  State::Step step;
  std::vector<uint64_t> sizes;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const BufferRange& range = buffers[i];
    // Build the name only when there is an error to report.
    if (range.buffer.device_ != device || (range.buffer.constant_ && writes(i)))
      mine(range.buffer,
           fmt::format("launch of {}, buffer \"{}\"", kernel.name, name_of(i)).c_str(), writes(i));
    sizes.push_back(range_bytes(range, "launch of " + kernel.name, name_of(i)));
    for (size_t j = 0; j < i; ++j) {
      if (range.buffer.memory_ != buffers[j].buffer.memory_ || (!writes(i) && !writes(j))) continue;
      if (range.offset >= buffers[j].offset + sizes[j] ||
          buffers[j].offset >= range.offset + sizes[i])
        continue;
      fail(
          fmt::format("launch of {}: one buffer passed as \"{}\" and as \"{}\", of which at least "
                      "one is written; "
                      "declare one inout() instead, copy the buffer, or pass ranges of it that do "
                      "not overlap",
                      kernel.name, name_of(j), name_of(i)));
    }
    step.uses.push_back(range.buffer.memory_);
  }
  check_params(kernel, params);
  if (std::ranges::count(groups, 0u)) return;

  const std::scoped_lock lock(device->mutex);
  const ir::Capabilities& capabilities = device->info.capabilities;
  LaunchVariant variant = launch_variant(capabilities, groups, sizes, kernel.name);
  std::vector<BufferRange> apart;
  if (device->info.one_access) {
    apart.assign(buffers.begin(), buffers.end());
    variant.writable = bind_apart(kernel, sizes, apart);
    for (const BufferRange& range : apart) step.uses.push_back(range.buffer.memory_);
    buffers = apart;
  }
  step.launch = &device->variant(*program.compiled_, variant);
  step.uses.push_back(program.compiled_);
  step.groups = variant.folded ? folded_grid(capabilities, groups, kernel.name) : groups;
  const uint64_t piece = variant.pieces.empty() ? 0 : piece_bytes(capabilities);
  for (size_t i = 0; i < buffers.size(); ++i) {
    const uint32_t pieces = variant.pieces.empty() ? 1 : variant.pieces[i];
    for (uint32_t p = 0; p < pieces; ++p) {
      const uint64_t offset = p * piece;
      const uint64_t bytes = p + 1 < pieces ? piece : sizes[i] - offset;
      step.bindings.push_back({buffers[i].buffer.memory_.get(), buffers[i].offset + offset, bytes});
    }
  }
  for (const ParamValue& param : params) step.params.push_back(param.bits);
  if (variant.folded) step.params.insert(step.params.end(), groups.begin(), groups.end());

  if (state_->recording) return state_->recording->push_back(std::move(step));
  state_->keep(step.uses);
  state_->last_kernel = kernel.name;
  state_->run(step);
}

void Queue::launch(const Program& program, std::array<uint32_t, 3> groups,
                   std::span<const Buffer> buffers, std::span<const ParamValue> params) {
  const std::vector<BufferRange> whole(buffers.begin(), buffers.end());
  launch(program, groups, std::span(whole), params);
}

void Queue::launch(const Program& program, uint32_t groups,
                   std::initializer_list<BufferRange> buffers,
                   std::initializer_list<ParamValue> params) {
  launch(program, Groups{groups, 1, 1}, buffers, params);
}

void Queue::launch(const Program& program, Groups groups,
                   std::initializer_list<BufferRange> buffers,
                   std::initializer_list<ParamValue> params) {
  launch(program, {groups.x, groups.y, groups.z}, std::span(buffers.begin(), buffers.size()),
         std::span(params.begin(), params.size()));
}

void Queue::product(const NativeProduct& asked, const BufferRange& a, const BufferRange& b,
                    const BufferRange& c) {
  const auto device = state_->device.lock();
  State::Step step;
  step.product = checked(asked);
  const ProductBytes needed = product_bytes(*step.product);
  const auto add = [&](const BufferRange& range, const char* name, uint64_t wanted) {
    mine(range.buffer, "product", &range == &c);
    const uint64_t given = range_bytes(range, "product", name);
    if (given < wanted) {
      fail(fmt::format("product of {}: {} spans {} bytes, its buffer has {} from byte {} on",
                       describe(asked), name, wanted, given, range.offset));
    }
    step.bindings.push_back({range.buffer.memory_.get(), range.offset, given});
    step.uses.push_back(range.buffer.memory_);
  };
  add(a, "a", needed.a);
  add(b, "b", needed.b);
  add(c, "c", needed.c);
  const auto overlap = [&](const BufferRange& x, uint64_t bytes) {
    return x.buffer.memory_ == c.buffer.memory_ && x.offset < c.offset + needed.c &&
           c.offset < x.offset + bytes;
  };
  if (overlap(a, needed.a) || overlap(b, needed.b))
    fail(fmt::format("product of {}: c overlaps an operand; use a separate buffer for c",
                     describe(asked)));
  if (step.product->is_empty()) return;
  const std::scoped_lock lock(device->mutex);
  std::string why;
  if (!device->driver->supports(*step.product, &why))
    throw Error(ErrorCode::kNotSupported,
                fmt::format("product of {} on {}: {}; ask Device::supports() first and launch a "
                            "kernel instead",
                            describe(asked), device->info.id, why));
  if (state_->recording) return state_->recording->push_back(std::move(step));
  state_->keep(step.uses);
  state_->last_kernel = "a product of " + describe(asked);
  state_->run(step);
}

Event Queue::record_event() {
  const auto device = state_->device.lock();
  const std::scoped_lock lock(device->mutex);
  if (state_->recording) fail("record_event: not inside a recording");
  Event event;
  event.device_ = device;
  event.driver_ = std::shared_ptr<EventDriver>(state_->driver->record_event().release(),
                                               LockedDelete<EventDriver>{device->locked});
  return event;
}

void Queue::wait() {
  const auto device = state_->device.lock();
  const std::scoped_lock lock(device->mutex);
  if (state_->recording) fail("wait: not inside a recording");
  try {
    state_->driver->wait();
  } catch (const Error& error) {
    state_->in_flight.clear();
    const std::string message = error.what();
    if (state_->last_kernel.empty() || message.find(state_->last_kernel) != std::string::npos)
      throw;
    throw Error(error.code(), fmt::format("{} (on {}, last launched: {})", message, device->info.id,
                                          state_->last_kernel));
  }
  state_->in_flight.clear();
}

CommandGraph Queue::record(const std::function<void()>& work) {
  const auto device = state_->device.lock();
  const std::scoped_lock lock(device->mutex);
  if (state_->recording) fail("record: already inside a recording of this queue");
  // Collect first, record afterwards: work may compile or throw, and must not do so while the
  // driver is recording.
  std::vector<State::Step> steps;
  state_->recording = &steps;
  try {
    work();
  } catch (...) {
    state_->recording = nullptr;
    throw;
  }
  state_->recording = nullptr;

  CommandGraph recording;
  recording.device_ = device;
  state_->driver->begin_recording();
  try {
    for (const State::Step& step : steps) state_->run(step);
  } catch (...) {
    try {
      state_->driver->end_recording();
    } catch (const Error&) {  // report the first failure
    }
    throw;
  }
  std::unordered_set<std::shared_ptr<const void>> uses;
  for (const State::Step& step : steps) uses.insert(step.uses.begin(), step.uses.end());
  recording.driver_ = std::shared_ptr<CommandGraphDriver>(
      state_->driver->end_recording().release(),
      LockedDelete<CommandGraphDriver>{device->locked, {uses.begin(), uses.end()}});
  return recording;
}

void Queue::replay(const CommandGraph& recording) {
  const auto device = state_->device.lock();
  if (!recording) fail("replay: an empty CommandGraph; get one from Queue::record()");
  if (recording.device_ != device) {
    fail(fmt::format("replay: recorded on {}, the queue is on {}", recording.device_->info.id,
                     device->info.id));
  }
  const std::scoped_lock lock(device->mutex);
  if (state_->recording) fail("replay: not inside a recording");
  state_->keep({recording.driver_});
  state_->driver->replay(*recording.driver_);
}

void Event::wait() const {
  if (!driver_) return;
  const std::scoped_lock lock(device_->mutex);
  driver_->wait();
}

bool Event::done() const {
  if (!driver_) return true;
  const std::scoped_lock lock(device_->mutex);
  return driver_->done();
}

double Event::ms_since(const Event& earlier) const {
  if (!driver_ || !earlier.driver_)
    fail("ms_since: an empty Event; get one from Queue::record_event()");
  const std::scoped_lock lock(device_->mutex);
  earlier.driver_->wait();
  driver_->wait();
  return driver_->ms_since(*earlier.driver_);
}

}  // namespace prism
