// Tuning: measures which of several equivalent kernels is fastest on a device, for `prism calibrate
// --tune`. Later plans use the result (runtime/measure/tuned.h).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "prism/device.h"

namespace prism {

struct TunedProduct {
  std::string what;    // "q4_K [4096, 11008], 8 rows"
  std::string before;  // the way used before tuning
  std::string best;
  double before_seconds = 0, best_seconds = 0;
};

// Measures every way to compute the products that `prism bench ops` times and stores the best. A
// way is replaced only if it is more than 5% slower, because measurements vary by that much. Does
// nothing on the CPU, whose kernels choose by themselves.
std::vector<TunedProduct> tune_products(
    const Device& device, const std::function<void(const std::string&)>& progress = {});

}  // namespace prism
