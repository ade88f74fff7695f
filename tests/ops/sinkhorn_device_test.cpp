// Checks empty and rejected inputs of sinkhorn on every device found. The conformance suite
// compares its results with float64.
#include "ops/rows/sinkhorn.h"

#include <gtest/gtest.h>

#include "prism/error.h"
#include "prism/ops/elementwise.h"
#include "support/devices/devices.h"

namespace prism {
namespace {

TEST(SinkhornDevice, TakesNoMatrices) {
  for (const Device& device : test::every_device())
    EXPECT_EQ(sinkhorn(zeros({0, 4, 4}, DType::f32, device), 3, 0).eval().elements(), 0);
}

TEST(SinkhornDevice, MistakesAreErrors) {
  EXPECT_THROW(sinkhorn(Tensor(), 1, 0), Error);
  EXPECT_THROW(sinkhorn(zeros({2, 3}), 1, 0), Error) << "not square";
  EXPECT_THROW(sinkhorn(zeros({9, 9}), 1, 0), Error) << "too large";
  EXPECT_THROW(sinkhorn(zeros({3, 3}, DType::f16), 1, 0), Error);
  EXPECT_THROW(sinkhorn(zeros({3, 3}), 0, 0), Error) << "no steps";
}

}  // namespace
}  // namespace prism
