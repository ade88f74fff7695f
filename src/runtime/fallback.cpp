// Replacement of failed devices: when it is allowed, which device is next, and the warning.
#include "runtime/fallback.h"

#include <cstdlib>
#include <mutex>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "prism/device.h"
#include "prism/warning.h"
#include "runtime/device_state.h"

namespace prism {
namespace {

// The user's setting for all devices, from PRISM_FALLBACK.
std::optional<bool> said_by_user() {
  const char* text = std::getenv("PRISM_FALLBACK");
  if (!text || !*text) return std::nullopt;
  const std::string_view value = text;
  if (value != "0" && value != "1") {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("PRISM_FALLBACK={}: write 0 (a failed device is an error) or 1 (work "
                            "continues on the next best device)",
                            text));
  }
  return value == "1";
}

std::string with_next_step(const Error& error, const Device& device) {
  if (device.info().is_cpu || may_fall_back(device)) return error.what();
  return fmt::format(
      "{}; with PRISM_FALLBACK=1 work continues on the next best device, as for devices that Auto "
      "chose",
      error.what());
}

}  // namespace

thread_local int FallbackHeld::count_ = 0;

DeviceFailure::DeviceFailure(const Error& error, const Device& device)
    : Error(error.code(), with_next_step(error, device)), device_(device) {}

Device Device::as_automatic() const {
  Device result = *this;
  result.automatic_ = true;
  return result;
}

Device Device::current() const {
  Device device = *this;
  while (device.state_ && device.state_->given_up && may_fall_back(device)) {
    const std::scoped_lock lock(device.state_->mutex);
    Device next = *device.state_->successor;
    device = std::move(next);
  }
  return device;
}

bool Device::is_given_up() const { return state_ && state_->given_up && may_fall_back(*this); }

bool may_fall_back(const Device& device) {
  if (!device || device.info().is_cpu) return false;
  return said_by_user().value_or(device.is_automatic());
}

bool fall_back(const DeviceFailure& failure) {
  const Device& failed = failure.device();
  if (!may_fall_back(failed)) return false;
  static auto& one_at_a_time = *new std::mutex;
  const std::scoped_lock lock(one_at_a_time);
  if (failed.state_->given_up) return true;  // by another thread
  Device next;
  try {
    next = next_best_device(failed);
  } catch (const Error&) {  // the original failure is more informative
    return false;
  }
  {
    const std::scoped_lock state_lock(failed.state_->mutex);
    failed.state_->successor = std::make_unique<Device>(next.as_automatic());
    failed.state_->given_up = true;
  }
  warn(fmt::format("{} ({}) {}; work continues on {} ({}). {}", failed.id(), failed.name(),
                   failure.code() == ErrorCode::kDeviceLost ? "was lost" : "ran out of memory",
                   next.id(), next.name(), failure.what()));
  return true;
}

}  // namespace prism
