// Selection of one device from those found, with the reason for it and for passing over each other.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "prism/device.h"

namespace prism {

// Lower-case canonical name ("rocm" becomes "hip"); unknown names are returned unchanged.
std::string canonical_backend(const std::string& name);

// The backend that a preference selects; empty for Auto.
std::string backend_of(BackendPreference preference);

// The backends to discover for this spelling under this PRISM_DEVICE; nullopt if all of them are
// candidates.
std::optional<std::set<std::string>> named_backends(const std::string& spelling,
                                                    const std::string& prism_device);

// The input of a selection. The functions may be empty: then every device passes and none is
// measured.
struct Candidates {
  const std::vector<BackendReport>& reports;
  std::string prism_device;  // the text of PRISM_DEVICE, empty when unset
  // The reason not to use the device, or empty if it passes its self-check.
  std::function<std::string(const Device&)> self_check;
  // Seconds that the reference work takes on the device, if measured.
  std::function<std::optional<double>(const DeviceInfo&)> measured_seconds;
};

// spelling: auto, cpu, gpu, a backend or an alias of one, with or without ":index". bytes: unless
// 0, passes over devices with less free memory. Throws kNotFound with the reason if no device
// qualifies.
Choice choose_from(const Candidates& candidates, const std::string& spelling, uint64_t bytes = 0);

}  // namespace prism
