// Tests that weights computed by the plan are not read before the launch that computes them has
// ended, even with prefetch.
#include <iostream>
#include <random>

#include <gtest/gtest.h>

#include "prism/ops/attention.h"
#include "prism/ops/create.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/index.h"
#include "prism/ops/matmul.h"
#include "support/devices/interpreted_device.h"
#include "support/seed.h"
#include "tensor/plan/plan.h"

namespace prism {
namespace {

// Whether the last launch of a step reads a buffer before it waits for the previous launch.
bool reads_early(const PlanStep& step) {
  const ir::Kernel& kernel = step.launches.back().program.kernel();
  bool waits = false, reads = false;
  ir::walk(kernel.body, [&](const ir::Inst& inst) {
    waits |= inst.op == ir::Op::wait_previous;
    reads |= !waits && (inst.op == ir::Op::load || inst.op == ir::Op::load_words) &&
             kernel.memories[inst.object].space == ir::Space::buffer;
  });
  return reads;
}

TEST(MadeWeights, AreWaitedFor) {
  const uint64_t seed = test_seed();
  std::cout << "seed " << seed << "\n";
  std::mt19937_64 engine(seed);
  const Device device = test::interpreted_device(8, {}, 64, true);
  const auto draw = [&](const Shape& shape) {
    return uniform(shape, engine(), -1, 1, DType::f32, Device::cpu()).eval();
  };
  const Tensor x = draw({2, 48}), w = draw({7, 48}), v = draw({7, 48});
  const Tensor on_x = x.to(device).eval(), on_w = w.to(device).eval(), on_v = v.to(device).eval();

  const Tensor there = linear(on_x, on_w), made = linear(on_x, on_w * on_v);
  EXPECT_TRUE(reads_early(Plan(std::span(&there, 1)).steps().back()));
  EXPECT_FALSE(reads_early(Plan(std::span(&made, 1)).steps().back()));
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

// A write after the read is for the next run of the plan, which starts after it.
TEST(MadeWeights, OfTheNextRunAreThere) {
  const Device device = test::interpreted_device(8, {}, 64, true);
  const Tensor x = ones({1, 48}, DType::f32, device).eval();
  const Tensor w = ones({7, 48}, DType::f32, device).eval();
  const Tensor first = from_vector(std::vector<int32_t>{0}, {1}, device);
  const Tensor sums = linear(x, w);  // row 0 of w becomes the sum of each row
  const Tensor rows = sums.slice(1, 0, 1).expand({1, 48}) * x;
  const Tensor changed = write_rows(w, first, rows);
  Plan plan(std::span(&changed, 1));
  EXPECT_TRUE(reads_early(plan.steps().front()));
  plan.run();
  EXPECT_EQ(w.to_doubles()[0], 48.0);
  plan.run();
  EXPECT_EQ(w.to_doubles()[0], 48.0 * 48.0);
  EXPECT_EQ(w.to_doubles()[48], 1.0);
}

// Attention prefetches its spans, unless the plan computes them.
TEST(MadeWeights, SpansOfAttention) {
  const Device device = test::interpreted_device(8, {}, 64, true);
  const auto draw = [&](const Shape& shape, uint64_t seed) {
    return uniform(shape, seed, -1, 1, DType::f32, device).eval();
  };
  const Tensor q = draw({1, 2, 32}, 1), k = draw({1, 40, 2, 32}, 2), v = draw({1, 40, 2, 32}, 3);
  const Tensor spans = from_vector(std::vector<int32_t>{0, 1, 35, 0}, {1, 4}, device).eval();
  const Tensor none = zeros({1, 4}, DType::i32, device).eval();
  const Tensor there = cached_attention(q, k, v, spans, 1),
               made = cached_attention(q, k, v, spans + none, 1);
  EXPECT_TRUE(reads_early(Plan(std::span(&there, 1)).steps().back()));
  EXPECT_FALSE(reads_early(Plan(std::span(&made, 1)).steps().back()));
  EXPECT_EQ(there.to_doubles(), made.to_doubles());
}

}  // namespace
}  // namespace prism
