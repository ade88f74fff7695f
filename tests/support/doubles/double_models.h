// Runs the default language model on a driver double.
#pragma once

#include "support/doubles/driver_double.h"

namespace prism::test {

// The first 4 tokens must equal the CPU's, without out-of-bounds writes or undefined calls. Skips
// if the model is not in the user's cache folder.
void expect_default_model_gives_the_cpus_tokens(DriverDouble& the_double);

}  // namespace prism::test
