// Predicts how long a step of a plan takes, from the calibration of its device.
#pragma once

#include <optional>

#include "tensor/plan/plan.h"

namespace prism {

// Returns the larger of bytes / bandwidth and operations / rate, plus the launch cost, in seconds;
// for a copy, bytes / host-copy bandwidth. Returns nullopt if the device is not calibrated (`prism
// calibrate`).
std::optional<double> expected_seconds(const PlanStep& step);

}  // namespace prism
