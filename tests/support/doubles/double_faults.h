// Failures of a driver double while a language model runs on it.
#pragma once

#include <string>

#include "support/doubles/driver_double.h"

namespace prism::test {

// Loses the device after a few tokens, then fails allocations while the model loads: each time the
// text must equal the reference and there is one warning. The arguments are settings of the double;
// healthy: with enough memory.
void expect_text_survives(DriverDouble& the_double, const std::string& healthy,
                          const std::string& lose, const std::string& little_memory);

// Runs `prism run` with a double that computes wrong results as the only GPU: its self-check must
// fail and the text come from the CPU. name: "hip".
void expect_wrong_device_is_not_chosen(DriverDouble& the_double, const std::string& name,
                                       const std::string& settings = "wrong_results=1");

}  // namespace prism::test
