// Runs the conformance suite on every device found: each op, type and shape against float64.
//
// PRISM_OPS_SEED draws other inputs, PRISM_OPS_CASES sets the cases per device (0: all),
// PRISM_OPS_PROGRAMS the maximum programs per device, PRISM_OPS_DEVICE selects one device,
// PRISM_OPS_OP one op.
#include <cstdlib>
#include <iostream>

#include <gtest/gtest.h>

#include "conformance/suite.h"
#include "prism/device.h"
#include "support/seed.h"

namespace prism {
namespace {

constexpr size_t kShownFailures = 40;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

void check_device(const Device& device, const SuiteOptions& options) {
  const SuiteResult result = run_suite(device, options);
  for (size_t i = 0; i < result.wrong.size() && i < kShownFailures; ++i) {
    const CaseResult& each = result.wrong[i];
    ADD_FAILURE() << device.id() << " " << each.op << " " << each.what << ": " << each.reason;
  }
  EXPECT_EQ(result.right(), result.ran()) << device.id();
  const bool sample = !options.cases || *options.cases != 0;
  if (sample && options.op.empty()) {
    EXPECT_LE(result.programs, options.programs) << device.id();
  }
  for (const OpOutcome& each : result.ops) EXPECT_GT(each.ran, 0u) << each.op << " had no case";
  std::cout << "ops on " << device.id() << ": " << result.right() << " of " << result.ran()
            << " right (" << result.different << " of " << result.available << " different cases), "
            << result.ran() - result.fell_back() << " on the device, " << result.fell_back()
            << " on the CPU, " << result.programs << " programs, " << result.seconds << " s"
            << std::endl;
  for (const OpOutcome& each : result.ops) {
    for (const auto& [reason, count] : each.fallbacks)
      std::cout << "  " << each.op << ", " << count << " cases on the CPU: " << reason << std::endl;
  }
}

TEST(OpsDevice, EveryOpOnEveryDevice) {
  SuiteOptions options;
  const std::string seed = variable("PRISM_OPS_SEED"), cases = variable("PRISM_OPS_CASES"),
                    only = variable("PRISM_OPS_DEVICE"), programs = variable("PRISM_OPS_PROGRAMS");
  options.seed = seed.empty() ? test_seed() : std::stoull(seed);
  if (!cases.empty()) options.cases = std::stoull(cases);
  if (!programs.empty()) options.programs = std::stoull(programs);
  options.op = variable("PRISM_OPS_OP");
  std::cout << "ops: PRISM_OPS_SEED=" << options.seed << std::endl;
  for (const BackendReport& report : discover_backends()) {
    for (const auto& driver : report.devices) {
      const Device device(driver, "a test");
      if (only.empty() || device.id() == only) check_device(device, options);
    }
  }
}

}  // namespace
}  // namespace prism
