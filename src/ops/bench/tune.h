// Measuring which of the kernels that do the same is fastest on a device, for `prism calibrate
// --tune`. What was found is used from then on (runtime/measure/tuned.h).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "prism/device.h"

namespace prism {

struct TunedProduct {
  std::string what;    // "q4_K [4096, 11008], 8 rows"
  std::string before;  // the way it took
  std::string best;
  double before_seconds = 0, best_seconds = 0;
};

// Products of the shapes that `prism bench ops` times, each way measured and the best kept. A way
// is left for another only where it is more than a twentieth slower: what measurements scatter by.
// Nothing to do on the CPU, whose kernels choose by themselves.
std::vector<TunedProduct> tune_products(
    const Device& device, const std::function<void(const std::string&)>& progress = {});

}  // namespace prism
