// The first contact with drivers: in a child process, where they may crash, hang or exit.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/driver.h"

namespace prism {

// Why backends must not be started in this process, by name. Those that may be are absent.
using TrialFailures = std::map<std::string, std::string>;

// Lets the backends discover their devices in a child process, one after another, as they will be
// in this process. A backend that ends or blocks the child is left out, and the others are tried
// again without it. Backends that start no driver are not tried. Where no child can be made, every
// backend may be started.
//
// The result is kept for known_trial. `surroundings` describes the machine
// (device_surroundings.h).
TrialFailures try_backends(std::span<Backend* const> backends, const std::string& surroundings,
                           std::chrono::milliseconds limit);

// The result of an earlier trial of these backends, of which the first `wanted` start now. Absent
// if there is none that still counts: a success counts for a week, and so does the failure of a
// backend that is not wanted now; the failure of a wanted one counts for an hour, and only if the
// backends were tried in this order.
std::optional<TrialFailures> known_trial(const std::vector<std::string>& names, size_t wanted,
                                         const std::string& surroundings);

// How long a driver may take to list its devices: PRISM_DRIVER_SECONDS, by default 60 s. Servers
// with eight cards that no program uses take up to 20 s to wake them. Throws kInvalidArgument for
// another value than 1 to 3600.
std::chrono::milliseconds driver_time_limit();

}  // namespace prism
