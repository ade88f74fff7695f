// The default language model over the double of a driver.
#pragma once

#include "support/doubles/driver_double.h"

namespace prism::test {

// Its first 4 tokens are the CPU's; nothing was written beside a buffer, no call was undefined.
// Skips where the model is not in the user's cache folder.
void expect_default_model_gives_the_cpus_tokens(DriverDouble& the_double);

}  // namespace prism::test
