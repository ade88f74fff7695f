// Tensors under the names that people know from NumPy, PyTorch and MLX.
#include <sstream>

#include <gtest/gtest.h>

#include "prism/error.h"
#include "prism/ops.h"

namespace prism {
namespace {

using Doubles = std::vector<double>;

Tensor numbered(const Shape& shape, DType type = DType::f32) {
  return arange(0, static_cast<double>(shape.elements()), 1, type, Device::cpu()).reshape(shape);
}

template <class F>
std::string error_of(F work) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
    return error.what();
  }
  return "no error";
}

TEST(TensorMethods, TellsItsShapeAndType) {
  const Tensor x = numbered({2, 3}, DType::f16);
  EXPECT_EQ(x.dtype(), ElementType(DType::f16));
  EXPECT_EQ(x.ndim(), 2);
  EXPECT_EQ(x.size(), 6);
  EXPECT_EQ(x.numel(), 6);
  EXPECT_EQ(x.size(-1), 3);
}

TEST(TensorMethods, AreTheFunctions) {
  const Tensor x = numbered({2, 3});
  EXPECT_EQ(x.sum().item(), 15);
  EXPECT_EQ(x.sum({0}).to_doubles(), (Doubles{3, 5, 7}));
  EXPECT_EQ(x.mean({1}, true).shape(), (Shape{2, 1}));
  EXPECT_EQ(x.max().item(), 5);
  EXPECT_EQ(x.min({1}).to_doubles(), (Doubles{0, 3}));
  EXPECT_EQ(x.argmax().to_doubles(), (Doubles{2, 2}));
  EXPECT_EQ(x.argmin(0).to_doubles(), (Doubles{0, 0, 0}));
  EXPECT_EQ(x.matmul(x.transpose()).to_doubles(), (Doubles{5, 14, 14, 50}));
  EXPECT_EQ(x.square().sqrt().to_doubles(), x.to_doubles());
  EXPECT_EQ((x - 2.0).abs().to_doubles(), (Doubles{2, 1, 0, 1, 2, 3}));
  EXPECT_EQ(x.clamp(1, 4).to_doubles(), (Doubles{1, 1, 2, 3, 4, 4}));
  EXPECT_EQ(x.cumsum().to_doubles(), (Doubles{0, 1, 3, 3, 7, 12}));
  EXPECT_NEAR(x.softmax().sum().item(), 2, 1e-6);
  EXPECT_NEAR(x.exp().log().sum().item(), 15, 1e-4);
  EXPECT_EQ(x.astype(DType::i32).dtype(), ElementType(DType::i32));
  EXPECT_EQ((x >= 1.0).all().item(), 0);
  EXPECT_EQ((x >= 1.0).any().item(), 1);
}

TEST(TensorMethods, IndexTheFirstAxis) {
  const Tensor x = numbered({4, 2});
  EXPECT_EQ(x[1].to_doubles(), (Doubles{2, 3}));
  EXPECT_EQ(x[-1][0].item(), 6);
  const Tensor middle = x[{1, 3}], start = x[{0, 2}];
  EXPECT_EQ(middle.to_doubles(), (Doubles{2, 3, 4, 5}));
  EXPECT_EQ(start.shape(), (Shape{2, 2}));
  EXPECT_EQ(x[Slice{.step = 2}].to_doubles(), (Doubles{0, 1, 4, 5}));
  EXPECT_EQ(x[from_vector({3, 0}, {2}, Device::cpu())].to_doubles(), (Doubles{6, 7, 0, 1}));
  EXPECT_EQ(x[x > 4.0].to_doubles(), (Doubles{5, 6, 7}));
  const Tensor rows = from_doubles(Doubles{1, 0, 0, 1}, {4}, DType::b1, Device::cpu());
  EXPECT_EQ(x[rows].to_doubles(), (Doubles{0, 1, 6, 7}));
  EXPECT_EQ(x[x > 100.0].shape(), (Shape{0}));
  EXPECT_NE(error_of([&] { x[x.transpose() > 0.0]; }).find("mask of shape [2, 4]"),
            std::string::npos);
  EXPECT_NE(error_of([&] { x[4]; }).find("index 4"), std::string::npos);
}

TEST(TensorMethods, UpdatesLeaveOtherHandlesAlone) {
  Tensor a = numbered({3});
  const Tensor b = a;
  a += 1;
  a *= a;
  a -= b;
  a /= 2;
  EXPECT_EQ(a.to_doubles(), (Doubles{0.5, 1.5, 3.5}));
  EXPECT_EQ(b.to_doubles(), (Doubles{0, 1, 2}));
}

TEST(TensorMethods, ComparisonsGiveTruthValues) {
  const Tensor a = numbered({3}), b = from_vector({0.0f, 5.0f, 2.0f}, {3}, Device::cpu());
  EXPECT_EQ((a == b).to_vector<uint8_t>(), (std::vector<uint8_t>{1, 0, 1}));
  EXPECT_EQ((a != b).to_vector<uint8_t>(), (std::vector<uint8_t>{0, 1, 0}));
  EXPECT_EQ((a == 1).to_doubles(), (Doubles{0, 1, 0}));
  EXPECT_EQ((2 != a).to_doubles(), (Doubles{1, 1, 0}));
  EXPECT_EQ((a == b).dtype(), ElementType(DType::b1));
}

