// How long a step of a plan should take, by what was measured of its device.
#pragma once

#include <optional>

#include "tensor/plan/plan.h"

namespace prism {

// Seconds: its bytes over the measured bandwidth or its operations over the measured rate,
// whichever is longer, and the cost of its launches; of a copy its bytes over the way to the host.
// Nothing where the device was not measured (`prism calibrate`).
std::optional<double> expected_seconds(const PlanStep& step);

}  // namespace prism
