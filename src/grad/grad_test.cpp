// Tests of the public gradient functions.
#include "prism/grad.h"

#include <gtest/gtest.h>

#include "prism/error.h"
#include "prism/ops.h"

namespace prism {
namespace {

using Doubles = std::vector<double>;
const DType f32 = DType::f32;

Tensor numbered(const Shape& shape) {
  return arange(0, static_cast<double>(shape.elements()), 1, f32, Device::cpu()).reshape(shape);
}

TEST(Grad, CollectsUntilItIsCleared) {
  Tensor w = numbered({3}).set_requires_grad();
  EXPECT_FALSE(w.grad());
  w.square().sum().backward();
  EXPECT_EQ(w.grad().to_doubles(), (Doubles{0, 2, 4}));
  (w * 3.0).sum().backward();
  EXPECT_EQ(w.grad().to_doubles(), (Doubles{3, 5, 7}));
  EXPECT_EQ(w[1].grad().item(), 5) << "a view sees its part";
  w.zero_grad();
  EXPECT_FALSE(w.grad());
}

TEST(Grad, AnyNewTensorCanAsk) {
  const Device cpu = Device::cpu();
  for (Tensor w : {zeros({2, 3}, f32, cpu), randn({2, 3}, f32, cpu), randn({2, 3}, f32, cpu) * 0.1,
                   numbered({3, 2}).transpose(), numbered({4, 3}).slice(0, 1, 3),
                   zeros({6}, f32, cpu).reshape({2, 3}), sort(numbered({2, 3})).values}) {
    const Doubles before = w.to_doubles();
    w.set_requires_grad();
    EXPECT_TRUE(w.requires_grad());
    EXPECT_EQ(w.to_doubles(), before);
    (w * 2.0).sum().backward();
    EXPECT_EQ(w.grad().shape(), (Shape{2, 3}));
    EXPECT_EQ(w.grad().to_doubles(), Doubles(6, 2.0));
    w.set_requires_grad(false);
    EXPECT_FALSE(w.requires_grad());
  }
  Tensor lazy = zeros({2}, f32, cpu);
  lazy.set_requires_grad();
  EXPECT_FALSE(lazy.is_evaluated());
  Tensor made = numbered({3}).set_requires_grad() * 2.0;
  EXPECT_THROW(made.set_requires_grad(), Error) << "it is no leaf";
  EXPECT_THROW(arange(3, DType::i32, cpu).set_requires_grad(), Error) << "integers";
}

TEST(Grad, UpdatesKeepALeafALeaf) {
  Tensor w = full({2}, 1.0, f32, Device::cpu()).set_requires_grad();
  for (int step = 0; step < 3; ++step) {
    w.zero_grad();
    w.square().sum().backward();
    const NoGrad update;
    w -= 0.25 * w.grad();
  }
  EXPECT_TRUE(w.requires_grad());
  EXPECT_TRUE(w.grad());
  EXPECT_EQ(w.to_doubles(), (Doubles{0.125, 0.125}));
  w += 1;  // recorded, so w is no longer a leaf
  EXPECT_THROW(w.set_requires_grad(), Error);
}

TEST(Grad, IntegersHaveNone) {
  const Tensor x = numbered({3}), n = arange(3, DType::i32, Device::cpu());
  const auto code = [](const auto& work) {
    try {
      work();
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("i32"), std::string::npos) << error.what();
      return error.code();
    }
    return ErrorCode::kDriver;
  };
  EXPECT_EQ(code([&] { gradients((x * n).sum(), {n}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code([&] { gradients(x.sum(), {x, n}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code([&] { grad([](auto in) { return in[0].sum(); })({n}); }),
            ErrorCode::kInvalidArgument);
}

TEST(Grad, OfViewsHasTheirShape) {
  const Tensor x = numbered({2, 3});
  const Tensor y = x.transpose();
  const Tensor weights = numbered({3, 2});
  EXPECT_EQ(gradients((y * weights).sum(), {y})[0].to_doubles(), weights.to_doubles());
}

TEST(Grad, FunctionsTakeBraces) {
  const auto f = [](std::span<const Tensor> in) { return (in[0] * in[1]).sum(); };
  const Tensor a = numbered({2}), b = full({2}, 3.0, f32, Device::cpu());
  const auto [value, gradients] = value_and_grad(f)({a, b});
  EXPECT_EQ(value.item(), 3);
  EXPECT_EQ(gradients[0].to_doubles(), (Doubles{3, 3}));
  EXPECT_EQ(grad(f)({a, b})[1].to_doubles(), (Doubles{0, 1}));
}

TEST(Grad, OfDivisionsByIntegers) {
  const Tensor x = numbered({2}), n = full({2}, 4, DType::i32, Device::cpu());
  EXPECT_EQ(gradients((x / n).sum(), {x})[0].to_doubles(), (Doubles{0.25, 0.25}));
}

}  // namespace
}  // namespace prism
