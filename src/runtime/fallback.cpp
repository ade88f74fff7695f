// Replacement of failed devices: when it is allowed, which device is next, and the warning.
#include "runtime/fallback.h"

#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "prism/device.h"
#include "prism/warning.h"
#include "runtime/device_state.h"

namespace prism {
namespace {

// The driver's reason with the device, which not every driver names, and the next step.
std::string explained(const Error& error, const Device& device) {
  std::string text = error.what();
  if (device.info().is_cpu) return text;
  if (text.find(device.id()) == text.npos)
    text = fmt::format("{} ({}): {}", device.id(), device.name(), text);
  if (!may_fall_back(device))
    text +=
        "; with PRISM_FALLBACK=1 work continues on the next best device, as for devices that "
        "Auto chose";
  return text;
}

}  // namespace

thread_local int FallbackHeld::count_ = 0;

std::optional<bool> fallback_setting() {
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

DeviceFailure::DeviceFailure(const Error& error, const Device& device)
    : Error(error.code(), explained(error, device)), device_(device) {}

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
  return fallback_setting().value_or(device.is_automatic());
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
