// Runs the op conformance suite on a double.
#include "support/doubles/double_ops.h"

#include <gtest/gtest.h>

#include <iostream>

#include "conformance/suite.h"
#include "support/seed.h"
#include "tensor/storage.h"

namespace prism::test {

void expect_ops_sample_is_right(DriverDouble& the_double, size_t cases) {
  the_double.set("memory=4294967296");
  SuiteOptions options;
  options.seed = test_seed();
  options.cases = cases;
  options.programs = cases * 2 / 3;
  std::cout << "seed " << options.seed << std::endl;
  const Device device = the_double.device();
  const SuiteResult result = run_suite(device, options);
  EXPECT_GT(result.ran(), cases / 2);
  for (const CaseResult& each : result.wrong)
    ADD_FAILURE() << each.op << " " << each.what << ": " << each.reason;
  EXPECT_LT(result.fell_back() * 4, result.ran());
  EXPECT_EQ(the_double.count("overruns"), 0);
  EXPECT_EQ(the_double.count("misuses"), 0);
  release_pooled_memory(device);
}

}  // namespace prism::test
