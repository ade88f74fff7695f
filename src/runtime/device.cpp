// The device handle: memory, compiled kernels and queues over one driver.
#include "prism/device.h"

#include <algorithm>

#include <fmt/format.h>

#include "prism/error.h"
#include "runtime/device_state.h"
#include "runtime/driver.h"

namespace prism {
namespace {

std::shared_ptr<DeviceState> present(const std::shared_ptr<DeviceState>& state, const char* doing) {
  if (state) return state;
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("{}: this Device handle is empty; get one from init_backend() or Device::named()",
                  doing));
}

}  // namespace

DeviceState::DeviceState(std::shared_ptr<DeviceDriver> the_driver)
    : locked(std::make_shared<LockedDriver>(std::move(the_driver))),
      mutex(locked->mutex),
      driver(locked->driver),
      info(driver->info()) {
  // Work is partitioned by this number. Too many workgroups cost little; too few leave most of a
  // card idle.
  constexpr uint32_t kMiddling = 64;
  if (info.compute_units == 0) info.compute_units = kMiddling;
}

std::shared_ptr<DeviceState> DeviceState::of(const std::shared_ptr<DeviceDriver>& driver) {
  // Never destroyed: a user's static objects may hold handles until after our static destructors.
  static auto& mutex = *new std::mutex;
  static auto& states = *new std::map<DeviceDriver*, std::weak_ptr<DeviceState>>;
  const std::scoped_lock lock(mutex);
  std::erase_if(states, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<DeviceState>& known = states[driver.get()];
  if (auto state = known.lock()) return state;
  auto state = std::make_shared<DeviceState>(driver);
  known = state;
  return state;
}

Device::Device(std::shared_ptr<DeviceDriver> driver, std::string why)
    : state_(driver ? DeviceState::of(driver) : nullptr), why_(std::move(why)) {}

const DeviceInfo& Device::info() const { return present(state_, "info")->info; }

DeviceDriver& Device::driver() const { return *present(state_, "driver")->driver; }

uint64_t Device::free_bytes() const {
  const auto state = present(state_, "free_bytes");
  const std::scoped_lock lock(state->mutex);
  return state->driver->free_bytes();
}

Buffer Device::allocate(uint64_t bytes) const {
  const auto state = present(state_, "allocate");
  const std::scoped_lock lock(state->mutex);
  // Kernels may read and write whole words of any buffer, and drivers refuse empty allocations.
  const uint64_t rounded = std::max<uint64_t>(4, (bytes + 3) / 4 * 4);
  std::unique_ptr<MemoryDriver> memory;
  try {
    memory = state->driver->allocate(rounded);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kOutOfMemory) throw;
    // Released buffers may still be held by launches that nobody has waited for yet.
    bool waited = false;
    for (const auto& weak : state->queues) {
      const auto queue = weak.lock();
      if (!queue || queue->in_flight.empty() || queue->recording) continue;
      queue->driver->wait();
      queue->in_flight.clear();
      waited = true;
    }
    if (!waited) throw;
    memory = state->driver->allocate(rounded);
  }
  Buffer buffer;
  buffer.memory_ =
      std::shared_ptr<MemoryDriver>(memory.release(), LockedDelete<MemoryDriver>{state->locked});
  buffer.device_ = state;
  buffer.bytes_ = bytes;
  return buffer;
}

Buffer Device::wrap(std::shared_ptr<std::byte> host, uint64_t bytes) const {
  const auto state = present(state_, "wrap");
  const std::scoped_lock lock(state->mutex);
  Buffer buffer;
  auto memory = bytes > 0 ? state->driver->wrap({host.get(), bytes}) : nullptr;
  if (!memory) return buffer;
  buffer.memory_ = std::shared_ptr<MemoryDriver>(
      memory.release(), LockedDelete<MemoryDriver>{state->locked, {std::move(host)}});
  buffer.device_ = state;
  buffer.bytes_ = bytes;
  buffer.constant_ = true;
  return buffer;
}

Queue Device::make_queue() const {
  const auto state = present(state_, "make_queue");
  const std::scoped_lock lock(state->mutex);
  return Queue(state->make_queue_state(state), state);
}

bool Device::supports(const NativeProduct& product, std::string* why) const {
  const auto state = present(state_, "supports");
  const std::scoped_lock lock(state->mutex);
  std::string ignored;
  return state->driver->supports(checked(product), why ? why : &ignored);
}

Queue& Device::queue() const {
  const auto state = present(state_, "queue");
  const std::scoped_lock lock(state->mutex);
  if (!state->default_queue) state->default_queue = Queue(state->make_queue_state(state), nullptr);
  return *state->default_queue;
}

void Device::use_capabilities(const ir::Capabilities& capabilities) const {
  const auto state = present(state_, "use_capabilities");
  const std::scoped_lock lock(state->mutex);
  state->info.capabilities = capabilities;
  state->compiled.clear();
}

}  // namespace prism
