// A short text of a small model on a device that fails midway, for devices whose compiler is too
// slow for the full fault tests.
#pragma once

#include <memory>
#include <random>

#include "runtime/driver.h"

namespace prism::test {

// Loses the device after a few tokens, then fails allocations while the model loads: both times the
// text must equal the CPU's and there is one warning. Skips if the model is not available.
void expect_short_text_survives(const std::shared_ptr<DeviceDriver>& driver,
                                std::mt19937_64& engine);

}  // namespace prism::test
