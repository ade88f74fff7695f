// Choosing one device of those found, with the reason for it and for every one passed over.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "prism/device.h"

namespace prism {

// "rocm" to "hip" and so on, in small letters; other names as they are.
std::string canonical_backend(const std::string& name);

// The backend a preference means; empty for Auto.
std::string backend_of(BackendPreference preference);

// The backends that must be looked at for this spelling under this PRISM_DEVICE; nothing where the
// choice is among all.
std::optional<std::set<std::string>> named_backends(const std::string& spelling,
                                                    const std::string& prism_device);

// What a choice is made from. The functions may be empty: then every device is right and none is
// measured.
struct Candidates {
  const std::vector<BackendReport>& reports;
  std::string prism_device;  // the text of PRISM_DEVICE, empty when unset
  // Why the device must not be used, or empty when it computes right.
  std::function<std::string(const Device&)> self_check;
  // Seconds the reference work takes on the device, where that was measured.
  std::function<std::optional<double>(const DeviceInfo&)> measured_seconds;
};

// spelling: auto, cpu, gpu, a backend or an alias of one, with or without ":index". Throws
// kNotFound with the reason when it cannot be had. bytes: passes over devices with less memory free
// when it is not 0.
Choice choose_from(const Candidates& candidates, const std::string& spelling, uint64_t bytes = 0);

}  // namespace prism
