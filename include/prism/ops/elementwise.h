// Functions of single elements over tensors, with broadcasting: arithmetic, comparison, activation.
//
// Operands may be numbers: a number takes the type and device of the tensor beside it. Different
// types meet at the one that holds both (integers below floats, f16 with bf16 at f32).
#pragma once

#include <cstdint>
#include <variant>

#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism {

enum class ScalarOp : uint8_t;  // the functions of single elements

// A tensor, or a number beside one.
class TensorOrNumber {
 public:
  TensorOrNumber(const Tensor& tensor) : content_(tensor) {}
  TensorOrNumber(double number) : content_(number) {}
  const Tensor* tensor() const { return std::get_if<Tensor>(&content_); }
  double number() const { return std::get<double>(content_); }

 private:
  std::variant<Tensor, double> content_;
};

// The type that elements of both types take together.
DType promoted(DType a, DType b);

// op over as many operands as it has; throws kInvalidArgument for types it has no meaning for.
Tensor elementwise(ScalarOp op, const TensorOrNumber& a);
Tensor elementwise(ScalarOp op, const TensorOrNumber& a, const TensorOrNumber& b);
Tensor where(const Tensor& condition, const TensorOrNumber& if_true,
             const TensorOrNumber& if_false);
Tensor cast(const Tensor& x, ElementType type);  // floats to integers saturate; integers wrap
Tensor clamp(const Tensor& x, double low, double high);

Tensor operator+(const Tensor& a, const TensorOrNumber& b);
Tensor operator-(const Tensor& a, const TensorOrNumber& b);
Tensor operator*(const Tensor& a, const TensorOrNumber& b);
Tensor operator/(const Tensor& a, const TensorOrNumber& b);  // integers: towards zero, by 0 is 0
Tensor operator+(double a, const Tensor& b);
Tensor operator-(double a, const Tensor& b);
Tensor operator*(double a, const Tensor& b);
Tensor operator/(double a, const Tensor& b);
Tensor operator-(const Tensor& a);
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
Tensor sqrt(const Tensor& x);
Tensor rsqrt(const Tensor& x);
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor erf(const Tensor& x);
Tensor sigmoid(const Tensor& x);
Tensor relu(const Tensor& x);
Tensor gelu(const Tensor& x);       // by the error function
Tensor gelu_tanh(const Tensor& x);  // its approximation by tanh
Tensor silu(const Tensor& x);
Tensor square(const Tensor& x);
Tensor reciprocal(const Tensor& x);
Tensor floor(const Tensor& x);
Tensor ceil(const Tensor& x);
Tensor round(const Tensor& x);  // halves to even
Tensor pow(const Tensor& x, const TensorOrNumber& exponent);
Tensor minimum(const Tensor& a, const TensorOrNumber& b);  // NaN if either is
Tensor maximum(const Tensor& a, const TensorOrNumber& b);

// One value everywhere.
Tensor full(const Shape& shape, double value, ElementType type = DType::f32,
            const Device& device = {});
Tensor zeros(const Shape& shape, ElementType type = DType::f32, const Device& device = {});
Tensor ones(const Shape& shape, ElementType type = DType::f32, const Device& device = {});

}  // namespace prism

#pragma GCC visibility pop
