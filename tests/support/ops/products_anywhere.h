// The fixture of the matrix product tests: where they run, how many cases, and their inputs.
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

constexpr double kBound = 3e-6;  // relative to the terms' magnitudes: f32 sums of some thousand

// Where a case runs: a device or, if none, the checked interpreter.
struct Place {
  std::string name;
  std::shared_ptr<DeviceDriver> driver;
};
std::vector<Place> places();
std::string place_name(const testing::TestParamInfo<Place>& info);

KernelCase case_of(const ops::ProductLaunch& launch);

// Prints the seed, and the programs of each test that took more than a second: compiling dominates,
// especially on Intel's OpenCL.
class ProductsAnywhere : public ::testing::TestWithParam<Place> {
 protected:
  void SetUp() override;
  void TearDown() override;

  // The last buffer after the launch; run_all returns every buffer.
  std::vector<std::byte> run(const ir::Kernel& kernel, const KernelCase& one);
  Contents run_all(const ir::Kernel& kernel, const KernelCase& one);
  // True if compiling takes seconds (software devices); Intel's OpenCL takes longest.
  bool compiles_slowly() const;
  bool is_intel() const;
  // All of the types; on software devices `count` of them, drawn anew in each run, and on Intel's
  // one.
  std::vector<ElementType> drawn(std::vector<ElementType> types, size_t count);
  // Whether to run a set of cases: always on GPUs, one in `one_of` on software devices, never on
  // Intel's, which runs only the unconditional cases.
  bool takes(uint32_t one_of);
  // x after round_rows.
  std::vector<std::byte> rounded_buffer(const Matrix& x);
  ir::Capabilities capabilities() const;

  CaseRandom random_{0};

 private:
  std::map<std::string, double> programs_;  // duration of each program's first run in seconds
  uint32_t not_drawn_ = 0;
};

}  // namespace prism::testing_support

#define PRISM_PRODUCTS_EVERYWHERE(suite) \
  INSTANTIATE_TEST_SUITE_P(Everywhere, suite, ::testing::ValuesIn(places()), place_name)
