// What the double of every driver is told to do to a language model in the middle of its work.
#pragma once

#include <string>

#include "support/doubles/driver_double.h"

namespace prism::test {

// Lost after a few tokens, and full while the model is loaded: the text is the reference's, and one
// warning is given each time. The settings are those of the double; healthy: with memory enough.
void expect_text_survives(DriverDouble& the_double, const std::string& healthy,
                          const std::string& lose, const std::string& little_memory);

// `prism run` with the double as the only GPU, which computes wrongly: its self-check tells, and
// the text comes from the CPU. name: "hip".
void expect_wrong_device_is_not_chosen(DriverDouble& the_double, const std::string& name,
                                       const std::string& settings = "wrong_results=1");

}  // namespace prism::test
