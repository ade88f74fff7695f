// Weights that a plan makes itself are not read before the launch that makes them has ended,
// however early the product may start.
#include <iostream>
#include <random>

#include <gtest/gtest.h>

#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "support/interpreted_device.h"
#include "tensor/plan.h"

namespace prism {
namespace {

// Whether the last launch reads a buffer before it waits for the launch before it.
bool reads_early(const Plan& plan) {
  const ir::Kernel& kernel = plan.steps().back().launches.back().program.kernel();
  for (const ir::Memory& memory : kernel.memories)
    if (memory.constant) return true;
  return false;
}

TEST(MadeWeights, AreWaitedFor) {
  const uint64_t seed = std::random_device()();
  std::cout << "seed " << seed << "\n";
  std::mt19937_64 engine(seed);
  const Device device = test::interpreted_device(8, {}, 64, true);
  const auto draw = [&](const Shape& shape) {
    return uniform(shape, engine(), -1, 1, DType::f32, Device::cpu()).eval();
  };
  const Tensor x = draw({2, 48}), w = draw({7, 48}), v = draw({7, 48});
  const Tensor on_x = x.to(device).eval(), on_w = w.to(device).eval(), on_v = v.to(device).eval();

  const Tensor there = linear(on_x, on_w), made = linear(on_x, on_w * on_v);
  EXPECT_TRUE(reads_early(Plan(std::span(&there, 1))));
  EXPECT_FALSE(reads_early(Plan(std::span(&made, 1))));
  const std::vector<double> got = made.to_doubles(), a = x.to_doubles(), b = w.to_doubles(),
                            c = v.to_doubles();
  for (size_t row = 0; row < 2; ++row)
    for (size_t column = 0; column < 7; ++column) {
      double sum = 0;
      for (size_t i = 0; i < 48; ++i)
        sum += a[row * 48 + i] * (b[column * 48 + i] * c[column * 48 + i]);
      EXPECT_NEAR(got[row * 7 + column], sum, 1e-5) << row << ", " << column;
    }
}

}  // namespace
}  // namespace prism
