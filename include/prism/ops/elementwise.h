// Elementwise functions with broadcasting: arithmetic, comparison, activation.
//
// Operands may be numbers: a number takes the type and device of the other operand. Different types
// are promoted to a type that holds both (integers to floats, f16 with bf16 to f32).
#pragma once

#include <cstdint>
#include <variant>

#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism {

enum class ScalarOp : uint8_t;  // the elementwise functions

// An operand: a tensor or a number.
class TensorOrNumber {
 public:
  TensorOrNumber(const Tensor& tensor) : content_(tensor) {}
  TensorOrNumber(double number) : content_(number) {}
  const Tensor* tensor() const { return std::get_if<Tensor>(&content_); }
  double number() const { return std::get<double>(content_); }

 private:
  std::variant<Tensor, double> content_;
};

// The type to which elements of both types are promoted.
DType promoted(DType a, DType b);

// Applies op to its operands; throws kInvalidArgument for types that it does not support. For
// integers ScalarOp::div truncates; x / 0 is 0.
Tensor elementwise(ScalarOp op, const TensorOrNumber& a);
Tensor elementwise(ScalarOp op, const TensorOrNumber& a, const TensorOrNumber& b);
Tensor where(const Tensor& condition, const TensorOrNumber& if_true,
             const TensorOrNumber& if_false);
Tensor cast(const Tensor& x, ElementType type);  // floats to integers saturate; integers wrap
Tensor clamp(const Tensor& x, double low, double high);

Tensor operator+(const Tensor& a, const TensorOrNumber& b);
Tensor operator-(const Tensor& a, const TensorOrNumber& b);
Tensor operator*(const Tensor& a, const TensorOrNumber& b);
// True division: the result is a float. Integers become f32, i64 becomes f64.
Tensor operator/(const Tensor& a, const TensorOrNumber& b);
Tensor operator+(double a, const Tensor& b);
Tensor operator-(double a, const Tensor& b);
Tensor operator*(double a, const Tensor& b);
Tensor operator/(double a, const Tensor& b);
Tensor operator-(const Tensor& a);
// floor(a / b) in the common type of both. Integer division by 0 gives 0.
Tensor floor_divide(const Tensor& a, const TensorOrNumber& b);
// Comparisons give bool tensors. To test whether two handles share a node, compare node().
Tensor operator==(const Tensor& a, const Tensor& b);
Tensor operator==(const Tensor& a, double b);
Tensor operator==(double a, const Tensor& b);
Tensor operator!=(const Tensor& a, const Tensor& b);
Tensor operator!=(const Tensor& a, double b);
Tensor operator!=(double a, const Tensor& b);
Tensor equal(const Tensor& a, const TensorOrNumber& b);
Tensor not_equal(const Tensor& a, const TensorOrNumber& b);
Tensor operator<(const Tensor& a, const TensorOrNumber& b);
Tensor operator<=(const Tensor& a, const TensorOrNumber& b);
Tensor operator>(const Tensor& a, const TensorOrNumber& b);
Tensor operator>=(const Tensor& a, const TensorOrNumber& b);
Tensor logical_not(const Tensor& a);
Tensor logical_and(const Tensor& a, const Tensor& b);
Tensor logical_or(const Tensor& a, const Tensor& b);

Tensor abs(const Tensor& x);
Tensor sign(const Tensor& x);
Tensor exp(const Tensor& x);
Tensor log(const Tensor& x);
Tensor log1p(const Tensor& x);  // log(1 + x), accurate near 0
Tensor sqrt(const Tensor& x);
Tensor rsqrt(const Tensor& x);
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor erf(const Tensor& x);
Tensor sigmoid(const Tensor& x);
Tensor relu(const Tensor& x);
Tensor gelu(const Tensor& x);       // exact, with erf
Tensor gelu_tanh(const Tensor& x);  // tanh approximation
Tensor silu(const Tensor& x);
Tensor square(const Tensor& x);
Tensor reciprocal(const Tensor& x);
Tensor floor(const Tensor& x);
Tensor ceil(const Tensor& x);
Tensor round(const Tensor& x);  // halves to even
Tensor pow(const Tensor& x, const TensorOrNumber& exponent);
Tensor minimum(const Tensor& a, const TensorOrNumber& b);  // propagates NaN
Tensor maximum(const Tensor& a, const TensorOrNumber& b);

// A tensor filled with one value.
Tensor full(const Shape& shape, double value, ElementType type = DType::f32,
            const Device& device = {});
Tensor zeros(const Shape& shape, ElementType type = DType::f32, const Device& device = {});
Tensor ones(const Shape& shape, ElementType type = DType::f32, const Device& device = {});

}  // namespace prism

#pragma GCC visibility pop
