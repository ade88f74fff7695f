// State shared by all handles of one device: the driver, its lock, compiled kernels and the default
// queue.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "prism/device.h"
#include "runtime/driver.h"

namespace prism {

// A kernel lowered and compiled for one launch variant.
struct CompiledVariant {
  LaunchVariant variant;
  ir::Kernel lowered;
  std::unique_ptr<ProgramDriver> program;
};

// A driver and the lock that guards every call into it. Objects made by the driver hold this rather
// than the DeviceState: queued work keeps its memory alive, and the state owns the default queue.
struct LockedDriver {
  explicit LockedDriver(std::shared_ptr<DeviceDriver> the_driver) : driver(std::move(the_driver)) {}
  // Recursive, because work that is being recorded launches while the lock is held.
  std::recursive_mutex mutex;
  const std::shared_ptr<DeviceDriver> driver;
};

// A kernel and its compiled variants so far. Held by the device's cache and by Program handles.
struct CompiledKernel {
  std::shared_ptr<LockedDriver> locked;  // destroyed after the programs
  ir::Kernel kernel;
  std::deque<CompiledVariant> variants;  // a deque: launches keep pointers into it
};

struct DeviceState {
  explicit DeviceState(std::shared_ptr<DeviceDriver> the_driver);

  // The single state of a driver, created on first use.
  static std::shared_ptr<DeviceState> of(const std::shared_ptr<DeviceDriver>& driver);

  const CompiledVariant& variant(CompiledKernel& compiled, const LaunchVariant& wanted);
  std::shared_ptr<Queue::State> make_queue_state(const std::shared_ptr<DeviceState>& self);
  // The driver behind a queue, and the lock for calls into it.
  static QueueDriver& driver_of(const Queue& queue);
  static std::recursive_mutex& mutex_of(const Queue& queue);

  const std::shared_ptr<LockedDriver> locked;  // destroyed after everything below
  // Drivers need not be thread-safe: every call into one is made under this lock.
  std::recursive_mutex& mutex;
  const std::shared_ptr<DeviceDriver>& driver;
  DeviceInfo info;
  std::unordered_map<std::string, std::shared_ptr<CompiledKernel>>
      compiled;  // keyed by the hash of the kernel's text
  std::vector<std::weak_ptr<Queue::State>> queues;
  std::optional<Queue> default_queue;
  std::unique_ptr<Device> successor;   // replaces this device after a failure (fallback.h)
  std::atomic<bool> given_up = false;  // set once there is a successor
};

// Deletes a driver object under the device's lock, on whichever thread releases it last, and then
// releases the driver.
template <class T>
struct LockedDelete {
  std::shared_ptr<LockedDriver> locked;
  std::vector<std::shared_ptr<const void>> uses = {};
  void operator()(T* object) const {
    const std::scoped_lock lock(locked->mutex);
    delete object;
  }
};

struct Queue::State {
  ~State();  // waits for work in flight
  // A prepared launch or copy, before it reaches the driver.
  struct Step {
    const CompiledVariant* launch = nullptr;
    std::optional<NativeProduct> product;  // bindings[0] times bindings[1] into bindings[2]
    // if neither is set: a copy from bindings[1] to bindings[0]
    std::array<uint32_t, 3> groups = {1, 1, 1};
    std::vector<Binding> bindings;
    std::vector<uint32_t> params;
    std::vector<std::shared_ptr<const void>> uses;
  };
  void run(const Step& step) const;
  void keep(const std::vector<std::shared_ptr<const void>>& uses);

  std::weak_ptr<DeviceState> device;
  std::unique_ptr<QueueDriver> driver;
  std::string last_kernel;  // the latest launch, for failures that name no kernel
  // Programs and buffers of work that may still run; released by the next wait.
  std::unordered_set<std::shared_ptr<const void>> in_flight;
  std::vector<Step>* recording = nullptr;
};

// Lowering and compiling: see program.cpp.
LaunchVariant launch_variant(const ir::Capabilities& capabilities,
                             const std::array<uint32_t, 3>& groups,
                             const std::vector<uint64_t>& buffer_bytes, const std::string& kernel);
std::array<uint32_t, 3> folded_grid(const ir::Capabilities& capabilities,
                                    const std::array<uint32_t, 3>& groups,
                                    const std::string& kernel);

}  // namespace prism
