// A short text of a small model on a device that fails in the middle of it: for devices whose
// compiler is too slow for the whole of the tests of faults.
#pragma once

#include <memory>
#include <random>

#include "runtime/driver.h"

namespace prism::test {

// The device is lost after a few tokens, then found full while the model is loaded: the text is the
// CPU's both times, and the user is told once each. Skips where the model is not at hand.
void expect_short_text_survives(const std::shared_ptr<DeviceDriver>& driver,
                                std::mt19937_64& engine);

}  // namespace prism::test
