// What the tests of matrix products share: where they run, how much of them, and with what numbers.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ops/products/product_kernels.h"
#include "runtime/driver.h"
#include "runtime/measure/case_run.h"
#include "support/ops/product_cases.h"

namespace prism::testing_support {

using kernels::CaseRandom;

constexpr double kBound = 3e-6;  // of the terms' magnitudes: f32 sums of some thousand

// Where a case runs: a device, or (none) the checked interpreter.
struct Place {
  std::string name;
  std::shared_ptr<DeviceDriver> driver;
};
std::vector<Place> places();
std::string place_name(const testing::TestParamInfo<Place>& info);

KernelCase case_of(const ops::ProductLaunch& launch);

// The seed is printed, and so are the programs of each test that took more than a second: compiling
// is what takes the time, on Intel's OpenCL most of all.
class ProductsAnywhere : public ::testing::TestWithParam<Place> {
 protected:
  void SetUp() override;
  void TearDown() override;

  // What the last buffer holds afterwards; or, below, every buffer.
  std::vector<std::byte> run(const ir::Kernel& kernel, const KernelCase& one);
  Contents run_all(const ir::Kernel& kernel, const KernelCase& one);
  // Where compiling takes seconds (software devices); on Intel's OpenCL it takes many.
  bool compiles_slowly() const;
  bool is_intel() const;
  // All of them; on software devices that many, drawn anew each run, and on Intel's one.
  std::vector<ElementType> drawn(std::vector<ElementType> types, size_t count);
  // Whether to run a set of cases: always, but on software devices one of so many, and on Intel's
  // none: it gets what a test runs anywhere.
  bool takes(uint32_t one_of);
  // x as round_rows leaves it.
  std::vector<std::byte> rounded_buffer(const Matrix& x);
  ir::Capabilities capabilities() const;

  CaseRandom random_{0};

 private:
  std::map<std::string, double> programs_;  // seconds of the first run of each
  uint32_t not_drawn_ = 0;
};

}  // namespace prism::testing_support

#define PRISM_PRODUCTS_EVERYWHERE(suite) \
  INSTANTIATE_TEST_SUITE_P(Everywhere, suite, ::testing::ValuesIn(places()), place_name)