TEST(TensorMethods, DivisionGivesFloats) {
  const Tensor x = arange(4, DType::i32, Device::cpu());
  for (const Tensor& y : {x / 2, x / 2.0, x / full({4}, 2, DType::i32, Device::cpu())}) {
    EXPECT_EQ(y.dtype(), ElementType(DType::f32));
    EXPECT_EQ(y.to_doubles(), (Doubles{0, 0.5, 1, 1.5}));
  }
  EXPECT_EQ((x / 2.5).dtype(), ElementType(DType::f32));
  EXPECT_EQ((1.0 / (x + 1)).to_doubles()[1], 0.5);
  EXPECT_EQ((x.astype(DType::i64) / 2).dtype(), ElementType(DType::f64));
  EXPECT_EQ((x.astype(DType::f16) / x).dtype(), ElementType(DType::f16));
  EXPECT_EQ(((x > 1.0) / 2).to_doubles(), (Doubles{0, 0, 0.5, 0.5}));
}

TEST(TensorMethods, FloorDivideRoundsDown) {
  const Tensor a = from_vector({7, -7, 7, -7, 6, -6, 5, -5}, {8}, Device::cpu());
  const Tensor b = from_vector({2, 2, -2, -2, 3, 3, 0, 0}, {8}, Device::cpu());
  EXPECT_EQ(floor_divide(a, b).to_doubles(), (Doubles{3, -4, -4, 3, 2, -2, 0, 0}));
  EXPECT_EQ(floor_divide(a, b).dtype(), ElementType(DType::i32));
  EXPECT_EQ(floor_divide(a, -2).to_doubles(), (Doubles{-4, 3, -4, 3, -3, 3, -3, 2}));
  EXPECT_EQ(floor_divide(numbered({3}) - 1.0, 2).to_doubles(), (Doubles{-1, 0, 0}));
}

TEST(TensorMethods, ToVectorWantsTheTensorsType) {
  const Tensor x = numbered({3});
  const std::string message = error_of([&] { x.to_vector<int>(); });
  EXPECT_NE(message.find("i32"), std::string::npos) << message;
  EXPECT_NE(message.find("f32"), std::string::npos) << message;
  error_of([&] { x.to_vector<double>(); });
  error_of([&] { x.astype(DType::i32).to_vector<float>(); });
  error_of([&] { x.to_vector<uint32_t>(); });
  error_of([&] { x.astype(DType::i16).to_vector<uint16_t>(); });
  EXPECT_EQ(x.astype(DType::bf16).to_vector<uint16_t>()[1], 0x3f80);
  EXPECT_EQ(x.astype(DType::f16).to_vector<uint16_t>()[1], 0x3c00);
  EXPECT_EQ(x.astype(DType::b1).to_vector<uint8_t>()[2], 1);
  EXPECT_EQ(x.astype(DType::i64).to_vector<long long>()[2], 2);
}

TEST(TensorMethods, RepeatAndTileAreNumpys) {
  const Tensor x = numbered({2, 2});
  EXPECT_EQ(repeat(x, 2, 1).to_doubles(), (Doubles{0, 0, 1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(repeat(x, 2, 0).to_doubles(), (Doubles{0, 1, 0, 1, 2, 3, 2, 3}));
  EXPECT_EQ(repeat(x, 2).to_doubles(), (Doubles{0, 0, 1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(repeat(x, 2).shape(), (Shape{8}));
  EXPECT_EQ(tile(x, 2).to_doubles(), (Doubles{0, 1, 0, 1, 2, 3, 2, 3}));
  EXPECT_EQ(tile(x, {2, 1}).to_doubles(), (Doubles{0, 1, 2, 3, 0, 1, 2, 3}));
  EXPECT_EQ(tile(x, {2, 1, 1}).shape(), (Shape{2, 2, 2}));
  EXPECT_EQ(tile(x, {0, 2}).shape(), (Shape{0, 4}));
}

TEST(TensorMethods, RandomNumbersFollowTheSeed) {
  const auto draw = [] {
    const Tensor a = rand({100}, DType::f32, Device::cpu());
    return std::pair(a.to_doubles(), randn({100}, DType::f32, Device::cpu()).to_doubles());
  };
  seed(7);
  const auto first = draw(), second = draw();
  EXPECT_NE(first, second);
  seed(7);
  EXPECT_EQ(draw(), first);
  seed(8);
  EXPECT_NE(draw(), first);
  const Tensor many = randn({10000}, DType::f32, Device::cpu());
  EXPECT_NEAR(many.mean().item(), 0, 0.05);
  EXPECT_NEAR(many.variance().item(), 1, 0.05);
}

TEST(TensorMethods, PrintAsText) {
  std::ostringstream out;
  out << numbered({2}) << ", " << Tensor();
  EXPECT_EQ(out.str(), numbered({2}).text() + ", an empty Tensor");
}

}  // namespace
}  // namespace prism
