// What all handles of one device share: the driver, its lock, the compiled kernels, the default
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

// A kernel lowered and compiled for one variant of a launch.
struct CompiledVariant {
  LaunchVariant variant;
  ir::Kernel lowered;
  std::unique_ptr<ProgramDriver> program;
};

// A driver and the lock of every call into it. What a driver makes holds this much and not the
// device's state: queued work keeps the memory it uses, and the state keeps the default queue.
struct LockedDriver {
  explicit LockedDriver(std::shared_ptr<DeviceDriver> the_driver) : driver(std::move(the_driver)) {}
  // Recursive, because the work of a recording launches while it is held.
  std::recursive_mutex mutex;
  const std::shared_ptr<DeviceDriver> driver;
};

// A kernel and what has been compiled of it so far. Held by the device's cache and by Program
// handles.
struct CompiledKernel {
  std::shared_ptr<LockedDriver> locked;  // destroyed after the programs
  ir::Kernel kernel;
  std::deque<CompiledVariant> variants;  // a deque: launches keep pointers into it
};

struct DeviceState {
  explicit DeviceState(std::shared_ptr<DeviceDriver> the_driver);

  // The one state of a driver, made on first use.
  static std::shared_ptr<DeviceState> of(const std::shared_ptr<DeviceDriver>& driver);

  const CompiledVariant& variant(CompiledKernel& compiled, const LaunchVariant& wanted);
  std::shared_ptr<Queue::State> make_queue_state(const std::shared_ptr<DeviceState>& self);

  const std::shared_ptr<LockedDriver> locked;  // destroyed after everything below
  // Drivers need not be thread-safe: every call into one is made under this lock.
  std::recursive_mutex& mutex;
  const std::shared_ptr<DeviceDriver>& driver;
  DeviceInfo info;
  std::unordered_map<std::string, std::shared_ptr<CompiledKernel>>
      compiled;  // by hash of the kernel's text
  std::vector<std::weak_ptr<Queue::State>> queues;
  std::optional<Queue> default_queue;
  std::unique_ptr<Device> successor;   // what took its place when it failed (fallback.h)
  std::atomic<bool> given_up = false;  // once there is one
};

// Deletes a driver's object under the device's lock, whichever thread lets go of it last, and then
// what it used.
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
  ~State();  // waits for what is under way
  // What a launch or a copy needs, prepared before the driver sees it.
  struct Step {
    const CompiledVariant* launch = nullptr;
    std::optional<NativeProduct> product;  // of bindings[0] and [1] into [2]
    // neither: a copy from bindings[1] to bindings[0]
    std::array<uint32_t, 3> groups = {1, 1, 1};
    std::vector<Binding> bindings;
    std::vector<uint32_t> params;
    std::vector<std::shared_ptr<const void>> uses;
  };
  void run(const Step& step) const;
  void keep(const std::vector<std::shared_ptr<const void>>& uses);

  std::weak_ptr<DeviceState> device;
  std::unique_ptr<QueueDriver> driver;
  std::string last_kernel;  // the newest launch, for the message of a failure that names none
  // Programs and buffers of work that may still run; let go by the next wait.
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
