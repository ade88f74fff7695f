// The methods of Tensor that are ops: they forward to the free functions of prism/ops.h.
#include <fmt/format.h>

#include "prism/error.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/index.h"
#include "prism/ops/matmul.h"
#include "prism/ops/reduce.h"
#include "prism/ops/scan.h"
#include "prism/ops/softmax.h"
#include "prism/tensor.h"
#include "tensor/op.h"

namespace prism {

namespace {

// The numbers of the rows where a mask is true.
Tensor true_rows(const Tensor& mask) {
  const std::vector<uint8_t> truth = mask.to_vector<uint8_t>();
  std::vector<int64_t> rows;
  for (size_t i = 0; i < truth.size(); ++i)
    if (truth[i] != 0) rows.push_back(static_cast<int64_t>(i));
  return from_vector(rows, {static_cast<int64_t>(rows.size())}, mask.device());
}

// The axes that a mask selects from, as one.
Shape masked_shape(const Shape& shape, const Shape& mask) {
  bool fits = mask.rank() > 0 && mask.rank() <= shape.rank();
  for (int axis = 0; fits && axis < mask.rank(); ++axis) fits = shape[axis] == mask[axis];
  if (!fits) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("x[mask]: a mask of shape {} for a tensor of shape {}; the mask must "
                            "have the lengths of the first axes",
                            mask.text(), shape.text()));
  }
  Shape result = {mask.elements()};
  for (int axis = mask.rank(); axis < shape.rank(); ++axis) result.append(shape[axis]);
  return result;
}

}  // namespace

Tensor Tensor::rows_at(const Tensor& indices) const {
  if (!indices || !(indices.dtype() == DType::b1)) return gather_rows(*this, indices);
  return gather_rows(reshape(masked_shape(shape(), indices.shape())), true_rows(indices));
}

Tensor Tensor::astype(ElementType type) const { return cast(*this, type); }

Tensor Tensor::sum(const Axes& axes, bool keep_dims) const {
  return prism::sum(*this, axes, keep_dims);
}
Tensor Tensor::mean(const Axes& axes, bool keep_dims) const {
  return prism::mean(*this, axes, keep_dims);
}
Tensor Tensor::variance(const Axes& axes, double correction, bool keep_dims) const {
  return prism::variance(*this, axes, correction, keep_dims);
}
Tensor Tensor::max(const Axes& axes, bool keep_dims) const {
  return prism::max(*this, axes, keep_dims);
}
Tensor Tensor::min(const Axes& axes, bool keep_dims) const {
  return prism::min(*this, axes, keep_dims);
}
Tensor Tensor::all(const Axes& axes, bool keep_dims) const {
  return prism::all(*this, axes, keep_dims);
}
Tensor Tensor::any(const Axes& axes, bool keep_dims) const {
  return prism::any(*this, axes, keep_dims);
}
Tensor Tensor::argmax(int axis, bool keep_dims) const {
  return prism::argmax(*this, axis, keep_dims);
}
Tensor Tensor::argmin(int axis, bool keep_dims) const {
  return prism::argmin(*this, axis, keep_dims);
}
Tensor Tensor::cumsum(int axis) const { return prism::cumsum(*this, axis); }
Tensor Tensor::softmax(int axis) const { return prism::softmax(*this, axis); }
Tensor Tensor::matmul(const Tensor& other) const { return prism::matmul(*this, other); }
Tensor Tensor::pow(const TensorOrNumber& exponent) const { return prism::pow(*this, exponent); }
Tensor Tensor::clamp(double low, double high) const { return prism::clamp(*this, low, high); }
Tensor Tensor::abs() const { return prism::abs(*this); }
Tensor Tensor::exp() const { return prism::exp(*this); }
Tensor Tensor::log() const { return prism::log(*this); }
Tensor Tensor::sqrt() const { return prism::sqrt(*this); }
Tensor Tensor::rsqrt() const { return prism::rsqrt(*this); }
Tensor Tensor::square() const { return prism::square(*this); }
Tensor Tensor::sin() const { return prism::sin(*this); }
Tensor Tensor::cos() const { return prism::cos(*this); }
Tensor Tensor::tanh() const { return prism::tanh(*this); }
Tensor Tensor::sigmoid() const { return prism::sigmoid(*this); }
Tensor Tensor::relu() const { return prism::relu(*this); }
Tensor Tensor::floor() const { return prism::floor(*this); }
Tensor Tensor::ceil() const { return prism::ceil(*this); }
Tensor Tensor::round() const { return prism::round(*this); }

Tensor& Tensor::assign(const Tensor& updated) {
  const bool stays_leaf = NoGrad::active() && requires_grad() && is_whole_leaf();
  const Tensor gradient = stays_leaf ? node_->grad : Tensor();
  *this = updated;
  if (stays_leaf) {
    set_requires_grad();
    node_->grad = gradient;
  }
  return *this;
}

Tensor& Tensor::operator+=(const TensorOrNumber& other) { return assign(*this + other); }
Tensor& Tensor::operator-=(const TensorOrNumber& other) { return assign(*this - other); }
Tensor& Tensor::operator*=(const TensorOrNumber& other) { return assign(*this * other); }
Tensor& Tensor::operator/=(const TensorOrNumber& other) { return assign(*this / other); }

}  // namespace prism
