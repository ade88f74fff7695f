// Tests of the tensor interface: graphs, views, fusion, plans.
#include "prism/ops/elementwise.h"

#include <gtest/gtest.h>

#include "prism/ops/matmul.h"
#include "tensor/plan/plan.h"

namespace prism {
namespace {

std::vector<double> counted(int64_t n) {
  std::vector<double> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(static_cast<double>(i));
  return values;
}

Tensor numbered(const Shape& shape) {
  return from_doubles(counted(shape.elements()), shape, DType::f32, Device::cpu());
}

TEST(Tensor, ComputesChains) {
  const Tensor a = numbered({2, 3}), b = numbered({3});
  const Tensor c = (a + b) * 2.0 - 1.0;
  EXPECT_FALSE(c.is_evaluated());
  EXPECT_EQ(c.to_doubles(), (std::vector<double>{-1, 3, 7, 5, 9, 13}));
}

TEST(Tensor, ViewsMoveNothing) {
  const Tensor a = numbered({2, 3, 4});
  EXPECT_EQ(a.transpose(0, 2).select(0, 1).select(0, 2).to_doubles(), (std::vector<double>{9, 21}));
  EXPECT_EQ(a.slice(2, 3, -5, -2).select(0, 0).to_doubles(),
            (std::vector<double>{3, 1, 7, 5, 11, 9}));
  EXPECT_EQ(a.permute({2, 0, 1}).reshape({4, 6}).select(0, 3).to_doubles(),
            (std::vector<double>{3, 7, 11, 15, 19, 23}));
  EXPECT_EQ(a.slice(1, 1, 2).squeeze(1).unsqueeze(0).shape(), (Shape{1, 2, 4}));
  EXPECT_EQ((a.select(0, 1).select(0, 0).expand({2, 4}) + 1.0).to_doubles(),
            (std::vector<double>{13, 14, 15, 16, 13, 14, 15, 16}));
}

TEST(Tensor, ChainsBecomeOneStep) {
  const Tensor a = numbered({1000});
  const Tensor y = silu(a * 2.0) * a + full({1000}, 3.0, DType::f32, Device::cpu());
  const Tensor outputs[] = {y};
  const Plan plan(outputs);
  EXPECT_EQ(plan.steps().size(), 1u) << plan.explain();
  EXPECT_EQ(plan.steps()[0].inputs.size(), 1u);
}

TEST(Tensor, WritesOverWhatNobodyNeedsAnyMore) {
  const Tensor a = numbered({64, 64});
  // Without fusion there are four temporaries of one size; two are live at any time.
  const Tensor b = matmul(a, a), c = tanh(b), d = matmul(c, a), e = silu(d), f = matmul(e, a);
  const Tensor outputs[] = {f};
  const Plan plan(outputs, {}, {.fuse = false});
  EXPECT_EQ(plan.arena_bytes(Device::cpu()), 2u * 64 * 64 * 4) << plan.explain();
  const Tensor twice[] = {matmul(c, c) + b};  // b is needed after tanh
  const Plan kept(twice, {}, {.fuse = false});
  EXPECT_EQ(kept.arena_bytes(Device::cpu()), 3u * 64 * 64 * 4) << kept.explain();
}

TEST(Tensor, ReadsAsText) {
  EXPECT_EQ((numbered({2, 2}) * 0.5).text(), "[[  0, 0.5],\n [  1, 1.5]]\nf32[2, 2] on cpu:0");
}

}  // namespace
}  // namespace prism
