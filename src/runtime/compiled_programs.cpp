// Counts the compiled variants in a device's state.
#include "runtime/compiled_programs.h"

#include "runtime/device_state.h"

namespace prism {

size_t compiled_programs(const Device& device) {
  // States are keyed by the driver's address; the device keeps the driver alive.
  const auto state = DeviceState::of({std::shared_ptr<void>(), &device.driver()});
  const std::scoped_lock lock(state->mutex);
  size_t count = 0;
  for (const auto& [hash, kernel] : state->compiled) count += kernel ? kernel->variants.size() : 0;
  return count;
}

}  // namespace prism
