// The conformance suite on every device found: each op, type and shape against float64.
//
// PRISM_OPS_SEED draws other inputs, PRISM_OPS_CASES limits the cases a device (software devices
// compile slowly; which of them are drawn follows the seed), PRISM_OPS_DEVICE names one device.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "grad/gradient_check.h"
#include "ops/conformance.h"
#include "runtime/discovery.h"

namespace prism {
namespace {

TEST(OpsDevice, EveryOpOnEveryDevice) {
  const char* seed_text = std::getenv("PRISM_OPS_SEED");
  const uint64_t seed = seed_text ? std::strtoull(seed_text, nullptr, 10) : std::random_device{}();
  const char* limit_text = std::getenv("PRISM_OPS_CASES");
  const size_t limit = limit_text ? std::strtoull(limit_text, nullptr, 10) : SIZE_MAX;
  const char* only = std::getenv("PRISM_OPS_DEVICE");
  const char* op = std::getenv("PRISM_OPS_OP");
  std::vector<OpCase> cases = all_cases(seed, op ? op : "");
  std::cout << cases.size() << " cases, PRISM_OPS_SEED=" << seed << std::endl;
  std::shuffle(cases.begin(), cases.end(), std::mt19937_64(seed));
  for (const BackendReport& report : discover_backends()) {
    for (const auto& driver : report.devices) {
      const Device device(driver, "a test");
      if (only && device.id() != only) continue;
      size_t right = 0, ran = 0, fell_back = 0, failures = 0, gradients = 0;
      std::map<std::string, size_t> reasons;
      for (const OpCase& each : cases) {
        if (ran == limit) break;
        ++ran;
        const CaseResult result = run_case(each, device);
        if (each.gradient) {
          ++gradients;
          const CaseResult slopes = run_gradient_case(each, device);
          if (!slopes.right && ++failures <= 40)
            ADD_FAILURE() << device.id() << " " << each.op << " " << slopes.what << ": "
                          << slopes.reason;
        }
        right += result.right;
        if (result.fell_back) ++fell_back, ++reasons[result.reason];
        if (result.right || ++failures > 40) continue;
        ADD_FAILURE() << device.id() << " " << each.op << " " << each.what << ": " << result.reason;
      }
      std::cout << device.id() << ": " << right << " of " << ran << " right, " << fell_back
                << " on the CPU, " << gradients << " gradients" << std::endl;
      for (const auto& [reason, count] : reasons)
        std::cout << "  " << count << ": " << reason << std::endl;
    }
  }
}

}  // namespace
}  // namespace prism
